"""Productivity that grows with storage, as planes.

``rho(v) = rho_ref + slope * (v - v_ref)`` makes generation ``rho(v) * q`` a product of two variables. Over
``[low, high]`` of storage and ``[0, Q]`` of turbined flow its concave envelope (McCormick) is the lower of

* ``G <= rho(high) * q``
* ``G <= rho(low) * q + slope * Q * (v - low)``

It is exact on all four sides of that rectangle, never below the product, and above it by no more than
``slope * Q * (high - low) / 4``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.hydro.head import Head


def productivity_slope(
    head: Head,
    productivity: float,
    specific_productivity: float | None,
    reference_hm3: float,
    low_hm3: float,
    high_hm3: float,
    turbined_m3s: float,
) -> float:
    """Return the slope of productivity in storage, MW/(m3/s) per hm3.

    It is the specific productivity times the rise of net head with storage, the rise taken between the limits
    of storage. Without a specific productivity, productivity is proportional to net head: then it is
    ``productivity / net head`` at the reference storage and the given turbined flow.

    Raises
    ------
    ValueError
        If there is no specific productivity and the net head at the reference is not positive.
    """
    rise = (1.0 - head.loss_factor) * head.geometry.secant_height_slope(low_hm3, high_hm3)
    if rise == 0.0:
        return 0.0
    if specific_productivity is None:
        net = float(head.net(reference_hm3, turbined_m3s))
        if not net > 0.0:
            raise ValueError("the net head at the reference storage is not positive")
        specific_productivity = productivity / net
    return specific_productivity * rise


def head_planes(
    productivity: float,
    slope: float,
    reference_hm3: float,
    low_hm3: float,
    high_hm3: float,
    max_turbined_m3s: float,
) -> NDArray[np.float64]:
    """Return the planes of the envelope, float64 (planes, 4); one plane if the slope or range is 0.

    A row holds the intercept (MW) and the slopes in storage, turbined flow and spillage. At full storage and
    full flow the envelope is exact:

    >>> planes = head_planes(0.8, 0.001, 100.0, 100.0, 300.0, 50.0)
    >>> planes.tolist()
    [[0.0, 0.0, 1.0, 0.0], [-5.0, 0.05, 0.8, 0.0]]
    >>> (planes @ [1.0, 300.0, 50.0, 0.0]).tolist()  # 1 MW/(m3/s) * 50 m3/s
    [50.0, 50.0]
    """
    at_low = productivity + slope * (low_hm3 - reference_hm3)
    at_high = productivity + slope * (high_hm3 - reference_hm3)
    top = [0.0, 0.0, at_high, 0.0]
    if slope == 0.0 or not low_hm3 < high_hm3:
        return np.array([top])
    side = slope * max_turbined_m3s
    return np.array([top, [-side * low_hm3, side, at_low, 0.0]])
