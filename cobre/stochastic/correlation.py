"""Correlated noise: the symmetric square root of each group's correlation matrix times independent numbers.

``root = V diag(sqrt(max(lambda, 0))) V^T`` with eigenvalues and eigenvectors by cyclic Jacobi rotations, one
after the other: the same bits whatever linear algebra library and however many threads there are. Members of
a group are taken by id, so that the order in the file does not matter.

A matrix with an eigenvalue below -1e-8 is no correlation matrix. Its negative eigenvalues are left out and
the rest is scaled back to ones on the diagonal, so that every entity keeps its standard deviation; of the
result the root is taken. The case's warnings state by how much correlations change.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.case.model import Case, Correlation, CorrelationGroup
from cobre.stochastic.entities import CLASSES, NoiseLayout

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TOLERANCE = 1e-8
"""Eigenvalues down to minus this are rounding errors."""
_OFF_DIAGONAL = 1e-24
_EPSILON = 2.0**-52
_MAX_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class CorrelationRoots:
    """The roots of all groups, and which of them hold at each stage.

    The groups of stage t are ``stage_group[stage_start[t] : stage_start[t + 1]]``. Group g is about the class
    ``kind[g]`` and about the places ``slot[slot_start[g] : slot_start[g + 1]]`` of a noise vector; its root
    begins at ``root[root_start[g]]``, row by row.
    """

    stage_start: IntArray
    stage_group: IntArray
    kind: IntArray
    slot_start: IntArray
    slot: IntArray
    root_start: IntArray
    root: FloatArray


def correlation_roots(case: Case, layout: NoiseLayout, correlation: Correlation | None) -> CorrelationRoots:
    """Return the roots of a study's correlation; without one, no groups.

    Groups of uncorrelated entities are left out, members without noise too.
    """
    entities = {"inflow": len(case.hydros), "load": len(case.buses), "ncs": len(case.non_controllables)}
    slots = {name: layout.slots(name, entities[name]) for name in CLASSES}
    kinds: list[int] = []
    places: list[IntArray] = []
    roots: list[FloatArray] = []
    numbers: dict[str, list[int]] = {}
    for name, groups in (correlation.profiles if correlation is not None else {}).items():
        numbers[name] = []
        for group in groups:
            where, matrix = _ordered(group, slots[group.kind])
            if not np.any(matrix[~np.eye(where.size, dtype=np.bool_)]):
                continue
            numbers[name].append(len(kinds))
            kinds.append(CLASSES.index(group.kind))
            places.append(where)
            roots.append(symmetric_root(matrix))
    of_stage = [numbers[name] for name in (correlation.of_stage if correlation is not None else ())]
    of_stage = of_stage or [[] for _ in case.stages]
    return CorrelationRoots(
        stage_start=_starts([len(found) for found in of_stage]),
        stage_group=np.array([number for found in of_stage for number in found], np.int64),
        kind=np.array(kinds, np.int64),
        slot_start=_starts([where.size for where in places]),
        slot=np.concatenate([*places, np.zeros(0, np.int64)]),
        root_start=_starts([root.size for root in roots]),
        root=np.concatenate([*(root.ravel() for root in roots), np.zeros(0)]),
    )


def _ordered(group: CorrelationGroup, slots: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the places in the noise vector of a group's members, ascending, and their matrix."""
    where = slots[group.members]
    order = np.argsort(where, kind="stable")
    order = order[where[order] >= 0]
    return where[order], np.ascontiguousarray(group.matrix[np.ix_(order, order)])


def _starts(sizes: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def symmetric_root(matrix: FloatArray) -> FloatArray:
    """Return the symmetric square root of a correlation matrix, repaired where it is none."""
    values, vectors = eigen(matrix)
    if values.size and values.min() < -_TOLERANCE:
        possible = _recompose(np.maximum(values, 0.0), vectors)
        size = np.sqrt(np.diagonal(possible))
        possible /= np.outer(size, size)
        np.fill_diagonal(possible, 1.0)
        values, vectors = eigen(possible)
    return _recompose(np.sqrt(np.maximum(values, 0.0)), vectors)


def eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, in no order, and eigenvectors (columns) of a symmetric matrix."""
    work = np.array(matrix, np.float64, order="C")
    vectors = np.eye(len(work))
    _diagonalise(work, vectors)
    return np.diagonal(work).copy(), vectors


@njit(cache=True, nogil=True)
def _recompose(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return ``V diag(values) V^T``."""
    size = values.shape[0]
    result = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            total = 0.0
            for k in range(size):
                total += vectors[i, k] * values[k] * vectors[j, k]
            result[i, j] = total
    return result


@njit(cache=True, nogil=True)
def _diagonalise(a: FloatArray, v: FloatArray) -> None:
    """Turn a symmetric matrix into its eigenvalues by plane rotations, gathered in ``v``."""
    size = a.shape[0]
    for _ in range(_MAX_SWEEPS):
        rest = 0.0
        for i in range(size):
            for j in range(i):
                rest += 2.0 * (a[i, j] * a[i, j])
        if rest < _OFF_DIAGONAL:
            return
        for p in range(size):
            for q in range(p + 1, size):
                if abs(a[p, q]) >= _EPSILON:
                    _rotate(a, v, p, q)


@njit(cache=True, nogil=True)
def _rotate(a: FloatArray, v: FloatArray, p: int, q: int) -> None:
    """Make ``a[p, q]`` zero by the smaller of the two possible rotations."""
    off = a[p, q]
    ratio = (a[q, q] - a[p, p]) / (2.0 * off)
    length = math.sqrt(1.0 + ratio * ratio)
    tangent = 1.0 / (ratio + length) if ratio >= 0.0 else -1.0 / (-ratio + length)
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    sine = tangent * cosine
    a[p, p] = a[p, p] - tangent * off
    a[q, q] = a[q, q] + tangent * off
    a[p, q] = 0.0
    a[q, p] = 0.0
    for row in range(a.shape[0]):
        if row != p and row != q:
            first, second = a[row, p], a[row, q]
            a[row, p] = cosine * first - sine * second
            a[row, q] = sine * first + cosine * second
            a[p, row] = a[row, p]
            a[q, row] = a[row, q]
        first, second = v[row, p], v[row, q]
        v[row, p] = cosine * first - sine * second
        v[row, q] = sine * first + cosine * second


@njit(cache=True, nogil=True)
def correlate(
    start: int,
    stop: int,
    slot: IntArray,
    root_start: int,
    root: FloatArray,
    noise: FloatArray,
    out: FloatArray,
) -> None:
    """Write the correlated numbers of one group: ``out[slot] = root @ noise[slot]``; other places stay."""
    size = stop - start
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += root[root_start + i * size + j] * noise[slot[start + j]]
        out[slot[start + i]] = total


@njit(cache=True, nogil=True)
def correlate_rows(
    groups: IntArray,
    slot_start: IntArray,
    slot: IntArray,
    root_start: IntArray,
    root: FloatArray,
    rows: FloatArray,
) -> None:
    """Correlate the noise vectors in ``rows``, in place."""
    independent = np.empty(rows.shape[1])
    for row in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            independent[place] = rows[row, place]
        for position in range(groups.shape[0]):
            group = groups[position]
            correlate(
                slot_start[group],
                slot_start[group + 1],
                slot,
                root_start[group],
                root,
                independent,
                rows[row],
            )
