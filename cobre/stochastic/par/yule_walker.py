"""Periodic Yule-Walker systems, solved for many seasons and plants at once.

For season ``m`` and order ``p`` the coefficients solve ``R phi = rho`` with ``R_ij = rho_{m-i}(j - i)`` for
``i < j`` (the correlation belongs to the season of the later value) and ``rho_i = rho_m(i)``. With an annual
component the system has one more unknown, the coefficient of the yearly mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SINGULAR = 1e-12


def solve_small(matrix: FloatArray, right: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Solve many small systems by elimination with partial pivoting.

    Parameters
    ----------
    matrix, right
        float64 ``(..., n, n)`` and ``(..., n)``.

    Returns
    -------
    solution, regular
        Solutions, 0 where a pivot vanishes, and whether none does.
    """
    size = right.shape[-1]
    shape = right.shape[:-1]
    work = np.concatenate([matrix, right[..., np.newaxis]], axis=-1).reshape(-1, size, size + 1).copy()
    batch = np.arange(len(work))
    regular = np.ones(len(work), np.bool_)
    for column in range(size):
        pivot = column + np.argmax(np.abs(work[:, column:, column]), axis=1)
        swapped = work[batch, pivot].copy()
        work[batch, pivot] = work[:, column]
        work[:, column] = swapped
        lead = work[:, column, column].copy()
        regular &= np.abs(lead) > _SINGULAR
        lead[np.abs(lead) <= _SINGULAR] = 1.0
        for row in range(column + 1, size):
            factor = work[:, row, column] / lead
            work[:, row, column:] -= factor[:, np.newaxis] * work[:, column, column:]
    solution = np.zeros((len(work), size))
    for row in range(size - 1, -1, -1):
        rest = work[:, row, size].copy()
        for column in range(row + 1, size):
            rest -= work[:, row, column] * solution[:, column]
        lead = work[:, row, row]
        solution[:, row] = np.divide(rest, lead, out=np.zeros(len(work)), where=np.abs(lead) > _SINGULAR)
    solution[~regular] = 0.0
    return solution.reshape(*shape, size), regular.reshape(shape)


def correlation_matrix(rho: FloatArray, order: int) -> FloatArray:
    """Return ``R`` by (season, hydro, order, order) from autocorrelations by (season, hydro, lag)."""
    seasons, hydros, _ = rho.shape
    matrix = np.zeros((seasons, hydros, order, order))
    for i in range(1, order + 1):
        # np.roll(a, i)[m] = a[m - i].
        earlier = np.roll(rho, i, axis=0)
        matrix[:, :, i - 1, i - 1] = 1.0
        for j in range(i + 1, order + 1):
            matrix[:, :, i - 1, j - 1] = matrix[:, :, j - 1, i - 1] = earlier[:, :, j - i]
    return matrix


def solve_order(rho: FloatArray, order: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the coefficients of one order by (season, hydro, order), and where the system is regular."""
    return solve_small(correlation_matrix(rho, order), np.ascontiguousarray(rho[:, :, 1 : order + 1]))


def partial_autocorrelations(rho: FloatArray, max_order: int) -> FloatArray:
    """Return partial autocorrelations by (season, hydro, lag - 1); 0 from the first singular system on."""
    seasons, hydros, _ = rho.shape
    found = np.zeros((seasons, hydros, max_order))
    usable = np.ones((seasons, hydros), np.bool_)
    for order in range(1, max_order + 1):
        solution, regular = solve_order(rho, order)
        usable &= regular
        found[:, :, order - 1] = np.where(usable, solution[:, :, -1], 0.0)
    return found


def annual_system(
    rho: FloatArray, with_now: FloatArray, with_lag: FloatArray, order: int
) -> tuple[FloatArray, FloatArray]:
    """Return matrix and right-hand side of the system with an annual component, the last unknown."""
    seasons, hydros, _ = rho.shape
    matrix = np.ones((seasons, hydros, order + 1, order + 1))
    matrix[:, :, :order, :order] = correlation_matrix(rho, order)
    matrix[:, :, :order, order] = matrix[:, :, order, :order] = with_lag[:, :, 1 : order + 1]
    right = np.concatenate([rho[:, :, 1 : order + 1], with_now[:, :, np.newaxis]], axis=2)
    return matrix, right


def annual_partial_autocorrelations(
    rho: FloatArray, with_now: FloatArray, with_lag: FloatArray, max_order: int
) -> FloatArray:
    """Return the correlation of a value with that ``k`` periods before, given those between and the year.

    With the covariance matrix in blocks (the two values | what is given), the partial correlation is that of
    the Schur complement of the second block. By (season, hydro, k - 1); 0 from the first singular one on.
    """
    seasons, hydros, _ = rho.shape
    found = np.zeros((seasons, hydros, max_order))
    usable = np.ones((seasons, hydros), np.bool_)
    for order in range(1, max_order + 1):
        matrix, right = annual_system(rho, with_now, with_lag, order)
        given = [*range(order - 1), order]
        inner = np.ascontiguousarray(matrix[:, :, given][:, :, :, given])
        to_now, to_then = right[:, :, given], np.ascontiguousarray(matrix[:, :, order - 1][:, :, given])
        now, regular = solve_small(inner, np.ascontiguousarray(to_now))
        then, _ = solve_small(inner, to_then)
        cross = right[:, :, order - 1] - _dot(to_then, now)
        spread = (1.0 - _dot(to_now, now)) * (1.0 - _dot(to_then, then))
        usable &= regular & (spread > _SINGULAR)
        value = np.divide(cross, np.sqrt(np.maximum(spread, 0.0)), out=np.zeros_like(cross), where=usable)
        found[:, :, order - 1] = value
    return found


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    total = np.zeros(first.shape[:-1])
    for at in range(first.shape[-1]):
        total += first[..., at] * second[..., at]
    return total
