"""Water that is still under way between two plants when the study starts.

Water released during a window before the study arrives ``travel_time_hours`` later. Time inside the study
counts the hours of blocks, stage after stage.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from cobre.case.catalogue import by_id
from cobre.case.checks.windows import by_entity, check_windows, covered_back, study_start
from cobre.case.format import layout
from cobre.case.format.schema.initial import DefluenceEntry
from cobre.case.format.schema.system import HydroEntry
from cobre.case.format.sources import Sources
from cobre.case.model.horizon import Stage
from cobre.case.problems import Reporter, name_entity
from cobre.case.scenarios.stats import name_group
from cobre.units import HM3_PER_M3S_HOUR

_FILE = layout.INITIAL_CONDITIONS
_FIELD = "past_defluences"


def check_travel(sources: Sources, reporter: Reporter) -> None:
    """Check that past releases cover the travel time of every plant that has one."""
    initial = sources.initial.root
    start = study_start(sources)
    if initial is None:
        return
    entries = initial.past_defluences or []
    clean = check_windows(entries, _FIELD, "hydro_id", sources.hydros, "hydro", start, None, reporter)
    if not clean or start is None:
        return
    windows = by_entity(entries, "hydro_id")
    unused: list[int] = []
    for hydro in by_id(sources.hydros.items):
        own = [window for _, window in windows.get(hydro.id, [])]
        entity = name_entity("hydro", hydro.id, hydro.name)
        travel = hydro.travel_time_hours or 0.0
        if travel <= 0.0:
            unused += [hydro.id] if own else []
            continue
        covered = covered_back(own, start)
        if _operates_at_start(hydro, sources) and covered * 24.0 < travel:
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: {_FIELD} of {entity} cover {covered} days before {start}, less than its travel "
                f"time of {travel} hours.",
                file=_FILE,
                entity=entity,
                field=_FIELD,
                value=covered,
                suggestion="Give its releases without a gap for the whole travel time before the study.",
            )
    if unused:
        who = name_group("hydro", unused, sources.hydros.names)
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: {_FIELD} of {who} have no effect without a travel_time_hours.",
            file=_FILE,
            entity=who,
            field=_FIELD,
            suggestion="Give the plant a travel time, or remove the releases.",
        )


def _operates_at_start(hydro: HydroEntry, sources: Sources) -> bool:
    first = min((stage.id for stage in sources.stages.items), default=0)
    return hydro.entry_stage_id is None or hydro.entry_stage_id <= first


def water_under_way(sources: Sources, stages: Sequence[Stage]) -> dict[int, tuple[float, ...]]:
    """Return :func:`past_outflow` of every plant with a travel time. Only for sources without errors."""
    root = sources.initial.root
    windows: dict[int, list[DefluenceEntry]] = {}
    for entry in (root.past_defluences if root is not None else None) or ():
        windows.setdefault(entry.hydro_id, []).append(entry)
    return {
        hydro.id: past_outflow(
            hydro.travel_time_hours, windows.get(hydro.id, []), stages[0].start_date, stages
        )
        for hydro in sources.hydros.items
        if hydro.travel_time_hours
    }


def past_outflow(
    travel_hours: float, windows: Sequence[DefluenceEntry], start: datetime.date, stages: Sequence[Stage]
) -> tuple[float, ...]:
    """Return the water (hm3) released before the study, by the stage (position) in which it arrives.

    The tuple ends with the last stage in which any arrives; what arrives after the study is left out.
    """
    arrivals = []
    begin = 0.0
    for stage in stages:
        if begin >= travel_hours:
            break
        end = begin + stage.hours
        volume = 0.0
        for window in sorted(windows, key=lambda item: item.start_date):
            first = (window.start_date - start).days * 24.0 + travel_hours
            last = (window.end_date - start).days * 24.0 + travel_hours
            overlap = min(end, last) - max(begin, first)
            if overlap > 0.0:
                volume += HM3_PER_M3S_HOUR * window.value_m3s * overlap
        arrivals.append(volume)
        begin = end
    return tuple(arrivals)
