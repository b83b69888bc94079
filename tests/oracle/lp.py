"""A linear programme put together term by term, solved by HiGHS through SciPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

INFINITY = float("inf")

Terms = list[tuple[int, float]]
"""Columns with their coefficients; a column may occur more than once."""


class Lp:
    """Columns ``lower <= x <= upper`` with a cost, and rows ``lower <= terms <= upper``."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.column_bounds: list[tuple[float, float]] = []
        self.rows: list[dict[int, float]] = []
        self.row_bounds: list[tuple[float, float]] = []
        self.values: list[float] = []

    def column(self, cost: float = 0.0, upper: float = INFINITY, lower: float = 0.0) -> int:
        """Add a column and return its number."""
        self.cost.append(cost)
        self.column_bounds.append((lower, upper))
        return len(self.cost) - 1

    def row(self, terms: Terms, lower: float = -INFINITY, upper: float = INFINITY) -> None:
        """Add a row."""
        summed: dict[int, float] = {}
        for column, value in terms:
            summed[column] = summed.get(column, 0.0) + value
        self.rows.append(summed)
        self.row_bounds.append((lower, upper))

    def equal(self, terms: Terms, value: float) -> None:
        """Add an equation."""
        self.row(terms, value, value)

    def minimum(self, cost_units: Sequence[float] = (1.0,)) -> float:
        """Solve and keep the values of the columns; ``ArithmeticError`` where there is no optimum.

        The LP is solved with costs in each of the units, and the cheapest solution counts: where costs are
        far apart the solver's tolerances hide some of them in any one unit.
        """
        matrix = self._matrix()
        lower, upper = np.array(self.row_bounds).reshape(-1, 2).T
        fixed = lower == upper
        above, below = ~fixed & (upper < INFINITY), ~fixed & (lower > -INFINITY)
        best = INFINITY
        for unit in cost_units:
            solution = linprog(
                np.array(self.cost) / unit,
                A_ub=sparse.vstack([matrix[above], -matrix[below]]),
                b_ub=np.concatenate([upper[above], -lower[below]]),
                A_eq=matrix[fixed],
                b_eq=upper[fixed],
                bounds=np.array(self.column_bounds),
                method="highs-ds",
                options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
            )
            if solution.status == 0 and solution.fun * unit < best:
                best, self.values = float(solution.fun * unit), solution.x.tolist()
        if not self.values:
            raise ArithmeticError(f"the extensive form has no optimum: {solution.message}")
        return best

    def _matrix(self) -> sparse.csr_array:
        row = [i for i, terms in enumerate(self.rows) for _ in terms]
        column = [j for terms in self.rows for j in terms]
        value = [coefficient for terms in self.rows for coefficient in terms.values()]
        return sparse.csr_array((value, (row, column)), shape=(len(self.rows), len(self.cost)))
