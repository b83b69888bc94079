"""Tables of what forward passes were paid for: by stage and component, and by component and entity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from cobre.sddp.costs import CostBreakdown

STAGE_COST_SCHEMA = pa.schema(
    [
        pa.field("iteration", pa.int32(), nullable=False),
        pa.field("stage_id", pa.int32(), nullable=False),
        pa.field("component", pa.string(), nullable=False),
        pa.field("is_violation", pa.bool_(), nullable=False),
        pa.field("cost", pa.float64(), nullable=False),
    ]
)
"""Columns of ``costs.parquet``: expected cost in $, discounted to the beginning; only what is not 0."""

ENTITY_COST_SCHEMA = pa.schema(
    [
        pa.field("iteration", pa.int32(), nullable=False),
        pa.field("component", pa.string(), nullable=False),
        pa.field("entity", pa.string(), nullable=False),
        pa.field("is_violation", pa.bool_(), nullable=False),
        pa.field("cost", pa.float64(), nullable=False),
    ]
)
"""Columns of ``costs_by_entity.parquet``: the same over all stages, by entity; the future cost has none."""


def stage_cost_table(breakdowns: Sequence[CostBreakdown]) -> pa.Table:
    """Return the costs of iterations by stage and component."""
    rows = [
        {
            "iteration": costs.iteration,
            "stage_id": stage,
            "component": name,
            "is_violation": violation,
            "cost": cost,
        }
        for costs in breakdowns
        for stage, of_stage in zip(costs.stage_ids, costs.by_stage, strict=True)
        for (name, violation), cost in zip(_violations().items(), of_stage, strict=True)
        if cost
    ]
    return pa.Table.from_pylist(rows, schema=STAGE_COST_SCHEMA)


def entity_cost_table(breakdowns: Sequence[CostBreakdown]) -> pa.Table:
    """Return the costs of iterations by component and entity."""
    violations = _violations()
    rows = [
        {
            "iteration": costs.iteration,
            "component": name,
            "entity": entity,
            "is_violation": violations[name],
            "cost": cost,
        }
        for costs in breakdowns
        for (name, entity), cost in zip(costs.payers, costs.by_payer, strict=True)
        if cost
    ]
    return pa.Table.from_pylist(rows, schema=ENTITY_COST_SCHEMA)


def _violations() -> dict[str, bool]:
    """Return by component whether it is the price of a violation."""
    from cobre.lp.cost_components import COMPONENTS  # loads the compiler, which training has done already

    return {part.name: part.violation for part in COMPONENTS}
