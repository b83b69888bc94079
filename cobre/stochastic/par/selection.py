"""Order of each season's model, its coefficients, and the reductions that keep the model sound.

The order is the largest lag up to a ceiling whose partial autocorrelation exceeds ``1.96 / sqrt(n)``. A
season falls back to order 0 when a coefficient exceeds the largest magnitude allowed or the first one is
negative. Then *contributions* are followed back in time: with ``f_m(k) = phi_{m,k} s_m / s_{m-k}``,
``A_0(j) = f_m(j + 1)`` and ``A_i(j) = A_{i-1}(0) f_{m-i}(j + 1) + A_{i-1}(j + 1)``, the contribution of lag
``i + 1`` is ``A_i(0)``. Where one within the order is negative, the ceiling of that season goes one down and
it is fitted again, until there is none. The ceiling starts at the largest order allowed, not at the order
found: seasons before it may change in the meantime, so that its own order may stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.stochastic.par.fit import Reduction
from cobre.stochastic.par.moments import AnnualMoments, SeasonMoments
from cobre.stochastic.par.yule_walker import (
    annual_partial_autocorrelations,
    annual_system,
    partial_autocorrelations,
    solve_order,
    solve_small,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CONFIDENCE = 1.96


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models by (season, hydro); ``phi`` by (season, hydro, lag - 1).

    Attributes
    ----------
    selected
        Order before reductions.
    annual
        Standardised coefficient of the yearly mean; 0 without one.
    ratio
        Share of the noise.
    """

    selected: IntArray
    order: IntArray
    phi: FloatArray
    annual: FloatArray
    ratio: FloatArray
    reductions: tuple[Reduction, ...]


def fit_seasons(
    rho: FloatArray,
    moments: SeasonMoments,
    annual: AnnualMoments | None,
    season_ids: tuple[int, ...],
    max_order: int,
    max_magnitude: float | None,
) -> Fitted:
    """Return the models of all seasons and plants from their autocorrelations."""
    solver = _Solver(rho, moments, annual, max_order)
    ceiling = np.full(moments.mean.shape, max_order, np.int64)
    selected = solver.select(ceiling)
    order = selected.copy()
    reductions: list[Reduction] = []

    def lower(where: NDArray[np.bool_], to: IntArray, reason: str) -> None:
        lowered = np.argwhere(where & (to < order)).tolist()
        parts = _contributions(phi, moments.std) if lowered else phi
        for season, hydro in lowered:
            before, after = int(order[season, hydro]), int(to[season, hydro])
            told = tuple(parts[season, hydro, :before].tolist())
            reductions.append(Reduction(hydro, season_ids[season], before, after, reason, told))
        order[where] = to[where]

    none = np.zeros_like(order)
    phi = solver.coefficients(order)[0]
    if max_magnitude is not None:
        large: NDArray[np.bool_] = np.logical_or.reduce(np.abs(phi) > max_magnitude, axis=2)
        lower(large, none, "magnitude")
        phi = solver.coefficients(order)[0]
    lower(_first_negative(phi), none, "negative_first_coefficient")
    phi = solver.coefficients(order)[0]
    while True:
        negative = _negative_contribution(phi, order, moments.std)
        if not negative.any():
            break
        ceiling = np.where(negative, ceiling - 1, ceiling)
        lower(negative, solver.select(ceiling), "negative_contribution")
        phi = solver.coefficients(order)[0]
        lower(negative & _first_negative(phi), none, "negative_first_coefficient")
        phi = solver.coefficients(order)[0]
    phi, yearly, ratio = solver.coefficients(order)
    listed = sorted(reductions, key=lambda item: (item.hydro, item.season_id, -item.from_order))
    return Fitted(selected, order, phi, yearly, ratio, tuple(listed))


def _first_negative(phi: FloatArray) -> NDArray[np.bool_]:
    if phi.shape[2] == 0:
        return np.zeros(phi.shape[:2], np.bool_)
    negative: NDArray[np.bool_] = phi[:, :, 0] < 0.0
    return negative


