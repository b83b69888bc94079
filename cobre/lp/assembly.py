"""Collects the columns, rows and coefficients of a stage LP by families, and sorts them into sparse arrays.

Whole families are added at once, with what is given for them (costs, limits, conditions) spread over their
axes. Ids are provisional for rows until :meth:`LpAssembly.finish`, which puts the equations that depend on
state and noise first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cobre.lp.index import ABSENT, Family, IdArray, Labels, LpIndex

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class AssembledLp:
    """The arrays of a finished assembly, named as in :class:`cobre.lp.template.StageTemplate`; cost in $."""

    cost: FloatArray
    col_lower: FloatArray
    col_upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    matrix_start: IntArray
    matrix_row: IntArray
    matrix_value: FloatArray
    state_start: IntArray
    state_row: IntArray
    state_value: FloatArray
    fixed_rhs: FloatArray
    noise_start: IntArray
    noise_row: IntArray
    noise_value: FloatArray
    index: LpIndex

    def cheapest_cost(self) -> float:
        """Return a lower bound ($) of ``cost . y`` over the column bounds (``-inf`` if there is none)."""
        best = np.where(self.cost > 0.0, self.col_lower, self.col_upper)
        paid = self.cost != 0.0
        return math.fsum((self.cost[paid] * best[paid]).tolist())

    def unbounded_rewards(self) -> list[str]:
        """Return the names of columns that could lower the cost without end."""
        best = np.where(self.cost > 0.0, self.col_lower, self.col_upper)
        unbounded = np.flatnonzero((self.cost != 0.0) & ~np.isfinite(best))
        return [self.index.col_names[place] for place in unbounded]


class LpAssembly:
    """A growing LP; columns, static rows and equations keep the order in which they are added."""

    def __init__(self) -> None:
        self.columns: dict[str, IdArray] = {}
        self.rows: dict[str, IdArray] = {}
        self._col_families: list[Family] = []
        self._row_families: list[Family] = []
        self._cols = 0
        self._rows = 0
        self._col_data: list[FloatArray] = [np.zeros((3, 0))]
        self._row_data: list[FloatArray] = [np.zeros((2, 0))]
        self._equations: list[IdArray] = [np.zeros(0, np.int32)]
        self._rhs: list[FloatArray] = [np.zeros(0)]
        self._entries: list[tuple[IdArray, IdArray, FloatArray]] = []
        self._state: list[tuple[IdArray, IdArray, FloatArray]] = []
        self._noise: list[tuple[IdArray, IdArray, FloatArray]] = []

    def add_columns(
        self,
        kind: str,
        axes: tuple[Labels, ...] = (),
        *,
        where: ArrayLike = True,
        cost: ArrayLike = 0.0,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = math.inf,
    ) -> IdArray:
        """Add a family of columns.

        Parameters
        ----------
        axes
            Labels along each axis; the other arguments are spread over that shape.
        where
            Which members exist.
        cost
            $ per unit.

        Returns
        -------
        ndarray
            Ids over the axes, ``ABSENT`` where there is no column.
        """
        ids, present = _number(axes, where, self._cols)
        self._col_families.append(Family(kind, ids, axes))
        self.columns[kind] = ids
        self._cols += int(present.sum())
        self._col_data.append(_spread((cost, lower, upper), present))
        return ids

    def add_rows(
        self,
        kind: str,
        axes: tuple[Labels, ...] = (),
        *,
        where: ArrayLike = True,
        lower: ArrayLike = -math.inf,
        upper: ArrayLike = math.inf,
    ) -> IdArray:
        """Add a family of rows with fixed limits; see :meth:`add_columns`."""
        ids, present = _number(axes, where, self._rows)
        self._row_families.append(Family(kind, ids, axes))
        self.rows[kind] = ids
        self._rows += int(present.sum())
        self._row_data.append(_spread((lower, upper), present))
        return ids

    def add_equations(
        self, kind: str, axes: tuple[Labels, ...] = (), *, where: ArrayLike = True, rhs: ArrayLike = 0.0
    ) -> IdArray:
        """Add a family of equations whose right-hand side depends on noise and on the state.

        Parameters
        ----------
        rhs
            The part of the right-hand side that is always the same, spread over the axes.
        """
        ids = self.add_rows(kind, axes, where=where, lower=0.0, upper=0.0)
        present = ids != ABSENT
        self._equations.append(ids[present])
        self._rhs.append(np.broadcast_to(np.asarray(rhs, np.float64), ids.shape)[present])
        return ids

    def put(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Add coefficients, spread over the common shape; what is ``ABSENT`` on either side is left out."""
        self._entries.append(_entries(rows, columns, values))

    def put_state(self, rows: ArrayLike, components: ArrayLike, values: ArrayLike) -> None:
        """Add what incoming state components add to the right-hand sides of equations."""
        self._state.append(_entries(rows, components, values))

    def put_noise(self, rows: ArrayLike, entities: ArrayLike, values: ArrayLike) -> None:
        """Add what the realised values of random entities add to the right-hand sides of equations."""
        self._noise.append(_entries(rows, entities, values))

    def finish(self, states: int, entities: int) -> AssembledLp:
        """Return the LP as arrays, with its equations as the first rows."""
        equations = np.concatenate(self._equations)
        static = np.ones(self._rows, bool)
        static[equations] = False
        place = np.empty(self._rows, np.int32)
        place[equations] = np.arange(len(equations), dtype=np.int32)
        place[static] = np.arange(len(equations), self._rows, dtype=np.int32)
        order = np.argsort(place, kind="stable")
        cost, col_lower, col_upper = np.concatenate(self._col_data, axis=1)
        row_lower, row_upper = np.concatenate(self._row_data, axis=1)[:, order]
        start, row, value = _compressed(self._entries, place, self._cols)
        state_start, state_row, state_value = _compressed(self._state, place, states)
        noise_start, noise_row, noise_value = _compressed(self._noise, place, entities)
        families = [
            Family(family.kind, _renumbered(family.ids, place), family.axes) for family in self._row_families
        ]
        return AssembledLp(
            cost=np.ascontiguousarray(cost),
            col_lower=np.ascontiguousarray(col_lower),
            col_upper=np.ascontiguousarray(col_upper),
            row_lower=np.ascontiguousarray(row_lower),
            row_upper=np.ascontiguousarray(row_upper),
            matrix_start=start,
            matrix_row=row,
            matrix_value=value,
            state_start=state_start,
            state_row=state_row,
            state_value=state_value,
            fixed_rhs=np.concatenate(self._rhs),
            noise_start=noise_start,
            noise_row=noise_row,
            noise_value=noise_value,
            index=LpIndex(self._col_families, families),
        )


