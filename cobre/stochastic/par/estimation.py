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

from cobre.case import layout
from cobre.case.model import Case
from cobre.case.periods import StudyCalendar, study_calendar
from cobre.errors import Problem, ValidationError
from cobre.stochastic.par.fit import InflowFit
from cobre.stochastic.par.lag_statistics import SeasonStatistics
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
        When a season of the study has no observation.
    """
    calendar = study_calendar(case.seasons, case.stages)
    models = estimate_seasons(case, calendar)
    place = {
        season: (number, at)
        for number, item in models.items()
        for at, season in enumerate(item.series.season_ids)
    }
    _check_observed(case, models, place)
    scenarios = case.scenarios
    rows = [models[place[season][0]] for season in _stage_seasons(case)]
    spots = [place[season][1] for season in _stage_seasons(case)]
    mean, std = scenarios.inflow_mean_m3s, scenarios.inflow_std_m3s
    if not scenarios.has_inflow_stats:
        mean = np.array([item.moments.mean[at] for item, at in zip(rows, spots, strict=True)])
        std = np.array([item.moments.std[at] for item, at in zip(rows, spots, strict=True)])
    seasons = _season_statistics((item.series, item.moments) for item in models.values())
    if scenarios.ar_coefficients is not None:
        given = scenarios.annual
        return StandardModel(
            mean,
            std,
            scenarios.ar_coefficients,
            None if given is None else given.coefficient / given.std_m3s,
            seasons=seasons,
            fit=_fit(models),
        )
    annual = None
    if case.estimation.order_selection == "pacf_annual":
        annual = np.array([_yearly(item, at) for item, at in zip(rows, spots, strict=True)])
    return StandardModel(
        mean,
        std,
        np.array([item.fitted.phi[at] for item, at in zip(rows, spots, strict=True)]),
        annual,
        np.array([item.fitted.ratio[at] for item, at in zip(rows, spots, strict=True)]),
        seasons,
        _fit(models),
    )


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


def observed_seasons(case: Case) -> SeasonStatistics | None:
    """Return what a history says of its seasons; ``None`` without one."""
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


def _yearly(model: SeasonModels, season: int) -> FloatArray:
    """Return the annual coefficient of a season over the standard deviation of the year before it."""
    if model.annual is None:
        return np.zeros(model.moments.mean.shape[1])
    std = model.annual.std[season - 1]
    scaled: FloatArray = np.divide(model.fitted.annual[season], std, out=np.zeros_like(std), where=std > 0.0)
    return scaled


def _check_observed(case: Case, models: dict[int, SeasonModels], place: dict[int, tuple[int, int]]) -> None:
    problems = []
    for season in sorted(set(_stage_seasons(case))):
        if season in place:
            number, at = place[season]
            missing = np.flatnonzero(models[number].moments.count[at] == 0).tolist()
        else:
            missing = list(range(len(case.hydros)))
        for hydro in missing:
            who = f"hydro {case.hydros[hydro].id} ({case.hydros[hydro].name})"
            problems.append(
                Problem(
                    "BusinessRuleViolation",
                    f"{layout.INFLOW_HISTORY}: {who} has no observation in season {season}, to which stages "
                    "of the study belong.",
                    {"file": layout.INFLOW_HISTORY, "entity": who, "field": "start_date", "value": season},
                    "Add observations of that season.",
                )
            )
    if problems:
        raise ValidationError(problems, source=f"case {case.path}")


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
