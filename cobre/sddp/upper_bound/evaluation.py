"""A deterministic upper bound of the optimal (risk-adjusted) cost over the opening tree.

From the last stage to the first, with rho the risk measure of the node's stage over all openings w of all
nodes m that may follow node n:

    v_n(x_k) = rho( Q_m(x_k, w) ),    Q_m the value of the LP of m with the inner approximation of V_m,

at vertices x_k of every node; the bound is rho( Q_0(initial state, w) ). Each v_n(x_k) is at least V_n(x_k)
by induction: the inner approximation lies above V_m (see :mod:`inner_lp`), and rho is monotone.
Philpott, de Matos, Finardi (2013), with prices of :mod:`prices` where they use one Lipschitz constant.
"""

# numba's decorator hides the kernel's type from mypy.
# mypy: disallow-untyped-decorators=False, disallow-untyped-calls=False
from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.lp import StageTemplate
from cobre.policy.boundary import BoundaryCuts
from cobre.policy.visited import VisitedStates
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.kernel.risk import weigh_outcomes
from cobre.sddp.ranks.partition import block_of
from cobre.sddp.upper_bound.inner_lp import InnerLp, inner_lp, last_lp
from cobre.sddp.upper_bound.prices import StatePrices, state_prices
from cobre.sddp.upper_bound.vertices import vertices_of

FloatArray = NDArray[np.float64]

RiskValue = Callable[[int, FloatArray, FloatArray], float]
"""Risk-adjusted value of outcomes ($) with probabilities under the measure of a stage (position; the number
of stages denotes the openings of the first one).

Must be monotone, convex and translation equivariant; every coherent measure and the entropic one are.
"""

_NAMED = 5

MOST_VERTICES = 200
"""Default limit of the visited states by node that the bound uses."""


@dataclass(frozen=True, eq=False)
class UpperBoundResult:
    """Outcome of one evaluation.

    Attributes
    ----------
    value
        The bound in $; ``inf`` if there is none.
    reason_unavailable
        Why there is none, else ``None``.
    assumptions
        What the bound assumes because of the configuration.
    vertices, vertex_values
        For each node float64[V, n] and float64[V]: points, and bounds ($) of the future cost there (``inf``
        where an LP has no solution). Without vertices in the last stage.
    lp_solves, seconds
        LPs solved by this rank, and its time.
    """

    value: float
    vertices: tuple[FloatArray, ...] = field(repr=False)
    vertex_values: tuple[FloatArray, ...] = field(repr=False)
    lp_solves: int
    seconds: float
    reason_unavailable: str | None = None
    assumptions: tuple[str, ...] = ()


@njit(cache=True, nogil=True)
def _measured(graph, stage, values, probability, order, weights):  # type: ignore[no-untyped-def]
    penalty = weigh_outcomes(graph, stage, values, probability, len(values), order, weights)
    total = -penalty
    for outcome in range(len(values)):
        total += weights[outcome] * values[outcome]
    return total


def study_risk(graph: GraphArrays) -> RiskValue:
    """Return the risk measures of a study, by stage and, behind them, of the openings of the first stage."""

    def value(stage: int, outcomes: FloatArray, probability: FloatArray) -> float:
        order, weights = np.zeros(len(outcomes), np.int64), np.zeros(len(outcomes))
        return float(_measured(graph, stage, outcomes, probability, order, weights))

    return value


def not_convex(templates: Sequence[StageTemplate]) -> str | None:
    """Return why the future cost may not be convex in the state, or ``None``.

    A truncated inflow that follows earlier inflows is no linear function of the state; where it may lie on
    either side of 0 an interpolation of the cost may be too low.
    """
    for template in templates:
        follows = np.diff(template.psi_start) > 0
        least = template.opening_values[:, : len(follows)].min(axis=0) + template.past_lower
        if (template.truncated & follows & (least < 0.0)).any():
            return (
                f"inflows of stage {template.stage_id} follow earlier inflows and may be truncated, so that "
                "the future cost need not be convex"
            )
    return None


def upper_bound(
    templates: Sequence[StageTemplate],
    graph: GraphArrays,
    visited: VisitedStates,
    initial_state: FloatArray,
    risk: RiskValue | None = None,
    *,
    boundary: BoundaryCuts | None = None,
    prices: StatePrices | None = None,
    most_vertices: int = MOST_VERTICES,
    assumptions: Sequence[str] = (),
    comm: Communicator | None = None,
) -> UpperBoundResult:
    """Bound the optimal cost over the opening tree from above.

    Parameters
    ----------
    templates
        The LP of every node, scaled or not.
    visited
        States that become vertices. Any states give a valid bound; those of good policies a tight one.
    risk
        Risk measures; those of ``graph`` unless given.
    boundary
        Cuts of the nodes of the last stage.
    prices
        Prices of moving outgoing states; computed unless they are at hand.
    most_vertices
        Most visited states by node.
    comm
        Ranks among which the vertices are shared; all return the same bits. All must call.
    """
    began = time.perf_counter()
    obstacle = not_convex(templates)
    if obstacle is not None:
        return UpperBoundResult(math.inf, (), (), 0, time.perf_counter() - began, obstacle)
    recursion = _Recursion(
        templates,
        graph,
        study_risk(graph) if risk is None else risk,
        boundary,
        state_prices(templates, graph, boundary) if prices is None else prices,
        comm,
    )
    value = recursion.run(visited, initial_state, most_vertices)
    return UpperBoundResult(
        value=value,
        vertices=tuple(recursion.vertices),
        vertex_values=tuple(recursion.values),
        lp_solves=recursion.lp_solves,
        seconds=time.perf_counter() - began,
        reason_unavailable=recursion.reason if math.isinf(value) else None,
        assumptions=tuple(assumptions),
    )


