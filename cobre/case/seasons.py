"""Seasons: which one a date belongs to, and what definitions and stages must agree on.

A monthly cycle maps a date by its month, a weekly one by its ISO week (the first season is week 1), a custom
one by ranges of days that include both ends and may run over the end of the year. Custom seasons of different
lengths (months beside quarters) may overlap: the one closest to the length of the stage is taken.
"""

from __future__ import annotations

import calendar
import datetime
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_unique
from cobre.case.format import layout
from cobre.case.format.schema.stages import (
    PreStudyStageEntry,
    SeasonDefinitions,
    SeasonEntry,
    StageEntry,
    StagesFile,
)
from cobre.case.problems import Reporter, short_ids

_FILE = layout.STAGES
_TOLERANCE_DAYS = 7
"""Lengths that differ by no more belong to the same resolution (a month, a quarter, ...)."""
_LEAP_YEAR = 2024


def season_of(
    definitions: SeasonDefinitions, start: datetime.date, days: int | None = None
) -> SeasonEntry | None:
    """Return the season of a date, or ``None`` where no season holds it.

    Parameters
    ----------
    days
        Length of the stage that starts then; chooses between custom seasons of different lengths.
    """
    seasons = definitions.seasons
    if definitions.cycle_type == "monthly":
        return next((season for season in seasons if season.month_start == start.month), None)
    if definitions.cycle_type == "weekly":
        ordered = by_id(seasons)
        week = start.isocalendar()[1] - 1
        # Week 53 of a long year has no season of its own in a cycle of 52.
        return ordered[min(week, len(ordered) - 1)] if week <= len(ordered) else None
    inside = [season for season in seasons if _is_complete(season) and _holds(season, start)]
    if not inside:
        return None
    length = days or 0
    return min(inside, key=lambda season: (abs(int(_days_of(season).sum()) - length), season.id))


def stage_season(file: StagesFile, stage: StageEntry | PreStudyStageEntry) -> int | None:
    """Return the season id of a stage: its own, else that of its start date, else ``None``."""
    if stage.season_id is not None or file.season_definitions is None:
        return stage.season_id
    days = (stage.end_date - stage.start_date).days
    found = season_of(file.season_definitions, stage.start_date, days)
    return None if found is None else found.id


def check_seasons(file: StagesFile, reporter: Reporter) -> None:
    """Check the definitions of seasons and the stages against them."""
    definitions = file.season_definitions
    if definitions is None:
        return
    check_unique(
        [season.id for season in definitions.seasons],
        _FILE,
        "season",
        reporter,
        field="season_definitions.seasons",
    )
    usable = _check_definitions(definitions, reporter)
    stages: list[StageEntry | PreStudyStageEntry] = [*file.stages, *(file.pre_study_stages or ())]
    known = {season.id for season in definitions.seasons}
    for stage in by_id(stages):
        if stage.season_id is not None and stage.season_id not in known:
            _report_stage(
                stage,
                "InvalidReference",
                f"is {stage.season_id}, which is not among season_definitions",
                f"Known season ids: {short_ids(sorted(known))}.",
                "5b.27",
                reporter,
            )
        elif usable and stage.end_date > stage.start_date:
            _check_date(definitions, stage, reporter)
    if usable:
        _check_lengths(file, reporter)
        used = {stage_season(file, stage) for stage in stages}
        unused = sorted(known - used)
        if unused:
            reporter.warning(
                "UnusedEntity",
                f"{_FILE}: no stage belongs to season {short_ids(unused)}.",
                file=_FILE,
                entity=f"season {short_ids(unused)}",
                field="season_definitions.seasons",
                value=short_ids(unused),
                rule="5b.30",
                suggestion="This is usual in studies shorter than the cycle.",
            )


def _check_definitions(definitions: SeasonDefinitions, reporter: Reporter) -> bool:
    """Check the seasons alone; return whether dates can be mapped with them."""
    custom = definitions.cycle_type == "custom"
    usable = True
    ignored = []
    for index, season in enumerate(definitions.seasons):
        place = f"season_definitions.seasons[{index}]"
        if not custom:
            given = (season.day_start, season.month_end, season.day_end)
            ignored += [season.id] if any(value is not None for value in given) else []
        elif not _is_complete(season):
            usable = False
            _report_season(
                season,
                "SchemaViolation",
                place,
                "must have day_start, month_end and day_end in a custom cycle",
                "Give the first and the last day; the last day belongs to the season.",
                reporter,
            )
        else:
            ends = ((season.month_start, season.day_start), (season.month_end, season.day_end))
            for (month, day), key in zip(ends, ("day_start", "day_end"), strict=True):
                if month is not None and day is not None and day > calendar.monthrange(_LEAP_YEAR, month)[1]:
                    usable = False
                    _report_season(
                        season,
                        "InvalidValue",
                        f"{place}.{key}",
                        f"is {day}, but month {month} has no such day",
                        "Give an existing day.",
                        reporter,
                    )
    if ignored:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: a {definitions.cycle_type} cycle uses month_start only; day_start, month_end and "
            f"day_end of season {short_ids(ignored)} are ignored.",
            file=_FILE,
            entity=f"season {short_ids(ignored)}",
            field="season_definitions.seasons",
            suggestion="Remove those keys, or make the cycle custom.",
        )
    if not usable:
        return False
    if definitions.cycle_type == "monthly":
        return _check_months(definitions, reporter)
    return _check_overlaps(definitions, reporter) if custom else True


