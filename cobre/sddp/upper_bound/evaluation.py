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
from cobre.native import compile_for
from cobre.policy.boundary import BoundaryCuts
from cobre.policy.visited import VisitedStates
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.kernel.risk import weigh_outcomes
from cobre.sddp.upper_bound.known_values import KnownValues
from cobre.sddp.upper_bound.node_lp import NodeLp, NodeLps
from cobre.sddp.upper_bound.prices import state_prices
from cobre.sddp.upper_bound.vertices import (
    MOST_VERTICES,
    chosen_states,
    distinct,
    fixed_vertices,
    vertices_of,
)

FloatArray = NDArray[np.float64]

RiskValue = Callable[[int, FloatArray, FloatArray], FloatArray]
"""Risk-adjusted value of each row of outcomes ($), float64[V, outcomes], all with the same probabilities,
under the measure of a stage (position; the number of stages denotes the openings of the first one).

Must be monotone, convex and translation equivariant; every coherent measure and the entropic one are.
"""

_NAMED = 5


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
    lp_solves, lp_fallbacks, seconds
        LPs solved by this rank, how many of these by HiGHS because the own engine found no optimum, and time.
    """

    value: float
    vertices: tuple[FloatArray, ...] = field(repr=False)
    vertex_values: tuple[FloatArray, ...] = field(repr=False)
    lp_solves: int
    seconds: float
    reason_unavailable: str | None = None
    assumptions: tuple[str, ...] = ()
    lp_fallbacks: int = 0


@njit(cache=True, nogil=True)
def _measured(graph, stage, values, probability, results):  # type: ignore[no-untyped-def]
    order, weights = np.zeros(values.shape[1], np.int64), np.zeros(values.shape[1])
    for place in range(len(values)):
        outcomes = values[place]
        penalty = weigh_outcomes(graph, stage, outcomes, probability, len(outcomes), order, weights)
        total = -penalty
        for outcome in range(len(outcomes)):
            total += weights[outcome] * outcomes[outcome]
        results[place] = total


def study_risk(graph: GraphArrays) -> RiskValue:
    """Return the risk measures of a study, by stage and, behind them, of the openings of the first stage."""

    def values(stage: int, outcomes: FloatArray, probability: FloatArray) -> FloatArray:
        results = np.zeros(len(outcomes))
        arguments = graph, stage, outcomes, probability, results
        compile_for(_measured, "upper-bound-risk", *arguments)
        _measured(*arguments)
        return results

    return values


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
    lps: NodeLps | None = None,
    most_vertices: int = MOST_VERTICES,
    known: KnownValues | None = None,
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
    lps
        The LPs of nodes with prices, boundary cuts and ranks, kept from one evaluation to the next; made
        anew unless given.
    most_vertices
        Most visited states by node; without effect with ``known``.
    known
        Vertices of earlier evaluations with their values, which this one adds to. It bounds the cost at some
        of the states that are new since then; without, at states chosen from all.
    comm
        Ranks among which the LPs are shared; all return the same bits. All must call.
    """
    began = time.perf_counter()
    obstacle = not_convex(templates)
    if obstacle is not None:
        return UpperBoundResult(math.inf, (), (), 0, time.perf_counter() - began, obstacle)
    if lps is None:
        lps = NodeLps(boundary, state_prices(templates, graph, boundary), comm)
    recursion = _Recursion(templates, graph, study_risk(graph) if risk is None else risk, lps, known)
    value = recursion.run(visited, initial_state, most_vertices)
    return UpperBoundResult(
        value=value,
        vertices=tuple(recursion.vertices),
        vertex_values=tuple(recursion.values),
        lp_solves=recursion.lp_solves,
        lp_fallbacks=recursion.lp_fallbacks,
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
        lps: NodeLps,
        known: KnownValues | None,
    ) -> None:
        self.templates, self.graph, self.risk, self.lps = templates, graph, risk, lps
        self.known = known
        nothing = np.zeros((0, templates[0].num_states))
        self.vertices = [nothing] * len(templates)
        self.values = [np.zeros(0)] * len(templates)
        self.lp_solves = 0
        self.lp_fallbacks = 0
        self.reason: str | None = None

    def run(self, visited: VisitedStates, initial_state: FloatArray, most: int) -> float:
        """Go from the last stage to the first; return the bound."""
        following: dict[int, NodeLp] = {}
        try:
            for stage in reversed(range(len(self.graph.stage_start) - 1)):
                here: dict[int, NodeLp] = {}
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
            value = float(self._outcomes(root, initial_state[None], following, [(0, 1.0)])[0])
            if math.isinf(value) and self.reason is None:
                self.reason = (
                    f"the LP of stage {self.templates[0].stage_id} has no solution at the initial state if "
                    "it may leave only what lies between visited states"
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
        following: dict[int, NodeLp],
    ) -> NodeLp | None:
        """Bound the future cost of a node at its vertices; return its LPs, if any value is finite."""
        template, graph = self.templates[node], self.graph
        first, last = graph.successor_start[node], graph.successor_start[node + 1]
        edges = [(int(graph.successor[e]), float(graph.probability[e])) for e in range(first, last)]
        if not edges:
            return self.lps.last(node, template)
        vertices, values = self._bounded(stage, node, visited, initial_state, most, following, edges)
        self.vertices[node], self.values[node] = vertices, values
        finite = np.isfinite(values)
        if not finite.any():
            self.reason = self.reason or self._no_vertex(node)
            return None
        return self.lps.inner(node, template, vertices[finite], values[finite])

    def _bounded(
        self,
        stage: int,
        node: int,
        visited: VisitedStates,
        initial_state: FloatArray,
        most: int,
        following: dict[int, NodeLp],
        edges: list[tuple[int, float]],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the vertices of a node, and bounds of the future cost there."""
        seen, known = visited.of_node(stage, node), self.known
        template, up, down = self.templates[node], self.lps.prices.up[node], self.lps.prices.down[node]
        if known is None:
            vertices = vertices_of(template, seen, initial_state, up, down, most)
            return vertices, self._outcomes(stage, vertices, following, edges)
        new, count, again = known.candidates(node, seen)
        fixed = fixed_vertices(template, seen, initial_state, up, down)
        vertices = distinct(np.vstack([fixed, chosen_states(new, count), again]))
        values = self._outcomes(stage, vertices, following, edges)
        return known.keep(node, len(seen), vertices, values, len(fixed))

    def _outcomes(
        self, stage: int, states: FloatArray, following: dict[int, NodeLp], edges: list[tuple[int, float]]
    ) -> FloatArray:
        """Return the risk-adjusted value at each state over all openings of all nodes that may follow."""
        values = np.full(len(states), np.inf)
        if any(after not in following for after, _ in edges):
            return values
        states = np.ascontiguousarray(states)
        parts = [following[after].values(states) for after, _ in edges]
        probability = np.concatenate(
            [
                np.full(part.shape[1], likely / part.shape[1])
                for part, (_, likely) in zip(parts, edges, strict=True)
            ]
        )
        outcomes = np.concatenate(parts, axis=1)
        finite = np.isfinite(outcomes).all(axis=1)
        if finite.any():
            values[finite] = self.risk(stage, outcomes[finite], probability)
        return values

    def _no_vertex(self, node: int) -> str:
        template = self.templates[node]
        names = [template.col_names[column] for column in template.state_col]
        missing = [
            f"{word} {name}"
            for word, prices in (("more", self.lps.prices.up), ("less", self.lps.prices.down))
            for name, price in zip(names, prices[node], strict=True)
            if math.isinf(price)
        ]
        shown = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        return f"the LPs after stage {template.stage_id} have no solution at any state tried" + (
            f"; nothing absorbs {shown} there" if missing else ""
        )

    def _close(self, lps: dict[int, NodeLp]) -> None:
        for lp in lps.values():
            self.lp_solves += lp.lp_solves
            self.lp_fallbacks += lp.lp_fallbacks
            lp.close()
