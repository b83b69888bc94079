"""Seasonal statistics of inflow, load and availability: Parquet rows to arrays by (stage, entity).

Problems count rows from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.tables import MAX_LISTED, Columns, read_table
from cobre.case.problems import Reporter, known_ids, name_entity, plural, short_ids


@dataclass(frozen=True)
class StatsFile:
    """The names in one file of seasonal statistics."""

    path: str
    word: str
    id_column: str
    mean_column: str
    std_column: str
    rule: str
    is_share: bool = False
    """Means are shares from 0 to 1, and a missing row means 0."""


INFLOW = StatsFile(layout.INFLOW_STATS, "hydro", "hydro_id", "mean_m3s", "std_m3s", "dimensional.1")
LOAD = StatsFile(layout.LOAD_STATS, "bus", "bus_id", "mean_mw", "std_mw", "dimensional.2")
AVAILABILITY = StatsFile(
    layout.NCS_STATS, "non-controllable source", "ncs_id", "mean", "std", "", is_share=True
)


@dataclass(frozen=True)
class SeasonalStats:
    """Mean and standard deviation by (stage, entity), both axes in ascending id; which entities have rows."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    has_rows: NDArray[np.bool_]


def read_stats(
    files: CaseDocuments,
    file: StatsFile,
    entity_ids: Sequence[int] | None,
    names: Mapping[int, str],
    stage_ids: Sequence[int] | None,
    reporter: Reporter,
    *,
    other_stages: Collection[int] = (),
    needed: NDArray[np.bool_] | None = None,
) -> SeasonalStats | None:
    """Read and check a file of seasonal statistics.

    Parameters
    ----------
    entity_ids, stage_ids
        The ids that exist; ``None`` when they are not known, which skips the checks that need them.
    other_stages
        Stages before the study, to which rows may refer.
    needed
        By (stage, entity): where a row must be; everywhere unless given.

    Returns
    -------
    SeasonalStats or None
        ``None`` when anything is wrong with the file or the axes are not known.
    """
    before = len(reporter.errors)
    table = read_table(
        files,
        file.path,
        {file.id_column: "id", "stage_id": "id", file.mean_column: "value", file.std_column: "value"},
        reporter,
    )
    if table is None:
        return None
    _check_values(table, file, names, reporter)
    if entity_ids is not None:
        _check_entities(table, file, np.unique(np.asarray(entity_ids, dtype=np.int64)), reporter)
    if stage_ids is None or entity_ids is None:
        return None
    entities = np.unique(np.asarray(entity_ids, dtype=np.int64))
    stages = np.unique(np.asarray(stage_ids, dtype=np.int64))
    _check_extra_stages(table, file, stages, other_stages, reporter)
    entity_at, entity_known = _positions(table[file.id_column], entities)
    stage_at, stage_known = _positions(table["stage_id"], stages)
    rows = np.flatnonzero(entity_known & stage_known)
    cell = stage_at[rows] * entities.size + entity_at[rows]
    _check_duplicates(rows, cell, entities, stages, file, names, reporter)
    seen = np.zeros(stages.size * entities.size, dtype=np.bool_)
    seen[cell] = True
    missing = ~seen.reshape(stages.size, entities.size)
    has_rows: NDArray[np.bool_] = np.logical_or.reduce(~missing, axis=0)
    if file.is_share:
        _warn_gaps(missing & has_rows, entities, stages, file, names, reporter)
    else:
        _check_coverage(
            missing if needed is None else missing & needed, entities, stages, file, names, reporter
        )
    if len(reporter.errors) > before:
        return None
    shape = (stages.size, entities.size)
    mean, std = np.zeros(seen.size), np.zeros(seen.size)
    mean[cell] = table[file.mean_column][rows]
    std[cell] = table[file.std_column][rows]
    return SeasonalStats(mean.reshape(shape), std.reshape(shape), has_rows)


