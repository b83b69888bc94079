"""External scenarios: values by (stage, scenario, entity).

Nodes of the policy graph refer to them; without such nodes forward passes draw them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.config import external_classes, has_scenario_nodes, simulated_external_classes
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.parse import Parsed
from cobre.case.format.sources import Sources
from cobre.case.format.tables import read_table
from cobre.case.model.options import ClassName
from cobre.case.problems import Reporter, short_ids
from cobre.case.scenarios.rows import Rows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ExternalFile:
    """The names in one file of external scenarios."""

    path: str
    word: str
    id_column: str
    value_column: str


FILES: dict[ClassName, ExternalFile] = {
    "inflow": ExternalFile(layout.EXTERNAL_INFLOW, "hydro", "hydro_id", "value_m3s"),
    "load": ExternalFile(layout.EXTERNAL_LOAD, "bus", "bus_id", "value_mw"),
    "ncs": ExternalFile(layout.EXTERNAL_NCS, "non-controllable source", "ncs_id", "availability_factor"),
}


def registry_of(sources: Sources, name: ClassName) -> Parsed[Any, Any]:
    """Return the entities of a class."""
    registries: dict[ClassName, Parsed[Any, Any]] = {
        "inflow": sources.hydros,
        "load": sources.buses,
        "ncs": sources.non_controllables,
    }
    return registries[name]


def scenario_stages(sources: Sources) -> dict[int, set[int]]:
    """Return the scenarios that nodes refer to, by stage id."""
    root = sources.stages.root
    wanted: dict[int, set[int]] = {}
    for node in (root.policy_graph.nodes if root is not None else None) or ():
        if node.scenario_id is not None:
            wanted.setdefault(node.stage_id, set()).add(node.scenario_id)
    return wanted


def load_external(
    files: CaseDocuments, sources: Sources, reporter: Reporter
) -> dict[ClassName, tuple[FloatArray, ...]] | None:
    """Read and check the external scenarios.

    Returns
    -------
    dict or None
        For each class with the scheme ``external``, in training or simulation: by stage an array (scenario,
        entity), without scenarios where the file has none. ``None`` when anything is wrong.
    """
    before = len(reporter.errors)
    in_use = external_classes(sources)
    simulated = simulated_external_classes(sources)
    found: dict[ClassName, tuple[FloatArray, ...]] = {}
    for name, file in FILES.items():
        if file.path not in sources.present:
            if name in in_use:
                reporter.error(
                    "FileNotFound",
                    f"{layout.CONFIG}: the scheme of {name} is 'external', but there is no {file.path}.",
                    file=layout.CONFIG,
                    field=f"training.scenario_source.{name}.scheme",
                    value="external",
                    suggestion="Add the file, or use the scheme 'in_sample'.",
                )
            continue
        library = _read(files, file, registry_of(sources, name), sources.stages.ids, reporter)
        if library is not None and name in (*in_use, *simulated):
            found[name] = library
        if name not in in_use and name not in simulated:
            reporter.warning(
                "SemanticAmbiguity",
                f"{file.path}: the file is not used, since the training scheme of {name} is not 'external'.",
                file=file.path,
                suggestion=f'Set training.scenario_source.{name}.scheme to "external", or remove the file.',
            )
        elif library is not None and name in in_use:
            if has_scenario_nodes(sources):
                _check_nodes(library, file, sources, reporter)
            else:
                _check_stages(library, file, sources, reporter)
    return found if len(reporter.errors) == before else None


def _read(
    files: CaseDocuments,
    file: ExternalFile,
    registry: Parsed[Any, Any],
    stage_ids: tuple[int, ...] | None,
    reporter: Reporter,
) -> tuple[FloatArray, ...] | None:
    columns = {"stage_id": "id", "scenario_id": "id", file.id_column: "id", file.value_column: "value"}
    table = read_table(files, file.path, columns, reporter)  # type: ignore[arg-type]
    if table is None:
        return None
    rows = Rows(table, file.path, file.word, file.id_column, registry.names, reporter)
    rows.finite(file.value_column)
    rows.cells(table["scenario_id"] < 0, "scenario_id", ">= 0")
    good = rows.known(file.id_column, registry.ids, file.word) & rows.ignored_stages(stage_ids)
    rows.unique("stage_id", "scenario_id", file.id_column)
    if stage_ids is None or registry.ids is None or not rows.clean:
        return None
    entities = np.array(sorted(registry.id_set), np.int64)
    if file.path == layout.EXTERNAL_NCS:
        _warn_shares(rows, reporter)
    library = [_stage_array(rows, good, stage, entities, file) for stage in sorted(set(stage_ids))]
    return tuple(library) if rows.clean else None


def _stage_array(
    rows: Rows, good: NDArray[np.bool_], stage: int, entities: NDArray[np.int64], file: ExternalFile
) -> FloatArray:
    """Return the values of one stage by (scenario, entity) and report what is missing."""
    at = np.flatnonzero(good & (rows.table["stage_id"] == stage))
    scenario = rows.table["scenario_id"][at].astype(np.int64)
    count = int(scenario.max()) + 1 if at.size else 0
    present = np.unique(scenario)
    if present.size < count:
        gap = np.setdiff1d(np.arange(min(count, present.size + 20)), present)
        rows.error(
            "DimensionMismatch",
            f"stage {stage} has {present.size} scenarios up to number {count - 1}, but scenario "
            f"{short_ids(gap.tolist())} is missing.",
            "Number the scenarios of a stage 0, 1, 2, ... without gaps.",
            entity=f"stage {stage}",
            field="scenario_id",
            value=short_ids(gap.tolist()),
        )
        return np.zeros((0, entities.size))
    values = np.full((count, entities.size), np.nan)
    column = np.searchsorted(entities, rows.table[file.id_column][at])
    values[scenario, column] = rows.table[file.value_column][at]
    missing = np.isnan(values)
    if missing.any():
        without = entities[missing.any(axis=0)].tolist()
        where = np.flatnonzero(missing.any(axis=1)).tolist()
        rows.error(
            "DimensionMismatch",
            f"{file.word} {short_ids(without)} has no value at stage {stage} in scenario {short_ids(where)}.",
            f"Give a value for every {file.word} in every scenario of a stage.",
            entity=f"{file.word} {short_ids(without)}",
            field=file.value_column,
            value=short_ids(where),
        )
    if file.path == layout.EXTERNAL_NCS:
        values = np.clip(values, 0.0, 1.0)
    values.setflags(write=False)
    return values


def _warn_shares(rows: Rows, reporter: Reporter) -> None:
    values = rows.table["availability_factor"]
    outside = int(((values < 0.0) | (values > 1.0)).sum())
    if outside:
        reporter.warning(
            "ModelQuality",
            f"{rows.path}: {outside} values of availability_factor lie outside 0-1; they are cut off there.",
            file=rows.path,
            field="availability_factor",
            value=outside,
            suggestion="Give shares of max_generation_mw.",
        )


def _check_nodes(
    library: tuple[FloatArray, ...], file: ExternalFile, sources: Sources, reporter: Reporter
) -> None:
    position = {number: index for index, number in enumerate(sorted(sources.stages.id_set))}
    for stage, scenarios in sorted(scenario_stages(sources).items()):
        count = len(library[position[stage]]) if stage in position else 0
        unknown = sorted(number for number in scenarios if not 0 <= number < count)
        if stage in position and unknown:
            known = f"0-{count - 1}" if count else "(none)"
            reporter.error(
                "InvalidReference",
                f"{layout.STAGES}: nodes of stage {stage} refer to scenario {short_ids(unknown)}, which "
                f"{file.path} does not have at that stage.",
                file=layout.STAGES,
                entity=f"stage {stage}",
                field="policy_graph.nodes[].scenario_id",
                value=short_ids(unknown),
                suggestion=f"Scenarios of that stage: {known}.",
            )


def _check_stages(
    library: tuple[FloatArray, ...], file: ExternalFile, sources: Sources, reporter: Reporter
) -> None:
    """Report stages without a scenario, which passes could not cross."""
    stages = sorted(sources.stages.id_set)
    without = [stage for stage, values in zip(stages, library, strict=True) if not len(values)]
    if without:
        reporter.error(
            "DimensionMismatch",
            f"{file.path}: stage {short_ids(without)} has no scenario, but all passes take one there.",
            file=file.path,
            entity=f"stage {short_ids(without)}",
            field="stage_id",
            value=short_ids(without),
            rule="5b.45",
            suggestion="Give at least one scenario of every study stage.",
        )
