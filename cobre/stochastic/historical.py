"""Windows of observed inflows: the inflows of a study that began in an earlier year.

The window of year y moves the study's stages so that the first one starts in that year. It is complete where
every hydro was observed on every day of the moved stages and of the lags that enter the first of them. The
observed inflow of a stage is the mean over its days; what is left of it when the part of earlier inflows of
the same window is taken off is the window's base inflow, and divided by the model's sigma its noise.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, InflowHistory
from cobre.errors import Problem, ValidationError
from cobre.stochastic.external import next_memory
from cobre.stochastic.par import InflowModel

FloatArray = NDArray[np.float64]
Days = NDArray[np.datetime64]

_FILE = "scenarios/inflow_history.parquet"


@dataclass(frozen=True, eq=False)
class HistoricalWindows:
    """All complete windows, by ascending year.

    Attributes
    ----------
    years
        In which the first stage of each window starts.
    base_m3s
        Inflow without the part of earlier inflows, by (window, stage, hydro).
    noise
        Of the inflow model, by (window, stage, hydro); 0 where the model has none.
    memory
        What enters the first stage, by (window, hydro, K).
    """

    years: tuple[int, ...]
    base_m3s: FloatArray
    noise: FloatArray
    memory: FloatArray

    def __len__(self) -> int:
        return len(self.years)


def historical_windows(
    case: Case, model: InflowModel, years: Sequence[int] | None = None
) -> HistoricalWindows:
    """Return the complete windows of a study's history.

    Parameters
    ----------
    years
        Those to choose from; all unless given.

    Raises
    ------
    ValidationError
        If no window is complete, or the model's lags have no counterpart in the history.
    """
    history = case.scenarios.inflow_history
    if history is None or not history.hydro.size:
        raise _failure("there are no observations of inflow", None, "Give a history of every hydro plant.")
    first, last = _year(history.start.min()), _year(history.end.max())
    wanted = [year for year in range(first, last + 1) if years is None or year in years]
    hydros = len(case.hydros)
    lookups = [_Observed(history, hydro) for hydro in range(hydros)]
    periods = _lag_periods(case, model)
    stages = [(stage.start_date, stage.end_date) for stage in case.stages]
    shift = case.stages[0].start_date.year
    start, end = _moved([*periods, *stages], [year - shift for year in wanted])
    values = np.empty((len(wanted), start.shape[1], hydros))
    for hydro, lookup in enumerate(lookups):
        values[:, :, hydro] = lookup.means(start, end)
    complete = ~np.isnan(values).any(axis=(1, 2))
    if not complete.any():
        raise _failure(
            f"no year from {first} to {last} has observations of all hydros at all stages and lags",
            None if years is None else list(years)[:20],
            "Give a longer history, or other historical_years.",
        )
    values = values[complete]
    lags = len(periods)
    memory = np.ascontiguousarray(np.swapaxes(values[:, :lags], 1, 2))
    base = np.ascontiguousarray(values[:, lags:])
    _take_off_lags(model, base, memory)
    sigma = model.sigma_m3s
    noise = np.divide(base - model.base_m3s, sigma, out=np.zeros_like(base), where=sigma > 0.0)
    return HistoricalWindows(tuple(np.array(wanted)[complete].tolist()), base, noise, memory)


def _take_off_lags(model: InflowModel, inflow: FloatArray, memory: FloatArray) -> None:
    """Take the part of earlier inflows off the inflows of the windows, in place."""
    if not model.lags.names:
        return
    for stage in range(inflow.shape[1]):
        observed = inflow[:, stage].copy()
        inflow[:, stage] -= np.einsum("hk,whk->wh", model.psi[stage], memory)
        memory = next_memory(model, stage, memory, observed)


def _lag_periods(case: Case, model: InflowModel) -> list[tuple[datetime.date, datetime.date]]:
    """Return the months of the lags that enter the first stage."""
    periods = []
    month = case.stages[0].start_date.replace(day=1)
    monthly = case.seasons is not None and case.seasons.cycle_type == "monthly"
    for name in model.lags.names:
        lag = re.fullmatch(r"lag (\d+)", name)
        if lag is None or not monthly:
            raise _failure(
                f"lags other than whole months ({name}) cannot be taken from earlier years yet",
                name,
                "Use another scheme, or monthly seasons with monthly stages.",
                "NotImplemented",
            )
        start = month
        for _ in range(int(lag[1])):
            start = (start - datetime.timedelta(days=1)).replace(day=1)
        length = calendar.monthrange(start.year, start.month)[1]
        periods.append((start, start + datetime.timedelta(days=length)))
    return periods


def _failure(
    what: str, value: object, suggestion: str, kind: str = "BusinessRuleViolation"
) -> ValidationError:
    problem = Problem(kind, f"{_FILE}: {what}.", {"file": _FILE, "value": value}, suggestion)
    return ValidationError([problem], source="the history of inflows")


def _year(day: np.datetime64) -> int:
    return int(day.astype("datetime64[Y]").astype(np.int64)) + 1970


def _moved(
    periods: Sequence[tuple[datetime.date, datetime.date]], shifts: Sequence[int]
) -> tuple[Days, Days]:
    """Return first days and first days after by (shift, period), moved by whole years."""
    start = np.empty((len(shifts), len(periods)), "datetime64[D]")
    end = np.empty_like(start)
    for row, shift in enumerate(shifts):
        for column, (first, after) in enumerate(periods):
            start[row, column] = _move(first, shift)
            end[row, column] = max(_move(after, shift), _move(first, shift) + datetime.timedelta(days=1))
    return start, end


def _move(day: datetime.date, years: int) -> datetime.date:
    """Return the same day of another year; the last of February for the 29th."""
    year = day.year + years
    return day.replace(year=year, day=min(day.day, calendar.monthrange(year, day.month)[1]))


class _Observed:
    """The observations of one hydro."""

    def __init__(self, history: InflowHistory, hydro: int) -> None:
        rows = np.flatnonzero(history.hydro == hydro)
        rows = rows[np.argsort(history.start[rows], kind="stable")]
        self._start = history.start[rows].astype("datetime64[D]")
        self._end = history.end[rows].astype("datetime64[D]")
        self._value = history.value_m3s[rows]
        days = (self._end - self._start).astype(np.int64)
        self._days_before = np.concatenate([[0], np.cumsum(days)])
        self._sum_before = np.concatenate([[0.0], np.cumsum(days * self._value)])

    def means(self, start: Days, end: Days) -> FloatArray:
        """Return means over periods; NaN where a day was not observed."""
        if not self._value.size:
            return np.full(start.shape, np.nan)
        first = np.searchsorted(self._start, start, side="right") - 1
        last = np.searchsorted(self._start, end - np.timedelta64(1, "D"), side="right") - 1
        days_to_start, sum_to_start = self._until(start)
        days_to_end, sum_to_end = self._until(end)
        length = (end - start).astype(np.int64)
        mean: FloatArray = (sum_to_end - sum_to_start) / length
        single = (first == last) & (first >= 0)
        mean[single] = self._value[first[single]]  # without the rounding of sums
        mean[days_to_end - days_to_start != length] = np.nan
        return mean

    def _until(self, day: Days) -> tuple[NDArray[np.int64], FloatArray]:
        """Return observed days before a day, and the sum of their values."""
        row = np.searchsorted(self._start, day, side="left") - 1
        inside = np.clip(row, 0, None)
        days = (np.minimum(day, self._end[inside]) - self._start[inside]).astype(np.int64)
        days = np.where(row >= 0, days, 0)
        return self._days_before[inside] + days, self._sum_before[inside] + days * self._value[inside]
