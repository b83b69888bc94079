"""Statistics of a history by season: means, standard deviations, correlations with earlier periods.

Pairs are aligned by date: the value of a period goes with that of the period ``k`` before it, whatever the
season in which the history starts and whatever is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.stochastic.par.series import PeriodSeries

FloatArray = NDArray[np.float64]

RANDOM, CONSTANT, SATURATED = 0, 1, 2
_EQUAL = 1e-6
_MOST_NEGATIVE = 0.1
_MAJORITY = 0.5
_YEAR = 12


@dataclass(frozen=True, eq=False)
class SeasonMoments:
    """Moments by (season, hydro); see :func:`season_moments`.

    Attributes
    ----------
    count
        Observed periods.
    mean, std
        Standard deviations have the divisor n; 0 for series that are not random.
    kind
        int8: ``RANDOM``, ``CONSTANT`` (all values equal), ``SATURATED`` (one value most of the time).
    """

    count: NDArray[np.int64]
    mean: FloatArray
    std: FloatArray
    kind: NDArray[np.int8]


def season_moments(series: PeriodSeries, *, classify: bool = True) -> SeasonMoments:
    """Return the moments of every season that occurs.

    Parameters
    ----------
    classify
        Whether series that hardly vary count as constant or saturated.
    """
    seasons, hydros = len(series.season_ids), series.values.shape[0]
    count = np.zeros((seasons, hydros), np.int64)
    mean, std = np.zeros((seasons, hydros)), np.zeros((seasons, hydros))
    kind = np.zeros((seasons, hydros), np.int8)
    for season in range(seasons):
        values = np.ascontiguousarray(series.values[:, series.season == season])
        count[season], mean[season], std[season] = _mean_std(values)
        for hydro in range(hydros if classify else 0):
            _classify(values[hydro], season, hydro, mean, std, kind)
    return SeasonMoments(count, mean, std, kind)


def _mean_std(values: FloatArray) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Return count, mean and standard deviation of each row, NaN left out."""
    present = ~np.isnan(values)
    count = present.sum(axis=1)
    divisor = np.maximum(count, 1)
    mean = np.where(present, values, 0.0).sum(axis=1) / divisor
    deviation = np.where(present, values - mean[:, np.newaxis], 0.0)
    return count, mean, np.sqrt((deviation * deviation).sum(axis=1) / divisor)


def _classify(
    row: FloatArray,
    season: int,
    hydro: int,
    mean: FloatArray,
    std: FloatArray,
    kind: NDArray[np.int8],
) -> None:
    values = row[~np.isnan(row)]
    if values.size == 0:
        return
    if values.max() - values.min() <= _EQUAL:
        mean[season, hydro], std[season, hydro], kind[season, hydro] = values[0], 0.0, CONSTANT
        return
    if (values < 0.0).sum() > _MOST_NEGATIVE * values.size:
        return
    rounded, counts = np.unique(np.rint(values), return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] > _MAJORITY * values.size:
        mean[season, hydro], std[season, hydro], kind[season, hydro] = rounded[most], 0.0, SATURATED


def autocorrelations(series: PeriodSeries, moments: SeasonMoments, max_lag: int) -> FloatArray:
    """Return the correlation of each season with the period ``k`` before it, by (season, hydro, k).

    Covariances are about the means of the seasons, over the number of pairs; ``k = 0`` is 1. Results are
    clipped to [-1, 1] and 0 where a standard deviation is 0 or there is no pair.
    """
    seasons, hydros = moments.mean.shape
    rho = np.zeros((seasons, hydros, max_lag + 1))
    rho[:, :, 0] = 1.0
    centred = _centred(series, moments)
    std = _by_period(series, moments.std)
    for season in range(seasons):
        at = np.flatnonzero(series.season == season)
        for lag in range(1, max_lag + 1):
            now = at[at >= lag]
            rho[season, :, lag] = _correlation(centred, std, now, centred, std, now - lag)
    return rho


