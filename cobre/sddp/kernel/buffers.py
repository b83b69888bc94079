"""The arrays of one iteration: what a rank computes, what it receives, and what Python reads back."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.lp.arrays import CUT_SLOPES, F64_1D, F64_2D, F64_3D, I64_1D, I64_2D, LpArrays
from cobre.lp.cost_components import component_names
from cobre.lp.state import StateLayout
from cobre.native import array_struct, inner_kernel
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.ranks.partition import block_of

# Words of the record of a forward pass: its cost, the cost of each stage, the outgoing states by
# (stage, component).
PASS_COST = 0
PASS_STAGE_COSTS = 1

# Columns of IterationBuffers.failure.
FAILED_STATUS = 0
FAILED_NODE = 1
FAILED_OPENING = 2
FAILED_PHASE = 3
FAILURE_FIELDS = 4

# Typed, because Numba compiles a function anew for each literal integer it is called with.
PHASE_FORWARD = np.int64(0)
PHASE_BACKWARD = np.int64(1)
PHASE_LOWER_BOUND = np.int64(2)
PHASES_WITH_LPS = 3  # those above
PHASE_JUDGE = np.int64(3)
PHASE_INSERT = np.int64(4)

# Positions in IterationBuffers.outcome.
LOWER_BOUND = 0
UPPER_BOUND = 1
UPPER_BOUND_STD = 2
OUTCOME_FIELDS = 3

LP_COUNTS = 9
"""Columns of IterationBuffers.lp_counts; see :mod:`cobre.sddp.kernel.counts`."""

I64_3D = Annotated[NDArray[np.int64], types.int64[:, :, ::1]]

# Positions in IterationBuffers.elapsed_ns.
FORWARD_NS = 0
BACKWARD_NS = 1
LOWER_BOUND_NS = 2
COMMUNICATION_NS = 3
TIMERS = 4


class IterationBuffers(NamedTuple):
    """Buffers of one rank; M forward passes in all, m of them its own, n components, T stages.

    Attributes
    ----------
    initial_state
        float64[n].
    pass_own, pass_all
        Records of forward passes, float64[m, 1 + T + T n] and float64[M, 1 + T + T n]: discounted cost in $,
        NaN where the pass failed; cost of each stage, not discounted; outgoing states.
    discount_own
        Factor on the cost of the stage that own passes are at, float64[m].
    component_cost_own, payer_cost_own
        Discounted cost of own passes by stage and cost component, and by payer
        (:mod:`cobre.lp.cost_components`), float64[m, T, K] and float64[m, P].
    cut_own, cut_all
        Cut records of the stage at hand (:mod:`cobre.lp.arrays`) in the order of passes that make one: of own
        passes, and of all where they cannot be gathered straight into the pool (else without rows).
    cut_row
        int64[M]: place of the pass's record among those of the stage at hand.
    node_all, opening_all
        Node and opening of every pass at every stage, int64[M, T]; the same on all ranks.
    noise_own, start_own
        What own passes draw: values of the random entities, float64[m, T, E], and the state they start from,
        float64[m, n].
    tree_row, memory_place, memory, drawn
        First row of each node in the opening tree, components of past inflow by (hydro, lane), and scratch.
    value, cut_value, slope, probability, weight, order
        Outcomes of one trial point by (worker, outcome): optimal value, value and slope of its cut,
        probability, weight under the risk measure, and scratch to sort them.
    model_all
        int64[M]: the pass itself where it is made in this iteration, else one that is made, before it; all
        that is known of a pass that is not made is a copy of that one.
    leader_all, leader_table
        First pass with the same trial point, int64[M, T], and scratch to find it.
    failure
        What went wrong, by own pass (``FAILED_*`` columns; status 0 = nothing).
    next_pass
        Shared counter from which workers take their next pass.
    pass_count, pass_start
        Passes of each rank, and the first of them.
    gather_count, gather_start
        Scratch for the counts of one gather, in elements.
    lp_counts
        How much work LPs were, int64[workers, phases * T, LP_COUNTS]; stages in the order of phases.
    outcome, elapsed_ns
        Results for Python; rank 0 alone has the lower bound.
    """

    initial_state: F64_1D
    pass_own: F64_2D
    pass_all: F64_2D
    discount_own: F64_1D
    component_cost_own: F64_3D
    payer_cost_own: F64_2D
    cut_own: F64_2D
    cut_all: F64_2D
    cut_row: I64_1D
    node_all: I64_2D
    opening_all: I64_2D
    noise_own: F64_3D
    start_own: F64_2D
    tree_row: I64_1D
    memory_place: I64_2D
    memory: F64_2D
    drawn: F64_1D
    model_all: I64_1D
    leader_all: I64_2D
    leader_table: I64_1D
    value: F64_2D
    cut_value: F64_2D
    slope: F64_3D
    probability: F64_2D
    weight: F64_2D
    order: I64_2D
    failure: I64_2D
    next_pass: I64_1D
    pass_count: I64_1D
    pass_start: I64_1D
    gather_count: I64_1D
    gather_start: I64_1D
    lp_counts: I64_3D
    outcome: F64_1D
    elapsed_ns: I64_1D

    @property
    def stage_cost_all(self) -> NDArray[np.float64]:
        """Cost of each stage by (pass, stage), not discounted, $, a view."""
        return self.pass_all[:, PASS_STAGE_COSTS : PASS_STAGE_COSTS + self.node_all.shape[1]]

    @property
    def state_all(self) -> NDArray[np.float64]:
        """Outgoing states of all passes by (pass, stage, component), a view."""
        return self._states(self.pass_all)

    @property
    def state_own(self) -> NDArray[np.float64]:
        """Outgoing states of own passes by (pass, stage, component), a view."""
        return self._states(self.pass_own)

    def _states(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        stages, components = self.node_all.shape[1], len(self.initial_state)
        return records[:, PASS_STAGE_COSTS + stages :].reshape(len(records), stages, components)


BuffersStruct = array_struct(IterationBuffers)


@inner_kernel
def outgoing_of(records, stages, components, forward_pass, stage):  # type: ignore[no-untyped-def]
    """Outgoing state of a pass at a stage, a view of its record."""
    first = PASS_STAGE_COSTS + stages + stage * components
    return records[forward_pass, first : first + components]


def iteration_buffers(
    arrays: LpArrays,
    graph: GraphArrays,
    layout: StateLayout,
    passes: int,
    rank: int,
    size: int,
    workers: int,
) -> IterationBuffers:
    """Allocate the buffers of ``rank`` among ``size`` ranks with ``workers`` threads each."""
    stages, states = len(graph.stage_start) - 1, arrays.state_col.shape[1]
    start, stop = block_of(passes, size, rank)
    own = stop - start
    blocks = [block_of(passes, size, other) for other in range(size)]
    outcomes = _most_outcomes(arrays, graph)
    entities = arrays.noise_start.shape[1] - 1
    cut_words, pass_words = CUT_SLOPES + states, PASS_STAGE_COSTS + stages * (1 + states)
    one_node_each = len(graph.node_stage) == stages
    return IterationBuffers(
        initial_state=np.ascontiguousarray(layout.initial, np.float64),
        pass_own=np.zeros((own, pass_words)),
        pass_all=np.zeros((passes, pass_words)),
        discount_own=np.ones(own),
        component_cost_own=np.zeros((own, stages, len(component_names()))),
        payer_cost_own=np.zeros((own, int(arrays.cost_payer.max(initial=-1)) + 1)),
        cut_own=np.zeros((own, cut_words)),
        cut_all=np.zeros((0 if one_node_each else passes, cut_words)),
        cut_row=np.zeros(passes, np.int64),
        node_all=np.zeros((passes, stages), np.int64),
        opening_all=np.zeros((passes, stages), np.int64),
        noise_own=np.zeros((own, stages, entities)),
        start_own=np.zeros((own, states)),
        tree_row=np.concatenate([[0], np.cumsum(arrays.num_openings)])[:-1].astype(np.int64),
        memory_place=np.ascontiguousarray(layout.memory_place, np.int64),
        memory=np.zeros(layout.memory_place.shape),
        # Room for noise by entity in front of the independent numbers, of which there are no more.
        drawn=np.zeros(2 * entities),
        model_all=np.arange(passes, dtype=np.int64),
        leader_all=np.repeat(np.arange(passes, dtype=np.int64)[:, None], stages, axis=1),
        # A power of two, at least half of which stays empty.
        leader_table=np.zeros(1 << (2 * passes - 1).bit_length(), np.int64),
        value=np.zeros((workers, outcomes)),
        cut_value=np.zeros((workers, outcomes)),
        slope=np.zeros((workers, outcomes, states)),
        probability=np.zeros((workers, outcomes)),
        weight=np.zeros((workers, outcomes)),
        order=np.zeros((workers, outcomes), np.int64),
        failure=np.zeros((own, FAILURE_FIELDS), np.int64),
        next_pass=np.zeros(1, np.int64),
        pass_count=np.array([last - first for first, last in blocks], np.int64),
        pass_start=np.array([first for first, _ in blocks], np.int64),
        gather_count=np.zeros(size, np.int64),
        gather_start=np.zeros(size, np.int64),
        lp_counts=np.zeros((workers, PHASES_WITH_LPS * stages, LP_COUNTS), np.int64),
        outcome=np.zeros(OUTCOME_FIELDS),
        elapsed_ns=np.zeros(TIMERS, np.int64),
    )


def _most_outcomes(arrays: LpArrays, graph: GraphArrays) -> int:
    """Return the most openings that a trial point is judged by."""
    after = [
        int(arrays.num_openings[graph.successor[first:last]].sum())
        for first, last in zip(graph.successor_start[:-1], graph.successor_start[1:], strict=True)
    ]
    return max(*after, int(arrays.num_openings[0]))
