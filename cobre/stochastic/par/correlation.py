"""Correlation of the noise of inflows, from the residuals of a history.

The residual of a period is its standardised value less what the coefficients of its season predict from the
periods before; the annual component does not count. Plants are compared over the periods that both have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.format.schema.scenarios import (
    CorrelatedEntity,
    CorrelationFile,
    CorrelationGroup,
    CorrelationProfile,
    ProfileAtStage,
)
from cobre.case.model import Case
from cobre.case.periods import study_calendar
from cobre.stochastic.par.estimation import SeasonModels, estimate_seasons

FloatArray = NDArray[np.float64]

DEFAULT_PROFILE = "default"
_LEAST_COMMON = 30
"""Common periods that every pair of plants needs for a profile of a season's own."""


def estimated_correlation(case: Case) -> CorrelationFile | None:
    """Return the correlation of inflow noise estimated from a history, in the form of ``correlation.json``.

    A profile ``default`` pools all seasons; a season with enough observations has a profile ``season_NN`` of
    its own, which the schedule gives to its stages.

    Returns
    -------
    CorrelationFile or None
        ``None`` where nothing is estimated. A file that the case has takes precedence; that is up to the
        caller.
    """
    scenarios = case.scenarios
    estimated = scenarios.estimation_path in (
        "full_estimation",
        "partial_estimation",
        "user_ar_history_stats",
    )
    if not estimated or not case.hydros:
        return None
    calendar = study_calendar(case.seasons, case.stages)
    profiles: dict[str, CorrelationProfile] = {}
    names: dict[int, str] = {}
    pooled: list[FloatArray] = []
    history = scenarios.inflow_history
    # The noise of a plant without any observation is independent.
    observed = np.unique(history.hydro) if history is not None else np.zeros(0, np.int64)
    for number, model in estimate_seasons(case, calendar).items():
        residual = residuals(model, _coefficients(case, model, number, calendar.of_stage))
        pooled.append(residual)
        for at, season in enumerate(model.series.season_ids):
            matrix, common = pearson(
                np.ascontiguousarray(residual[np.ix_(observed, model.series.season == at)])
            )
            if common.size and int(common.min()) >= _LEAST_COMMON:
                names[season] = f"season_{season:02d}"
                profiles[names[season]] = _profile(case, observed, matrix)
    together = np.concatenate(pooled, axis=1)[observed]
    profiles[DEFAULT_PROFILE] = _profile(case, observed, pearson(together)[0])
    schedule = [
        ProfileAtStage(stage_id=stage.id, profile_name=names[stage.season_id])
        for stage in case.stages
        if stage.season_id is not None and stage.season_id in names
    ]
    return CorrelationFile(method="spectral", profiles=profiles, schedule=schedule)


def _coefficients(case: Case, model: SeasonModels, number: int, of_stage: tuple[int, ...]) -> FloatArray:
    """Return coefficients by (season, hydro, lag - 1): given ones of the season's first stage, or fitted."""
    given = case.scenarios.ar_coefficients
    if given is None:
        return model.fitted.phi
    phi = np.zeros((len(model.series.season_ids), len(case.hydros), given.shape[2]))
    for at, season in enumerate(model.series.season_ids):
        stages = [
            position
            for position, stage in enumerate(case.stages)
            if stage.season_id == season and of_stage[position] == number
        ]
        if stages:
            phi[at] = given[stages[0]]
    return phi


def residuals(model: SeasonModels, phi: FloatArray) -> FloatArray:
    """Return standardised residuals by (hydro, period); NaN where a value they need is not known.

    Plants whose inflow is not random in a season have the residual 0 there.
    """
    series, moments = model.series, model.moments
    known = series.season >= 0
    mean, std = np.full(series.values.shape, np.nan), np.full(series.values.shape, np.nan)
    mean[:, known], std[:, known] = moments.mean[series.season[known]].T, moments.std[series.season[known]].T
    standard: FloatArray = np.divide(
        series.values - mean, std, out=np.where(np.isnan(series.values), np.nan, 0.0), where=std > 0.0
    )
    standard[:, ~known] = np.nan
    residual: FloatArray = standard.copy()
    coefficient = np.zeros((*series.values.shape, phi.shape[2]))
    coefficient[:, known] = phi[series.season[known]].transpose(1, 0, 2)
    for lag in range(1, phi.shape[2] + 1):
        factor = coefficient[:, :, lag - 1]
        earlier = np.full(standard.shape, np.nan)
        earlier[:, lag:] = standard[:, :-lag]
        residual -= np.where(factor != 0.0, factor * earlier, 0.0)
    return residual


def pearson(values: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the correlation of each pair of rows over common columns, and how many these are.

    Where a row does not vary, its correlation with others is 0.
    """
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    there = present.astype(np.float64)
    centre = filled.sum(axis=1) / np.maximum(there.sum(axis=1), 1.0)
    filled = np.where(present, values - centre[:, np.newaxis], 0.0)
    # Plain loops of einsum: the same bits whatever the number of BLAS threads.
    count = np.einsum("ip,jp->ij", there, there)
    total = np.einsum("ip,jp->ij", filled, there)
    square = np.einsum("ip,jp->ij", filled * filled, there)
    product = np.einsum("ip,jp->ij", filled, filled)
    divisor = np.maximum(count, 1.0)
    covariance = product - total * total.T / divisor
    spread = np.maximum(square - total * total / divisor, 0.0)
    scale = np.sqrt(spread * spread.T)
    tiny = 1e-12 * np.maximum(divisor, 1.0)
    matrix = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > tiny)
    matrix = np.clip((matrix + matrix.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix, count.astype(np.int64)


def _profile(case: Case, members: NDArray[np.int64], matrix: FloatArray) -> CorrelationProfile:
    entities = [CorrelatedEntity(type="inflow", id=case.hydros[at].id) for at in members.tolist()]
    group = CorrelationGroup(name="inflow", entities=entities, matrix=matrix.tolist())
    return CorrelationProfile(correlation_groups=[group])
