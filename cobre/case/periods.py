"""Periods: the occurrences of seasons on the calendar, in which autoregressive models count their lags.

A *resolution* tiles time with periods of one kind: calendar months, weeks, or custom seasons of similar
length (months beside quarters are two resolutions). Without a season map every stage is a period of its own.

The *home* of a stage is the occurrence of its season that overlaps it most, or the nearest one where a short
stage counts for a season it does not overlap. At another resolution it is the period in which the days that
the stage shares with that home begin. Homes never go back in time.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.model.horizon import Season, SeasonMap, Stage
from cobre.case.model.scenarios import PreStudyStats

_TOLERANCE_DAYS = 7
"""Custom seasons whose lengths differ by no more are of one resolution."""
_LEAP_YEAR = 2024
_DAY = datetime.timedelta(days=1)
_LONGEST_GAP_DAYS = 367


@dataclass(frozen=True, order=True)
class Period:
    """One occurrence of a season: the days from ``start`` up to, not including, ``end``."""

    start: datetime.date
    end: datetime.date
    season_id: int | None

    @property
    def days(self) -> int:
        """Its length."""
        return (self.end - self.start).days

    def overlap(self, start: datetime.date, end: datetime.date) -> int:
        """Return how many of its days lie from ``start`` up to ``end``."""
        return max((min(self.end, end) - max(self.start, start)).days, 0)


class Resolution:
    """A way to tile time with periods; see :func:`resolutions`."""

    name: str

    def at(self, date: datetime.date) -> Period | None:
        """Return the period that holds a date; ``None`` in a gap between custom seasons."""
        raise NotImplementedError

    def before(self, period: Period) -> Period:
        """Return the period that precedes another; gaps are skipped."""
        return self._walk(period.start - _DAY, -_DAY)

    def after(self, period: Period) -> Period:
        """Return the period that follows another; gaps are skipped."""
        return self._walk(period.end, _DAY)

    def overlapping(self, start: datetime.date, end: datetime.date) -> list[Period]:
        """Return all periods with days from ``start`` up to ``end``, in order."""
        found = []
        period = self._walk(start, _DAY)
        while period.start < end:
            found.append(period)
            period = self.after(period)
        return found

    def from_date(self, date: datetime.date) -> Period:
        """Return the period that holds a date, or the next one after a gap."""
        return self._walk(date, _DAY)

    def _walk(self, date: datetime.date, step: datetime.timedelta) -> Period:
        for _ in range(_LONGEST_GAP_DAYS):
            period = self.at(date)
            if period is not None:
                return period
            date += step
        raise ValueError(f"no season within a year of {date}")


class _Months(Resolution):
    def __init__(self, seasons: Sequence[Season]) -> None:
        self.name = "month"
        self._season = {season.month_start: season.id for season in seasons}

    def at(self, date: datetime.date) -> Period:
        start = date.replace(day=1)
        end = start + datetime.timedelta(days=calendar.monthrange(date.year, date.month)[1])
        return Period(start, end, self._season.get(date.month))


class _Weeks(Resolution):
    """Weeks from the weekday on which the stages start; each has the season of its first day's ISO week."""

    def __init__(self, seasons: Sequence[Season], anchor: datetime.date) -> None:
        self.name = "week"
        self._ids = sorted(season.id for season in seasons)
        self._anchor = anchor

    def at(self, date: datetime.date) -> Period:
        start = date - datetime.timedelta(days=(date - self._anchor).days % 7)
        week = start.isocalendar()[1] - 1
        # Week 53 of a long year has no season of its own in a cycle of 52.
        season = self._ids[min(week, len(self._ids) - 1)] if week <= len(self._ids) else None
        return Period(start, start + datetime.timedelta(days=7), season)


class _Custom(Resolution):
    def __init__(self, name: str, seasons: Sequence[Season]) -> None:
        self.name = name
        self._seasons = by_id(seasons)

    @cached_property
    def season_ids(self) -> frozenset[int]:
        """The seasons of this resolution."""
        return frozenset(season.id for season in self._seasons)

    def at(self, date: datetime.date) -> Period | None:
        for season in self._seasons:
            for year in (date.year, date.year - 1):
                start, end = _occurrence(season, year)
                if start <= date < end:
                    return Period(start, end, season.id)
        return None


