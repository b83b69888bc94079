"""What one unit more or less of a state component can cost at most: valid at every state.

Let y be feasible for the LP of a node at the incoming state x, and d a direction with

    A d = S e_j on the dynamic rows,   d in the recession cone of all other limits of rows and columns.

Then y + s d is feasible at x + s e_j for every s >= 0, whatever x, opening and y are. With up and down the
prices of what is left to later stages, x' moving by u+ - u-, the optimal value at x + s e_j is therefore at
most that at x plus s times

    p_j = min  cost . d + discount (up . u+ + down . u-).

The same with -e_j prices one unit less. Risk measures are monotone and add constants unchanged, so the future
cost of the node before grows by no more than the largest p_j among the nodes that may follow. The recursion
starts at the last stage, where the future cost is 0 or the maximum of boundary cuts.

A direction needs limits that are open on its side: spillage, slacks, deficit. Where there is none the price
is infinite, which means that no bound is known, not that the cost is unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cobre.lp import StageTemplate
from cobre.lp.highs import HighsModel
from cobre.policy.boundary import BoundaryCuts
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.upper_bound.appending import Entries, appended, state_matrix

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StatePrices:
    """Price of one unit more (``up``) and one unit less (``down``) of each outgoing component of each node.

    float64[N, n], $ per unit, ``inf`` where no price is known. May be negative.
    """

    up: FloatArray
    down: FloatArray

    @property
    def complete(self) -> bool:
        """Whether every move has a price."""
        return bool(np.isfinite(self.up).all() and np.isfinite(self.down).all())

    def scaled(self, factor: float) -> StatePrices:
        """Return prices with a margin: larger by ``factor - 1`` times their magnitude."""
        return StatePrices(_with_margin(self.up, factor), _with_margin(self.down, factor))

    def filled(self, price: float) -> StatePrices:
        """Return prices with ``price`` where none is known."""
        return StatePrices(
            np.where(np.isinf(self.up), price, self.up), np.where(np.isinf(self.down), price, self.down)
        )


def _with_margin(price: FloatArray, factor: float) -> FloatArray:
    known = np.where(np.isinf(price), 0.0, price)
    grown: FloatArray = np.where(np.isinf(price), np.inf, known + (factor - 1.0) * np.abs(known))
    return grown


def state_prices(
    templates: Sequence[StageTemplate], graph: GraphArrays, boundary: BoundaryCuts | None = None
) -> StatePrices:
    """Return the prices of every node's outgoing state.

    Parameters
    ----------
    templates
        The LP of every node, scaled or not.
    boundary
        Cuts of all nodes of the last stage; ``None``: the end is worth nothing.
    """
    nodes, states = len(templates), templates[0].num_states
    up, down = np.zeros((nodes, states)), np.zeros((nodes, states))
    incoming = np.zeros((nodes, 2, states))
    for node in reversed(range(nodes)):
        after = graph.successor[graph.successor_start[node] : graph.successor_start[node + 1]]
        if len(after):
            up[node], down[node] = incoming[after].max(axis=0)
        elif boundary is not None:
            # The floor under the cuts has slope 0.
            up[node] = boundary.slopes.max(axis=0, initial=0.0)
            down[node] = (-boundary.slopes).max(axis=0, initial=0.0)
        incoming[node] = _incoming_prices(templates[node], up[node], down[node])
    return StatePrices(up, down)


def _incoming_prices(template: StageTemplate, up: FloatArray, down: FloatArray) -> FloatArray:
    """Return prices of the incoming state, (2, n): of one unit more, of one unit less."""
    found = np.full((2, template.num_states), np.inf)
    moves = state_matrix(template).T
    lp = _recession_lp(template, up, down)
    largest_cost = float(np.abs(lp.cost).max())
    with HighsModel(lp) as model:
        for component, rhs in enumerate(moves):
            for side, direction in enumerate((rhs, -rhs)):
                move = np.ascontiguousarray(direction)
                model.restart()
                model.set_row_bounds(0, move, move)
                if model.solve() == "optimal":
                    objective = model.objective_above(lp.num_cols, lp.num_rows, largest_cost)
                    found[side, component] = objective * template.cost_scale
    return found


def _recession_lp(template: StageTemplate, up: FloatArray, down: FloatArray) -> StageTemplate:
    """Return the LP over directions; those of state columns are split into more and less."""
    lower, upper = _open_sides(template.col_lower, template.col_upper)
    row_lower, row_upper = _open_sides(template.row_lower, template.row_upper)
    cost = template.cost.copy()
    # The future cost is in the prices.
    lower[template.theta_col] = upper[template.theta_col] = cost[template.theta_col] = 0.0
    state = template.state_col
    unit = template.discount * template.col_scale[state] / template.cost_scale
    less_cost, less_upper = -cost[state], -lower[state]
    more_upper = upper[state]
    for prices, limit in ((up, more_upper), (down, less_upper)):
        limit[np.isinf(prices)] = 0.0
    cost[state] += unit * np.where(np.isinf(up), 0.0, up)
    less_cost += unit * np.where(np.isinf(down), 0.0, down)
    lower[state], upper[state] = 0.0, more_upper
    entries = _negated(template)
    directions = replace(
        template, cost=cost, col_lower=lower, col_upper=upper, row_lower=row_lower, row_upper=row_upper
    )
    return appended(
        directions,
        entries,
        cost=less_cost,
        lower=np.zeros(len(state)),
        upper=less_upper,
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
    )


def _open_sides(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the limits of directions: 0 towards a finite limit, none towards an infinite one."""
    return np.where(np.isinf(lower), -np.inf, 0.0), np.where(np.isinf(upper), np.inf, 0.0)


def _negated(template: StageTemplate) -> Entries:
    """Return the columns of the state with the other sign, as columns behind all others."""
    first, last = template.matrix_start[template.state_col], template.matrix_start[template.state_col + 1]
    parts = [np.arange(a, b) for a, b in zip(first, last, strict=True)]
    places = np.concatenate([np.zeros(0, np.int64), *parts])
    column = template.num_cols + np.repeat(np.arange(template.num_states), last - first)
    return Entries(
        row=template.matrix_row[places].astype(np.int64),
        column=column.astype(np.int64),
        value=-template.matrix_value[places],
    )
