"""``constraints/generic_constraint_bounds.parquet``: when a constraint is active, and its bounds there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.tables import MAX_LISTED, NO_ID, Columns, read_table
from cobre.case.problems import Reporter, known_ids, name_entity, short_ids

_FILE = layout.GENERIC_BOUNDS


@dataclass(frozen=True, eq=False)
class BoundRows:
    """The rows of the table, ordered by constraint, stage and block (the whole stage first).

    Attributes
    ----------
    constraint, stage
        Ids, int64.
    block
        Id of the block (int64), -1 for every block of the stage.
    lower, upper
        float64, NaN where none is given.
    """

    constraint: NDArray[np.int64]
    stage: NDArray[np.int64]
    block: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def of(self, constraint: int) -> range:
        """Return the positions of the rows of one constraint."""
        first, last = np.searchsorted(self.constraint, [constraint, constraint + 1])
        return range(int(first), int(last))


def no_rows() -> BoundRows:
    """Return the table of a case without the file."""
    ids, values = np.zeros(0, np.int64), np.zeros(0)
    return BoundRows(ids, ids, ids, values, values)


def read_bounds(
    files: CaseDocuments,
    constraints: Sequence[int] | None,
    blocks: Mapping[int, int] | None,
    names: Mapping[int, str],
    reporter: Reporter,
) -> BoundRows | None:
    """Read the table and check ids, blocks and values.

    Parameters
    ----------
    constraints
        Ids that exist; ``None`` when they are not all known, which skips the checks that need them.
    blocks
        Number of blocks by id of the study stage; ``None`` likewise.

    Returns
    -------
    BoundRows or None
        Only the rows that passed the checks; ``None`` when the file cannot be used at all.
    """
    table = read_table(
        files,
        _FILE,
        {"constraint_id": "id", "stage_id": "id"},
        reporter,
        optional={"block_id": "nullable_id", "bound_lower": "value", "bound_upper": "value"},
    )
    if table is None:
        return None
    good = np.ones(len(table["stage_id"]), np.bool_)
    if constraints is not None:
        good &= _check_constraints(table, constraints, reporter)
    if blocks is not None:
        known = np.isin(table["stage_id"], list(blocks))
        _report_stages(table["stage_id"][~known], list(blocks), reporter)
        good &= known
        good &= _check_blocks(table, known, blocks, names, reporter)
    good &= _check_finite(table, names, reporter)
    constraint = table["constraint_id"].astype(np.int64)[good]
    stage = table["stage_id"].astype(np.int64)[good]
    block = np.where(table["block_id"] == NO_ID, -1, table["block_id"]).astype(np.int64)[good]
    order = np.lexsort((block, stage, constraint))
    rows = BoundRows(
        constraint[order],
        stage[order],
        block[order],
        table["bound_lower"][good][order],
        table["bound_upper"][good][order],
    )
    _check_repeated(rows, names, reporter)
    return rows


def _check_constraints(table: Columns, known: Sequence[int], reporter: Reporter) -> NDArray[np.bool_]:
    good = np.isin(table["constraint_id"], list(known))
    for number in np.unique(table["constraint_id"][~good]).tolist()[:MAX_LISTED]:
        reporter.error(
            "InvalidReference",
            f"{_FILE}: constraint_id is {number}, but there is no constraint with that id.",
            file=_FILE,
            entity=name_entity("constraint", number),
            field="constraint_id",
            value=number,
            rule="referential.1",
            suggestion=known_ids(list(known), "constraint"),
        )
    return good


def _report_stages(unknown: NDArray[np.int64], known: Sequence[int], reporter: Reporter) -> None:
    if unknown.size:
        shown = short_ids(np.unique(unknown).tolist())
        reporter.error(
            "BusinessRuleViolation",
            f"{_FILE}: stage_id {shown} is no study stage.",
            file=_FILE,
            field="stage_id",
            value=shown,
            rule="5a.49",
            suggestion=known_ids(known, "stage"),
        )


def _check_blocks(
    table: Columns,
    known: NDArray[np.bool_],
    blocks: Mapping[int, int],
    names: Mapping[int, str],
    reporter: Reporter,
) -> NDArray[np.bool_]:
    counts = np.array([blocks.get(stage, 0) for stage in table["stage_id"].tolist()], dtype=np.int64)
    block = table["block_id"]
    wrong: NDArray[np.bool_] = known & (block != NO_ID) & ((block < 0) | (block >= counts))
    for row in np.flatnonzero(wrong).tolist()[:MAX_LISTED]:
        number, stage = int(table["constraint_id"][row]), int(table["stage_id"][row])
        entity = name_entity("constraint", number, names.get(number))
        reporter.error(
            "InvalidReference",
            f"{_FILE}: row {row} gives {entity} bounds in block {block[row]} of stage {stage}, "
            "which has no such block.",
            file=_FILE,
            entity=entity,
            field="block_id",
            value=int(block[row]),
            rule="5a.35",
            suggestion=f"Blocks of this stage: {short_ids(range(counts[row]))}; null means all of them.",
        )
    return ~wrong


def _check_finite(table: Columns, names: Mapping[int, str], reporter: Reporter) -> NDArray[np.bool_]:
    good = np.ones(len(table["stage_id"]), np.bool_)
    for column in ("bound_lower", "bound_upper"):
        wrong = np.isinf(table[column])
        good &= ~wrong
        for row in np.flatnonzero(wrong).tolist()[:MAX_LISTED]:
            number = int(table["constraint_id"][row])
            entity = name_entity("constraint", number, names.get(number))
            reporter.error(
                "InvalidValue",
                f"{_FILE}: {column} of {entity} in row {row} must be finite, but is {table[column][row]}.",
                file=_FILE,
                entity=entity,
                field=column,
                value=float(table[column][row]),
                suggestion="Leave it null where there is no bound.",
            )
    return good


def _check_repeated(rows: BoundRows, names: Mapping[int, str], reporter: Reporter) -> None:
    keys = np.stack([rows.constraint, rows.stage, rows.block], axis=1)
    again = np.flatnonzero((keys[1:] == keys[:-1]).all(axis=1)) + 1
    for number, stage, block in np.unique(keys[again], axis=0).tolist()[:MAX_LISTED]:
        entity = name_entity("constraint", number, names.get(number))
        where = f"stage {stage}" if block < 0 else f"block {block} of stage {stage}"
        reporter.error(
            "DuplicateId",
            f"{_FILE}: {entity} has several rows for {where}.",
            file=_FILE,
            entity=entity,
            field="stage_id" if block < 0 else "block_id",
            value=stage if block < 0 else block,
            suggestion="Keep one row for each constraint, stage and block.",
        )
