"""Inflow models from a history of observed inflows.

By season and plant: moments, periodic autocorrelations, order and coefficients; then every study stage takes
the model of its season. Which part is estimated depends on what the case gives: with statistics of its own
only coefficients are, with coefficients of its own only statistics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.model import Case
from cobre.case.periods import StudyCalendar, study_calendar
from cobre.errors import Problem, ValidationError
from cobre.stochastic.par.earlier import estimated_models
from cobre.stochastic.par.fit import InflowFit
from cobre.stochastic.par.lag_statistics import LagStatistics, SeasonStatistics
from cobre.stochastic.par.moments import (
    AnnualMoments,
    SeasonMoments,
    annual_moments,
    autocorrelations,
    season_moments,
)
from cobre.stochastic.par.selection import Fitted, fit_seasons
from cobre.stochastic.par.series import PeriodSeries, period_series
from cobre.stochastic.par.standard import StandardModel

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeasonModels:
    """Models of all seasons of one resolution; coefficients may be those that the case gives."""

    series: PeriodSeries
    moments: SeasonMoments
    rho: FloatArray
    fitted: Fitted
    annual: AnnualMoments | None


def estimate(case: Case) -> StandardModel:
    """Return the model of a study with a history, in standardised form.

    Raises
    ------
    ValidationError
        When a season of the study has neither observations nor given statistics.
    """
    calendar = study_calendar(case.seasons, case.stages)
    models = estimate_seasons(case, calendar)
    fit, scenarios = _fit(models), case.scenarios
    missing = _without_observation(case, fit)
    if missing and not scenarios.has_inflow_stats:
        raise ValidationError(missing, source=f"case {case.path}")
    place = {season: at for at, season in enumerate(fit.season_ids.tolist())}
    # A season without any observation has the row of zeros at the end: no coefficients.
    row = [place.get(season, len(place)) for season in _stage_seasons(case)]
    mean, std = scenarios.inflow_mean_m3s, scenarios.inflow_std_m3s
    if not scenarios.has_inflow_stats:
        mean, std = fit.mean_m3s[row], fit.std_m3s[row]
    seasons = _season_statistics((item.series, item.moments) for item in models.values())
    phi, given = _with_zeros(fit.coefficients)[row], scenarios.annual
    annual = None
    if scenarios.ar_coefficients is not None:
        phi = scenarios.ar_coefficients
        annual = None if given is None else given.coefficient / given.std_m3s
        sample_ratio = sample_share(case)
    else:
        sample_ratio = np.where(
            np.isin(row, len(place))[:, np.newaxis], 1.0, _with_zeros(fit.residual_ratio)[row]
        )
        if case.estimation.order_selection == "pacf_annual":
            scaled = np.divide(
                fit.annual_coefficient,
                fit.annual_std_m3s,
                out=np.zeros_like(fit.annual_std_m3s),
                where=fit.annual_std_m3s > 0.0,
            )
            annual = _with_zeros(scaled)[row]
    lookup = LagStatistics(case, calendar, mean, std, seasons)
    return StandardModel(
        mean,
        std,
        phi,
        annual,
        sample_ratio,
        seasons,
        fit,
        estimated_models(case, calendar, lookup, fit, phi.shape[2]),
        tuple(missing),
    )


def _with_zeros(values: FloatArray) -> FloatArray:
    return np.concatenate([values, np.zeros_like(values[:1])])


def estimate_seasons(case: Case, calendar: StudyCalendar) -> dict[int, SeasonModels]:
    """Return the models of all seasons, for each resolution that stages have."""
    history, options = case.scenarios.inflow_history, case.estimation
    if history is None or not history.hydro.size:
        raise ValueError("estimation needs a history of inflows")
    found = {}
    for number in sorted(set(calendar.of_stage)):
        series = period_series(history, calendar.timelines[number].resolution, len(case.hydros))
        moments = season_moments(series)
        rho = autocorrelations(series, moments, max(options.max_order, 1))
        annual = None
        if options.order_selection == "pacf_annual":
            annual = annual_moments(series, moments, max(options.max_order, 1))
        fitted = fit_seasons(
            rho,
            moments,
            annual,
            series.season_ids,
            options.max_order,
            options.max_coefficient_magnitude,
        )
        found[number] = SeasonModels(series, moments, rho, fitted, annual)
    return found


def sample_share(case: Case) -> FloatArray | None:
    """Return the share of the noise that given coefficients leave in the sample, by (stage, hydro).

    It is what estimation would have with these coefficients. NaN for plants without an observation in the
    season of the stage; ``None`` without a history or coefficients.
    """
    scenarios = case.scenarios
    phi, history, yearly = scenarios.ar_coefficients, scenarios.inflow_history, scenarios.annual
    if phi is None or history is None or not history.hydro.size:
        return None
    calendar = study_calendar(case.seasons, case.stages)
    share = np.full(phi.shape[:2], np.nan)
    for number in sorted(set(calendar.of_stage)):
        series = period_series(history, calendar.timelines[number].resolution, len(case.hydros))
        moments = season_moments(series)
        rho = autocorrelations(series, moments, phi.shape[2])[:, :, 1:]
        annual = None if yearly is None else annual_moments(series, moments, 1)
        for stage, season in enumerate(_stage_seasons(case)):
            if calendar.of_stage[stage] == number and season in series.season_ids:
                at = series.season_ids.index(season)
                explained = np.zeros(len(case.hydros))
                if yearly is not None and annual is not None:
                    explained = yearly.coefficient[stage] * annual.with_now[at]
                for lag in range(phi.shape[2]):
                    explained = explained + phi[stage, :, lag] * rho[at, :, lag]
                left = 1.0 - explained
                found = np.where(left > 0.0, np.sqrt(np.clip(left, 0.0, 1.0)), 1.0)
                share[stage] = np.where(moments.count[at] > 0, found, np.nan)
    return share


def observed_seasons(case: Case) -> SeasonStatistics | None:
    """Return the statistics of a history's seasons; ``None`` without one."""
    history = case.scenarios.inflow_history
    if history is None or not history.hydro.size:
        return None
    calendar = study_calendar(case.seasons, case.stages)
    series = [
        period_series(history, calendar.timelines[number].resolution, len(case.hydros))
        for number in sorted(set(calendar.of_stage))
    ]
    return _season_statistics((part, season_moments(part)) for part in series)


