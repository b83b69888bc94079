"""Share of the noise in the inflow that standardised coefficients leave.

With ``C`` the correlations of the lags that a stage reads, ``rho = C phi`` are those of its inflow with
them, and ``r^2 = 1 - phi' C phi``: then the inflow has the standard deviation that is stated. ``C`` starts as
the identity, since values before the study count as uncorrelated, and gains one row when a period passes:
``rho`` of that period (the mean by days over its stages). Periods made of stages of another resolution are
uncorrelated with the others, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.periods import StudyCalendar

FloatArray = NDArray[np.float64]


def residual_ratio(calendar: StudyCalendar, phi: FloatArray) -> FloatArray:
    """Return ``r`` by (stage, hydro).

    Parameters
    ----------
    phi
        float64 ``(T, H, L)``: standardised coefficients on the last L periods of the stage's own resolution.
    """
    stages, hydros, lags = phi.shape
    ratio = np.ones((stages, hydros))
    if lags == 0:
        return ratio
    for number, timeline in enumerate(calendar.timelines):
        correlation = np.tile(np.eye(lags), (hydros, 1, 1))
        implied = np.zeros((hydros, lags))
        weight = 0.0
        for stage in range(stages):
            if calendar.of_stage[stage] == number:
                rho: FloatArray = np.einsum("hk,hkl->hl", phi[stage], correlation)
                left = 1.0 - np.einsum("hk,hk->h", phi[stage], rho)
                ratio[stage] = np.sqrt(np.maximum(left, 0.0))
                days = max(float(timeline.days[stage, timeline.home[stage]]), 1.0)
                implied = (implied * weight + rho * days) / (weight + days) if weight else rho
                weight += days
            for _ in range(timeline.home[stage + 1] - timeline.home[stage]):
                correlation = _shifted(correlation, implied)
                implied, weight = np.zeros((hydros, lags)), 0.0
    return ratio


def _shifted(correlation: FloatArray, newest: FloatArray) -> FloatArray:
    lags = newest.shape[1]
    shifted = np.empty_like(correlation)
    shifted[:, 0, 0] = 1.0
    shifted[:, 0, 1:] = shifted[:, 1:, 0] = newest[:, : lags - 1]
    shifted[:, 1:, 1:] = correlation[:, : lags - 1, : lags - 1]
    return shifted
