"""Scaling of stage LPs: rows, columns and costs by powers of two, so that no digit changes.

Columns and rows are scaled in turns by ``1 / sqrt(max |a| * min |a|)`` of their entries (geometric scaling),
rounded to a power of two, until nothing changes or the turns are used up. A scale depends on the entries of
the row or column alone, not on the order of entities. Stages whose coefficients are close together as they
are stay in physical units, in which the simplex method takes fewer steps.

Costs are divided by one number for all stages (:mod:`cobre.lp.cost_unit`). The future cost keeps the unit of
the objective, so that cuts can move between stages.

What HiGHS would drop, or take for infinite, after scaling is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.errors import Problem, ValidationError
from cobre.lp.highs import INFINITE, LARGEST_COEFFICIENT, SMALLEST_COEFFICIENT
from cobre.lp.reach import largest_right_hand_sides
from cobre.lp.template import StageTemplate

FloatArray = NDArray[np.float64]

BAD_RATIO = 1.0e9
"""A range of coefficients beyond which a solver's tolerances cannot distinguish small from zero."""

WIDE_RATIO = 1.0e6
"""A range of matrix coefficients beyond which a stage is scaled."""

_TURNS = 4


@dataclass(frozen=True)
class Range:
    """Smallest and largest magnitude of some coefficients that are not 0 (both 1 if there is none)."""

    least: float
    most: float

    @property
    def ratio(self) -> float:
        """Largest over smallest."""
        return self.most / self.least


@dataclass(frozen=True)
class ScaleFactors:
    """Summary of the factors of rows or columns."""

    least: float
    most: float
    median: float
    count: int


@dataclass(frozen=True)
class StageScaling:
    """What scaling did to one stage LP; objective ranges are without the future cost."""

    stage_id: int
    num_cols: int
    num_rows: int
    num_nonzeros: int
    matrix_before: Range
    matrix_after: Range
    objective_before: Range
    objective_after: Range
    col_scale: ScaleFactors
    row_scale: ScaleFactors

    def warnings(self) -> tuple[str, ...]:
        """Describe what is still badly scaled."""
        return tuple(
            f"stage {self.stage_id}: coefficients of the {what} range over {after.least:.3g} .. "
            f"{after.most:.3g} after scaling; look for limits, costs or units that are far from the others"
            for what, after in (("matrix", self.matrix_after), ("objective", self.objective_after))
            if after.ratio > BAD_RATIO
        )

    def __repr__(self) -> str:
        size = f"{self.num_rows} rows, {self.num_cols} columns, {self.num_nonzeros} nonzeros"
        return f"StageScaling(stage {self.stage_id}: {size})"