def _season_statistics(parts: Iterable[tuple[PeriodSeries, SeasonMoments]]) -> SeasonStatistics:
    """Return mean and standard deviation by hydro for each season; NaN for plants without observations."""
    found = {}
    for series, moments in parts:
        seen = moments.count > 0
        mean, std = np.where(seen, moments.mean, np.nan), np.where(seen, moments.std, np.nan)
        found.update({season: (mean[at], std[at]) for at, season in enumerate(series.season_ids)})
    return found


def _stage_seasons(case: Case) -> list[int]:
    return [-1 if stage.season_id is None else stage.season_id for stage in case.stages]


def _without_observation(case: Case, fit: InflowFit) -> list[Problem]:
    """Return a problem for each plant and season of the study without an observation.

    With statistics given, plants without any observation are left out: loading the case warned of them.
    """
    place = {season: at for at, season in enumerate(fit.season_ids.tolist())}
    given = case.scenarios.has_inflow_stats
    observed = fit.count.any(axis=0)
    problems = []
    for season in sorted(set(_stage_seasons(case))):
        count = fit.count[place[season]] if season in place else np.zeros(len(case.hydros), np.int64)
        for hydro in np.flatnonzero((count == 0) & (observed | (not given))).tolist():
            who = f"hydro {case.hydros[hydro].id} ({case.hydros[hydro].name})"
            effect = "; its inflow there does not depend on earlier inflow" if given else ""
            problems.append(
                Problem(
                    "ModelQuality" if given else "BusinessRuleViolation",
                    f"{layout.INFLOW_HISTORY}: {who} has no observation in season {season}, to which stages "
                    f"of the study belong{effect}.",
                    {"file": layout.INFLOW_HISTORY, "entity": who, "field": "start_date", "value": season},
                    "Add observations of that season.",
                )
            )
    return problems


def _fit(models: dict[int, SeasonModels]) -> InflowFit:
    parts = list(models.values())

    def together(arrays: list[NDArray[np.float64]]) -> FloatArray:
        return np.ascontiguousarray(np.concatenate(arrays))

    zero = [np.zeros(part.moments.mean.shape) for part in parts]
    # Filed by the season that reads it, not by its own latest month.
    yearly = [
        (none, none)
        if part.annual is None
        else (np.roll(part.annual.mean, 1, 0), np.roll(part.annual.std, 1, 0))
        for part, none in zip(parts, zero, strict=True)
    ]
    return InflowFit(
        season_ids=np.array([season for part in parts for season in part.series.season_ids], np.int64),
        count=np.concatenate([part.moments.count for part in parts]),
        mean_m3s=together([part.moments.mean for part in parts]),
        std_m3s=together([part.moments.std for part in parts]),
        lag1_autocorrelation=together([part.rho[:, :, 1] for part in parts]),
        classes=np.concatenate([part.moments.kind for part in parts]),
        selected_order=np.concatenate([part.fitted.selected for part in parts]),
        order=np.concatenate([part.fitted.order for part in parts]),
        coefficients=together([part.fitted.phi for part in parts]),
        annual_coefficient=together([part.fitted.annual for part in parts]),
        annual_mean_m3s=together([pair[0] for pair in yearly]),
        annual_std_m3s=together([pair[1] for pair in yearly]),
        residual_ratio=together([part.fitted.ratio for part in parts]),
        reductions=tuple(item for part in parts for item in part.fitted.reductions),
    )
