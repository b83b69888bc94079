"""Level of the tailrace as a function of outflow (turbined and spilt)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


class Tailrace(Protocol):
    """Anything that knows the level of the tailrace."""

    def level(self, outflow_m3s: ArrayLike) -> FloatArray:
        """Return the level (m) at an outflow (m3/s)."""


@dataclass(frozen=True)
class PolynomialCurve:
    """``c0 + c1 * outflow + c2 * outflow^2 + ...``

    >>> PolynomialCurve((250.0, 0.01)).level([0.0, 200.0]).tolist()
    [250.0, 252.0]
    """

    coefficients: tuple[float, ...]

    def level(self, outflow_m3s: ArrayLike) -> FloatArray:
        """Return the level (m) at an outflow (m3/s)."""
        flow = np.asarray(outflow_m3s, np.float64)
        level = np.zeros_like(flow)
        for coefficient in reversed(self.coefficients):
            level = level * flow + coefficient
        return level


@dataclass(frozen=True)
class PiecewiseCurve:
    """Linear between points of strictly increasing outflow, constant outside them.

    >>> PiecewiseCurve((0.0, 100.0), (250.0, 251.0)).level([50.0, 400.0]).tolist()
    [250.5, 251.0]
    """

    outflow_m3s: tuple[float, ...]
    height_m: tuple[float, ...]

    def level(self, outflow_m3s: ArrayLike) -> FloatArray:
        """Return the level (m) at an outflow (m3/s)."""
        level: FloatArray = np.interp(np.asarray(outflow_m3s, np.float64), self.outflow_m3s, self.height_m)
        return level


@dataclass(frozen=True)
class SegmentedCurve:
    """Polynomials over adjoining ranges of outflow; constant outside the first and last.

    Attributes
    ----------
    bounds_m3s
        Ends of the ranges, ascending: one more than there are segments.
    coefficients
        For each segment, ascending as in :class:`PolynomialCurve`.
    """

    bounds_m3s: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def level(self, outflow_m3s: ArrayLike) -> FloatArray:
        """Return the level (m) at an outflow (m3/s); at a common end the upper segment counts."""
        flow = np.clip(np.asarray(outflow_m3s, np.float64), self.bounds_m3s[0], self.bounds_m3s[-1])
        segment = np.searchsorted(np.array(self.bounds_m3s[1:-1]), flow, side="right")
        table = np.array(self.coefficients)[segment]
        level = np.zeros_like(flow)
        for power in range(table.shape[-1] - 1, -1, -1):
            level = level * flow + table[..., power]
        return level


@dataclass(frozen=True)
class BlendedCurve:
    """A curve between two others: ``(1 - weight) * first + weight * second``."""

    first: SegmentedCurve
    second: SegmentedCurve
    weight: float

    def level(self, outflow_m3s: ArrayLike) -> FloatArray:
        """Return the level (m) at an outflow (m3/s)."""
        return (1.0 - self.weight) * self.first.level(outflow_m3s) + self.weight * self.second.level(
            outflow_m3s
        )


@dataclass(frozen=True)
class TailraceFamilies:
    """Curves for several levels of the reservoir downstream (backwater).

    Attributes
    ----------
    levels_m
        Reference level of each curve, strictly increasing.
    """

    levels_m: tuple[float, ...]
    curves: Sequence[SegmentedCurve]

    def at(self, downstream_level_m: float | None) -> SegmentedCurve | BlendedCurve:
        """Return the curve for a level downstream, between the two nearest ones.

        Beyond the first or last level that curve holds; so does the first if the level is not known.
        """
        if downstream_level_m is None or downstream_level_m <= self.levels_m[0]:
            return self.curves[0]
        if downstream_level_m >= self.levels_m[-1]:
            return self.curves[-1]
        upper = int(np.searchsorted(np.array(self.levels_m), downstream_level_m, side="right"))
        below, above = self.levels_m[upper - 1], self.levels_m[upper]
        weight = (downstream_level_m - below) / (above - below)
        if weight == 0.0:
            return self.curves[upper - 1]
        return BlendedCurve(self.curves[upper - 1], self.curves[upper], weight)
