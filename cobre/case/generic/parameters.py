"""Scalar parameters: checks of their declaration, and their values by stage and block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.format import layout
from cobre.case.format.schema.generic import (
    AnyParameter,
    ComputedParameter,
    ConstantParameter,
    PerStageBlockParameter,
    PerStageParameter,
    SeasonalParameter,
)
from cobre.case.format.schema.stages import StageEntry
from cobre.case.format.sources import Sources
from cobre.case.model import Case, Stage
from cobre.case.problems import Reporter, known_ids, name_entity, short_ids

FloatArray = NDArray[np.float64]

_FILE = layout.GENERIC_PARAMETERS
_MAX_CELLS = 10
"""Cells of a table of blocks that one message lists."""


def _entity(parameter: AnyParameter) -> str:
    return name_entity("parameter", parameter.id, parameter.name)


def check_parameters(sources: Sources, reporter: Reporter) -> None:
    """Check ids, names, the plants of computed parameters and the coverage of stages and blocks."""
    parsed = sources.generic_parameters
    if parsed is None:
        return
    ids = parsed.ids if parsed.ids is not None else [item.id for item in parsed.items]
    for word, values in (("id", ids), ("name", [item.name for item in parsed.items])):
        for value, count in sorted(Counter(values).items()):
            if count > 1:
                reporter.error(
                    "DuplicateId",
                    f"{_FILE}: {count} parameters have the {word} {value!r}.",
                    file=_FILE,
                    entity=f"parameter {value}",
                    field=word,
                    value=value,
                    rule="scalar_parameters.C",
                    suggestion=f"Give every parameter {'an id' if word == 'id' else 'a name'} of its own.",
                )
    stages = {stage.id: stage for stage in sources.stages.items if stage.id >= 0}
    complete = sources.stages.ids is not None and len(stages) == len(
        [number for number in sources.stages.id_set if number >= 0]
    )
    for item in by_id(parsed.items):
        if isinstance(item, ComputedParameter):
            check_reference(
                item.computed_spec.hydro_id,
                sources.hydros,
                "hydro",
                _FILE,
                _entity(item),
                "computed_spec.hydro_id",
                reporter,
                rule="scalar_parameters.A",
            )
        elif isinstance(item, PerStageParameter) and complete:
            _check_stages(item, sorted(stages), reporter)
        elif isinstance(item, SeasonalParameter):
            check_unique(
                [season for season, _ in item.values],
                _FILE,
                "season",
                reporter,
                field="values",
                entity=_entity(item),
            )
        elif isinstance(item, PerStageBlockParameter) and complete:
            _check_cells(item, stages, reporter)


def _check_stages(item: PerStageParameter, stages: Sequence[int], reporter: Reporter) -> None:
    entity = _entity(item)
    given = [stage for stage, _ in item.values]
    check_unique(given, _FILE, "stage", reporter, field="values", entity=entity)
    missing, unknown = sorted(set(stages) - set(given)), sorted(set(given) - set(stages))
    if missing:
        reporter.error(
            "DimensionMismatch",
            f"{_FILE}: values of {entity} has no value for stage {short_ids(missing)}.",
            file=_FILE,
            entity=entity,
            field="values",
            value=short_ids(missing),
            rule="scalar_parameters.B",
            suggestion="Give exactly one [stage_id, value] for every study stage.",
        )
    if unknown:
        reporter.error(
            "InvalidReference",
            f"{_FILE}: values of {entity} names stage {short_ids(unknown)}, which is no study stage.",
            file=_FILE,
            entity=entity,
            field="values",
            value=short_ids(unknown),
            rule="scalar_parameters.B",
            suggestion=known_ids(stages, "stage"),
        )


def _check_cells(item: PerStageBlockParameter, stages: Mapping[int, StageEntry], reporter: Reporter) -> None:
    entity = _entity(item)
    given = Counter((stage, block) for stage, block, _ in item.block_values)
    wanted = {(stage.id, block.id) for stage in stages.values() for block in stage.blocks}
    for kind, cells, what, todo in (
        ("DimensionMismatch", wanted - set(given), "has no value for", "Give exactly one for each block."),
        ("InvalidReference", set(given) - wanted, "names", "There is no such block in the study; remove it."),
        ("DuplicateId", {cell for cell, n in given.items() if n > 1}, "repeats", "Keep one of them."),
    ):
        if cells:
            shown = ", ".join(f"[{stage}, {block}]" for stage, block in sorted(cells)[:_MAX_CELLS])
            more = f" and {len(cells) - _MAX_CELLS} more" if len(cells) > _MAX_CELLS else ""
            reporter.error(
                kind,
                f"{_FILE}: block_values of {entity} {what} [stage, block] {shown}{more}.",
                file=_FILE,
                entity=entity,
                field="block_values",
                value=shown,
                rule="scalar_parameters.B",
                suggestion=todo,
            )


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """Values of one parameter: for each stage one number, or one for each of its blocks."""

    values: tuple[FloatArray, ...]
    varies_by_block: bool = False

    def at(self, stage: int, block: int | None) -> float:
        """Return the value at a stage and block (positions); without a block, that of the stage."""
        row = self.values[stage]
        return float(row[block if self.varies_by_block and block is not None else 0])


def resolve_parameters(case: Case, sources: Sources, reporter: Reporter) -> dict[str, ParameterTable]:
    """Return the values of every parameter by name. Only for sources without errors.

    What a parameter needs and the case does not have is reported.
    """
    parsed = sources.generic_parameters
    if parsed is None:
        return {}
    tables = {}
    for item in by_id(parsed.items):
        table = _table(item, case, reporter)
        if table is not None:
            tables[item.name] = table
    return tables


def _by_stage(values: Sequence[float] | FloatArray) -> ParameterTable:
    return ParameterTable(tuple(np.array([value]) for value in values))


def _table(item: AnyParameter, case: Case, reporter: Reporter) -> ParameterTable | None:
    if isinstance(item, ConstantParameter):
        return _by_stage([item.value] * len(case.stages))
    if isinstance(item, PerStageParameter):
        by_id = dict(item.values)
        return _by_stage([by_id[stage.id] for stage in case.stages])
    if isinstance(item, PerStageBlockParameter):
        cells = {(stage, block): value for stage, block, value in item.block_values}
        return ParameterTable(
            tuple(np.array([cells[stage.id, block.id] for block in stage.blocks]) for stage in case.stages),
            varies_by_block=True,
        )
    if isinstance(item, SeasonalParameter):
        return _seasonal(item, case.stages, reporter)
    position = [hydro.id for hydro in case.hydros].index(item.computed_spec.hydro_id)
    if case.energy is None:
        raise ValueError("a case from files has the energy of its plants")
    values = case.energy.parameter(item.computed_spec.tag, position)
    missing = [stage.id for stage, value in zip(case.stages, values, strict=True) if np.isnan(value)]
    if missing:
        plant = name_entity("hydro", item.computed_spec.hydro_id, case.hydros[position].name)
        reporter.error(
            "DimensionMismatch",
            f"{_FILE}: {_entity(item)} needs the {item.computed_spec.tag} of {plant}, "
            f"which is not given at stage {short_ids(missing)}.",
            file=_FILE,
            entity=_entity(item),
            field="computed_spec.tag",
            value=item.computed_spec.tag,
            rule="scalar_parameters.A",
            suggestion="Give specific_productivity_mw_per_m3s_per_m in hydros.json.",
        )
        return None
    return _by_stage(values)


def _seasonal(item: SeasonalParameter, stages: Sequence[Stage], reporter: Reporter) -> ParameterTable | None:
    by_season: dict[Any, float] = dict(item.values)
    missing = [stage.id for stage in stages if stage.season_id not in by_season]
    if missing:
        reporter.error(
            "DimensionMismatch",
            f"{_FILE}: values of {_entity(item)} has none for the season of stage {short_ids(missing)}.",
            file=_FILE,
            entity=_entity(item),
            field="values",
            value=short_ids(missing),
            rule="scalar_parameters.B",
            suggestion="Give a value for every season of the study, and let every stage have a season.",
        )
        return None
    return _by_stage([by_season[stage.season_id] for stage in stages])