def _centred(series: PeriodSeries, moments: SeasonMoments) -> FloatArray:
    return series.values - _by_period(series, moments.mean)


def _by_period(series: PeriodSeries, values: FloatArray) -> FloatArray:
    """Return values by (season, hydro) as (hydro, period); NaN where a period has no season."""
    spread = np.full(series.values.shape, np.nan)
    known = series.season >= 0
    spread[:, known] = values[series.season[known]].T
    return spread


def _correlation(
    first: FloatArray,
    first_std: FloatArray,
    now: NDArray[np.intp],
    second: FloatArray,
    second_std: FloatArray,
    then: NDArray[np.intp],
    divisor: NDArray[np.int64] | None = None,
) -> FloatArray:
    hydros = first.shape[0]
    if now.size == 0:
        return np.zeros(hydros)
    product = np.ascontiguousarray(first[:, now] * second[:, then])
    present = ~np.isnan(product)
    pairs = present.sum(axis=1)
    total = np.where(present, product, 0.0).sum(axis=1)
    scale = first_std[:, now[-1]] * second_std[:, then[-1]] * (pairs if divisor is None else divisor)
    scale = np.where(np.isnan(scale), 0.0, scale)
    found: FloatArray = np.divide(total, scale, out=np.zeros(hydros), where=scale > 0.0)
    return np.clip(found, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class AnnualMoments:
    """The mean of twelve periods, filed under the season of the latest of them, by (season, hydro).

    Attributes
    ----------
    count, mean, std
        Of that mean.
    with_now
        float64 ``(S, H)``: correlation of a season's value with the mean of the twelve periods before it.
    with_lag
        float64 ``(S, H, L + 1)``: correlation of the value ``i`` periods earlier with that same mean, i >= 1.
    """

    count: NDArray[np.int64]
    mean: FloatArray
    std: FloatArray
    with_now: FloatArray
    with_lag: FloatArray


def annual_moments(series: PeriodSeries, moments: SeasonMoments, max_lag: int) -> AnnualMoments:
    """Return moments of yearly means and their correlations with single periods.

    A yearly mean counts where a value follows it, which it may explain. Covariances are over the larger
    number of observations of the two.
    """
    seasons, hydros = moments.mean.shape
    length = series.values.shape[1]
    yearly = np.full((hydros, length), np.nan)
    if length >= _YEAR:
        window = np.lib.stride_tricks.sliding_window_view(series.values, _YEAR, axis=1)
        yearly[:, _YEAR - 1 :] = np.ascontiguousarray(window).sum(axis=2) / _YEAR
        followed = ~np.isnan(series.values[:, 1:])
        yearly[:, :-1][~followed] = np.nan
        yearly[:, -1] = np.nan
    count = np.zeros((seasons, hydros), np.int64)
    mean, std = np.zeros((seasons, hydros)), np.zeros((seasons, hydros))
    for season in range(seasons):
        rows = np.ascontiguousarray(yearly[:, series.season == season])
        count[season], mean[season], std[season] = _mean_std(rows)
    centred, deviation = _centred(series, moments), _by_period(series, moments.std)
    yearly_centred = yearly - _by_period(series, mean)
    yearly_deviation = _by_period(series, std)
    with_now = np.zeros((seasons, hydros))
    with_lag = np.zeros((seasons, hydros, max_lag + 1))
    for season in range(seasons):
        at = np.flatnonzero(series.season == season)
        before = (season - 1) % seasons
        for lag in range(max_lag + 1):
            now = at[at >= max(lag, 1)]
            divisor = np.maximum(moments.count[(season - lag) % seasons], count[before])
            found = _correlation(
                centred, deviation, now - lag, yearly_centred, yearly_deviation, now - 1, divisor
            )
            if lag == 0:
                with_now[season] = found
            else:
                with_lag[season, :, lag] = found
    return AnnualMoments(count, mean, std, with_now, with_lag)