class _Recursion:
    def __init__(
        self,
        templates: Sequence[StageTemplate],
        graph: GraphArrays,
        risk: RiskValue,
        boundary: BoundaryCuts | None,
        prices: StatePrices,
        comm: Communicator | None,
    ) -> None:
        self.templates, self.graph, self.risk, self.comm = templates, graph, risk, comm
        self.boundary, self.prices = boundary, prices
        nothing = np.zeros((0, templates[0].num_states))
        self.vertices = [nothing] * len(templates)
        self.values = [np.zeros(0)] * len(templates)
        self.lp_solves = 0
        self.reason: str | None = None

    def run(self, visited: VisitedStates, initial_state: FloatArray, most: int) -> float:
        """Go from the last stage to the first; return the bound."""
        following: dict[int, InnerLp] = {}
        try:
            for stage in reversed(range(len(self.graph.stage_start) - 1)):
                here: dict[int, InnerLp] = {}
                try:
                    for node in range(
                        int(self.graph.stage_start[stage]), int(self.graph.stage_start[stage + 1])
                    ):
                        lp = self._node_lp(stage, node, visited, initial_state, most, following)
                        if lp is not None:
                            here[node] = lp
                finally:
                    self._close(following)
                    following = here
            # The measure of the first openings follows those of the stages.
            root = len(self.graph.stage_start) - 1
            value = self._outcome(root, initial_state, following, [(0, 1.0)])
            if math.isinf(value) and self.reason is None:
                self.reason = (
                    f"the LP of stage {self.templates[0].stage_id} has no solution at the initial state"
                )
            return value
        finally:
            self._close(following)

    def _node_lp(
        self,
        stage: int,
        node: int,
        visited: VisitedStates,
        initial_state: FloatArray,
        most: int,
        following: dict[int, InnerLp],
    ) -> InnerLp | None:
        """Bound the future cost of a node at its vertices; return its LP, if any value is finite."""
        template, graph = self.templates[node], self.graph
        first, last = graph.successor_start[node], graph.successor_start[node + 1]
        edges = [(int(graph.successor[e]), float(graph.probability[e])) for e in range(first, last)]
        if not edges:
            return last_lp(template, self.boundary)
        up, down = self.prices.up[node], self.prices.down[node]
        vertices = vertices_of(template, visited.of_node(stage, node), initial_state, up, down, most)
        for after, _ in edges:
            if after in following:
                following[after].prepare(vertices)
        values = self._shared(vertices, lambda state: self._outcome(stage, state, following, edges))
        self.vertices[node], self.values[node] = vertices, values
        finite = np.isfinite(values)
        if not finite.any():
            self.reason = self.reason or self._no_vertex(node)
            return None
        return inner_lp(template, vertices[finite], values[finite], up, down)

    def _outcome(
        self, stage: int, state: FloatArray, following: dict[int, InnerLp], edges: list[tuple[int, float]]
    ) -> float:
        """Return the risk-adjusted value of all openings of all nodes that may follow."""
        outcomes, probability = [], []
        for after, likely in edges:
            if after not in following:
                return math.inf
            values = following[after].values(state)
            if np.isinf(values).any():
                return math.inf
            outcomes.append(values)
            probability.append(np.full(len(values), likely / len(values)))
        return self.risk(stage, np.concatenate(outcomes), np.concatenate(probability))

    def _shared(self, vertices: FloatArray, value: Callable[[FloatArray], float]) -> FloatArray:
        """Return the value of every vertex, each computed by one rank."""
        if self.comm is None or self.comm.size == 1:
            return np.array([value(vertex) for vertex in vertices])
        size = self.comm.size
        blocks = [block_of(len(vertices), size, rank) for rank in range(size)]
        first, last = blocks[self.comm.rank]
        own = np.array([value(vertex) for vertex in vertices[first:last]])
        values = np.empty(len(vertices))
        self.comm.allgatherv(own, values, [b - a for a, b in blocks], [a for a, _ in blocks])
        return values

    def _no_vertex(self, node: int) -> str:
        template = self.templates[node]
        names = [template.col_names[column] for column in template.state_col]
        missing = [
            f"{word} {name}"
            for word, prices in (("more", self.prices.up), ("less", self.prices.down))
            for name, price in zip(names, prices[node], strict=True)
            if math.isinf(price)
        ]
        shown = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        return f"the LPs after stage {template.stage_id} have no solution at any state tried" + (
            f"; nothing absorbs {shown} there" if missing else ""
        )

    def _close(self, lps: dict[int, InnerLp]) -> None:
        for lp in lps.values():
            self.lp_solves += lp.lp_solves
            lp.close()
