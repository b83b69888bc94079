"""Initial storage against the hydro plants."""

from __future__ import annotations

from cobre.case import layout
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.problems import Reporter, name_entity
from cobre.case.sources import Sources

_FILE = layout.INITIAL_CONDITIONS


def check_initial(sources: Sources, reporter: Reporter) -> None:
    """Check the initial storage; values outside the limits are odd, not wrong (the LP pays for them)."""
    hydros, initial = sources.hydros, sources.initial
    ids = initial.ids if initial.ids is not None else [entry.hydro_id for entry in initial.items]
    check_unique(ids, _FILE, "hydro", reporter, names=hydros.names, field="storage")
    for entry in initial.items:
        entity = name_entity("hydro", entry.hydro_id, hydros.names.get(entry.hydro_id))
        check_reference(entry.hydro_id, hydros, "hydro", _FILE, entity, "storage.hydro_id", reporter)
    if initial.root is not None:
        seeds = [entry.hydro_id for entry in initial.root.filling_storage]
        check_unique(seeds, _FILE, "hydro", reporter, names=hydros.names, field="filling_storage")
        for number in sorted(set(seeds)):
            entity = name_entity("hydro", number, hydros.names.get(number))
            check_reference(number, hydros, "hydro", _FILE, entity, "filling_storage.hydro_id", reporter)
    values = {entry.hydro_id: entry.value_hm3 for entry in initial.items}
    for hydro in sorted(hydros.items, key=lambda item: item.id):
        if hydro.filling is not None:
            continue  # it starts from filling_storage, below its limits
        entity = name_entity("hydro", hydro.id, hydro.name)
        low, high = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
        if hydro.id in values:
            value = values[hydro.id]
            if low <= high and not low <= value <= high:
                reporter.warning(
                    "ModelQuality",
                    f"{_FILE}: storage of {entity} starts at {value} hm3, outside its limits {low}-{high}.",
                    file=_FILE,
                    entity=entity,
                    field="storage.value_hm3",
                    value=value,
                    suggestion="Check the value and the limits of the reservoir.",
                )
        elif initial.ids is not None and hydro.id not in initial.id_set:
            reporter.warning(
                "ModelQuality",
                f"{_FILE}: {entity} has no initial storage; it starts at its minimum, {low} hm3.",
                file=_FILE,
                entity=entity,
                field="storage",
                suggestion="Add an entry for this plant.",
            )
