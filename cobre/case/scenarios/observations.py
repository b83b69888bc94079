"""Observed inflows over periods: what autoregressive models start from.

Days that both ``recent_observations`` and the history cover take the value of ``recent_observations``.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.model.scenarios import InflowHistory
from cobre.case.periods import Period, StudyCalendar
from cobre.case.problems import make_problem, name_entity
from cobre.errors import Problem

FloatArray = NDArray[np.float64]


def observed_means(
    periods: Sequence[Period],
    num_hydros: int,
    recent: InflowHistory | None,
    history: InflowHistory | None,
    until: datetime.date | None = None,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the mean observed inflow (m3/s) over periods and how many of their days are covered.

    Parameters
    ----------
    until
        Days from then on do not count.

    Returns
    -------
    mean, covered_days
        By (hydro, period); a mean over no day is 0.
    """
    total = np.zeros((num_hydros, len(periods)))
    covered = np.zeros((num_hydros, len(periods)), np.int64)
    for column, period in enumerate(periods):
        start = np.datetime64(period.start, "D")
        end = np.datetime64(period.end if until is None else min(period.end, until), "D")
        if end <= start:
            continue
        taken = _days(recent, start, end, num_hydros)
        early = _days(history, start, end, num_hydros)
        early[~np.isnan(taken)] = np.nan
        for values in (taken, early):
            present = ~np.isnan(values)
            total[:, column] += np.where(present, values, 0.0).sum(axis=1)
            covered[:, column] += present.sum(axis=1)
    return np.divide(total, covered, out=np.zeros_like(total), where=covered > 0), covered


def _days(
    observed: InflowHistory | None, start: np.datetime64, end: np.datetime64, num_hydros: int
) -> FloatArray:
    """Return the observed inflow by (hydro, day); NaN where there is none."""
    length = int((end - start).astype(int))
    values = np.full((num_hydros, length), np.nan)
    if observed is None:
        return values
    rows = np.flatnonzero((observed.start < end) & (observed.end > start))
    for row in rows.tolist():
        first = max(int((observed.start[row] - start).astype(int)), 0)
        last = min(int((observed.end[row] - start).astype(int)), length)
        values[observed.hydro[row], first:last] = observed.value_m3s[row]
    return values


def slots_read(calendar: StudyCalendar, reads: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Return which periods before the study the models read.

    Parameters
    ----------
    reads
        By (stage, hydro, lag - 1): whether the inflow of a stage depends on that lag.

    Returns
    -------
    list
        For each resolution by (hydro, slot - 1): slot 1 is the last period before the home of the first
        stage.
    """
    _, hydros, lags = reads.shape
    needed = [np.zeros((hydros, lags), np.bool_) for _ in calendar.timelines]
    for stage, resolution in enumerate(calendar.of_stage):
        seen = calendar.timelines[resolution].home[stage]
        if seen < lags:
            needed[resolution][:, : lags - seen] |= reads[stage, :, seen:]
    return needed


def missing_slots(
    periods: Sequence[Period],
    needed: NDArray[np.bool_],
    covered: NDArray[np.int64],
    hydros: Sequence[tuple[int, str | None]],
) -> list[Problem]:
    """Return a problem for each slot that is read but not covered by observations on all its days.

    Parameters
    ----------
    periods
        Of the slots.
    needed, covered
        By (hydro, slot): whether it is read, and its days with an observation.
    hydros
        Ids and names.
    """
    problems = []
    for hydro, (number, name) in enumerate(hydros):
        for slot, period in enumerate(periods):
            days = int(covered[hydro, slot])
            if not needed[hydro, slot] or days == period.days:
                continue
            entity = name_entity("hydro", number, name)
            problems.append(
                make_problem(
                    "BusinessRuleViolation",
                    f"{layout.INITIAL_CONDITIONS}: lag {slot + 1} of {entity} at the start of the study is "
                    f"the mean inflow from {period.start} to {period.end}; observations cover {days} of its "
                    f"{period.days} days.",
                    f"Add that window to recent_observations, or to {layout.INFLOW_HISTORY}.",
                    {
                        "file": layout.INITIAL_CONDITIONS,
                        "entity": entity,
                        "field": "recent_observations",
                        "value": f"{period.start} to {period.end}",
                        "rule": "5a.30",
                    },
                )
            )
    return problems