class _Solver:
    """Solutions of every order, computed once."""

    def __init__(
        self, rho: FloatArray, moments: SeasonMoments, annual: AnnualMoments | None, max_order: int
    ) -> None:
        self._rho, self._annual, self._max = rho, annual, max_order
        count = np.maximum(moments.count, 1)
        if annual is None:
            self._pacf = partial_autocorrelations(rho, max_order)
        else:
            self._pacf = annual_partial_autocorrelations(rho, annual.with_now, annual.with_lag, max_order)
        self._significant = np.abs(self._pacf) > (_CONFIDENCE / np.sqrt(count))[:, :, np.newaxis]
        # The yearly mean of the twelve periods before belongs to the season before.
        self._has_year = np.zeros(count.shape, np.bool_)
        if annual is not None:
            self._has_year = (np.roll(annual.std, 1, axis=0) > 0.0) & (moments.std > 0.0)
        self._solved = [self._solve(order) for order in range(max_order + 1)]

    def select(self, ceiling: IntArray) -> IntArray:
        """Return the orders that partial autocorrelations support, up to a ceiling."""
        lag = np.arange(1, self._max + 1, dtype=np.int64)
        allowed = self._significant & (lag <= ceiling[:, :, np.newaxis])
        order: IntArray = np.where(allowed, lag, 0).max(axis=2, initial=0)
        if self._annual is not None and self._max:
            least = (self._pacf[:, :, 0] != 0.0) & (ceiling >= 1)
            order = np.where(least, np.maximum(order, 1), order)
        return order

    def coefficients(self, order: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return phi, the annual coefficient and the share of the noise at given orders."""
        phi = np.zeros((*order.shape, self._max))
        yearly, ratio = np.zeros(order.shape), np.ones(order.shape)
        for number, (solution, annual, share) in enumerate(self._solved):
            here = order == number
            phi[here, :number] = solution[here]
            yearly[here], ratio[here] = annual[here], share[here]
        return phi, yearly, ratio

    def _solve(self, order: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        rho, shape = self._rho, self._rho.shape[:2]
        phi, yearly, explained = np.zeros((*shape, order)), np.zeros(shape), np.zeros(shape)
        regular = np.ones(shape, np.bool_)
        if order:
            phi, regular = solve_order(rho, order)
        if self._annual is not None:
            system = annual_system(rho, self._annual.with_now, self._annual.with_lag, order)
            solution, fine = solve_small(*system)
            with_year = self._has_year
            phi = np.where(with_year[:, :, np.newaxis], solution[:, :, :order], phi)
            yearly = np.where(with_year, solution[:, :, order], 0.0)
            regular = np.where(with_year, fine, regular)
            explained = yearly * self._annual.with_now
        for lag in range(order):
            explained = explained + phi[:, :, lag] * rho[:, :, lag + 1]
        left = 1.0 - explained
        ratio = np.where(regular & (left > 0.0), np.sqrt(np.clip(left, 0.0, 1.0)), 1.0)
        return phi, yearly, ratio


def _negative_contribution(phi: FloatArray, order: IntArray, std: FloatArray) -> NDArray[np.bool_]:
    """Return which seasons have a negative contribution within their order, by (season, hydro)."""
    within = np.arange(1, phi.shape[2] + 1) <= order[:, :, np.newaxis]
    negative: NDArray[np.bool_] = np.logical_or.reduce((_contributions(phi, std) < 0.0) & within, axis=2)
    return negative


def _contributions(phi: FloatArray, std: FloatArray) -> FloatArray:
    """Return the contribution of each lag by (season, hydro, lag - 1)."""
    seasons, hydros, most = phi.shape
    factor = np.zeros((seasons, hydros, most + 1))
    for lag in range(1, most + 1):
        earlier = np.roll(std, lag, axis=0)
        factor[:, :, lag - 1] = np.divide(
            phi[:, :, lag - 1] * std, earlier, out=np.zeros((seasons, hydros)), where=earlier > 0.0
        )
    found = np.zeros(phi.shape)
    row = factor.copy()
    for step in range(most):
        if step:
            following = np.zeros_like(row)
            moved = np.roll(factor, step, axis=0)[:, :, :most]
            following[:, :, :most] = row[:, :, :1] * moved + row[:, :, 1:]
            row = following
        found[:, :, step] = row[:, :, 0]
    return found
