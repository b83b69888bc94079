"""Estimation for one plant in plain Python, one season after the other: the judge of the package's arrays."""

from __future__ import annotations

import math

import numpy as np

Series = dict[tuple[int, int], float]
"""Inflow by (year, month from 0)."""


def earlier(year: int, month: int, lag: int) -> tuple[int, int]:
    number = 12 * year + month - lag
    return number // 12, number % 12


def stationary_shares(phi: dict[int, list[float]], years: int = 150) -> list[float]:
    """Return the share of the noise by month that keeps deviations at 1: years pass until it settles."""
    most = max(map(len, phi.values()))
    known: dict[tuple[int, int], float] = {}

    def correlation(one: int, other: int) -> float:
        return 1.0 if one == other else known.get((max(one, other), min(one, other)), 0.0)

    left = [1.0] * 12
    for now in range(12 * years):
        own = list(enumerate(phi[now % 12], start=1))
        for lag in range(1, most + 1):
            known[now, now - lag] = sum(c * correlation(now - k, now - lag) for k, c in own)
        left[now % 12] = 1.0 - sum(c * known[now, now - k] for k, c in own)
    return [math.sqrt(share) for share in left]


class Oracle:
    """Moments, autocorrelations and orders of a monthly series."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.values = {
            m: [value for (_, month), value in sorted(series.items()) if month == m] for m in range(12)
        }
        self.mean = {m: sum(v) / len(v) for m, v in self.values.items()}
        self.std = {
            m: math.sqrt(sum((x - self.mean[m]) ** 2 for x in v) / len(v)) for m, v in self.values.items()
        }

    def rho(self, month: int, lag: int) -> float:
        if lag == 0:
            return 1.0
        other = (month - lag) % 12
        products = [
            (value - self.mean[month]) * (self.series[earlier(year, month, lag)] - self.mean[other])
            for (year, now), value in self.series.items()
            if now == month and earlier(year, month, lag) in self.series
        ]
        if not products or self.std[month] * self.std[other] == 0.0:
            return 0.0
        found = sum(products) / len(products) / (self.std[month] * self.std[other])
        return max(-1.0, min(1.0, found))

    def solve(self, month: int, order: int) -> np.ndarray:
        matrix = np.eye(order)
        for i in range(1, order + 1):
            for j in range(i + 1, order + 1):
                matrix[i - 1, j - 1] = matrix[j - 1, i - 1] = self.rho((month - i) % 12, j - i)
        return np.linalg.solve(matrix, np.array([self.rho(month, k) for k in range(1, order + 1)]))

    def order(self, month: int, ceiling: int) -> int:
        limit = 1.96 / math.sqrt(len(self.values[month]))
        large = [k for k in range(1, ceiling + 1) if abs(self.solve(month, k)[-1]) > limit]
        return max(large, default=0)

    def fit(self, max_order: int) -> dict[int, list[float]]:
        """Return the coefficients of each month after all reductions."""
        ceiling = dict.fromkeys(range(12), max_order)
        phi = {m: self.coefficients(m, self.order(m, max_order)) for m in range(12)}
        while True:
            bad = [m for m in range(12) if any(c < 0.0 for c in self.contributions(phi, m))]
            if not bad:
                return phi
            for m in bad:
                ceiling[m] -= 1
            for m in bad:
                phi[m] = self.coefficients(m, self.order(m, ceiling[m]))

    def coefficients(self, month: int, order: int) -> list[float]:
        found = self.solve(month, order).tolist() if order else []
        return [] if found and found[0] < 0.0 else found

    def contributions(self, phi: dict[int, list[float]], month: int) -> list[float]:
        """Return what one unit of each earlier inflow adds, by putting the equations into each other."""

        def factor(m: int) -> list[float]:
            return [c * self.std[m] / self.std[(m - k) % 12] for k, c in enumerate(phi[m], start=1)]

        open_terms = factor(month)
        found = []
        for step in range(1, len(phi[month]) + 1):
            first, *rest = [*open_terms, *[0.0] * 24]
            found.append(first)
            inner = [*factor((month - step) % 12), *[0.0] * 24]
            open_terms = [first * a + b for a, b in zip(inner, rest, strict=False)]
        return found

    def ratio(self, month: int, phi: list[float]) -> float:
        return math.sqrt(1.0 - sum(c * self.rho(month, k) for k, c in enumerate(phi, start=1)))
