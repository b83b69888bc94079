"""Models of periods before the study: what files give, and what estimation adds to it.

An estimated model covers the year before the study (and declared pre-study stages): together with
the study's own stages that is every season, which decides the share of the noise whatever the length of the
study. Exports hold those periods, so that the model that is read back is the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.case.periods import Period, StudyCalendar
from cobre.stochastic.par.fit import InflowFit
from cobre.stochastic.par.lag_statistics import LagStatistics
from cobre.stochastic.par.standard import EarlierModel

FloatArray = NDArray[np.float64]

_WEEKS_IN_A_YEAR = 53
_LONGEST_YEAR = 366


def given_models(case: Case, calendar: StudyCalendar, lags: int) -> tuple[EarlierModel, ...]:
    """Return the models of pre-study stages that files give."""
    stats, scenarios = case.scenarios.pre_study, case.scenarios
    if stats is None:
        return ()
    found = []
    for row, (resolution, period) in enumerate(calendar.periods_before(stats)):
        present = stats.present[row]
        phi, *annual = _nothing(len(case.hydros), lags)
        if stats.ar_coefficients is not None and scenarios.ar_coefficients is not None:
            phi = stats.ar_coefficients[row]
        if stats.annual is not None and scenarios.annual is not None:
            part = stats.annual
            annual = [part.coefficient[row], part.mean_m3s[row], part.std_m3s[row]]
        found.append(
            EarlierModel(
                int(stats.stage_id[row]),
                resolution,
                period,
                np.where(present, stats.mean_m3s[row], np.nan),
                np.where(present, stats.std_m3s[row], np.nan),
                phi,
                *annual,
            )
        )
    return tuple(found)


def estimated_models(
    case: Case, calendar: StudyCalendar, lookup: LagStatistics, fit: InflowFit, lags: int
) -> tuple[EarlierModel, ...]:
    """Return the models of periods before the study where a history takes part in the study's own model.

    The last year has statistics, by which lags are standardised, and coefficients where these are estimated.
    """
    given = {item.stage_id: item for item in given_models(case, calendar, lags)}
    taken = {(item.resolution, item.period) for item in given.values()}
    estimated = case.scenarios.ar_coefficients is None
    number = calendar.of_stage[0]
    timeline = calendar.timelines[number]
    # A year of weeks is the longest cycle of seasons; what is further back has the season of one in it.
    past = timeline.past(_WEEKS_IN_A_YEAR)
    year = [period for period in past if (timeline.periods[0].start - period.start).days <= _LONGEST_YEAR]
    found = dict(given)
    for back, period in enumerate(year, start=1):
        if -back not in given and (number, period) not in taken:
            found[-back] = _estimated(lookup, fit if estimated else None, -back, number, period, lags)
    if estimated:
        for stage_id, item in given.items():
            found[stage_id] = _estimated(lookup, fit, stage_id, item.resolution, item.period, lags)
    return tuple(found[stage_id] for stage_id in sorted(found))


def _estimated(
    lookup: LagStatistics, fit: InflowFit | None, stage_id: int, resolution: int, period: Period, lags: int
) -> EarlierModel:
    """Return statistics of a period, and the coefficients of its season unless there is no fit."""
    mean, std, known = lookup.of(resolution, period)
    phi, *annual = _nothing(len(mean), lags)
    if fit is not None and period.season_id in fit.season_ids:
        at = int(np.flatnonzero(fit.season_ids == period.season_id)[0])
        phi[:, : fit.coefficients.shape[2]] = fit.coefficients[at][:, :lags]
        annual = [fit.annual_coefficient[at], fit.annual_mean_m3s[at], fit.annual_std_m3s[at]]
    return EarlierModel(
        stage_id,
        resolution,
        period,
        np.where(known, mean, np.nan),
        np.where(known, std, np.nan),
        phi,
        *annual,
    )


def _nothing(hydros: int, lags: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return coefficients of no model: phi, and coefficient, mean and deviation of the annual component."""
    return np.zeros((hydros, lags)), np.zeros(hydros), np.zeros(hydros), np.zeros(hydros)
