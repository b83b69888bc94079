"""How well an inflow model repeats what it was made from: observed, stated and generated moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.case.periods import study_calendar
from cobre.stochastic.par.correlation import pearson
from cobre.stochastic.par.moments import autocorrelations, season_moments
from cobre.stochastic.par.series import period_series
from cobre.stochastic.par.standard import StandardModel
from cobre.stochastic.report.sample import InflowSample

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FitQuality:
    """Moments of inflows by (season or stage, hydro); G rows as in ``generated``.

    Attributes
    ----------
    generated
        Of a long sample of the model.
    count
        int64 ``(G, H)``: observations of the season; 0 without a history.
    observed_mean_m3s, observed_std_m3s, observed_lag1
        float64 ``(G, H)``: of the history, as it is; NaN where there is none. Standard deviations have the
        divisor n; ``lag1`` is the correlation with the period before.
    observed_spatial
        float64 ``(G, H, H)``: correlation between plants in that season; NaN without a history.
    stated_mean_m3s, stated_std_m3s
        float64 ``(G, H)``: what the model is to have, from files or estimation.
    """

    generated: InflowSample
    count: NDArray[np.int64]
    observed_mean_m3s: FloatArray
    observed_std_m3s: FloatArray
    observed_lag1: FloatArray
    observed_spatial: FloatArray
    stated_mean_m3s: FloatArray
    stated_std_m3s: FloatArray

    @property
    def has_observations(self) -> bool:
        """Whether there is a history to compare with."""
        return bool((self.count > 0).any())

    def deviations(self) -> dict[str, FloatArray]:
        """Return generated less observed (without a history: stated) by (season or stage, hydro).

        ``mean`` is a share of the observed mean or standard deviation, whichever is larger, ``std`` of the
        standard deviation, NaN where that is 0; ``lag1`` is a difference; ``spatial`` is the largest one of a
        plant's correlations with others. The last two are NaN without observations.
        """
        seen = self.count > 0
        mean = np.where(seen, self.observed_mean_m3s, self.stated_mean_m3s)
        std = np.where(seen, self.observed_std_m3s, self.stated_std_m3s)

        def relative(difference: FloatArray, size: FloatArray) -> FloatArray:
            found: FloatArray = np.divide(
                difference, size, out=np.full_like(size, np.nan), where=(size > 0.0) & (std > 0.0)
            )
            return found

        gap = np.abs(self.generated.spatial - self.observed_spatial)
        known = ~np.isnan(gap)
        gap = np.where(known, gap, 0.0)
        spatial = np.where(known.any(axis=2), gap.max(axis=2, initial=0.0), np.nan)
        return {
            "mean": relative(self.generated.mean_m3s - mean, np.maximum(np.abs(mean), std)),
            "std": relative(self.generated.std_m3s - std, std),
            "lag1": self.generated.lag1 - self.observed_lag1,
            "spatial": spatial,
        }

    def __repr__(self) -> str:
        rows, hydros = self.generated.mean_m3s.shape
        what = "observed and generated" if self.has_observations else "stated and generated"
        return f"FitQuality({what} moments of {rows} seasons or stages, {hydros} hydros)"


def fit_quality(case: Case, standard: StandardModel, sample: InflowSample) -> FitQuality:
    """Compare a sample of the study's inflow model with its history and its statistics."""
    rows, hydros = sample.mean_m3s.shape
    count = np.zeros((rows, hydros), np.int64)
    mean, std, lag1 = (np.full((rows, hydros), np.nan) for _ in range(3))
    spatial = np.full((rows, hydros, hydros), np.nan)
    observed = _observed(case)
    for row, season in enumerate(sample.season_id.tolist()):
        if season in observed:
            count[row], mean[row], std[row], lag1[row], spatial[row] = observed[season]
    absent = count == 0
    for values in (mean, std, lag1):
        values[absent] = np.nan
    stated_mean, stated_std = np.zeros((rows, hydros)), np.zeros((rows, hydros))
    for row, stage in enumerate(sample.stage.tolist()):
        if stage >= 0:
            stated_mean[row], stated_std[row] = standard.mean[stage], standard.std[stage]
        elif standard.seasons is not None:
            stated_mean[row], stated_std[row] = standard.seasons[int(sample.season_id[row])]
    return FitQuality(sample, count, mean, std, lag1, spatial, stated_mean, stated_std)


def _observed(
    case: Case,
) -> dict[int, tuple[NDArray[np.int64], FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Return count, mean, deviation, lag-1 correlation and correlation between plants of each season."""
    history = case.scenarios.inflow_history
    if history is None or not history.hydro.size:
        return {}
    calendar = study_calendar(case.seasons, case.stages)
    found = {}
    for number in sorted(set(calendar.of_stage)):
        series = period_series(history, calendar.timelines[number].resolution, len(case.hydros))
        moments = season_moments(series, classify=False)
        rho = autocorrelations(series, moments, 1)
        for at, season in enumerate(series.season_ids):
            matrix, common = pearson(np.ascontiguousarray(series.values[:, series.season == at]))
            matrix = np.where(common > 1, matrix, np.nan)
            found[season] = (moments.count[at], moments.mean[at], moments.std[at], rho[at, :, 1], matrix)
    return found
