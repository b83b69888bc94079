"""Initial storage and observations against the hydro plants."""

from __future__ import annotations

from collections.abc import Sequence

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.checks.windows import check_windows, study_start
from cobre.case.format import layout
from cobre.case.format.schema.initial import ObservationEntry
from cobre.case.format.schema.system import HydroEntry
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, name_entity

_FILE = layout.INITIAL_CONDITIONS


def check_initial(sources: Sources, reporter: Reporter) -> None:
    """Check the initial storage; values outside the limits are odd, not wrong (the LP pays for them)."""
    hydros, initial = sources.hydros, sources.initial
    ids = initial.ids if initial.ids is not None else [entry.hydro_id for entry in initial.items]
    filling = initial.root.filling_storage if initial.root is not None else []
    check_unique(ids, _FILE, "hydro", reporter, names=hydros.names, field="storage")
    # Repeats inside storage have been reported.
    seeds = [*set(ids), *(entry.hydro_id for entry in filling)]
    check_unique(seeds, _FILE, "hydro", reporter, names=hydros.names, field="filling_storage")
    for field, entries in (("storage", initial.items), ("filling_storage", tuple(filling))):
        for entry in entries:
            entity = name_entity("hydro", entry.hydro_id, hydros.names.get(entry.hydro_id))
            check_reference(entry.hydro_id, hydros, "hydro", _FILE, entity, f"{field}.hydro_id", reporter)
    values = {entry.hydro_id: entry.value_hm3 for entry in initial.items}
    for hydro in by_id(hydros.items):
        if hydro.filling is None:
            _check_storage(hydro, values, initial.ids is not None, reporter)
    if initial.root is not None:
        _check_observations(sources, initial.root.recent_observations or [], reporter)


def initial_storage(sources: Sources) -> dict[int, float]:
    """Return the storage (hm3) of every plant at the start.

    Without an entry it is the minimum, or nothing for a reservoir that is still to be filled.
    """
    root = sources.initial.root
    given = (*sources.initial.items, *(root.filling_storage if root is not None else ()))
    values = {entry.hydro_id: entry.value_hm3 for entry in given}
    return {
        hydro.id: values.get(hydro.id, hydro.reservoir.min_storage_hm3 if hydro.filling is None else 0.0)
        for hydro in sources.hydros.items
    }


def _check_storage(hydro: HydroEntry, values: dict[int, float], complete: bool, reporter: Reporter) -> None:
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
    elif complete:
        reporter.warning(
            "ModelQuality",
            f"{_FILE}: {entity} has no initial storage; it starts at its minimum, {low} hm3.",
            file=_FILE,
            entity=entity,
            field="storage",
            suggestion="Add an entry for this plant.",
        )


def _check_observations(sources: Sources, entries: Sequence[ObservationEntry], reporter: Reporter) -> None:
    start = study_start(sources)
    field = "recent_observations"
    check_windows(entries, field, "hydro_id", sources.hydros, "hydro", start, "5a.32", reporter)
    for index, entry in enumerate(entries):
        if entry.value_m3s < 0:
            entity = name_entity("hydro", entry.hydro_id, sources.hydros.names.get(entry.hydro_id))
            reporter.warning(
                "ModelQuality",
                f"{_FILE}: {field}[{index}].value_m3s of {entity} is negative ({entry.value_m3s}).",
                file=_FILE,
                entity=entity,
                field=f"{field}[{index}].value_m3s",
                value=entry.value_m3s,
                rule="5a.34a",
                suggestion="Check the observation.",
            )
    models = (layout.INFLOW_AR, layout.INFLOW_HISTORY, layout.INFLOW_ANNUAL)
    if entries and not any(path in sources.present for path in models):
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: {field} have no effect, since inflows do not depend on earlier inflows.",
            file=_FILE,
            field=field,
            suggestion=f"They matter with {layout.INFLOW_AR} or {layout.INFLOW_HISTORY}.",
        )
