"""The arrays of one iteration: what a rank computes, what it receives, and what Python reads back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cobre.lp.arrays import F64_1D, F64_2D, F64_3D, I64_1D, I64_2D, LpArrays
from cobre.lp.cost_components import component_names
from cobre.lp.state import StateLayout
from cobre.native import array_struct
from cobre.sddp.graph import GraphArrays
from cobre.sddp.partition import block_of

# A cut record is 24 + 8n bytes, kept as float64 words so that every field is aligned (TRN-04):
# u32 slot, u32 iteration | u32 forward pass, u32 zero | f64 intercept | f64 slopes.
RECORD_HEADER_WORDS = 3
RECORD_INTERCEPT = 2

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

# Positions in IterationBuffers.outcome.
LOWER_BOUND = 0
UPPER_BOUND = 1
UPPER_BOUND_STD = 2
OUTCOME_FIELDS = 3

# Positions in IterationBuffers.elapsed_ns.
FORWARD_NS = 0
BACKWARD_NS = 1
LOWER_BOUND_NS = 2
COMMUNICATION_NS = 3
TIMERS = 4


class IterationBuffers(NamedTuple):
    """Buffers of one rank; M forward passes in all, m of them its own, n states, T stages.

    Attributes
    ----------
    initial_state
        float64[n].
    state_own, state_all
        Outgoing states by (stage, pass), float64[T, m, n] and float64[T, M, n].
    cost_own, cost_all
        Discounted cost of each trajectory in $; NaN marks a pass that failed.
    stage_cost_own, stage_cost_all
        Cost of each stage in it, not discounted, float64[m, T] and float64[M, T]; without rows unless needed.
    component_cost_own, payer_cost_own
        Discounted cost of own passes by stage and component, and by payer (:mod:`cobre.lp.cost_components`),
        float64[m, T, K] and float64[m, P].
    cut_own, cut_all
        Cut records of the stage at hand.
    node_all, opening_all
        Node and opening of every pass at every stage, int64[T, M]; all ranks know them all.
    noise_own, start_own
        What own passes meet: values of the random entities, float64[T, m, E], and the state they start from,
        float64[m, n].
    tree_row, memory_place, memory, drawn
        First row of each node in the opening tree, components of past inflow by (hydro, lane), and scratch.
    value, cut_value, slope, probability, weight, order
        Outcomes of one trial point by (worker, outcome): optimal value, value and slope of its cut,
        probability, weight under the risk measure, and scratch to sort them.
    leader_all, leader_table
        First pass with the same trial point, int64[T, M], and scratch to find it.
    failure
        What went wrong, by own pass (``FAILED_*`` columns; status 0 = nothing).
    next_pass
        Shared counter from which workers take their next pass.
    pass_count, pass_start
        Passes of each rank, and the first of them.
    gather_count, gather_start
        Scratch for the counts of one gather, in elements.
    outcome, elapsed_ns
        Results for Python.
    """

    initial_state: F64_1D
    state_own: F64_3D
    state_all: F64_3D
    cost_own: F64_1D
    cost_all: F64_1D
    stage_cost_own: F64_2D
    stage_cost_all: F64_2D
    component_cost_own: F64_3D
    payer_cost_own: F64_2D
    cut_own: F64_2D
    cut_all: F64_2D
    node_all: I64_2D
    opening_all: I64_2D
    noise_own: F64_3D
    start_own: F64_2D
    tree_row: I64_1D
    memory_place: I64_2D
    memory: F64_2D
    drawn: F64_1D
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
    outcome: F64_1D
    elapsed_ns: I64_1D


BuffersStruct = array_struct(IterationBuffers)


def iteration_buffers(
    arrays: LpArrays,
    graph: GraphArrays,
    layout: StateLayout,
    passes: int,
    rank: int,
    size: int,
    workers: int,
    stage_costs: bool = False,
) -> IterationBuffers:
    """Allocate the buffers of ``rank`` among ``size`` ranks with ``workers`` threads each.

    Parameters
    ----------
    stage_costs
        Whether the costs of single stages are kept and gathered.
    """
    stages, states = len(graph.stage_start) - 1, arrays.state_col.shape[1]
    start, stop = block_of(passes, size, rank)
    own = stop - start
    blocks = [block_of(passes, size, other) for other in range(size)]
    outcomes = _most_outcomes(arrays, graph)
    entities = arrays.noise_start.shape[1] - 1
    record = states + RECORD_HEADER_WORDS
    return IterationBuffers(
        initial_state=np.ascontiguousarray(layout.initial, np.float64),
        state_own=np.zeros((stages, own, states)),
        state_all=np.zeros((stages, passes, states)),
        cost_own=np.zeros(own),
        cost_all=np.zeros(passes),
        stage_cost_own=np.zeros((own if stage_costs else 0, stages)),
        stage_cost_all=np.zeros((passes if stage_costs else 0, stages)),
        component_cost_own=np.zeros((own, stages, len(component_names()))),
        payer_cost_own=np.zeros((own, int(arrays.cost_payer.max(initial=-1)) + 1)),
        cut_own=np.zeros((own, record)),
        cut_all=np.zeros((passes, record)),
        node_all=np.zeros((stages, passes), np.int64),
        opening_all=np.zeros((stages, passes), np.int64),
        noise_own=np.zeros((stages, own, entities)),
        start_own=np.zeros((own, states)),
        tree_row=np.concatenate([[0], np.cumsum(arrays.num_openings)])[:-1].astype(np.int64),
        memory_place=np.ascontiguousarray(layout.memory_place, np.int64),
        memory=np.zeros(layout.memory_place.shape),
        # Room for noise by entity in front of the independent numbers, of which there are no more.
        drawn=np.zeros(2 * entities),
        leader_all=np.tile(np.arange(passes, dtype=np.int64), (stages, 1)),
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
