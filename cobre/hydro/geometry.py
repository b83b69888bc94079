"""Reservoir geometry: water level and surface area as piecewise linear functions of storage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


class GeometryCurve:
    """Level (m) and area (km2) by storage (hm3), linear between points and constant outside them.

    Parameters
    ----------
    volume_hm3
        Strictly increasing; at least one.
    height_m, area_km2
        Of the same length, non-decreasing.

    Examples
    --------
    >>> lake = GeometryCurve([0.0, 100.0, 300.0], [300.0, 310.0, 320.0], [10.0, 20.0, 30.0])
    >>> float(lake.height(200.0)), lake.area(50.0), lake.area_slope(50.0)
    (315.0, 15.0, 0.1)
    >>> lake.mean_height(0.0, 100.0), lake.secant_height_slope(0.0, 300.0) == 20.0 / 300.0
    (305.0, True)
    """

    def __init__(
        self, volume_hm3: Sequence[float], height_m: Sequence[float], area_km2: Sequence[float]
    ) -> None:
        self.volume_hm3: FloatArray = np.array(volume_hm3, np.float64)
        self.height_m: FloatArray = np.array(height_m, np.float64)
        self.area_km2: FloatArray = np.array(area_km2, np.float64)

    def height(self, storage_hm3: ArrayLike) -> FloatArray:
        """Return the level (m) at a storage."""
        level: FloatArray = np.interp(np.asarray(storage_hm3, np.float64), self.volume_hm3, self.height_m)
        return level

    def area(self, storage_hm3: float) -> float:
        """Return the surface (km2) at a storage."""
        return float(np.interp(storage_hm3, self.volume_hm3, self.area_km2))

    def area_slope(self, storage_hm3: float) -> float:
        """Return the slope (km2/hm3) of the segment that starts at or below a storage.

        Outside the curve it is the slope of the nearest segment; 0 if there is only one point.
        """
        if self.volume_hm3.size < 2:
            return 0.0
        start = int(np.searchsorted(self.volume_hm3, storage_hm3, side="right")) - 1
        start = min(max(start, 0), self.volume_hm3.size - 2)
        rise = self.area_km2[start + 1] - self.area_km2[start]
        return float(rise / (self.volume_hm3[start + 1] - self.volume_hm3[start]))

    def mean_height(self, low_hm3: float, high_hm3: float) -> float:
        """Return the mean level (m) between two storages, the exact integral of the curve.

        The range is cut to that of the curve; a range without width gives the level there.
        """
        low, high = np.clip([low_hm3, high_hm3], self.volume_hm3[0], self.volume_hm3[-1])
        if not low < high:
            return float(self.height(low))
        inside = self.volume_hm3[(self.volume_hm3 > low) & (self.volume_hm3 < high)]
        at = np.concatenate([[low], inside, [high]])
        level = self.height(at)
        return float((np.diff(at) * (level[1:] + level[:-1])).sum() / 2.0 / (high - low))

    def secant_height_slope(self, low_hm3: float, high_hm3: float) -> float:
        """Return the rise of the level (m/hm3) from one storage to another; 0 if they are equal."""
        if not low_hm3 < high_hm3:
            return 0.0
        return float((self.height(high_hm3) - self.height(low_hm3)) / (high_hm3 - low_hm3))
