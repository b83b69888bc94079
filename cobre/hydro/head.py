"""The production function of a plant: power from storage, turbined flow and spillage.

``phi(v, q, s) = 0.00981 * efficiency * q * h(v, q, s)`` in MW, with the net head (m)

``h = max(0, (1 - loss_factor) * (forebay(v) - tailrace(q + s)) - loss)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.tailrace import Tailrace

FloatArray = NDArray[np.float64]

GRAVITY_MW = 0.00981
"""MW per m3/s and metre: density of water times gravity, 1000 kg/m3 * 9.81 m/s2 / 1e6."""


@dataclass(frozen=True)
class Head:
    """Net head of a plant.

    Attributes
    ----------
    loss_factor
        Share of the gross head that is lost.
    loss_m
        Height that is lost, m.
    """

    geometry: GeometryCurve
    tailrace: Tailrace
    loss_factor: float = 0.0
    loss_m: float = 0.0

    def net(self, storage_hm3: ArrayLike, turbined_m3s: ArrayLike, spilt_m3s: ArrayLike = 0.0) -> FloatArray:
        """Return the net head (m), never negative."""
        outflow = np.asarray(turbined_m3s, np.float64) + np.asarray(spilt_m3s, np.float64)
        return self._net_of_forebay(self.geometry.height(storage_hm3), outflow)

    def mean_net(self, low_hm3: float, high_hm3: float, turbined_m3s: float) -> float:
        """Return the net head (m) at the mean forebay level between two storages."""
        level = np.float64(self.geometry.mean_height(low_hm3, high_hm3))
        return float(self._net_of_forebay(level, np.asarray(turbined_m3s, np.float64)))

    def _net_of_forebay(self, level: FloatArray | np.float64, outflow: FloatArray) -> FloatArray:
        gross = level - self.tailrace.level(outflow)
        head: FloatArray = np.maximum((1.0 - self.loss_factor) * gross - self.loss_m, 0.0)
        return head


@dataclass(frozen=True)
class ProductionFunction:
    """Power (MW) of a plant at any operating point.

    >>> from cobre.hydro.tailrace import PolynomialCurve
    >>> lake = GeometryCurve([0.0, 100.0], [300.0, 310.0], [10.0, 20.0])
    >>> head = Head(lake, PolynomialCurve((250.0, 0.01)), loss_factor=0.0, loss_m=4.0)
    >>> float(head.net(50.0, 100.0))  # 305 m - 251 m - 4 m
    50.0
    >>> round(float(ProductionFunction(head, efficiency=0.9).power(50.0, 100.0)), 6)
    44.145
    """

    head: Head
    efficiency: float

    def power(
        self, storage_hm3: ArrayLike, turbined_m3s: ArrayLike, spilt_m3s: ArrayLike = 0.0
    ) -> FloatArray:
        """Return the power (MW)."""
        head = self.head.net(storage_hm3, turbined_m3s, spilt_m3s)
        return GRAVITY_MW * self.efficiency * np.asarray(turbined_m3s, np.float64) * head
