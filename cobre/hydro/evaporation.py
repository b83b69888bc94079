"""Evaporation of a reservoir, linear in storage.

In a month of H hours with an evaporated height of c mm, a surface of A km2 and slope A' at the reference
storage v*, water evaporates at ``k0 + kv * v`` m3/s with

``kv = c * A' / (3.6 * H)``, ``k0 = c * A / (3.6 * H) - kv * v*``

(1 mm over 1 km2 is 1000 m3; an hour has 3600 s). The rate is the same all through the month, so a stage
inside one month takes that month's rate however long it is; a stage over several months takes their mean,
weighted by its days in each.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Sequence

from cobre.hydro.geometry import GeometryCurve


def month_shares(start: datetime.date, end: datetime.date) -> list[tuple[int, int, float]]:
    """Return (month, its days, share of the stage's days) for each month in ``[start, end)``.

    >>> month_shares(datetime.date(2025, 1, 30), datetime.date(2025, 2, 7))
    [(1, 31, 0.25), (2, 28, 0.75)]
    """
    total = (end - start).days
    shares = []
    day = start
    while day < end:
        days = calendar.monthrange(day.year, day.month)[1]
        inside = min(days - day.day + 1, (end - day).days)
        shares.append((day.month, days, inside / total))
        if (end - day).days == inside:
            break  # the next day may lie beyond the last year that dates can hold
        day += datetime.timedelta(days=inside)
    return shares


def linear_evaporation(
    geometry: GeometryCurve,
    coefficients_mm: Sequence[float],
    reference_hm3: Sequence[float],
    months: Sequence[tuple[int, int, float]],
) -> tuple[float, float, float]:
    """Return intercept (m3/s), slope (m3/s per hm3) and mean reference storage (hm3) of a stage.

    Parameters
    ----------
    coefficients_mm, reference_hm3
        Twelve each, January first.
    months
        From :func:`month_shares`.

    Examples
    --------
    >>> lake = GeometryCurve([0.0, 100.0], [300.0, 310.0], [10.0, 20.0])
    >>> january = month_shares(datetime.date(2025, 1, 1), datetime.date(2025, 2, 1))
    >>> intercept, slope, reference = linear_evaporation(lake, [74.4] * 12, [50.0] * 12, january)
    >>> round(intercept + slope * reference, 9)  # 74.4 mm from 15 km2 in 744 hours, m3/s
    0.416666667
    """
    intercept = slope = reference = 0.0
    for month, days, share in months:
        rate = coefficients_mm[month - 1] / (3.6 * 24.0 * days)
        storage = reference_hm3[month - 1]
        by_storage = rate * geometry.area_slope(storage)
        slope += share * by_storage
        intercept += share * (rate * geometry.area(storage) - by_storage * storage)
        reference += share * storage
    return intercept, slope, reference
