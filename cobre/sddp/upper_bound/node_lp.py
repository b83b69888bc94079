"""The LPs of a node at all states that a node before it may leave: by the own engine, and by HiGHS.

HiGHS solves what the engine gives up on, confirms that LPs have no solution, and does the whole work of a
node where the engine gives up on the first LP already.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.lp import StageTemplate
from cobre.lp.engines.own.core import OPTIMAL
from cobre.policy.boundary import BoundaryCuts
from cobre.sddp.ranks.partition import block_of
from cobre.sddp.upper_bound.inner_lp import InnerLp, inner_lp, last_lp
from cobre.sddp.upper_bound.linked_core import InnerCore, LinkedCore, last_core, stateless_core
from cobre.sddp.upper_bound.prices import StatePrices
from cobre.sddp.upper_bound.solving import Solver, Tasks
from cobre.sddp.upper_bound.state_order import StateOrder, state_order

FloatArray = NDArray[np.float64]


class NodeLp:
    """The LPs of one node, all openings of it. Close it after use.

    Parameters
    ----------
    core
        What the engine solves.
    reference
        Makes the same LP for HiGHS.

    Attributes
    ----------
    lp_solves, lp_fallbacks
        LPs solved by this rank, and how many of these by HiGHS after the engine found no optimum.
    """

    def __init__(
        self,
        template: StageTemplate,
        core: InnerCore,
        reference: Callable[[], InnerLp],
        solver: Solver,
        comm: Communicator | None,
    ) -> None:
        # Repeated openings (e.g. given with weights) are solved once.
        self._openings, place = np.unique(template.opening_values, axis=0, return_inverse=True)
        self._place = place.ravel()
        self._core, self._make_reference, self._solver, self._comm = core, reference, solver, comm
        self._references: list[InnerLp] = []
        self._solves = 0
        self.lp_fallbacks = 0

    @property
    def lp_solves(self) -> int:
        """LPs solved so far."""
        return self._solves + sum(lp.lp_solves for lp in self._references)

    def values(self, states: FloatArray) -> FloatArray:
        """Return the optimal value ($) by (state, opening), ``inf`` without solution. All ranks must call.

        A state with an opening without solution may have ``inf`` for others, too.
        """
        order = state_order(states * self._core.state_weight)
        if self._solver.prepare(self._core, self._openings, states, order):
            return self._by_engine(states, order)[:, self._place]
        return self._by_highs(states)[:, self._place]

    def _by_engine(self, states: FloatArray, order: StateOrder) -> FloatArray:
        count, blocks = len(states), len(order.start) - 1
        openings = len(self._openings)

        def place(task: int) -> int:
            return task // blocks * count + int(order.start[task % blocks])

        def own(rank: int, size: int) -> tuple[Tasks, int, int]:
            tasks = Tasks(*block_of(openings * blocks, size, rank))
            return tasks, place(tasks.first), place(tasks.last)

        rank, size = (0, 1) if self._comm is None else (self._comm.rank, self._comm.size)
        tasks, first, last = own(rank, size)
        status, value = self._solver.solve(self._core, self._openings, states, order, tasks)
        self._solves += 1 + last - first
        self._mend(states, order, status, value, first, last)
        if self._comm is not None and size > 1:
            ends = [own(other, size)[1:] for other in range(size)]
            mine, flat = value.ravel()[first:last].copy(), value.ravel()
            self._comm.allgatherv(mine, flat, [b - a for a, b in ends], [a for a, _ in ends])
        result = np.empty((count, openings))
        result[order.order] = value.T
        return result

    def _mend(
        self,
        states: FloatArray,
        order: StateOrder,
        status: NDArray[np.int8],
        value: FloatArray,
        first: int,
        last: int,
    ) -> None:
        """Have HiGHS solve what the engine found no optimum of, in a part of the flat results."""
        count = len(states)
        part = first + np.flatnonzero(status.ravel()[first:last] != OPTIMAL)
        for position in np.unique(part % count):
            openings = part[part % count == position] // count
            (lp,) = self._prepared(states, 1)
            value[openings, position] = lp.values(self._openings[openings], states[order.order[position]])
            self.lp_fallbacks += len(openings)

    def _by_highs(self, states: FloatArray) -> FloatArray:
        threads = self._solver.threads
        lps = self._prepared(states, threads)
        result = np.empty((len(states), len(self._openings)))
        rank, size = (0, 1) if self._comm is None else (self._comm.rank, self._comm.size)
        blocks = [block_of(len(states), size, other) for other in range(size)]
        first, last = blocks[rank]

        def run(thread: int) -> None:
            for place in range(first + thread, last, threads):
                result[place] = lps[thread].values(self._openings, states[place])

        self._solver.on_threads(run)
        if self._comm is not None and size > 1:
            width = result.shape[1]
            self._comm.allgatherv(
                result[first:last].ravel(),
                result.ravel(),
                [width * (b - a) for a, b in blocks],
                [width * a for a, _ in blocks],
            )
        return result

    def _prepared(self, states: FloatArray, count: int) -> list[InnerLp]:
        """Return LPs for HiGHS, with a start that follows from the states alone."""
        while len(self._references) < count:
            self._references.append(self._make_reference())
        if self._references[0].prepared_for is not states:
            self._references[0].prepare(self._openings[0], states)
        for other in self._references[1:]:
            other.start_like(self._references[0])
        return self._references[:count]

    def close(self) -> None:
        """Free the solver's memory."""
        for lp in self._references:
            lp.close()


class NodeLps:
    """Makes the LPs of nodes; what does not change between evaluations is made once.

    Parameters
    ----------
    boundary
        Cuts of the nodes of the last stage.
    prices
        Prices of moving outgoing states.
    threads
        Threads of this rank that solve.
    """

    def __init__(
        self,
        boundary: BoundaryCuts | None,
        prices: StatePrices,
        comm: Communicator | None,
        threads: int = 1,
    ) -> None:
        self.boundary, self.prices = boundary, prices
        self._comm, self._solver = comm, Solver(threads)
        self._linked: dict[int, LinkedCore] = {}
        self._last: dict[int, InnerCore] = {}

    def inner(self, node: int, template: StageTemplate, vertices: FloatArray, values: FloatArray) -> NodeLp:
        """Return the LPs of a node whose future cost at ``vertices`` is at most ``values`` ($, finite)."""
        up, down = self.prices.up[node], self.prices.down[node]
        if template.num_states == 0:
            core = stateless_core(template, float(values.min()))
        else:
            if node not in self._linked:
                self._linked[node] = LinkedCore(template, up, down)
            core = self._linked[node].at(vertices, values)
        return NodeLp(
            template, core, lambda: inner_lp(template, vertices, values, up, down), self._solver, self._comm
        )

    def last(self, node: int, template: StageTemplate) -> NodeLp:
        """Return the LPs of a node of the last stage."""
        if node not in self._last:
            self._last[node] = last_core(template, self.boundary)
        return NodeLp(
            template,
            self._last[node],
            lambda: last_lp(template, self.boundary),
            self._solver,
            self._comm,
        )
