"""One file of bounds: its rows, checked and placed on the axes of stages and entities.

Problems count rows from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.bounds.axes import GROUP_KEY, EntityAxis, StageAxis, positions
from cobre.case.bounds.files import BoundFile
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.tables import MAX_LISTED, NO_ID, Columns, ColumnType, read_table
from cobre.case.problems import Reporter, known_ids, short_ids

ALL_BLOCKS = -1
"""Block of a row that applies to the whole stage."""


@dataclass(frozen=True, eq=False)
class BoundRows:
    """Rows whose entity and stage exist.

    Attributes
    ----------
    row
        Place in the file.
    entity, stage
        Positions on the axes.
    block
        Block, or :data:`ALL_BLOCKS`.
    values
        By column; NaN where the row has no value.
    """

    row: NDArray[np.intp]
    entity: NDArray[np.intp]
    stage: NDArray[np.intp]
    block: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]


def no_rows(file: BoundFile) -> BoundRows:
    """Return the rows of an absent file."""
    none = np.zeros(0, np.intp)
    return BoundRows(
        none, none, none, np.zeros(0, np.int64), {column.name: np.zeros(0) for column in file.columns}
    )


class RowReporter:
    """Reports rows of one file, up to :data:`~cobre.case.format.tables.MAX_LISTED` of a kind individually."""

    def __init__(self, file: BoundFile, entities: EntityAxis, table: Columns, reporter: Reporter) -> None:
        self.path, self.axis, self.table, self.reporter = file.path, entities, table, reporter
        self.has_blocks = file.has_blocks
        self.keys = _keys(table, file)

    def place(self, row: int) -> str:
        """Return where a row belongs: entity, stage and block."""
        where = f"{self.axis.name(int(self.keys[row]))}, stage {int(self.table['stage_id'][row])}"
        block = int(self.table["block_id"][row]) if self.has_blocks else NO_ID
        return where if block == NO_ID else f"{where}, block {block}"

    def cells(
        self,
        rows: NDArray[Any],
        column: str,
        kind: str,
        wanted: Callable[[int], str],
        suggestion: str,
        rule: str | None = None,
    ) -> None:
        """Report a value in each of ``rows``; ``wanted`` describes the values allowed in a row."""
        for row in rows[:MAX_LISTED].tolist():
            value = self.table[column][row].item()
            self.reporter.error(
                kind,
                f"{self.path}: {column} in row {row} ({self.place(row)}) must be {wanted(row)}, "
                f"but is {value}.",
                file=self.path,
                entity=self.axis.name(int(self.keys[row])),
                field=f"{column}[row {row}]",
                value=value,
                rule=rule,
                suggestion=suggestion,
            )
        rest = rows[MAX_LISTED:]
        if rest.size:
            self.reporter.error(
                kind,
                f"{self.path}: {column} has the same fault in {rest.size} more rows: "
                f"{short_ids(rest.tolist())}.",
                file=self.path,
                field=column,
                rule=rule,
                suggestion=suggestion,
            )


def read_rows(
    files: CaseDocuments, file: BoundFile, entities: EntityAxis, stages: StageAxis, reporter: Reporter
) -> tuple[BoundRows | None, RowReporter | None]:
    """Read one file and report every row that cannot be placed and every value that cannot be.

    Returns
    -------
    rows, row_reporter
        The rows that can be placed (``None`` when the axes are not known) and what further checks report
        with; both ``None`` when the file cannot be read.
    """
    required: dict[str, ColumnType] = {file.id_column: "id", "stage_id": "id"}
    if file.group_column:
        required[file.group_column] = "id"
    optional: dict[str, ColumnType] = {"block_id": "nullable_id"} if file.has_blocks else {}
    for column in file.columns:
        (required if column.required else optional)[column.name] = "value"
    table = read_table(files, file.path, required, reporter, optional)
    if table is None:
        return None, None
    report = RowReporter(file, entities, table, reporter)
    _check_values(file, table, report)
    _check_empty(file, table, reporter)
    entity, entity_known = _place_entities(file, table, entities, report)
    stage, stage_known = _place_stages(file, table, stages, report)
    block = np.full(entity.size, ALL_BLOCKS, np.int64)
    if file.has_blocks:
        block = np.where(table["block_id"] == NO_ID, ALL_BLOCKS, table["block_id"])
        _check_blocks(file, table, block, stage, stage_known, stages, report)
    if entities.ids is None or stages.ids is None:
        return None, report
    kept = np.flatnonzero(entity_known & stage_known)
    rows = BoundRows(
        kept,
        entity[kept],
        stage[kept],
        block[kept],
        {column.name: table[column.name][kept] for column in file.columns},
    )
    _check_duplicates(rows, entities.ids.size, report)
    return rows, report


def _keys(table: Columns, file: BoundFile) -> NDArray[np.int64]:
    ids: NDArray[np.int64] = table[file.id_column].astype(np.int64)
    return ids * GROUP_KEY + table[file.group_column].astype(np.int64) if file.group_column else ids


def _check_values(file: BoundFile, table: Columns, report: RowReporter) -> None:
    for column in file.columns:
        values = table[column.name]
        finite = np.isfinite(values)
        missing = np.isnan(values) if column.required else np.zeros(values.size, np.bool_)
        report.cells(
            np.flatnonzero(np.isinf(values) | missing),
            column.name,
            "InvalidValue",
            lambda _: "a finite number",
            "Give a finite number." if column.required else "Give a finite number, or null.",
        )
        if column.sign != "any":
            wrong = finite & ((values < 0) if column.sign == ">= 0" else (values <= 0))
            report.cells(
                np.flatnonzero(wrong),
                column.name,
                "InvalidValue",
                lambda _, sign=column.sign: sign,  # type: ignore[misc]
                f"Give a number {column.sign}, or null.",
            )


def _check_empty(file: BoundFile, table: Columns, reporter: Reporter) -> None:
    silent = np.flatnonzero(np.all([np.isnan(table[column.name]) for column in file.columns], axis=0))
    # A required value that is missing has been reported.
    if silent.size and not any(column.required for column in file.columns):
        reporter.warning(
            "SemanticAmbiguity",
            f"{file.path}: row {short_ids(silent.tolist())} gives no value and has no effect.",
            file=file.path,
            field="row",
            value=short_ids(silent.tolist()),
            suggestion=f"The value columns are {', '.join(column.name for column in file.columns)}.",
        )


def _place_entities(
    file: BoundFile, table: Columns, entities: EntityAxis, report: RowReporter
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    keys = report.keys
    if entities.ids is None:
        return np.zeros(keys.size, np.intp), np.zeros(keys.size, np.bool_)
    at, known = positions(keys, entities.ids)
    unknown = np.flatnonzero(~known)
    column, rule, ids = file.id_column, "referential.1", entities.ids
    if file.group_column:
        # An unknown plant and an unknown group of a known plant are different faults.
        ids = np.unique((entities.ids + GROUP_KEY // 2) // GROUP_KEY)
        known_plant = positions(table[column], ids)[1]
        _report_unknown(file.path, table, unknown[~known_plant[unknown]], column, rule, "hydro", ids, report)
        unknown, column, rule = unknown[known_plant[unknown]], file.group_column, "referential.3"
        ids = np.zeros(0, np.int64)
    _report_unknown(file.path, table, unknown, column, rule, entities.word, ids, report)
    return at, known


def _report_unknown(
    path: str,
    table: Columns,
    rows: NDArray[np.intp],
    column: str,
    rule: str,
    word: str,
    ids: NDArray[np.int64],
    report: RowReporter,
) -> None:
    keys = report.keys if rule == "referential.3" else table[column].astype(np.int64)
    numbers, first = np.unique(keys[rows], return_index=True)
    for number, index in list(zip(numbers.tolist(), first.tolist(), strict=True))[:MAX_LISTED]:
        row = int(rows[index])
        found = short_ids(rows[keys[rows] == number].tolist())
        value = int(table[column][row])
        whose = f" of {report.axis.name(number)}" if rule == "referential.3" else ""
        report.reporter.error(
            "InvalidReference",
            f"{path}: {column} {value} in row {found}{whose} is no {word} id.",
            file=path,
            entity=report.axis.name(number) if rule == "referential.3" else f"{word} {value}",
            field=column,
            value=value,
            rule=rule,
            suggestion=known_ids(ids.tolist(), word) if ids.size else f"Use the id of a {word} that exists.",
        )
    if numbers.size > MAX_LISTED:
        report.reporter.error(
            "InvalidReference",
            f"{path}: {column} names {numbers.size - MAX_LISTED} more ids that do not exist.",
            file=path,
            field=column,
            rule=rule,
        )


def _place_stages(
    file: BoundFile, table: Columns, stages: StageAxis, report: RowReporter
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    ids = table["stage_id"]
    if stages.ids is None:
        return np.zeros(ids.size, np.intp), np.zeros(ids.size, np.bool_)
    at, known = positions(ids, stages.ids)
    study = f"Study stages are {short_ids(stages.ids.tolist())}."
    if file.stage_rule is not None:
        report.cells(
            np.flatnonzero(~known),
            "stage_id",
            "BusinessRuleViolation",
            lambda _: "a study stage",
            study,
            file.stage_rule,
        )
    elif not known.all():
        extra = short_ids(np.unique(ids[~known]).tolist())
        report.reporter.warning(
            "SemanticAmbiguity",
            f"{file.path}: rows of stage {extra} are ignored, there is no such stage.",
            file=file.path,
            field="stage_id",
            value=extra,
            suggestion=study,
        )
    return at, known


def _check_blocks(
    file: BoundFile,
    table: Columns,
    block: NDArray[np.int64],
    stage: NDArray[np.intp],
    stage_known: NDArray[np.bool_],
    stages: StageAxis,
    report: RowReporter,
) -> None:
    by_block = table["block_id"] != NO_ID
    if stages.ids is not None and stages.ids.size:
        count = np.where(stage_known, stages.blocks[stage], -1)
        wrong = by_block & (count >= 0) & ((block < 0) | (block >= count))
        report.cells(
            np.flatnonzero(wrong),
            "block_id",
            "BusinessRuleViolation",
            lambda row: f"a block of its stage, 0 to {int(count[row]) - 1}",
            "Give a block of the stage, or null for all its blocks.",
            "5a.35",
        )
    for column in file.columns:
        if not column.by_block:
            rows = np.flatnonzero(by_block & ~np.isnan(table[column.name]))
            report.cells(
                rows,
                column.name,
                "BusinessRuleViolation",
                lambda _: "null in a row of a single block, because it belongs to the whole stage",
                "Give it in a row without block_id.",
                file.block_rule,
            )


def _check_duplicates(rows: BoundRows, num_entities: int, report: RowReporter) -> None:
    """Report cells that two rows give; different columns in two rows are fine."""
    blocks = int(rows.block.max(initial=0)) + 2
    cell = (rows.stage * num_entities + rows.entity) * blocks + rows.block + 1
    for column, values in rows.values.items():
        given = np.flatnonzero(~np.isnan(values))
        _, inverse, counts = np.unique(cell[given], return_inverse=True, return_counts=True)
        if (counts < 2).all():
            continue
        repeated = np.flatnonzero(counts > 1)
        for number in repeated[:MAX_LISTED].tolist():
            found = rows.row[given[inverse == number]]
            first = int(found[0])
            report.reporter.error(
                "DuplicateId",
                f"{report.path}: {column} of {report.place(first)} is given by several rows: "
                f"{short_ids(found.tolist())}.",
                file=report.path,
                entity=report.axis.name(int(report.keys[first])),
                field=column,
                value=values[given[inverse == number]].tolist(),
                suggestion="Keep one value for each entity, stage and block.",
            )
        if repeated.size > MAX_LISTED:
            report.reporter.error(
                "DuplicateId",
                f"{report.path}: {column} repeats in {repeated.size - MAX_LISTED} more cells.",
                file=report.path,
                field=column,
                suggestion="Keep one value for each entity, stage and block.",
            )
