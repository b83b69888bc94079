"""Fewer planes: neighbours that hardly differ are replaced by their mean.

Planes are taken by falling slope in storage, then rising slope in flow, and each is compared with the plane
before it; where both are alike their mean takes their place and is compared with the next one. The plane
through the origin (no intercept, no slope in storage) is not merged, so that nothing is generated from no
water.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_ZERO = 1e-9
"""Intercept and slope, relative to the largest of the plane, below which a plane goes through the origin."""
_CANDIDATES = 64
"""Points that are looked at for each one wanted in the region where a plane is the lowest."""


def reduce_by_angle(planes: FloatArray, tolerance_deg: float) -> FloatArray:
    """Merge neighbours whose normals ``(pv, pq, ps, -1)`` enclose less than an angle (degrees)."""

    def similar(first: FloatArray, second: FloatArray) -> bool:
        a, b = np.append(first[1:], -1.0), np.append(second[1:], -1.0)
        cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
        return bool(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))) < tolerance_deg)

    return _merge(planes, similar)


def reduce_by_distance(
    planes: FloatArray,
    tolerance_pct: float,
    samples: int,
    storage_hm3: tuple[float, float],
    max_turbined_m3s: float,
) -> FloatArray:
    """Merge neighbours that differ little where they count.

    The mean square of their difference, over points where one of the two is the lowest plane, relative to
    the square of the largest power, must be less than the tolerance (percent).

    Parameters
    ----------
    samples
        Points to compare at. They are taken from a fixed sequence that fills the window evenly, so the
        result never depends on chance.
    storage_hm3, max_turbined_m3s
        The window: storage from and to, turbined flow from 0; spillage is 0.
    """
    # Multiples of the two-dimensional golden ratio, modulo 1.
    step = np.array([0.7548776662466927, 0.5698402909980532])
    share = (0.5 + np.arange(1, _CANDIDATES * samples + 1)[:, None] * step) % 1.0
    low, high = storage_hm3
    at = np.column_stack(
        [np.ones(len(share)), low + share[:, 0] * (high - low), share[:, 1] * max_turbined_m3s]
    )
    lowest = (at @ planes[:, :3].T).min(axis=1)
    corners = np.array([[1.0, low, max_turbined_m3s], [1.0, high, max_turbined_m3s]])
    largest = max(float((corners @ planes[:, :3].T).min(axis=1).max()), float(lowest.max()))

    def similar(first: FloatArray, second: FloatArray) -> bool:
        both = at @ np.column_stack([first[:3], second[:3]])
        # The mean of a group may lie above the lowest of its planes; compare where it comes nearest.
        active = np.flatnonzero(both.min(axis=1) <= lowest + _ZERO * max(largest, 1.0))[:samples]
        if not active.size:
            active = np.argsort(both.min(axis=1) - lowest, kind="stable")[:samples]
        gap = both[active, 0] - both[active, 1]
        return bool(float((gap * gap).mean()) * 100.0 < tolerance_pct * largest**2)

    return _merge(planes, similar)


def _merge(planes: FloatArray, similar: Callable[[FloatArray, FloatArray], bool]) -> FloatArray:
    """Return the planes left, by falling slope in flow, then rising slope in storage."""
    # Slopes that differ by rounding are equal, so that the order does not depend on it.
    level = np.round(planes[:, 1] / max(float(np.abs(planes[:, 1]).max()), 1e-300), 9)
    kept: list[tuple[FloatArray, bool]] = []
    for plane in planes[np.lexsort((planes[:, 2], -level))]:
        fixed = _through_origin(plane)
        if kept:
            last, standing = kept[-1]
            if not (fixed or standing) and similar(last, plane):
                kept[-1] = (0.5 * (last + plane), False)
                continue
        kept.append((plane, fixed))
    merged = np.array([plane for plane, _ in kept])
    return merged[np.lexsort((merged[:, 1], -merged[:, 2]))]


def _through_origin(plane: FloatArray) -> bool:
    return bool((np.abs(plane[:2]) <= _ZERO * max(float(np.abs(plane).max()), 1e-300)).all())
