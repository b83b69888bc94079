"""The state of a study in the words of the files, and finding its components in a pool."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from cobre.case.model import Case
from cobre.policy_files.records import NOT_IN_FORMAT, SlotKind, StateSlot

Component = tuple[str, int, int]
"""Kind (``storage``, ``inflow_lag``, ``in_transit``, ``commitment``, or that of an extension), declared id of
the entity (for water in transit the plant that released it) and stages until it matters (0 for storage; of
past inflow the lag)."""


def storage_components(case: Case) -> tuple[Component, ...]:
    """Return the components of a state that is storages alone, in the order of plants."""
    return tuple(("storage", hydro.id, 0) for hydro in case.hydros)


def state_slots(case: Case, components: Iterable[Component], stage: int) -> tuple[StateSlot, ...]:
    """Return how files identify the components of the state at the end of ``stage`` (position)."""
    return tuple(_slot(case, component, stage) for component in components)


def _slot(case: Case, component: Component, stage: int) -> StateSlot:
    kind, entity_id, offset = component
    if kind == "storage":
        return StateSlot(SlotKind.STORAGE, entity_id)
    if kind == "inflow_lag":
        return StateSlot(SlotKind.INFLOW_LAG, entity_id, offset)
    interval = _interval(case, stage + offset)
    if kind == "commitment":
        return StateSlot(SlotKind.ANTICIPATED, entity_id, offset, interval=interval)
    if kind != "in_transit":
        return StateSlot(NOT_IN_FORMAT, entity_id)
    below = next(hydro.downstream_id for hydro in case.hydros if hydro.id == entity_id)
    if below is None:
        raise ValueError(f"hydro {entity_id} has water in transit, but no plant downstream")
    return StateSlot(SlotKind.IN_TRANSIT, below, offset, interval=interval)


def _interval(case: Case, position: int) -> tuple[datetime.date, datetime.date] | None:
    """Return first day and day after the last of a stage of the study or after it, if they are known."""
    if position < len(case.stages):
        return case.stages[position].start_date, case.stages[position].end_date
    after = position - len(case.stages)
    if after >= len(case.post_study_stages):
        return None
    start, hours = case.post_study_stages[after].start_date, case.post_study_stages[after].hours
    return start, start + datetime.timedelta(days=round(hours / 24.0))


def find_slots(ours: Sequence[StateSlot], pool: Sequence[StateSlot]) -> tuple[int | None, ...]:
    """Return for each of our components its place in the pool.

    What is delivered or arrives later is the same where the dates are the same; water in transit without
    dates, where it arrives after as many stages. Several of our components may be one of the pool: water
    that reaches a plant from two others.
    """
    places: dict[tuple[object, ...], int] = {}
    for place, slot in enumerate(pool):
        for key in _keys(slot):
            places.setdefault(key, place)
    return tuple(next((places[key] for key in _keys(slot) if key in places), None) for slot in ours)


def _keys(slot: StateSlot) -> list[tuple[object, ...]]:
    name = (slot.kind, slot.entity_id)
    if slot.kind in (SlotKind.STORAGE, SlotKind.INFLOW_LAG):
        return [(*name, slot.subindex)]
    if slot.interval is not None:
        return [(*name, slot.interval)]
    return [] if slot.kind == SlotKind.ANTICIPATED else [(*name, slot.subindex)]