def _check_months(definitions: SeasonDefinitions, reporter: Reporter) -> bool:
    by_month: dict[int, list[int]] = defaultdict(list)
    for season in definitions.seasons:
        by_month[season.month_start].append(season.id)
    repeated = {month: ids for month, ids in by_month.items() if len(ids) > 1}
    for month, ids in sorted(repeated.items()):
        reporter.error(
            "SchemaViolation",
            f"{_FILE}: seasons {short_ids(ids)} of the monthly cycle all start in month {month}.",
            file=_FILE,
            entity=f"season {ids[-1]}",
            field="season_definitions.seasons",
            value=month,
            suggestion="Give each month one season.",
        )
    return not repeated


def _check_overlaps(definitions: SeasonDefinitions, reporter: Reporter) -> bool:
    days = [(season, _days_of(season)) for season in definitions.seasons]
    clean = True
    for position, (first, mine) in enumerate(days):
        for second, theirs in days[position + 1 :]:
            same_resolution = abs(int(mine.sum()) - int(theirs.sum())) <= _TOLERANCE_DAYS
            if same_resolution and bool((mine & theirs).any()):
                clean = False
                reporter.error(
                    "SchemaViolation",
                    f"{_FILE}: season {first.id} ({first.label}) shares days with season {second.id} "
                    f"({second.label}).",
                    file=_FILE,
                    entity=f"season {second.id}",
                    field="season_definitions.seasons",
                    value=[first.id, second.id],
                    suggestion="The last day belongs to a season: let the next one start the day after.",
                )
    return clean


def _check_date(
    definitions: SeasonDefinitions, stage: StageEntry | PreStudyStageEntry, reporter: Reporter
) -> None:
    days = (stage.end_date - stage.start_date).days
    declared = next((item for item in definitions.seasons if item.id == stage.season_id), None)
    if declared is None:
        if stage.season_id is None and season_of(definitions, stage.start_date, days) is None:
            _report_stage(
                stage,
                "InvalidValue",
                f"is not given, and no season holds its start date {stage.start_date}",
                "Give a season_id, or define a season for this date.",
                "5b.27",
                reporter,
            )
        return
    if definitions.cycle_type == "monthly":
        length = calendar.monthrange(_LEAP_YEAR, declared.month_start)[1]
        fits = declared.month_start == stage.start_date.month
    elif definitions.cycle_type == "weekly":
        length, fits = 7, season_of(definitions, stage.start_date) == declared
    else:
        length, fits = int(_days_of(declared).sum()), _holds(declared, stage.start_date)
    # A stage much shorter than the season may count for any season.
    if fits or days < length - _TOLERANCE_DAYS:
        return
    message = f"is {declared.id} ({declared.label}), which does not hold its start date {stage.start_date}"
    if definitions.cycle_type == "weekly":
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: season_id of stage {stage.id} {message}.",
            file=_FILE,
            entity=f"stage {stage.id}",
            field="season_id",
            value=stage.season_id,
            suggestion="Weeks are numbered as in ISO 8601.",
        )
        return
    hint = "Leave season_id out to take it from the date, or correct one of them."
    _report_stage(stage, "SchemaViolation", message, hint, None, reporter)


def _check_lengths(file: StagesFile, reporter: Reporter) -> None:
    lengths: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for stage in file.stages:
        season = stage_season(file, stage)
        if season is not None and stage.id >= 0:
            lengths[season].append(((stage.end_date - stage.start_date).days, stage.id))
    for season, found in sorted(lengths.items()):
        (shortest, first), (longest, second) = min(found), max(found)
        if longest - shortest > _TOLERANCE_DAYS:
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: stages {first} ({shortest} days) and {second} ({longest} days) share season "
                f"{season}, but their lengths differ by more than {_TOLERANCE_DAYS} days.",
                file=_FILE,
                entity=f"stage {second}",
                field="season_id",
                value=season,
                rule="5b.29",
                suggestion="Give stages of different length seasons of their own.",
            )


def _report_season(
    season: SeasonEntry, kind: str, field: str, what: str, suggestion: str, reporter: Reporter
) -> None:
    reporter.error(
        kind,
        f"{_FILE}: {field} of season {season.id} ({season.label}) {what}.",
        file=_FILE,
        entity=f"season {season.id} ({season.label})",
        field=field,
        suggestion=suggestion,
    )


def _report_stage(
    stage: StageEntry | PreStudyStageEntry,
    kind: str,
    what: str,
    suggestion: str,
    rule: str | None,
    reporter: Reporter,
) -> None:
    reporter.error(
        kind,
        f"{_FILE}: season_id of stage {stage.id} {what}.",
        file=_FILE,
        entity=f"stage {stage.id}",
        field="season_id",
        value=stage.season_id,
        rule=rule,
        suggestion=suggestion,
    )


def _is_complete(season: SeasonEntry) -> bool:
    return None not in (season.day_start, season.month_end, season.day_end)


def _day_number(month: int, day: int) -> int:
    day = min(day, calendar.monthrange(_LEAP_YEAR, month)[1])
    return (datetime.date(_LEAP_YEAR, month, day) - datetime.date(_LEAP_YEAR, 1, 1)).days


def _days_of(season: SeasonEntry) -> NDArray[np.bool_]:
    """Return which of the 366 days of a leap year a complete custom season holds."""
    days = np.zeros(366, np.bool_)
    if season.day_start is None or season.month_end is None or season.day_end is None:
        return days
    first = _day_number(season.month_start, season.day_start)
    last = _day_number(season.month_end, season.day_end)
    if first <= last:
        days[first : last + 1] = True
    else:
        days[first:] = True
        days[: last + 1] = True
    return days


def _holds(season: SeasonEntry, date: datetime.date) -> bool:
    return bool(_days_of(season)[_day_number(date.month, date.day)])
