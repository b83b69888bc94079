"""The state of a study as files of cobre-rs identify it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from cobre.case.model import Case
from cobre.policy.foreign.records import NOT_IN_FORMAT, SlotKind, StateSlot
from cobre.policy.matching import Component, Identified, component_keys, interval_after, study_days

_KINDS: Final = {
    "storage": SlotKind.STORAGE,
    "inflow_lag": SlotKind.INFLOW_LAG,
    "commitment": SlotKind.ANTICIPATED,
    "in_transit": SlotKind.IN_TRANSIT,
}
_NAMES: Final = {int(number): name for name, number in _KINDS.items()}


def state_slots(case: Case, components: Iterable[Component], stage: int) -> tuple[StateSlot, ...]:
    """Return how files identify the components of the state at the end of ``stage`` (position).

    Raises
    ------
    ValueError
        For water in transit to nowhere.
    """
    days = study_days(case)
    found = []
    for kind, entity_id, offset in components:
        if kind not in _KINDS:
            found.append(StateSlot(NOT_IN_FORMAT, entity_id))
            continue
        dated = kind in ("in_transit", "commitment")
        owner = _receiver(case, entity_id) if kind == "in_transit" else entity_id
        interval = interval_after(days, stage, offset) if dated else None
        found.append(StateSlot(_KINDS[kind], owner, offset, interval=interval))
    return tuple(found)


def _receiver(case: Case, hydro_id: int) -> int:
    """Return the plant that water released by another one flows to."""
    below = next((hydro.downstream_id for hydro in case.hydros if hydro.id == hydro_id), None)
    if below is None:
        raise ValueError(f"hydro {hydro_id} has water in transit, but no plant downstream")
    return below


def identified_slots(slots: Sequence[StateSlot]) -> list[Identified]:
    """Return what other policies find these components by."""
    return [
        Identified(
            str(slot),
            component_keys(
                _NAMES.get(slot.kind, f"kind {slot.kind}"), slot.entity_id, slot.subindex, slot.interval
            ),
        )
        for slot in slots
    ]
