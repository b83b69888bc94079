"""The LP of a node with the future cost bounded from above: a mean of vertex values plus prices of moves.

    theta  =  sum_k lambda_k v_k + up . u+ + down . u-
    x'     =  sum_k lambda_k x_k + u+ - u-,     sum_k lambda_k = 1,    lambda, u >= 0

The future cost V is convex, v_k >= V(x_k), and u moves at prices that are valid everywhere, so theta is at
least V(x'). Theta is not a column here: its parts are costs of lambda and u.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cobre.lp import StageTemplate
from cobre.lp.highs import SMALLEST_COEFFICIENT, Basis, HighsModel
from cobre.policy.boundary import BoundaryCuts
from cobre.sddp.upper_bound.appending import Entries, appended

FloatArray = NDArray[np.float64]


class InnerLp:
    """The LP of one node, ready to be solved at any incoming state. Close it after use.

    Attributes
    ----------
    lp_solves
        LPs solved so far.
    prepared_for
        The states given to ``prepare``.
    """

    def __init__(self, template: StageTemplate, offset: float, cuts: BoundaryCuts | None = None) -> None:
        self.template = template
        self.lp_solves = 0
        self.prepared_for: FloatArray | None = None
        self._offset = offset
        self._model = HighsModel(template)
        self._rows = template.num_rows
        self._largest_cost = float(np.abs(template.cost).max())
        self._start: Basis | None = None
        if cuts is not None:
            self._add_cuts(cuts)

    def _add_cuts(self, cuts: BoundaryCuts) -> None:
        template = self.template
        index = np.concatenate([[template.theta_col], template.state_col]).astype(np.int32)
        scale = template.col_scale[template.state_col]
        for intercept, slope in zip(cuts.intercepts, cuts.slopes, strict=True):
            value = np.concatenate([[1.0], -slope * scale / template.cost_scale])
            # What the solver would drop is counted at its dearest: the value must not fall.
            used = np.abs(value) > SMALLEST_COEFFICIENT
            lost = np.where(used[1:], 0.0, slope)
            dropped = np.maximum(lost * template.state_least, lost * template.state_most)[lost != 0.0].sum()
            self._model.add_row(
                float(intercept + dropped) / template.cost_scale,
                np.ascontiguousarray(index[used]),
                np.ascontiguousarray(value[used]),
            )
            self._rows += 1

    def prepare(self, opening: FloatArray, states: FloatArray) -> None:
        """Solve at the first of ``states`` that has a solution: all later LPs start from its basis.

        So the value at a state does not depend on the states solved before it.
        """
        self._start, self.prepared_for = None, states
        self._model.restart()
        for state in states:
            if self._solve(self.template.rhs_at(opening, state)):
                self._start = self._model.basis(self.template.num_cols, self._rows)
                return

    def start_like(self, other: InnerLp) -> None:
        """Let all later LPs start from the basis of the same LP in another object."""
        self._start, self.prepared_for = other._start, other.prepared_for

    def values(self, openings: FloatArray, state: FloatArray) -> FloatArray:
        """Return the optimal value ($) of every opening (values of its entities) at an incoming ``state``.

        ``inf`` for an opening without solution, and for others, which are then not solved any more.
        """
        self._model.restart(self._start)
        values = np.full(len(openings), np.inf)
        for opening, noise in enumerate(openings):
            if not self._solve(self.template.rhs_at(noise, state)):
                break
            objective = self._model.objective_above(self.template.num_cols, self._rows, self._largest_cost)
            values[opening] = objective * self.template.cost_scale + self._offset
        return values

    def _solve(self, rhs: FloatArray) -> bool:
        self._model.set_row_bounds(0, rhs, rhs)
        self.lp_solves += 1
        if self._model.solve() == "optimal":
            return True
        self._model.restart()
        return self._model.solve() == "optimal"

    def close(self) -> None:
        """Free the solver's memory."""
        self._model.close()


def inner_lp(
    template: StageTemplate, vertices: FloatArray, values: FloatArray, up: FloatArray, down: FloatArray
) -> InnerLp:
    """Return the LP of a node whose future cost at ``vertices`` is at most ``values``.

    Parameters
    ----------
    vertices, values
        float64[V, n] and float64[V], V >= 1, all finite; $.
    up, down
        Prices of moving the outgoing state, $ per unit; ``inf`` forbids the move.
    """
    states, count = template.num_states, len(vertices)
    # Differences to one vertex: sum lambda = 1 takes the rest into right-hand side and offset.
    origin, least = vertices[0], float(values.min())
    first_row, first_col = template.num_rows, template.num_cols
    link = np.arange(first_row, first_row + states)
    unity = first_row + states
    lambdas = first_col + np.arange(count)
    more, less = (np.flatnonzero(np.isfinite(prices)) for prices in (up, down))
    more_col = first_col + count + np.arange(len(more))
    less_col = first_col + count + len(more) + np.arange(len(less))
    entries = Entries(
        row=np.concatenate([link, np.tile(link, count), np.full(count, unity), link[more], link[less]]),
        column=np.concatenate(
            [template.state_col, np.repeat(lambdas, states), lambdas, more_col, less_col]
        ).astype(np.int64),
        value=np.concatenate(
            [
                template.col_scale[template.state_col],
                -(vertices - origin).ravel(),
                np.ones(count),
                -np.ones(len(more)),
                np.ones(len(less)),
            ]
        ),
    )
    unit = template.discount / template.cost_scale
    cost = np.concatenate([unit * (values - least), unit * up[more], unit * down[less]])
    return InnerLp(
        appended(
            without_theta(template),
            entries,
            cost=cost,
            lower=np.zeros(len(cost)),
            upper=np.full(len(cost), np.inf),
            row_lower=np.concatenate([origin, [1.0]]),
            row_upper=np.concatenate([origin, [1.0]]),
        ),
        offset=template.discount * least,
    )


def last_lp(template: StageTemplate, boundary: BoundaryCuts | None) -> InnerLp:
    """Return the LP of a node of the last stage, whose future cost is known: 0, or the maximum of cuts."""
    return InnerLp(template, 0.0, boundary)


def without_theta(template: StageTemplate) -> StageTemplate:
    """Return the LP without the future cost."""
    cost, lower, upper = template.cost.copy(), template.col_lower.copy(), template.col_upper.copy()
    cost[template.theta_col] = lower[template.theta_col] = upper[template.theta_col] = 0.0
    return replace(template, cost=cost, col_lower=lower, col_upper=upper)
