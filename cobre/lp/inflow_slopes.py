"""The slope of an optimal value in past inflows, also where inflow is truncated, in nopython.

With the worth w of 1 m3/s more inflow, the optimal value is at least ``w z`` above a constant. Truncation
makes z = max(0, y) of the inflow y that past inflows and noise give. Tangent cuts take the slope w in y all
the same, which may lift them above the cost. Valid ones take, where y may lie on either side of 0, the slope
of a linear function of y that is nowhere above ``w max(0, y)``: for w < 0 the chord between the ends of the
range of y, otherwise the tangent of ``max(0, y)``.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.arrays import TRUNCATED_WITH_VALID_CUTS
from cobre.native import inner_kernel


@inner_kernel
def inflow_slope(lp, stage, hydro, worth, inflow, noise):
    """Return the slope of a cut in the inflow of a plant before truncation, and how far the cut stays below.

    Parameters
    ----------
    worth
        Slope of the optimal value in the realised inflow, $ per m3/s.
    inflow, noise
        Inflow before truncation, and the part of it that does not follow past inflows, m3/s.

    Returns
    -------
    slope, shortfall
        $ per m3/s; $ by which the cut lies below the optimal value at this inflow, 0 or negative but for
        rounding.
    """
    if lp.truncated[stage, hydro] == TRUNCATED_WITH_VALID_CUTS:
        least = min(inflow, noise + lp.past_lower[stage, hydro])
        most = max(inflow, noise + lp.past_upper[stage, hydro])
        if most <= 0.0:
            return 0.0, 0.0
        if least < 0.0 and worth < 0.0:
            slope = worth * (most / (most - least))
            return slope, slope * (inflow - least) - worth * max(inflow, 0.0)
        if inflow < 0.0:
            return 0.0, 0.0
    return worth, 0.0
