"""An inflow model before it is put into original units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.stochastic.par.fit import InflowFit
from cobre.stochastic.par.lag_statistics import SeasonStatistics

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StandardModel:
    """A model in standardised form, by (stage, hydro).

    Attributes
    ----------
    phi
        float64 ``(T, H, L)``.
    annual
        Standardised coefficient of the mean of the last twelve months over its standard deviation (s/m3), or
        ``None``.
    ratio
        Share of the noise where it is known; ``None`` to derive it from the coefficients.
    seasons
        Statistics of seasons from a history.
    """

    mean: FloatArray
    std: FloatArray
    phi: FloatArray
    annual: FloatArray | None = None
    ratio: FloatArray | None = None
    seasons: SeasonStatistics | None = None
    fit: InflowFit | None = None
