"""The inner LP of a node in core form: made once for a node, given vertices and their values many times.

Rows ``x' - sum_k lambda_k (x_k - r) - u+ + u- = r`` tie the outgoing state to the vertices, with a reference
r that many components of vertices equal: full or empty reservoirs make no entry. Everything is in units of
the LP's columns, lambda in ``unit`` of them, so that no coefficient is larger than about 1. That lambda is at
most 1 follows from its sum; as a limit it lets the dual simplex start from any basis whatever the values of
the vertices are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.lp import StageTemplate
from cobre.lp.arrays import F64_1D, F64_2D, I32_1D
from cobre.lp.engines.own.core import CoreArrays, CutColumns, core_arrays, cut_columns
from cobre.lp.reduction import CoreForm, core_form
from cobre.lp.reduction.sparse import starts, totals
from cobre.policy.boundary import BoundaryCuts
from cobre.sddp.upper_bound.appending import Entries, appended
from cobre.sddp.upper_bound.inner_lp import without_theta

FloatArray = NDArray[np.float64]
B8_1D = Annotated[NDArray[np.bool_], types.boolean[::1]]


class Dynamics(NamedTuple):
    """How the extended right-hand side [b; fixed] follows from the values of an opening and a state.

    Names as of :class:`cobre.lp.reduction.CoreForm` and :class:`cobre.lp.StageTemplate`; ``fixed_slope`` by
    (fixed column, cut) and ``cut_constant`` make the constants of boundary cuts.
    """

    base: F64_1D
    noise_start: I32_1D
    noise_row: I32_1D
    noise_value: F64_1D
    state_start: I32_1D
    state_row: I32_1D
    state_value: F64_1D
    psi_start: I32_1D
    psi_component: I32_1D
    psi_value: F64_1D
    truncated: B8_1D
    fixed_slope: F64_2D
    cut_constant: F64_1D


@dataclass(frozen=True, eq=False)
class InnerCore:
    """An LP for the engine; its value ($) is ``cost_scale`` times that of the core, plus ``offset``.

    Attributes
    ----------
    largest_cost
        The largest finite slope.
    state_weight
        By component of the incoming state: the norm of what one unit changes in the right-hand side.
    """

    core: CoreArrays
    cuts: CutColumns
    dynamics: Dynamics
    cost_scale: float
    offset: float
    largest_cost: float
    state_weight: FloatArray


class LinkedCore:
    """The LP of a node with rows for vertices, none of which it has yet.

    Parameters
    ----------
    up, down
        Prices of moving the outgoing state, $ per unit; ``inf`` forbids the move.
    """

    def __init__(self, template: StageTemplate, up: FloatArray, down: FloatArray) -> None:
        self.template = template
        self._form = core_form(_linked(template, up, down))
        form, first = self._form, template.num_rows
        start, end = form.dual_start[first], form.dual_start[-1]
        rows = np.repeat(np.arange(template.num_states + 1), np.diff(form.dual_start[first:]))
        self._links = list(
            zip(rows.tolist(), form.dual_row[start:end].tolist(), form.dual_value[start:end], strict=True)
        )
        # The last structural stands for the vertices.
        self._holder = form.num_cols - 1

    def at(self, vertices: FloatArray, values: FloatArray) -> InnerCore:
        """Return the LP whose future cost at ``vertices`` (V x n) is at most ``values`` ($, all finite)."""
        template, form = self.template, self._form
        scale = template.col_scale[template.state_col]
        reference = np.array([_most_frequent(component) for component in vertices.T])
        distance = (vertices - reference) / scale
        unit = float(2.0 ** np.round(np.log2(np.abs(distance).max()))) if distance.any() else 1.0
        entries = np.column_stack([-distance / unit, np.ones(len(distance))])
        constants = np.append(reference / scale, unit)
        block = np.zeros((len(vertices), form.num_rows))
        base = form.base.copy()
        for link, row, weight in self._links:
            block[:, row] += weight * entries[:, link]
            base[row] += weight * constants[link]
        least = float(values.min())
        price = template.discount / template.cost_scale * (values - least) / unit
        core = core_arrays(_with_columns(form, self._holder, block, price, unit))
        nothing = cut_columns(np.zeros((form.num_state_rows, 0)))
        return InnerCore(
            core,
            nothing,
            _dynamics(template, form, base, np.zeros((form.num_fixed, 0)), np.zeros(0)),
            template.cost_scale,
            template.discount * least,
            _largest_cost(core),
            _state_weight(template, form),
        )


def stateless_core(template: StageTemplate, value: float) -> InnerCore:
    """Return the LP of a node without states, whose future cost is ``value`` ($)."""
    return replace(last_core(without_theta(template), None), offset=template.discount * value)


def last_core(template: StageTemplate, cuts: BoundaryCuts | None) -> InnerCore:
    """Return the LP of a node of the last stage, whose future cost is 0 or the maximum of cuts."""
    form = core_form(template)
    core = core_arrays(form)
    states, count = template.num_states, 0 if cuts is None else len(cuts.intercepts)
    slopes, constant = np.zeros((states, count)), np.zeros(count)
    if cuts is not None:
        slopes[:] = (cuts.slopes * template.col_scale[template.state_col] / template.cost_scale).T
        constant[:] = cuts.intercepts / template.cost_scale
    on_rows, on_fixed = np.zeros((form.num_state_rows, count)), np.zeros((form.num_fixed, count))
    for component in range(states):
        if form.state_place[component] >= 0:
            on_rows[form.state_place[component]] += slopes[component]
        else:
            on_fixed[form.fixed_place[component]] += slopes[component]
    return InnerCore(
        core,
        cut_columns(on_rows),
        _dynamics(template, form, form.base, on_fixed, constant),
        template.cost_scale,
        0.0,
        _largest_cost(core),
        _state_weight(template, form),
    )


def _linked(template: StageTemplate, up: FloatArray, down: FloatArray) -> StageTemplate:
    """Return the LP with link rows, moves, and one column in place of all vertices behind its own."""
    states, first_row, first_col = template.num_states, template.num_rows, template.num_cols
    link = np.arange(first_row, first_row + states)
    more, less = (np.flatnonzero(np.isfinite(prices)) for prices in (up, down))
    moves = first_col + np.arange(len(more) + len(less))
    holder = np.full(states + 1, first_col + len(moves))
    entries = Entries(
        row=np.concatenate([link, link[more], link[less], link, [first_row + states]]),
        column=np.concatenate([template.state_col, moves, holder]).astype(np.int64),
        value=np.concatenate([np.ones(states), -np.ones(len(more)), np.ones(len(less) + states + 1)]),
    )
    unit = template.discount / template.cost_scale * template.col_scale[template.state_col]
    cost = np.concatenate([(unit * up)[more], (unit * down)[less], [0.0]])
    return appended(
        without_theta(template),
        entries,
        cost=cost,
        lower=np.zeros(len(cost)),
        upper=np.concatenate([np.full(len(moves), np.inf), [1.0]]),
        row_lower=np.zeros(states + 1),
        row_upper=np.zeros(states + 1),
    )


def _with_columns(form: CoreForm, holder: int, block: FloatArray, price: FloatArray, unit: float) -> CoreForm:
    """Return the form with columns (``block`` by column and row) in place of the holder.

    Each column lies between 0 and ``unit`` at its ``price``.
    """
    count = len(block)
    column, entry_row = np.nonzero(block)
    value = block[column, entry_row]
    kept = form.row_col != holder
    row = np.concatenate([np.repeat(np.arange(form.num_rows), np.diff(form.row_start))[kept], entry_row])
    order = np.argsort(row, kind="stable")
    end = form.col_start[holder]
    first = form.piece_start[holder]
    rest = form.piece_start[holder + 1]

    def pieces(array: FloatArray, added: FloatArray) -> FloatArray:
        return np.concatenate([array[:first], added.ravel(), array[rest:]])

    def columns(*values: float | FloatArray) -> FloatArray:
        return np.column_stack([np.broadcast_to(value, count) for value in values]).astype(np.float64)

    return replace(
        form,
        num_cols=holder + count,
        row_start=starts(np.bincount(row, minlength=form.num_rows)),
        row_col=np.concatenate([form.row_col[kept], holder + column])[order].astype(np.int32),
        row_value=np.concatenate([form.row_value[kept], value])[order],
        col_start=np.concatenate(
            [form.col_start[: holder + 1], end + np.cumsum(np.bincount(column, minlength=count))]
        ).astype(np.int32),
        col_row=np.concatenate([form.col_row[:end], entry_row]).astype(np.int32),
        col_value=np.concatenate([form.col_value[:end], value]),
        piece_start=np.concatenate(
            [
                form.piece_start[:holder],
                first + 4 * np.arange(count),
                form.piece_start[holder + 1 :] + (first + 4 * count - rest),
            ]
        ).astype(np.int32),
        kink=pieces(form.kink, columns(-np.inf, 0.0, unit, np.inf)),
        slope=pieces(form.slope, columns(-np.inf, price, np.inf, np.nan)),
        cost_at_kink=pieces(form.cost_at_kink, columns(np.nan, 0.0, price * unit, np.nan)),
    )


def _dynamics(
    template: StageTemplate, form: CoreForm, base: FloatArray, fixed_slope: FloatArray, constant: FloatArray
) -> Dynamics:
    # Copies: arrays that are read-only would be another type for kernels.
    return Dynamics(
        base.copy(),
        form.noise_start.astype(np.int32),
        form.noise_row.astype(np.int32),
        form.noise_value.copy(),
        form.state_start.astype(np.int32),
        form.state_row.astype(np.int32),
        form.state_value.copy(),
        template.psi_start.astype(np.int32),
        template.psi_component.astype(np.int32),
        template.psi_value.copy(),
        template.truncated.copy(),
        fixed_slope,
        constant,
    )


def _state_weight(template: StageTemplate, form: CoreForm) -> FloatArray:
    component = np.repeat(np.arange(template.num_states), np.diff(form.state_start))
    entity = np.repeat(np.arange(len(form.noise_start) - 1), np.diff(form.noise_start))
    square = totals(component, np.square(form.state_value), template.num_states)
    of_noise = totals(entity, np.square(form.noise_value), len(form.noise_start) - 1)
    plant = np.repeat(np.arange(len(template.psi_start) - 1), np.diff(template.psi_start))
    by_lag = np.square(template.psi_value) * of_noise[plant]
    return np.sqrt(square + totals(template.psi_component, by_lag, template.num_states))


def _most_frequent(component: FloatArray) -> float:
    values, count = np.unique(component, return_counts=True)
    return float(values[np.argmax(count)])


def _largest_cost(core: CoreArrays) -> float:
    return float(np.abs(core.slope[np.isfinite(core.slope)]).max(initial=0.0))
