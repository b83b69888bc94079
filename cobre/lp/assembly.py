"""Collects columns, rows and coefficients by name and turns them into sorted sparse arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


class LpAssembly:
    """A growing LP; rows and columns keep the order in which they are added."""

    def __init__(self) -> None:
        self.col_names: list[str] = []
        self.cost: list[float] = []
        self.col_lower: list[float] = []
        self.col_upper: list[float] = []
        self.row_names: list[str] = []
        self.row_lower: list[float] = []
        self.row_upper: list[float] = []
        self._entries: list[tuple[int, int, float]] = []

    def column(self, name: str, cost: float, lower: float = 0.0, upper: float = math.inf) -> int:
        """Add a column and return its index."""
        self.col_names.append(name)
        self.cost.append(cost)
        self.col_lower.append(lower)
        self.col_upper.append(upper)
        return len(self.cost) - 1

    def row(self, name: str, lower: float = -math.inf, upper: float = math.inf) -> int:
        """Add a row and return its index."""
        self.row_names.append(name)
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        return len(self.row_lower) - 1

    def coefficient(self, row: int, column: int, value: float) -> None:
        """Add ``value`` to the coefficient of ``column`` in ``row``."""
        self._entries.append((column, row, value))

    def matrix(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return the matrix by columns: starts, row indices, values.

        Entries of one cell are added up in the order they came; zeros are dropped; rows ascend within
        a column.
        """
        cells: dict[tuple[int, int], float] = {}
        for column, row, value in self._entries:
            cells[column, row] = cells.get((column, row), 0.0) + value
        kept = sorted((key, value) for key, value in cells.items() if value != 0.0)
        start = np.zeros(len(self.cost) + 1, np.int32)
        for (column, _), _ in kept:
            start[column + 1] += 1
        return (
            np.cumsum(start, dtype=np.int32),
            np.array([row for (_, row), _ in kept], np.int32),
            np.array([value for _, value in kept], np.float64),
        )

    def cheapest_cost(self) -> float:
        """Return a lower bound of ``cost . y`` over the column bounds (``-inf`` if there is none)."""
        total = 0.0
        for cost, lower, upper in zip(self.cost, self.col_lower, self.col_upper, strict=True):
            if cost != 0.0:
                total += cost * (lower if cost > 0.0 else upper)
        return total
