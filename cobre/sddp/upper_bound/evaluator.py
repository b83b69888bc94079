"""When training evaluates its deterministic upper bound, and the least one so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import UpperBoundOptions
from cobre.comm import Communicator
from cobre.lp import StageTemplate
from cobre.policy.boundary import BoundaryCuts
from cobre.policy.visited import VisitedStates
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.upper_bound.evaluation import RiskValue, UpperBoundResult, upper_bound
from cobre.sddp.upper_bound.known_values import KnownValues
from cobre.sddp.upper_bound.node_lp import NodeLps
from cobre.sddp.upper_bound.prices import StatePrices, state_prices
from cobre.sddp.upper_bound.vertices import MOST_VERTICES


class UpperBoundEvaluator:
    """The deterministic bound of one training run; all ranks call the same methods at the same time.

    Parameters
    ----------
    templates
        The LP of every node, scaled or not.
    visited
        The states so far, which training goes on to add to.
    boundary
        Cuts that value the final state.
    risk
        Risk measures; those of ``graph`` unless given.
    threads
        Threads of this rank that solve LPs; no bit depends on their number.

    Attributes
    ----------
    known
        What the next evaluation goes on from; checkpoints hold it.
    """

    def __init__(
        self,
        options: UpperBoundOptions,
        templates: Sequence[StageTemplate],
        graph: GraphArrays,
        visited: VisitedStates,
        initial_state: NDArray[np.float64],
        boundary: BoundaryCuts | None = None,
        comm: Communicator | None = None,
        risk: RiskValue | None = None,
        threads: int = 1,
    ) -> None:
        self.options, self.templates, self.graph = options, templates, graph
        self.visited, self.initial_state = visited, initial_state
        self.boundary, self.comm, self.risk, self.threads = boundary, comm, risk, threads
        self.best: UpperBoundResult | None = None
        self.most_vertices = MOST_VERTICES
        fallback = options.fallback_price
        self.known = KnownValues(
            len(templates),
            templates[0].num_states,
            (options.price_factor, -1.0 if fallback is None else fallback),
        )
        self._evaluated = 0
        self._lps: NodeLps | None = None
        self._assumptions: tuple[str, ...] = ()

    def remember(self, bounds: Sequence[float | None]) -> None:
        """Take over the bounds of the iterations that a resumed run has behind it."""
        known = [bound for bound in bounds if bound is not None]
        if known:
            self.best = UpperBoundResult(min(known), (), (), 0, 0.0)

    def after(self, iteration: int) -> float | None:
        """Evaluate if it is the turn of ``iteration`` (from 1), and return the least bound so far."""
        options = self.options
        since = iteration - options.initial_iteration
        if options.interval_iterations is None or since < 0 or since % options.interval_iterations:
            return None
        return self._evaluate(iteration).value

    def finish(self, iteration: int) -> UpperBoundResult:
        """Return the least bound, evaluated after the last ``iteration``, too."""
        if self.best is not None and self._evaluated == iteration:
            return self.best
        return self._evaluate(iteration)

    def _evaluate(self, iteration: int) -> UpperBoundResult:
        result = upper_bound(
            self.templates,
            self.graph,
            self.visited,
            self.initial_state,
            self.risk,
            lps=self._all_lps(),
            most_vertices=self.most_vertices,
            # A bound that nobody asked for is evaluated once, with the vertices that it is allowed.
            known=self.known if self.options.enabled else None,
            assumptions=self._assumptions,
        )
        self._evaluated = iteration
        if self.best is None or result.value < self.best.value:
            self.best = result
        return self.best

    def _all_lps(self) -> NodeLps:
        """Return the LPs with their prices, which do not change during training."""
        if self._lps is None:
            self._lps = NodeLps(self.boundary, self._prices(), self.comm, self.threads)
        return self._lps

    def _prices(self) -> StatePrices:
        prices = state_prices(self.templates, self.graph, self.boundary).scaled(self.options.price_factor)
        fallback = self.options.fallback_price
        if fallback is not None and not prices.complete:
            prices = prices.filled(fallback)
            self._assumptions = (
                f"that one unit more or less of a state component costs at most {fallback:g} $ where the "
                "stage LPs give no price",
            )
        return prices
