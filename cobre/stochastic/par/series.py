"""A history of inflows as one series of periods for each resolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import InflowHistory
from cobre.case.periods import Period, Resolution

FloatArray = NDArray[np.float64]

_LEAST_COVERAGE = 0.5
"""A period counts as observed when at least this share of its days is."""


@dataclass(frozen=True, eq=False)
class PeriodSeries:
    """Observed means of consecutive periods.

    Attributes
    ----------
    periods
        Without gaps, from the first that any plant has to the last.
    season_ids
        The seasons that occur, in the order of the cycle, the one of the earliest date in a year first.
    season
        int64 ``(P,)``: position in ``season_ids``; -1 for periods without a season.
    values
        float64 ``(H, P)``: mean inflow, m3/s; NaN where it is not known.
    """

    periods: tuple[Period, ...]
    season_ids: tuple[int, ...]
    season: NDArray[np.int64]
    values: FloatArray


def period_series(history: InflowHistory, resolution: Resolution, num_hydros: int) -> PeriodSeries:
    """Return the day-weighted mean inflow of every period in the history."""
    first, last = history.start.min().item(), history.end.max().item()
    periods = resolution.overlapping(first, last)
    starts = np.array([period.start for period in periods], "datetime64[D]")
    ends = np.array([period.end for period in periods], "datetime64[D]")
    total = np.zeros((num_hydros, len(periods)))
    days = np.zeros((num_hydros, len(periods)), np.int64)
    from_period = np.searchsorted(ends, history.start, side="right")
    to_period = np.searchsorted(starts, history.end, side="left") - 1
    for step in range(int((to_period - from_period).max(initial=-1)) + 1):
        rows = np.flatnonzero(from_period + step <= to_period)
        at = from_period[rows] + step
        inside = np.minimum(history.end[rows], ends[at]) - np.maximum(history.start[rows], starts[at])
        count = inside.astype(np.int64)
        np.add.at(total, (history.hydro[rows], at), history.value_m3s[rows] * count)
        np.add.at(days, (history.hydro[rows], at), count)
    length = (ends - starts).astype(np.int64)
    enough = (days > 0) & (days >= _LEAST_COVERAGE * length)
    values = np.divide(total, days, out=np.full(total.shape, np.nan), where=enough)
    seasons = _cycle(periods)
    position = {season: at for at, season in enumerate(seasons)}
    season = np.array(
        [-1 if period.season_id is None else position[period.season_id] for period in periods], np.int64
    )
    return PeriodSeries(tuple(periods), seasons, season, values)


def _cycle(periods: Sequence[Period]) -> tuple[int, ...]:
    first: dict[int, tuple[int, int]] = {}
    for period in periods:
        if period.season_id is not None:
            day = (period.start.month, period.start.day)
            first[period.season_id] = min(first.get(period.season_id, day), day)
    # Weeks start on other days each year, so the number of the season breaks no tie there; it orders them.
    weekly = any(period.days == 7 for period in periods)
    return tuple(sorted(first, key=lambda season: season if weekly else first[season]))