@dataclass(frozen=True)
class ScalingReport:
    """Ranges before and after scaling, by stage."""

    cost_scale: float
    stages: tuple[StageScaling, ...]

    def __repr__(self) -> str:
        return f"ScalingReport({len(self.stages)} stages, cost scale {self.cost_scale!r})"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Description of what is still badly scaled."""
        return tuple(text for stage in self.stages for text in stage.warnings())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is still badly scaled, as warnings."""
        return tuple(
            Problem("ModelQuality", f"{text}.", {"stage": stage.stage_id})
            for stage in self.stages
            for text in stage.warnings()
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as ``scaling_report.json`` holds it."""
        return {
            "cost_scale_factor": self.cost_scale,
            "stages": [
                {
                    "stage_id": stage.stage_id,
                    "dimensions": {
                        "num_cols": stage.num_cols,
                        "num_rows": stage.num_rows,
                        "num_nz": stage.num_nonzeros,
                    },
                    "pre_scaling": _ranges(stage.matrix_before, stage.objective_before),
                    "post_scaling": _ranges(stage.matrix_after, stage.objective_after),
                    "col_scale": _summary(stage.col_scale),
                    "row_scale": _summary(stage.row_scale),
                }
                for stage in self.stages
            ],
        }


def _ranges(matrix: Range, objective: Range) -> dict[str, Any]:
    return {
        "matrix_coeff_range": [matrix.least, matrix.most],
        "matrix_coeff_ratio": matrix.ratio,
        "objective_range": [objective.least, objective.most],
        "objective_ratio": objective.ratio,
    }


def _summary(factors: ScaleFactors) -> dict[str, float]:
    return {
        "min": factors.least,
        "max": factors.most,
        "median": factors.median,
        "count": factors.count,
    }


def scale_templates(
    templates: Sequence[StageTemplate], *, beyond: float = WIDE_RATIO
) -> tuple[tuple[StageTemplate, ...], ScalingReport]:
    """Scale physical templates.

    Parameters
    ----------
    templates
        As :func:`cobre.lp.build_templates` returns them.
    beyond
        Stages whose largest matrix coefficient is more than so many times the smallest one are scaled:
        0 scales all, infinity none.

    Returns
    -------
    (tuple of StageTemplate, ScalingReport)
        The LPs that engines solve, with their ``col_scale`` and ``row_scale``.

    Raises
    ------
    ValidationError
        When a number cannot be represented in the LPs; names what it belongs to.
    """
    scaled = tuple(
        _scale(template) if _range(template.matrix_value).ratio > beyond else template
        for template in templates
    )
    for template in scaled:
        require_representable(template)
    stages = tuple(_describe(*pair) for pair in zip(templates, scaled, strict=True))
    return scaled, ScalingReport(templates[0].cost_scale, stages)


def _scale(template: StageTemplate) -> StageTemplate:
    column = np.repeat(np.arange(template.num_cols), np.diff(template.matrix_start))
    row = template.matrix_row
    value = np.abs(template.matrix_value)
    col_scale, row_scale = np.ones(template.num_cols), np.ones(template.num_rows)
    for _ in range(_TURNS):
        by_column = _centre(value * row_scale[row] * col_scale[column], column, template.num_cols)
        col_scale = col_scale * by_column
        by_row = _centre(value * row_scale[row] * col_scale[column], row, template.num_rows)
        row_scale = row_scale * by_row
        if (by_column == 1.0).all() and (by_row == 1.0).all():
            break
    return replace(
        template,
        cost=template.cost * col_scale,
        col_lower=template.col_lower / col_scale,
        col_upper=template.col_upper / col_scale,
        row_lower=template.row_lower * row_scale,
        row_upper=template.row_upper * row_scale,
        matrix_value=template.matrix_value * row_scale[row] * col_scale[column],
        state_value=template.state_value * row_scale[template.state_row],
        fixed_rhs=template.fixed_rhs * row_scale[: template.num_dynamic_rows],
        noise_value=template.noise_value * row_scale[template.noise_row],
        col_scale=col_scale,
        row_scale=row_scale,
    )


def require_representable(template: StageTemplate) -> None:
    """Refuse numbers that HiGHS would drop or take for infinite.

    Raises
    ------
    ValidationError
        Names the column or row of the first one.
    """
    size = np.abs(template.matrix_value)
    entries = np.flatnonzero(~((size > SMALLEST_COEFFICIENT) & (size < LARGEST_COEFFICIENT)))
    if len(entries):
        column = int(np.searchsorted(template.matrix_start, entries[0], side="right")) - 1
        row = int(template.matrix_row[entries[0]])
        raise _not_representable(
            template,
            template.col_names[column],
            f"coefficient in {template.row_names[row]}",
            float(template.matrix_value[entries[0]] / template.row_scale[row] / template.col_scale[column]),
        )
    for what, values, of_column, infinite in (
        ("cost", template.cost, True, False),
        ("lower limit", template.col_lower, True, True),
        ("upper limit", template.col_upper, True, True),
        ("lower limit", template.row_lower, False, True),
        ("upper limit", template.row_upper, False, True),
        ("right-hand side", largest_right_hand_sides(template), False, False),
    ):
        wrong = np.flatnonzero(~(np.abs(values) < INFINITE) & ~(np.isinf(values) & infinite))
        if len(wrong):
            # Only now: names of all columns and rows take more room than the numbers.
            names = template.col_names if of_column else template.row_names
            raise _not_representable(template, names[wrong[0]], what, float(values[wrong[0]]))


def _not_representable(template: StageTemplate, entity: str, field: str, value: float) -> ValidationError:
    problem = Problem(
        "InvalidValue",
        f"stage {template.stage_id}: the {field} of {entity}, {value:.3g}, cannot be represented in an LP",
        {"stage": template.stage_id, "entity": entity, "field": field, "value": value},
        "look for limits, loads, costs or units that are far from the others",
    )
    return ValidationError([problem], "stage LPs")


def _centre(value: FloatArray, group: NDArray[np.int32] | NDArray[np.int64], count: int) -> FloatArray:
    """Return for each group the power of two that brings the middle of its values next to 1."""
    least, most = np.full(count, np.inf), np.zeros(count)
    np.minimum.at(least, group, value)
    np.maximum.at(most, group, value)
    empty = most == 0.0
    least[empty] = most[empty] = 1.0
    return _power_of_two(1.0 / (np.sqrt(least) * np.sqrt(most)))


def _power_of_two(value: FloatArray) -> FloatArray:
    power: FloatArray = np.exp2(np.rint(np.log2(value)))
    return power


def _range(values: FloatArray) -> Range:
    size = np.abs(values[values != 0.0])
    return Range(float(size.min()), float(size.max())) if len(size) else Range(1.0, 1.0)


def _describe(before: StageTemplate, after: StageTemplate) -> StageScaling:
    others = np.arange(before.num_cols) != before.theta_col
    return StageScaling(
        stage_id=before.stage_id,
        num_cols=before.num_cols,
        num_rows=before.num_rows,
        num_nonzeros=len(before.matrix_value),
        matrix_before=_range(before.matrix_value),
        matrix_after=_range(after.matrix_value),
        objective_before=_range(before.cost[others] * before.cost_scale),
        objective_after=_range(after.cost[others]),
        col_scale=_factors(after.col_scale),
        row_scale=_factors(after.row_scale),
    )


def _factors(scale: FloatArray) -> ScaleFactors:
    if not len(scale):
        return ScaleFactors(1.0, 1.0, 1.0, 0)
    return ScaleFactors(float(scale.min()), float(scale.max()), float(np.median(scale)), len(scale))
