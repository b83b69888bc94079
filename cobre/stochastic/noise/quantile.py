"""Standard normal quantiles by the formulas of Beasley and Springer (middle) and Moro (tails).

``|p - 1/2| < 0.42``: a rational function of ``(p - 1/2)^2``; beyond, a polynomial of degree 8 in
``ln(-ln q)`` with ``q`` the smaller of ``p`` and ``1 - p``. Absolute error below 4e-9 where ``q`` is above
1e-12. Both are evaluated as printed, from the highest power down, so that other programs get the same bits.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import math

from numba import njit

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)

SMALLEST = 2.2250738585072014e-308
LARGEST = 1.0 - 2.0**-52
"""Probabilities are brought into ``[SMALLEST, LARGEST]`` before they are inverted."""
FARTHEST = 8.21
"""Minus the quantile of probabilities up to 1e-20."""

_MIDDLE = 0.42
_EXTREME = 1e-20
_A0, _A1, _A2, _A3 = 2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637
_B0, _B1, _B2, _B3 = -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833
_C0, _C1, _C2 = 0.3374754822726147, 0.9761690190917186, 0.1607979714918209
_C3, _C4, _C5 = 0.0276438810333863, 0.0038405729373609, 0.0003951896511349
_C6, _C7, _C8 = 0.0000321767881768, 0.0000002888167364, 0.0000003960315187


@njit(cache=True, nogil=True)
def normal_quantile(probability: float) -> float:
    """Return the standard normal quantile of a probability, which is kept off 0 and 1 first."""
    p = min(max(probability, SMALLEST), LARGEST)
    if p <= _EXTREME:
        return -FARTHEST
    middle = p - 0.5
    if abs(middle) < _MIDDLE:
        r = middle * middle
        above = ((_A3 * r + _A2) * r + _A1) * r + _A0
        below = (((_B3 * r + _B2) * r + _B1) * r + _B0) * r + 1.0
        return middle * above / below
    q = p if middle <= 0.0 else 1.0 - p
    r = math.log(-math.log(q))
    tail = _C7 + r * _C8
    tail = _C5 + r * (_C6 + r * tail)
    tail = _C3 + r * (_C4 + r * tail)
    tail = _C1 + r * (_C2 + r * tail)
    tail = _C0 + r * tail
    return -tail if middle <= 0.0 else tail
