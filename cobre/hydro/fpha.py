"""Fitting a piecewise linear production function to the exact one.

Planes ``G <= p0 + pv * v + pq * q + ps * s`` (v mean storage, q turbined, s spilt) are found in five steps:

1. Power phi(v, q, 0), at most the plant's largest generation, at the points of a grid over storage and
   turbined flow.
2. The concave hull of these points, one plane for each face. With a single storage: over the flow alone.
3. At most ``max_planes`` of them: the one whose absence raises the hull least goes first.
4. All planes are scaled by ``alpha = sum(phi * f) / sum(f * f)``, f being the lowest plane at each point of
   the grid, which is the least-squares fit of a multiple of f to phi.
5. The slope in spillage is that of the least-squares line (with intercept) through phi(v, q, s), without the
   limit of step 1, at nine evenly spaced s from 0 to twice the largest turbined flow. It is taken at the
   point of the face where phi without that limit is largest, the lowest slope of several such points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.hydro.head import ProductionFunction
from cobre.hydro.hull import upper_hull_1d, upper_hull_2d

FloatArray = NDArray[np.float64]

_SPILL_POINTS = 9
"""Spillages at which the slope in spillage is fitted."""

_ROUNDING = 1.0e-12
"""Share of a plant's power below which what a coefficient adds is rounding."""


@dataclass(frozen=True)
class FitWindow:
    """What the planes are fitted over.

    Attributes
    ----------
    low_hm3, high_hm3
        Range of storage; equal for a plant without storage.
    max_turbined_m3s
        Flows from 0 to this.
    volume_points, turbine_points
        Points of the grid along each axis, two or more.
    max_planes
        Most planes; ``None`` keeps every face of the hull.
    max_generation_mw
        Power beyond this is cut off before planes are fitted.
    """

    low_hm3: float
    high_hm3: float
    max_turbined_m3s: float
    volume_points: int = 5
    turbine_points: int = 5
    max_planes: int | None = None
    max_generation_mw: float = math.inf

    def power(
        self, function: ProductionFunction, storage_hm3: FloatArray, turbined_m3s: FloatArray
    ) -> FloatArray:
        """Return what is fitted (MW): the power without spillage, at most the largest generation."""
        capped: FloatArray = np.minimum(function.power(storage_hm3, turbined_m3s), self.max_generation_mw)
        return capped


@dataclass(frozen=True, eq=False)
class PlaneFit:
    """Fitted planes and how well they fit.

    Attributes
    ----------
    planes
        float64 (planes, 4): p0 (MW), pv (MW/hm3), pq and ps (MW/(m3/s)); by descending pq, then ascending pv.
    alpha
        The factor of step 4.
    max_deviation_mw, mean_deviation_mw
        Of the planes from phi over the grid, in absolute value.
    mean_power_mw
        Mean of phi over the grid, to judge the deviations by.
    """

    planes: FloatArray
    alpha: float
    max_deviation_mw: float
    mean_deviation_mw: float
    mean_power_mw: float


