"""The optimum over the whole tree below a state, for inflows that follow earlier inflows.

This is no oracle of the model: it takes the stage templates of the package as they are (:mod:`oracle` judges
those, from the files) and judges what training makes of them, cuts and value functions at any state.

No decision changes an inflow, so every path of the tree knows its inflows in advance, truncated or not. One
copy of a stage's LP for each way of getting there makes one large LP, solved apart from cuts and duals.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.lp import StateLayout, build_templates
from cobre.stochastic import build_opening_tree

FloatArray = NDArray[np.float64]


class ExogenousTree:
    """A study on a chain, ready to be solved from any stage and state."""

    def __init__(self, case: Case) -> None:
        self.layout = StateLayout(case)
        self.templates = build_templates(case, build_opening_tree(case), self.layout)
        self.memory = np.array([part.kind == "inflow_lag" for part in self.layout.components])

    def step(self, stage: int, opening: int, state: FloatArray) -> FloatArray:
        """Return the state with the memory that ``stage`` leaves behind, and no storage."""
        lags, after = self.layout.inflow.lags, np.zeros(len(state))
        inflow = self.templates[stage].realised(opening, state)
        for place in np.flatnonzero(self.memory):
            part = self.layout.components[place]
            after[place] = lags.gain[stage, part.lane] * inflow[part.entity]
            for lane, source in enumerate(self.layout.memory_place[part.entity]):
                if source >= 0:
                    after[place] += lags.carry[stage, part.lane, lane] * state[source]
        return after

    def sampled_states(self, stage: int, count: int) -> FloatArray:
        """Random storages, with what plants remember at the end of random ways through the self."""
        random = np.random.default_rng(stage)
        states = []
        for _ in range(count):
            state = self.layout.initial
            for earlier in range(stage + 1):
                opening = int(random.integers(self.templates[earlier].num_openings))
                state = self.step(earlier, opening, state)
            template = self.templates[stage]
            lower, upper = (bound[template.state_col] for bound in (template.col_lower, template.col_upper))
            drawn = np.where(self.memory, state, 0.0)
            drawn[~self.memory] = random.uniform(lower[~self.memory], upper[~self.memory])
            states.append(drawn)
        return np.array(states)

    def optimum(self, first: int, state: FloatArray) -> float:
        """Return the expected cost ($) of the stages from ``first`` on, entered with ``state``."""
        cost: list[float] = []
        lower_bounds: list[float] = []
        upper_bounds: list[float] = []
        entries: list[tuple[int, int, float]] = []
        limits: list[tuple[float, float]] = []

        def add(stage: int, weight: float, parent: list[int] | None, known: FloatArray) -> None:
            template = self.templates[stage]
            share = weight / template.num_openings
            for opening in range(template.num_openings):
                column, row = len(cost), len(limits)
                here = share * template.cost
                here[template.theta_col] = 0.0
                cost.extend(here)
                lower_bounds.extend(template.col_lower)
                upper_bounds.extend(template.col_upper)
                lower, upper = template.row_lower.copy(), template.row_upper.copy()
                lower[: template.num_dynamic_rows] = template.rhs(opening, known)
                upper[: template.num_dynamic_rows] = lower[: template.num_dynamic_rows]
                limits.extend(zip(lower, upper, strict=True))
                of_column = np.repeat(np.arange(template.num_cols), np.diff(template.matrix_start))
                entries.extend(
                    zip(row + template.matrix_row, column + of_column, template.matrix_value, strict=True)
                )
                for place, above in enumerate(parent or ()):
                    if not self.memory[place]:
                        for entry in range(template.state_start[place], template.state_start[place + 1]):
                            entries.append(
                                (row + template.state_row[entry], above, -template.state_value[entry])
                            )
                if stage + 1 < len(self.templates):
                    outgoing = [column + int(place) for place in template.state_col]
                    after = self.step(stage, opening, known)
                    add(stage + 1, share * template.discount, outgoing, after)

        add(first, 1.0, None, state)
        rows, columns, values = (np.array(part) for part in zip(*entries, strict=True))
        matrix = scipy.sparse.csr_matrix((values, (rows, columns)), (len(limits), len(cost)))
        solution = scipy.optimize.milp(
            np.array(cost),
            constraints=scipy.optimize.LinearConstraint(matrix, *np.array(limits).T),
            bounds=scipy.optimize.Bounds(lower_bounds, upper_bounds),
        )
        assert solution.success
        return float(solution.fun * self.templates[0].cost_scale)
