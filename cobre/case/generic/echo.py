"""The generic constraints as they are after every name, parameter and block is resolved."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from cobre.case.generic.expression import Variable
from cobre.case.model import Case, GenericRow, GenericTerm


def resolved_echo(case: Case) -> Any:
    """Return one line for each term of each row, and one for a row without terms.

    Returns
    -------
    pyarrow.Table
        Columns ``stage_id, block_id`` (null for a row of the whole stage), ``constraint_id,
        constraint_name, term_index, variable_kind, variable, coefficient, bound_lower, bound_upper`` (null
        where there is none), ``derived_shape`` (cap, floor, band or equality), ``slack_enabled,
        slack_penalty``; ordered by stage, constraint, block and term. Storages are useful volumes,
        whose dead volume is part of the bounds.
    """
    schema = pa.schema(
        [
            pa.field("stage_id", pa.int32(), nullable=False),
            pa.field("block_id", pa.int32()),
            pa.field("constraint_id", pa.int32(), nullable=False),
            pa.field("constraint_name", pa.string(), nullable=False),
            pa.field("term_index", pa.int32()),
            pa.field("variable_kind", pa.string()),
            pa.field("variable", pa.string()),
            pa.field("coefficient", pa.float64()),
            pa.field("bound_lower", pa.float64()),
            pa.field("bound_upper", pa.float64()),
            pa.field("derived_shape", pa.string(), nullable=False),
            pa.field("slack_enabled", pa.bool_(), nullable=False),
            pa.field("slack_penalty", pa.float64()),
        ]
    )
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for stage, rows in zip(case.stages, case.generic, strict=True):
        for row in rows:
            block = None if row.block is None else stage.blocks[row.block].id
            terms: tuple[tuple[int | None, GenericTerm | None], ...] = tuple(enumerate(row.terms))
            for index, term in terms or ((None, None),):
                line = {
                    "stage_id": stage.id,
                    "block_id": block,
                    "constraint_id": row.constraint_id,
                    "constraint_name": row.name,
                    "term_index": index,
                    "variable_kind": term and term.kind,
                    "variable": term and str(Variable(term.kind, term.entity_id, term.block, term.bus_id)),
                    "coefficient": term and term.coefficient,
                    "bound_lower": row.lower if math.isfinite(row.lower) else None,
                    "bound_upper": row.upper if math.isfinite(row.upper) else None,
                    "derived_shape": _shape(row),
                    "slack_enabled": row.penalty is not None,
                    "slack_penalty": row.penalty,
                }
                for name, value in line.items():
                    columns[name].append(value)
    return pa.table(columns, schema=schema)


def _shape(row: GenericRow) -> str:
    if row.lower == row.upper:
        return "equality"
    if not math.isfinite(row.lower):
        return "cap"
    return "band" if math.isfinite(row.upper) else "floor"