def fit_planes(function: ProductionFunction, window: FitWindow) -> PlaneFit:
    """Fit planes to a production function (see the module text).

    Raises
    ------
    ArithmeticError
        If the function has no finite values.
    """
    turbined = window.max_turbined_m3s * np.linspace(0.0, 1.0, window.turbine_points)
    if not window.max_turbined_m3s > 0.0:
        return PlaneFit(np.zeros((1, 4)), 1.0, 0.0, 0.0, 0.0)
    has_range = window.low_hm3 < window.high_hm3
    count = window.volume_points if has_range else 1
    storage = np.linspace(window.low_hm3, window.high_hm3, count)
    with np.errstate(over="ignore", invalid="ignore"):
        free = function.power(storage[:, None], turbined[None, :])
        power = np.minimum(free, window.max_generation_mw)
        slopes = _spill_slopes(function, storage[:, None], turbined[None, :], 2.0 * window.max_turbined_m3s)
    if not (np.isfinite(power).all() and np.isfinite(slopes).all()):
        raise ArithmeticError("the production function is not finite")
    if has_range:
        faces = upper_hull_2d(storage, turbined, power)
        planes = np.array([[face.intercept, *face.slope, 0.0] for face in faces])
    else:
        faces = upper_hull_1d(turbined, power[0])
        planes = np.array([[face.intercept, 0.0, face.slope[0], 0.0] for face in faces])
    # phi does not fall with storage, so neither does its hull: a negative slope is rounding.
    planes[:, 1] = np.maximum(planes[:, 1], 0.0)
    at = np.column_stack([np.repeat(storage, turbined.size), np.tile(turbined, count)])
    planes[:, 3] = _at_largest_power(slopes.ravel(), [face.points for face in faces], free.ravel())
    values = planes[:, :3] @ np.column_stack([np.ones(len(at)), at]).T
    if window.max_planes is not None:
        kept = _fewest(values, window.max_planes)
        planes, values = planes[kept], values[kept]
    exact, lowest = power.ravel(), values.min(axis=0)
    square = float(lowest @ lowest)
    alpha = float(exact @ lowest) / square if square > 0.0 else 1.0
    planes[:, :3] *= alpha
    if not np.isfinite(planes).all():
        raise ArithmeticError("the planes are not finite")
    planes = planes[np.lexsort((planes[:, 1], -planes[:, 2]))]
    return PlaneFit(planes, alpha, *deviation(planes, at, exact), float(exact.mean()))


def without_rounding(planes: FloatArray, high_hm3: float, max_turbined_m3s: float) -> FloatArray:
    """Return the planes with coefficients of 0 where rounding is all that they add to the power.

    Such a coefficient (1e-18 where 0 is meant) would ruin the scaling of every LP that it is in.

    Parameters
    ----------
    high_hm3, max_turbined_m3s
        Largest storage and turbined flow of the plant; spillage counts up to twice that flow.
    """
    reach = np.array([1.0, max(high_hm3, 1.0), max(max_turbined_m3s, 1.0), 2.0 * max(max_turbined_m3s, 1.0)])
    adds = np.abs(planes) * reach
    return np.where(adds <= _ROUNDING * adds.max(initial=0.0), 0.0, planes)


def deviation(planes: FloatArray, at: FloatArray, exact: FloatArray) -> tuple[float, float]:
    """Return the largest and the mean absolute difference (MW) of planes from exact values without spillage.

    Parameters
    ----------
    at
        float64 (points, 2): storage and turbined flow.
    exact
        float64 (points,), MW.
    """
    fitted = (planes[:, :1] + planes[:, 1:3] @ at.T).min(axis=0)
    gap = np.abs(fitted - exact)
    return float(gap.max()), float(gap.mean())


def _spill_slopes(
    function: ProductionFunction, storage_hm3: FloatArray, turbined_m3s: FloatArray, most_m3s: float
) -> FloatArray:
    """Return the least-squares slope of power in spillage, MW/(m3/s), at each point."""
    spilt = np.linspace(0.0, most_m3s, _SPILL_POINTS)
    around = spilt - spilt.mean()
    power = function.power(storage_hm3[..., None], turbined_m3s[..., None], spilt)
    # Differences from the first value: a constant power has a slope of exactly 0.
    slopes: FloatArray = (power - power[..., :1]) @ around / float(around @ around)
    return slopes


def _at_largest_power(slopes: FloatArray, faces: list[NDArray[np.intp]], power_mw: FloatArray) -> FloatArray:
    """Return for each face the lowest slope among its points of largest power, at most 0."""
    lowest = np.zeros(len(faces))
    for index, points in enumerate(faces):
        most = power_mw[points]
        lowest[index] = min(float(slopes[points[most == most.max()]].min()), 0.0)
    return lowest


def _fewest(values: FloatArray, most: int) -> list[int]:
    """Return which planes to keep: the one whose absence raises the lowest values least goes first.

    Parameters
    ----------
    values
        float64 (planes, points).
    """
    kept = list(range(len(values)))
    while len(kept) > most:
        now = values[kept]
        lowest = now.min(axis=0)
        rise = [
            float((np.delete(now, index, axis=0).min(axis=0) - lowest).max()) for index in range(len(kept))
        ]
        del kept[int(np.argmin(rise))]
    return kept
