"""An inflow model before it is put into original units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.periods import Period
from cobre.errors import Problem
from cobre.stochastic.par.fit import InflowFit
from cobre.stochastic.par.lag_statistics import SeasonStatistics

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EarlierModel:
    """The model of a period before the study, by hydro; 0 where there is none.

    Attributes
    ----------
    stage_id
        Negative; by which files name the period.
    resolution, period
        Where it lies in the calendar of the study.
    mean, std
        Statistics; NaN where they are not known.
    phi
        float64 ``(H, L)``.
    annual
        As in :class:`StandardModel`.
    annual_coefficient, annual_mean, annual_std
        The annual component as files have it.
    """

    stage_id: int
    resolution: int
    period: Period
    mean: FloatArray
    std: FloatArray
    phi: FloatArray
    annual_coefficient: FloatArray
    annual_mean: FloatArray
    annual_std: FloatArray

    @property
    def annual(self) -> FloatArray:
        """Annual coefficient over the standard deviation of the year, s/m3."""
        scaled: FloatArray = np.divide(
            self.annual_coefficient,
            self.annual_std,
            out=np.zeros_like(self.annual_std),
            where=self.annual_std > 0.0,
        )
        return scaled


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
    sample_ratio
        Share of the noise in the history, or ``None`` without one: used where no stationary series
        has the coefficients. NaN where the history does not give it.
    seasons
        Statistics of seasons from a history.
    earlier
        Models of periods before the study, by ascending stage id.
    notes
        Warnings.
    """

    mean: FloatArray
    std: FloatArray
    phi: FloatArray
    annual: FloatArray | None = None
    sample_ratio: FloatArray | None = None
    seasons: SeasonStatistics | None = None
    fit: InflowFit | None = None
    earlier: tuple[EarlierModel, ...] = ()
    notes: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        stages, hydros, lags = self.phi.shape
        return f"StandardModel({stages} stages, {hydros} hydros, {lags} lags)"
