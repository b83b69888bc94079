"""Whether observations cover the periods before the study that given inflow models start from.

Estimated models are checked in the same way once they are made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.model import Case
from cobre.case.periods import study_calendar
from cobre.case.problems import Reporter
from cobre.case.scenarios.observations import missing_slots, observed_means, slots_read
from cobre.case.scenarios.stats import group_by_stages, name_group

_FILE = layout.INITIAL_CONDITIONS
_MONTHS_IN_A_YEAR = 12
_UNREAD_SLOTS = 12
"""Periods beyond those that are read which are looked at for windows that cover them only in part."""


def check_lag_seed(case: Case, reporter: Reporter) -> None:
    """Check the periods that given coefficients read before the first stage."""
    reads = _reads(case)
    if not reads.any():
        return
    scenarios, start = case.scenarios, case.stages[0].start_date
    recent, history = scenarios.recent_observations, scenarios.inflow_history
    hydros = [(hydro.id, hydro.name) for hydro in case.hydros]
    calendar = study_calendar(case.seasons, case.stages)
    for timeline, needed in zip(calendar.timelines, slots_read(calendar, reads), strict=True):
        past = timeline.past(needed.shape[1] + _UNREAD_SLOTS)
        wide = np.zeros((len(hydros), len(past)), np.bool_)
        wide[:, : needed.shape[1]] = needed
        _, covered = observed_means(past, len(hydros), recent, history)
        reporter.errors += missing_slots(past, wide, covered, hydros)
        days = np.array([period.days for period in past], np.int64)
        partly = (covered > 0) & (covered < days) & ~wide & needed.any(axis=1, keepdims=True)
        _warn(case, partly, [f"{item.start} to {item.end}" for item in past], "5a.31", reporter)
        running = timeline.periods[0]
        elapsed = (start - running.start).days
        if elapsed > 0:
            _, covered = observed_means([running], len(hydros), recent, history, until=start)
            short = (covered < elapsed) & np.logical_or.reduce(reads, axis=(0, 2))[:, np.newaxis]
            _warn(case, short, [f"{running.start} to {start}"], "5a.33", reporter)


def _reads(case: Case) -> NDArray[np.bool_]:
    """Return by (stage, hydro, lag - 1) what inflows depend on."""
    scenarios = case.scenarios
    stages, hydros = scenarios.inflow_mean_m3s.shape
    phi, annual = scenarios.ar_coefficients, scenarios.annual
    given = 0 if phi is None else phi.shape[2]
    yearly = annual is not None and bool((annual.coefficient != 0.0).any())
    reads = np.zeros((stages, hydros, max(given, _MONTHS_IN_A_YEAR if yearly else 0)), np.bool_)
    if phi is not None:
        reads[:, :, :given] = phi != 0.0
    if annual is not None and yearly:
        reads[:, :, :_MONTHS_IN_A_YEAR] |= (annual.coefficient != 0.0)[:, :, np.newaxis]
    if scenarios.has_inflow_stats:
        reads &= (scenarios.inflow_std_m3s > 0.0)[:, :, np.newaxis]
    return reads


def _warn(case: Case, flags: NDArray[np.bool_], windows: list[str], rule: str, reporter: Reporter) -> None:
    """Warn of windows that are flagged by (hydro, window)."""
    ids = np.array([hydro.id for hydro in case.hydros], np.int64)
    names = {hydro.id: hydro.name for hydro in case.hydros}
    for group, at in group_by_stages(np.ascontiguousarray(flags.T), ids, np.arange(len(windows))):
        who, where = name_group("hydro", group, names), ", ".join(windows[place] for place in at)
        if rule == "5a.33":
            effect = "the days without an observation count as the mean of the others, or of the season"
        else:
            effect = "which no model reads, so it has no effect"
        reporter.warning(
            "ModelQuality",
            f"{_FILE}: observations of {who} cover only a part of {where}; {effect}.",
            file=_FILE,
            entity=who,
            field="recent_observations",
            value=where,
            rule=rule,
            suggestion="Give observations of whole periods.",
        )
