"""Dated windows of initial conditions: order, overlap, how far back they reach."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from cobre.case.format import layout
from cobre.case.format.parse import Parsed
from cobre.case.format.schema.initial import Window
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, name_entity

_FILE = layout.INITIAL_CONDITIONS


def study_start(sources: Sources) -> datetime.date | None:
    """Return the first day of the study, or ``None`` while stages are not all readable."""
    root = sources.stages.root
    stages = [stage for stage in root.stages if stage.id >= 0] if root is not None else []
    return min(stages, key=lambda stage: stage.id).start_date if stages else None


def by_entity(entries: Iterable[Window], key: str) -> dict[int, list[tuple[int, Window]]]:
    """Group windows by the id under ``key``, each with its place in the file, ordered by start."""
    groups: dict[int, list[tuple[int, Window]]] = defaultdict(list)
    for index, entry in enumerate(entries):
        groups[getattr(entry, key)].append((index, entry))
    for group in groups.values():
        group.sort(key=lambda pair: (pair[1].start_date, pair[1].end_date))
    return dict(groups)


def check_windows(
    entries: Sequence[Window],
    field: str,
    key: str,
    registry: Parsed[Any, Any],
    word: str,
    latest: datetime.date | None,
    rule: str | None,
    reporter: Reporter,
) -> bool:
    """Check that windows end after they start, end by ``latest``, do not overlap and belong to something.

    Returns
    -------
    bool
        Whether all of them are usable.
    """
    clean = True
    for number, group in sorted(by_entity(entries, key).items()):
        entity = name_entity(word, number, registry.names.get(number))
        if registry.ids is not None and number not in registry.id_set:
            clean = False
            _report(
                "InvalidReference",
                f"{field}[{group[0][0]}].{key} is {number}, but there is no {word} with that id",
                entity,
                f"{field}[{group[0][0]}].{key}",
                number,
                "referential.1",
                f"Remove the entry, or add the {word}.",
                reporter,
            )
        before: Window | None = None
        for index, window in group:
            place = f"{field}[{index}]"
            span = f"{window.start_date} to {window.end_date}"
            if window.end_date <= window.start_date:
                clean = False
                _report(
                    "InvalidValue",
                    f"{place} of {entity} ends ({window.end_date}) no later than it starts "
                    f"({window.start_date})",
                    entity,
                    f"{place}.end_date",
                    str(window.end_date),
                    None,
                    "The end date is the first day after the window.",
                    reporter,
                )
                continue
            if latest is not None and window.end_date > latest:
                clean = False
                _report(
                    "BusinessRuleViolation",
                    f"{place} of {entity} ({span}) reaches beyond the start of the study, {latest}",
                    entity,
                    f"{place}.end_date",
                    str(window.end_date),
                    rule,
                    "Let it end when the study starts, or earlier.",
                    reporter,
                )
            if before is not None and window.start_date < before.end_date:
                clean = False
                _report(
                    "BusinessRuleViolation",
                    f"{place} of {entity} ({span}) overlaps the window before it, which ends "
                    f"{before.end_date}",
                    entity,
                    f"{place}.start_date",
                    str(window.start_date),
                    rule,
                    "Windows of one entity must not share a day.",
                    reporter,
                )
            before = window
    return clean


def _report(
    kind: str,
    what: str,
    entity: str,
    field: str,
    value: object,
    rule: str | None,
    suggestion: str,
    reporter: Reporter,
) -> None:
    reporter.error(
        kind,
        f"{_FILE}: {what}.",
        file=_FILE,
        entity=entity,
        field=field,
        value=value,
        rule=rule,
        suggestion=suggestion,
    )


def covered_back(windows: Sequence[Window], end: datetime.date) -> int:
    """Return how many days right before ``end`` windows cover without a gap (ordered, not overlapping)."""
    reached = end
    for window in reversed(windows):
        if window.end_date < reached:
            break
        reached = min(reached, window.start_date)
    return (end - reached).days
