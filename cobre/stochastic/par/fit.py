"""What estimation from history found, as plain arrays for reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Reduction:
    """A season of a plant whose order was lowered after selection.

    Attributes
    ----------
    hydro
        Position of the plant.
    season_id
        The season.
    from_order, to_order
        Before and after.
    reason
        ``magnitude``, ``negative_first_coefficient`` or ``negative_contribution``.
    contributions
        Of the lags up to ``from_order``, before.
    """

    hydro: int
    season_id: int
    from_order: int
    to_order: int
    reason: str
    contributions: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class InflowFit:
    """Models estimated from history, by season and hydro.

    Attributes
    ----------
    season_ids
        int64 ``(S,)``, ascending within each resolution; the axis of the other arrays.
    count
        int64 ``(S, H)``: observed periods.
    mean_m3s, std_m3s
        float64 ``(S, H)``: observed mean and standard deviation (divisor n).
    lag1_autocorrelation
        float64 ``(S, H)``: observed correlation with the period before.
    classes
        int8 ``(S, H)``: 0 random, 1 constant, 2 saturated (one value more than half of the time).
    selected_order, order
        int64 ``(S, H)``: order by partial autocorrelations, and after reductions.
    coefficients
        float64 ``(S, H, L)``: standardised, 0 beyond the order.
    annual_coefficient, annual_mean_m3s, annual_std_m3s
        float64 ``(S, H)``: annual component; 0 without one.
    residual_ratio
        float64 ``(S, H)``.
    reductions
        Orders that were lowered, by hydro and season.
    white_noise
        bool ``(S, H)``: seasons without any autoregression.
    """

    season_ids: NDArray[np.int64]
    count: NDArray[np.int64]
    mean_m3s: FloatArray
    std_m3s: FloatArray
    lag1_autocorrelation: FloatArray
    classes: NDArray[np.int8]
    selected_order: NDArray[np.int64]
    order: NDArray[np.int64]
    coefficients: FloatArray
    annual_coefficient: FloatArray
    annual_mean_m3s: FloatArray
    annual_std_m3s: FloatArray
    residual_ratio: FloatArray
    reductions: tuple[Reduction, ...]

    @property
    def white_noise(self) -> NDArray[np.bool_]:
        """Seasons without any autoregression, by (season, hydro)."""
        still: NDArray[np.bool_] = (self.order == 0) & (self.annual_coefficient == 0.0)
        return still

    def __repr__(self) -> str:
        seasons, hydros = self.order.shape
        return f"InflowFit({seasons} seasons, {hydros} hydros, largest order {self.order.max(initial=0)})"