def _number(axes: tuple[Labels, ...], where: ArrayLike, first: int) -> tuple[IdArray, NDArray[np.bool_]]:
    shape = tuple(len(axis) for axis in axes)
    present = np.broadcast_to(np.asarray(where, bool), shape)
    ids = np.full(shape, ABSENT, np.int32)
    ids[present] = np.arange(first, first + int(present.sum()), dtype=np.int32)
    return ids, present


def _spread(values: tuple[ArrayLike, ...], present: NDArray[np.bool_]) -> FloatArray:
    spread = [np.broadcast_to(np.asarray(value, np.float64), present.shape)[present] for value in values]
    return np.stack([np.atleast_1d(part) for part in spread])


def _entries(rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> tuple[IdArray, IdArray, FloatArray]:
    row, column, value = np.broadcast_arrays(
        np.asarray(rows, np.int32), np.asarray(columns, np.int32), np.asarray(values, np.float64)
    )
    kept = (row != ABSENT) & (column != ABSENT) & (value != 0.0)
    return row[kept], column[kept], value[kept]


def _compressed(
    entries: list[tuple[IdArray, IdArray, FloatArray]], place: IdArray, columns: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Sort entries by column, then row; those of one cell are added up and zeros are dropped."""
    row = place[np.concatenate([part[0] for part in entries] or [np.zeros(0, np.int32)])]
    column = np.concatenate([part[1] for part in entries] or [np.zeros(0, np.int32)])
    value = np.concatenate([part[2] for part in entries] or [np.zeros(0)])
    order = np.lexsort((row, column))
    row, column, value = row[order], column[order], value[order]
    if len(row):
        first = np.flatnonzero(np.r_[True, (np.diff(row) != 0) | (np.diff(column) != 0)])
        row, column, value = row[first], column[first], np.add.reduceat(value, first)
        kept = value != 0.0
        row, column, value = row[kept], column[kept], value[kept]
    start = np.zeros(columns + 1, np.int32)
    start[1:] = np.cumsum(np.bincount(column, minlength=columns))
    return start, row.astype(np.int32), np.ascontiguousarray(value, np.float64)


def _renumbered(ids: IdArray, place: IdArray) -> IdArray:
    if not len(place):
        return ids
    return np.where(ids == ABSENT, np.int32(ABSENT), place[ids]).astype(np.int32)