def zero_stats(num_stages: int, num_entities: int) -> SeasonalStats:
    """Return the statistics that hold when the file is absent."""
    shape = (num_stages, num_entities)
    return SeasonalStats(np.zeros(shape), np.zeros(shape), np.zeros(num_entities, np.bool_))


def _positions(
    ids: NDArray[np.int32], known: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the position of each id in the sorted ``known``, and whether it is there at all."""
    if known.size == 0:
        return np.zeros(ids.size, dtype=np.intp), np.zeros(ids.size, dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, ids), known.size - 1)
    return at, known[at] == ids


def _check_values(table: Columns, file: StatsFile, names: Mapping[int, str], reporter: Reporter) -> None:
    for column in (file.mean_column, file.std_column):
        values = table[column]
        _report_cells(
            table, np.flatnonzero(~np.isfinite(values)), column, "a finite number", file, names, reporter
        )
    negative = np.flatnonzero(table[file.std_column] < 0)
    negative = negative[np.isfinite(table[file.std_column][negative])]
    _report_cells(table, negative, file.std_column, ">= 0", file, names, reporter)
    if file.is_share:
        mean = table[file.mean_column]
        outside = np.flatnonzero(np.isfinite(mean) & ((mean < 0) | (mean > 1)))
        _report_cells(table, outside, file.mean_column, "from 0 to 1", file, names, reporter)


def _report_cells(
    table: Columns,
    rows: NDArray[np.intp],
    column: str,
    wanted: str,
    file: StatsFile,
    names: Mapping[int, str],
    reporter: Reporter,
) -> None:
    for row in rows[:MAX_LISTED].tolist():
        number = int(table[file.id_column][row])
        entity = name_entity(file.word, number, names.get(number))
        value = float(table[column][row])
        shown = "NaN or null" if np.isnan(value) else repr(value)
        reporter.error(
            "InvalidValue",
            f"{file.path}: {column} in row {row} ({entity}, stage {int(table['stage_id'][row])}) "
            f"must be {wanted}, but is {shown}.",
            file=file.path,
            entity=entity,
            field=f"{column}[row {row}]",
            value=value,
            suggestion=f"Give {'a finite number' if wanted.startswith('a') else 'a number ' + wanted}.",
        )
    rest = rows[MAX_LISTED:]
    if rest.size:
        reporter.error(
            "InvalidValue",
            f"{file.path}: {column} must be {wanted} in {rest.size} more rows: {short_ids(rest.tolist())}.",
            file=file.path,
            field=column,
        )


def _check_entities(table: Columns, file: StatsFile, entities: NDArray[np.int64], reporter: Reporter) -> None:
    ids = table[file.id_column]
    unknown = np.flatnonzero(~_positions(ids, entities)[1])
    numbers = np.unique(ids[unknown])
    for number in numbers[:MAX_LISTED].tolist():
        rows = unknown[ids[unknown] == number].tolist()
        reporter.error(
            "InvalidReference",
            f"{file.path}: {file.id_column} {number} in row {short_ids(rows)} is no {file.word} id.",
            file=file.path,
            entity=name_entity(file.word, number),
            field=file.id_column,
            value=number,
            rule="referential.1",
            suggestion=known_ids(entities.tolist(), file.word),
        )
    rest = numbers[MAX_LISTED:].tolist()
    if rest:
        reporter.error(
            "InvalidReference",
            f"{file.path}: {file.id_column} names {len(rest)} more ids that do not exist: {short_ids(rest)}.",
            file=file.path,
            field=file.id_column,
            value=short_ids(rest),
            rule="referential.1",
        )


def _check_extra_stages(
    table: Columns,
    file: StatsFile,
    stages: NDArray[np.int64],
    other: Collection[int],
    reporter: Reporter,
) -> None:
    extra = np.setdiff1d(table["stage_id"], [*stages.tolist(), *other])
    if extra.size:
        reporter.warning(
            "SemanticAmbiguity",
            f"{file.path}: rows of stage {short_ids(extra.tolist())} are ignored, there is no such stage.",
            file=file.path,
            field="stage_id",
            value=short_ids(extra.tolist()),
            suggestion=f"Study stages are {short_ids(stages.tolist())}.",
        )


def _check_duplicates(
    rows: NDArray[np.intp],
    cell: NDArray[np.intp],
    entities: NDArray[np.int64],
    stages: NDArray[np.int64],
    file: StatsFile,
    names: Mapping[int, str],
    reporter: Reporter,
) -> None:
    cells, counts = np.unique(cell, return_counts=True)
    repeated = cells[counts > 1]
    for index in repeated[:MAX_LISTED].tolist():
        stage, number = int(stages[index // entities.size]), int(entities[index % entities.size])
        entity = name_entity(file.word, number, names.get(number))
        found = short_ids(rows[cell == index].tolist())
        reporter.error(
            "DuplicateId",
            f"{file.path}: {entity} has several rows for stage {stage}: rows {found}.",
            file=file.path,
            entity=entity,
            field="stage_id",
            value=stage,
            suggestion="Keep one row for each pair.",
        )
    if repeated.size > MAX_LISTED:
        reporter.error(
            "DuplicateId",
            f"{file.path}: {repeated.size - MAX_LISTED} more pairs of {file.word} and stage repeat.",
            file=file.path,
            field="stage_id",
        )


def _check_coverage(
    missing: NDArray[np.bool_],
    entities: NDArray[np.int64],
    stages: NDArray[np.int64],
    file: StatsFile,
    names: Mapping[int, str],
    reporter: Reporter,
) -> None:
    for group, gap in group_by_stages(missing, entities, stages):
        reporter.error(
            "DimensionMismatch",
            f"{file.path}: {name_group(file.word, group, names)} without a row for stage {short_ids(gap)}.",
            file=file.path,
            entity=name_group(file.word, group, names),
            field="stage_id",
            value=short_ids(gap),
            rule=file.rule,
            suggestion=f"Add a row for every {file.word} and stage, or remove the file (all zero).",
        )


def _warn_gaps(
    missing: NDArray[np.bool_],
    entities: NDArray[np.int64],
    stages: NDArray[np.int64],
    file: StatsFile,
    names: Mapping[int, str],
    reporter: Reporter,
) -> None:
    for group, gap in group_by_stages(missing, entities, stages):
        who = name_group(file.word, group, names)
        reporter.warning(
            "ModelQuality",
            f"{file.path}: {who} without a row for stage {short_ids(gap)}, where nothing is available then.",
            file=file.path,
            entity=who,
            field="stage_id",
            value=short_ids(gap),
            suggestion="Add rows for those stages, or remove all rows of the source.",
        )


def group_by_stages(
    flags: NDArray[np.bool_], entities: NDArray[np.int64], stages: NDArray[np.int64]
) -> list[tuple[list[int], list[int]]]:
    """Group the entities that are flagged at the same stages.

    Parameters
    ----------
    flags
        By (stage, entity).

    Returns
    -------
    list
        Pairs (ids of entities, ids of stages), in the order of each group's first entity.
    """
    groups: dict[bytes, list[int]] = {}
    for position in np.flatnonzero(flags.any(axis=0)).tolist():
        groups.setdefault(flags[:, position].tobytes(), []).append(position)
    return [
        (entities[members].tolist(), stages[flags[:, members[0]]].tolist()) for members in groups.values()
    ]


def name_group(word: str, ids: Sequence[int], names: Mapping[int, str]) -> str:
    """Return ``hydro 3 (Itaipu)`` or ``hydros 1-5, 9``."""
    if len(ids) == 1:
        return name_entity(word, ids[0], names.get(ids[0]))
    return f"{plural(word)} {short_ids(ids)}"
