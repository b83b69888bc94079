"""Thermal plants, and those that are committed ahead of time.

A delivery is decided in an earlier stage, at its full cost, and carried in the state. In the delivery stage
the hour-weighted mean of the generation over the blocks equals the commitment, and generation is free.
"""

from __future__ import annotations

import numpy as np

from cobre.case.model import AnticipatedDelivery
from cobre.lp.index import IdArray
from cobre.lp.stage.context import StageContext


def add_thermals(stage: StageContext) -> IdArray:
    """Add generation and commitments; return the columns of the outgoing commitments, in state order."""
    lp, data, topology = stage.lp, stage.data, stage.topology
    thermals = stage.case.thermals
    ahead = np.array([bool(thermal.anticipated) for thermal in thermals], bool)
    generation = lp.add_columns(
        "thermal_generation",
        (topology.thermal_labels, stage.block_labels),
        cost=np.where(ahead, 0.0, data.thermal_cost)[:, None] * stage.hours,
        lower=data.thermal_min_mw,
        upper=data.thermal_max_mw,
    )
    lp.put(stage.load[topology.thermal_bus], generation, 1.0)

    delivers = np.array(
        [any(d.delivery == stage.position for d in thermal.anticipated) for thermal in thermals], bool
    )
    rows = lp.add_equations("thermal_delivery", (topology.thermal_labels,), where=delivers)
    lp.put(rows[:, None], generation, stage.hours / stage.stage.hours)
    # Only the rows of plants that deliver exist, and those have commitments in the state.
    lp.put_state(rows, stage.layout.commitment_first, 1.0)
    return _add_commitments(stage)


def _add_commitments(stage: StageContext) -> IdArray:
    lp, layout = stage.lp, stage.layout
    parts = [
        (place, component)
        for place, component in enumerate(layout.components)
        if component.kind == "commitment"
    ]
    labels = tuple(f"{stage.topology.thermal_labels[part.entity]}, {part.offset}" for _, part in parts)
    due = [_due(stage, part.entity, stage.position + part.offset) for _, part in parts]
    decided = np.array([d is not None and d.decision == stage.position for d in due], bool)
    carried = np.array([d is not None and d.decision < stage.position for d in due], bool)
    least = np.array([0.0 if d is None else min(_limits(d)) for d in due])
    most = np.array([0.0 if d is None else max(_limits(d)) for d in due])
    cost = np.array([0.0 if d is None else d.cost_per_mwh * d.hours for d in due])
    decision = lp.add_columns(
        "anticipated_decision", (labels,), where=decided, cost=cost, lower=least, upper=most
    )
    carry = lp.add_columns("anticipated_carried", (labels,), where=carried, lower=least, upper=most)
    idle = lp.add_columns("anticipated_idle", (labels,), where=~decided & ~carried, upper=0.0)
    rows = lp.add_equations("thermal_commitment", (labels,), where=carried)
    lp.put(rows, carry, 1.0)
    # What is carried was in the state before, one offset further away.
    lp.put_state(rows, np.array([place + 1 for place, _ in parts], np.int32), 1.0)
    columns: IdArray = np.maximum(np.maximum(decision, carry), idle)
    return columns


def _limits(delivery: AnticipatedDelivery) -> list[float]:
    """Limits of the plant at delivery; a commitment made before the study holds whatever they are."""
    committed = [] if delivery.committed_mw is None else [delivery.committed_mw]
    return [delivery.min_mw, delivery.max_mw, *committed]


def _due(stage: StageContext, thermal: int, delivery: int) -> AnticipatedDelivery | None:
    """Return the delivery of a plant at a stage, if it has been decided by the end of this stage."""
    for candidate in stage.case.thermals[thermal].anticipated:
        if candidate.delivery == delivery and candidate.decision <= stage.position:
            return candidate
    return None