class _Own(Resolution):
    """Every stage is a period; before and after them come periods as long as the first and the last."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.name = "stage"
        self._stages = [
            Period(stage.start_date, max(stage.end_date, stage.start_date + _DAY), stage.season_id)
            for stage in by_id(stages)
        ]

    def at(self, date: datetime.date) -> Period:
        for period in reversed(self._stages):
            if period.start <= date < period.end:
                return period
        first, last = self._stages[0], self._stages[-1]
        if date < first.start:
            length = datetime.timedelta(days=first.days)
            start = first.start - length * -((date - first.start).days // first.days)
            return Period(start, start + length, None)
        length = datetime.timedelta(days=last.days)
        start = last.end + length * ((date - last.end).days // last.days)
        return Period(start, start + length, None)


def _date(year: int, month: int, day: int) -> datetime.date:
    return datetime.date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _occurrence(season: Season, year: int) -> tuple[datetime.date, datetime.date]:
    """Return the days of a custom season that starts in ``year``, as first day and first day after."""
    start = _date(year, season.month_start, season.day_start or 1)
    month, day = season.month_end or season.month_start, season.day_end or 31
    end = _date(year, month, day)
    if end < start:
        end = _date(year + 1, month, day)
    return start, end + _DAY


def _length(season: Season) -> int:
    start, end = _occurrence(season, _LEAP_YEAR)
    return (end - start).days


def resolutions(seasons: SeasonMap | None, stages: Sequence[Stage]) -> tuple[Resolution, ...]:
    """Return the resolutions of a season map, the finest first.

    Parameters
    ----------
    seasons
        The season map; without one every stage is a period.
    stages
        The study stages.
    """
    if seasons is None:
        return (_Own(stages),)
    if seasons.cycle_type == "monthly":
        return (_Months(seasons.seasons),)
    if seasons.cycle_type == "weekly":
        return (_Weeks(seasons.seasons, stages[0].start_date),)
    ordered = sorted(seasons.seasons, key=lambda season: (_length(season), season.id))
    levels: list[list[Season]] = []
    for season in ordered:
        if levels and _length(season) - _length(levels[-1][-1]) <= _TOLERANCE_DAYS:
            levels[-1].append(season)
        else:
            levels.append([season])
    return tuple(_Custom(_level_name(level), level) for level in levels)


def _level_name(level: Sequence[Season]) -> str:
    days = sum(_length(season) for season in level) / len(level)
    known = {"week": 7, "month": 30.5, "quarter": 91.5, "half-year": 183, "year": 366}
    for name, usual in known.items():
        if abs(days - usual) <= max(0.05 * usual, 1.0):
            return name
    return f"{days:.0f}-day period"


class Span(Protocol):
    """Days with a season: a stage of the study or before it."""

    @property
    def start_date(self) -> datetime.date:
        """First day."""

    @property
    def end_date(self) -> datetime.date:
        """First day after it."""

    @property
    def season_id(self) -> int | None:
        """Its season."""


@dataclass(frozen=True)
class _Span:
    start_date: datetime.date
    end_date: datetime.date
    season_id: int | None


@dataclass(frozen=True, eq=False)
class Timeline:
    """The study at one resolution.

    Attributes
    ----------
    resolution
        What tiles time.
    periods
        Those that stages belong to or have days in, in order; at the end the one that follows the study.
    home
        For each stage the position of its home in ``periods``; one more for what follows the study.
    days
        float64 ``(stage, period)``: days of a stage in its home and in later periods. Days before the home do
        not count. A home in which no stage has a day gets all days of its stages.
    """

    resolution: Resolution
    periods: tuple[Period, ...]
    home: tuple[int, ...]
    days: NDArray[np.float64]

    def past(self, count: int) -> list[Period]:
        """Return the last ``count`` periods before the home of the first stage, the latest first."""
        found: list[Period] = []
        period = self.periods[0]
        for _ in range(count):
            period = self.resolution.before(period)
            found.append(period)
        return found

    def lagged(self, stage: int, lags: int) -> list[Period]:
        """Return the ``lags`` periods before the home of a stage, the latest first."""
        home = self.home[stage]
        inside = [self.periods[at] for at in range(home - 1, max(home - lags, 0) - 1, -1)]
        return inside + self.past(lags - len(inside))


@dataclass(frozen=True, eq=False)
class StudyCalendar:
    """In which periods the study stages lie.

    Attributes
    ----------
    timelines
        One for each resolution of the season map, the finest first.
    of_stage
        For each stage the resolution of its season (position in ``timelines``).
    """

    timelines: tuple[Timeline, ...]
    of_stage: tuple[int, ...]

    def periods_before(self, stats: PreStudyStats | None) -> list[tuple[int, Period]]:
        """Return resolution and home of stages before the study.

        One without dates of its own lies as many periods before the home of the first stage as its id states.
        """
        if stats is None:
            return []
        found = []
        number = self.of_stage[0]
        past = self.timelines[number].past(-int(stats.stage_id[np.isnat(stats.start)].min(initial=0)))
        for row in range(stats.stage_id.size):
            if np.isnat(stats.start[row]):
                found.append((number, past[-int(stats.stage_id[row]) - 1]))
            else:
                season = int(stats.season_id[row])
                span = _Span(stats.start[row].item(), stats.end[row].item(), None if season < 0 else season)
                found.append(self.home_of(span))
        return found

    def home_of(self, span: Span) -> tuple[int, Period]:
        """Return resolution and home of any span of days with a season."""
        found = [timeline.resolution for timeline in self.timelines]
        number = _resolution_of(found, span)
        return number, _home(found[number], span)


def study_calendar(seasons: SeasonMap | None, stages: Sequence[Stage]) -> StudyCalendar:
    """Return the periods of the study stages, at every resolution of the season map."""
    found = resolutions(seasons, stages)
    of_stage = tuple(_resolution_of(found, stage) for stage in stages)
    own = [_home(found[at], stage) for at, stage in zip(of_stage, stages, strict=True)]
    timelines = []
    for number, resolution in enumerate(found):
        homes: list[Period] = []
        for at, period, stage in zip(of_stage, own, stages, strict=True):
            if at != number:
                inside = period.overlap(stage.start_date, stage.end_date) > 0
                start = max(period.start, stage.start_date) if inside else stage.start_date
                period = resolution.from_date(start)
            homes.append(max(period, homes[-1]) if homes else period)
        timelines.append(_timeline(resolution, homes, stages))
    return StudyCalendar(tuple(timelines), of_stage)


def _timeline(resolution: Resolution, homes: list[Period], stages: Sequence[Stage]) -> Timeline:
    spans = [
        {
            period: period.overlap(stage.start_date, stage.end_date)
            for period in resolution.overlapping(stage.start_date, stage.end_date)
            if period >= home
        }
        for home, stage in zip(homes, stages, strict=True)
    ]
    touched = set().union(homes, *spans)
    following = max(resolution.from_date(stages[-1].end_date), homes[-1])
    periods = sorted(touched | {following})
    position = {period: at for at, period in enumerate(periods)}
    days = np.zeros((len(stages), len(periods)))
    for stage, span in enumerate(spans):
        for period, count in span.items():
            days[stage, position[period]] = count
    home = [position[period] for period in homes]
    for at in sorted(set(home)):
        members = [stage for stage, place in enumerate(home) if place == at]
        if days[:, at].sum() == 0.0:
            for stage in members:
                days[stage, at] = max((stages[stage].end_date - stages[stage].start_date).days, 1)
    days.setflags(write=False)
    return Timeline(resolution, tuple(periods), (*home, position[following]), days)


def _resolution_of(found: Sequence[Resolution], span: Span) -> int:
    for number, resolution in enumerate(found):
        if isinstance(resolution, _Custom) and span.season_id in resolution.season_ids:
            return number
    return 0


def _home(resolution: Resolution, span: Span) -> Period:
    periods = resolution.overlapping(span.start_date, max(span.end_date, span.start_date + _DAY))
    first = resolution.from_date(span.start_date)
    if isinstance(resolution, (_Own, _Weeks)) or span.season_id is None:
        return first
    matching = [period for period in periods if period.season_id == span.season_id]
    if matching:
        return max(matching, key=lambda period: period.overlap(span.start_date, span.end_date))
    earlier = later = first
    for _ in range(_LONGEST_GAP_DAYS):
        earlier, later = resolution.before(earlier), resolution.after(later)
        # Of two equally near ones the earlier: a late week still counts for the month that it follows.
        for period in (earlier, later):
            if period.season_id == span.season_id:
                return period
    return first
