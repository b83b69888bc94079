"""Mean and standard deviation of the period behind each lag.

In this order: the stages whose home that period is, in or before the study (several share it by days); the
period nearest in time with the same season, among those of stages in the study, then before it; statistics
of the season from a history; at a coarse resolution the means of the finer periods in it, whose standard
deviations count as if they moved together. Where none of these is known, the period of a stage nearest in
time is used, whatever its season, and the model carries a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.case.periods import Period, StudyCalendar

FloatArray = NDArray[np.float64]
SeasonStatistics = Mapping[int, tuple[FloatArray, FloatArray]]
"""Mean and standard deviation by hydro, for each season id."""


@dataclass
class _Entry:
    """Statistics of one period by hydro; NaN where there is none."""

    mean: FloatArray
    std: FloatArray


class LagStatistics:
    """Statistics of periods; see :meth:`of`."""

    def __init__(
        self,
        case: Case,
        calendar: StudyCalendar,
        mean: FloatArray,
        std: FloatArray,
        seasons: SeasonStatistics | None = None,
    ) -> None:
        self._calendar = calendar
        self._hydros = mean.shape[1]
        self._seasons = dict(seasons or {})
        self._study = [self._from_stages(number, mean, std) for number in range(len(calendar.timelines))]
        self._before: list[dict[Period, _Entry]] = [{} for _ in calendar.timelines]
        self._read_pre_study(case)
        self._cache: dict[tuple[int, Period], tuple[FloatArray, FloatArray, NDArray[np.bool_]]] = {}

    def of(self, resolution: int, period: Period) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Return mean, standard deviation and whether they are known (not substitutes), by hydro."""
        key = (resolution, period)
        if key not in self._cache:
            self._cache[key] = self._find(resolution, period)
        return self._cache[key]

    def _from_stages(self, number: int, mean: FloatArray, std: FloatArray) -> dict[Period, _Entry]:
        timeline = self._calendar.timelines[number]
        members: dict[int, list[int]] = {}
        for stage, resolution in enumerate(self._calendar.of_stage):
            if resolution == number:
                members.setdefault(timeline.home[stage], []).append(stage)
        found = {}
        for at, stages in members.items():
            if len(stages) == 1:
                found[timeline.periods[at]] = _Entry(mean[stages[0]], std[stages[0]])
                continue
            days = timeline.days[stages, at]
            weight = days / days.sum() if days.sum() > 0.0 else np.full(len(stages), 1.0 / len(stages))
            found[timeline.periods[at]] = _Entry(
                _weighted(weight, mean[stages]), _weighted(weight, std[stages])
            )
        return found

    def _read_pre_study(self, case: Case) -> None:
        stats = case.scenarios.pre_study
        if stats is None:
            return
        for row, (number, home) in enumerate(self._calendar.periods_before(stats)):
            mean = np.where(stats.present[row], stats.mean_m3s[row], np.nan)
            std = np.where(stats.present[row], stats.std_m3s[row], np.nan)
            # Of several stages with the same home (weeks before the study) the latest with a row counts.
            earlier = self._before[number].get(home)
            if earlier is not None:
                mean = np.where(np.isnan(mean), earlier.mean, mean)
                std = np.where(np.isnan(std), earlier.std, std)
            self._before[number][home] = _Entry(mean, std)

    def _find(self, resolution: int, period: Period) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        mean, std = np.full(self._hydros, np.nan), np.full(self._hydros, np.nan)

        def take(entry: _Entry | None) -> bool:
            if entry is not None:
                open_ = np.isnan(mean)
                mean[open_], std[open_] = entry.mean[open_], entry.std[open_]
            return not bool(np.isnan(mean).any())

        done = take(self._study[resolution].get(period)) or take(self._before[resolution].get(period))
        for known in (self._study[resolution], self._before[resolution]):
            same = [other for other in known if other.season_id == period.season_id is not None]
            for other in sorted(same, key=lambda item: (abs((item.start - period.start).days), item.start)):
                done = done or take(known[other])
        if not done and period.season_id in self._seasons:
            done = take(_Entry(*self._seasons[period.season_id]))
        if not done and resolution > 0:
            take(self._from_finer(resolution - 1, period))
        known_here = ~np.isnan(mean)
        nearest = sorted(
            self._study[resolution], key=lambda item: (abs((item.start - period.start).days), item.start)
        )
        if nearest:
            take(self._study[resolution][nearest[0]])
        there = ~np.isnan(mean)
        return np.where(there, mean, 0.0), np.where(there, std, 0.0), known_here

    def _from_finer(self, resolution: int, period: Period) -> _Entry:
        finer = self._calendar.timelines[resolution].resolution.overlapping(period.start, period.end)
        days = np.array([item.overlap(period.start, period.end) for item in finer], np.float64)
        parts = [self.of(resolution, item) for item in finer]
        known = np.logical_and.reduce([part[2] for part in parts])
        weight = days / days.sum()
        mean = _weighted(weight, np.array([part[0] for part in parts]))
        std = _weighted(weight, np.array([part[1] for part in parts]))
        return _Entry(np.where(known, mean, np.nan), np.where(known, std, np.nan))


def _weighted(weight: FloatArray, values: FloatArray) -> FloatArray:
    """Return the weighted mean over rows; that of equal rows is the row itself."""
    if (values == values[0]).all():
        weight, values = np.ones(1), values[:1]
    total = np.zeros(values.shape[1])
    for share, row in zip(weight.tolist(), values, strict=True):
        total += share * row
    return total
