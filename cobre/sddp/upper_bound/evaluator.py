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
from cobre.sddp.upper_bound.prices import StatePrices, state_prices


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
    ) -> None:
        self.options, self.templates, self.graph = options, templates, graph
        self.visited, self.initial_state = visited, initial_state
        self.boundary, self.comm, self.risk = boundary, comm, risk
        self.best: UpperBoundResult | None = None
        self._evaluated = 0
        self._prices: StatePrices | None = None
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
            boundary=self.boundary,
            prices=self._all_prices(),
            assumptions=self._assumptions,
            comm=self.comm,
        )
        self._evaluated = iteration
        if self.best is None or result.value < self.best.value:
            self.best = result
        return self.best

    def _all_prices(self) -> StatePrices:
        """Return the prices, which do not change during training."""
        if self._prices is not None:
            return self._prices
        prices = state_prices(self.templates, self.graph, self.boundary).scaled(self.options.price_factor)
        fallback = self.options.fallback_price
        if fallback is not None and not prices.complete:
            prices = prices.filled(fallback)
            self._assumptions = (
                f"that one unit more or less of a state component costs at most {fallback:g} $ where the "
                "stage LPs give no price",
            )
        self._prices = prices
        return prices
