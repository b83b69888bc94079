"""Forward and backward passes of one rank, spread over its threads, in nopython.

Forward, for pass m and stages t in order, with node and opening w_t of (iteration, m, t):

    x_t = outgoing state of the node's LP at (x_{t-1}, w_t),   cost_m = sum_t D_t (objective_t - d_t theta_t)

with d_t the one-step discount and D_t = d_0 ... d_{t-1}; in the last stage theta_t, the value that a boundary
policy gives to the final state, stays in the cost. Backward, for a trial point x at a node and all
openings w of all nodes that may follow it, with optimal values Q_w (as :mod:`cobre.lp.dual_bound` bounds them
from below) and slopes pi_w at x and the weights mu_w of the risk measure:

    cut of the node:   theta >= alpha + pi . x',   pi = sum mu_w pi_w,   alpha = sum mu_w (Q_w - pi_w . x)

(minus the penalty of the measure, where it has one).

Both go stage by stage: a rank solves all its passes at a stage before the next, so that a worker has only the
LPs of one stage loaded. A worker is a thread of a ``prange`` with an LP workspace of its own. Workers take
passes from a shared counter; what they compute depends on the pass alone, and sums run over openings in
order, so neither the number of threads nor their timing changes a bit of the result.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.arrays import CUT_INTERCEPT, CUT_SLOPES
from cobre.lp.engine import OK, future_cost, objective, outgoing_state, split_cost
from cobre.lp.engines.dispatch import solve_one, solve_openings
from cobre.native import atomic_fetch_add, inner_kernel
from cobre.sddp.kernel.buffers import (
    FAILED_NODE,
    FAILED_OPENING,
    FAILED_PHASE,
    FAILED_STATUS,
    LOWER_BOUND,
    PASS_COST,
    PASS_STAGE_COSTS,
    PHASE_BACKWARD,
    PHASE_FORWARD,
    PHASE_LOWER_BOUND,
    outgoing_of,
)
from cobre.sddp.kernel.risk import weigh_outcomes

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@inner_kernel
def _record_failure(buffers, own_pass, status, node, opening, phase):
    buffers.failure[own_pass, FAILED_STATUS] = status
    buffers.failure[own_pass, FAILED_NODE] = node
    buffers.failure[own_pass, FAILED_OPENING] = opening
    buffers.failure[own_pass, FAILED_PHASE] = phase


@inner_kernel
def find_leaders(graph, buffers):
    """Write for each pass and stage the first pass with the same trial point.

    Trial points are the same where node and outgoing state are, or where enumerated paths agree so far. The
    table finds a state by a hash of its bits; what it finds is compared, so the hash has no influence.
    """
    stages = len(graph.stage_start) - 1
    passes = len(buffers.pass_all)
    components = len(buffers.initial_state)
    enumerated = len(graph.path_leader) > 0
    table = buffers.leader_table
    mask = np.uint64(len(table) - 1)
    for stage in range(stages):
        table[:] = -1
        for forward_pass in range(passes):
            if enumerated and graph.path_leader[forward_pass, stage] != forward_pass:
                # Its leader came before, and may follow another pass itself.
                first = graph.path_leader[forward_pass, stage]
                buffers.leader_all[forward_pass, stage] = buffers.leader_all[first, stage]
                continue
            node = buffers.node_all[forward_pass, stage]
            bits = outgoing_of(buffers.pass_all, stages, components, forward_pass, stage).view(np.uint64)
            key = np.uint64(node) * _HASH_FACTOR
            for component in range(components):
                key = (key ^ bits[component]) * _HASH_FACTOR
                key ^= key >> np.uint64(29)
            place = np.int64(key & mask)
            while table[place] >= 0 and not _same_trial_point(buffers, stage, table[place], forward_pass):
                place = (place + 1) & np.int64(mask)
            if table[place] < 0:
                table[place] = forward_pass
            buffers.leader_all[forward_pass, stage] = table[place]


@inner_kernel
def _same_trial_point(buffers, stage, one, other):
    if buffers.node_all[one, stage] != buffers.node_all[other, stage]:
        return False
    stages, components = buffers.node_all.shape[1], len(buffers.initial_state)
    bits = outgoing_of(buffers.pass_all, stages, components, one, stage).view(np.uint64)
    others = outgoing_of(buffers.pass_all, stages, components, other, stage).view(np.uint64)
    for component in range(components):  # noqa: SIM110  (generators do not compile)
        if bits[component] != others[component]:
            return False
    return True


@inner_kernel
def makes_cut(buffers, stage, forward_pass):
    """Whether the trial point of a pass is its own: of passes that share one, the first makes the cut."""
    return buffers.leader_all[forward_pass, stage] == forward_pass


@inner_kernel
def _simulate(lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker, own_pass):
    """Take one pass through a stage; its cost is NaN if an LP could not be solved."""
    stages = len(graph.stage_start) - 1
    record = buffers.pass_own[own_pass]
    payers = buffers.payer_cost_own[own_pass]
    if stage == 0:
        record[PASS_COST] = 0.0
        buffers.discount_own[own_pass] = 1.0
        payers[:] = 0.0
        state = buffers.start_own[own_pass]
    else:
        state = outgoing_of(buffers.pass_own, stages, len(buffers.initial_state), own_pass, stage - 1)
    if np.isnan(record[PASS_COST]):
        return
    node = buffers.node_all[first_pass + own_pass, stage]
    noise = buffers.noise_own[own_pass, stage]
    status = solve_one(lp, own, pool, work, basis, worker, node, own_pass, noise, state)
    if status != OK:
        opening = buffers.opening_all[first_pass + own_pass, stage]
        _record_failure(buffers, own_pass, status, node, opening, PHASE_FORWARD)
        record[PASS_COST] = np.nan
        return
    stage_cost = objective(lp, work, worker, node)
    future = future_cost(lp, work, worker, node)
    components = buffers.component_cost_own[own_pass, stage]
    components[:] = 0.0
    discount = buffers.discount_own[own_pass]
    split_cost(lp, work, worker, node, discount, components, payers)
    # After the last stage nobody else counts what boundary cuts say of the future.
    if stage < stages - 1:
        stage_cost -= future
    else:
        components[len(components) - 1] = discount * future
    record[PASS_STAGE_COSTS + stage] = stage_cost
    record[PASS_COST] += discount * stage_cost
    buffers.discount_own[own_pass] = discount * lp.discount[node]
    outgoing_state(lp, work, worker, node, outgoing_of(buffers.pass_own, stages, len(state), own_pass, stage))


@inner_kernel
def _forward_worker(lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker):
    """Take this rank's passes, as far as they are made, through ``stage``."""
    own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)
    while own_pass < len(buffers.pass_own):
        if buffers.model_all[first_pass + own_pass] == first_pass + own_pass:
            _simulate(lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker, own_pass)
        own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)


@inner_kernel
def _cut_from_outcomes(lp, graph, buffers, worker, count, stage, node, state, record):
    """Weigh values and slopes of all outcomes into the cut's intercept and slopes.

    Where costs are far apart, the intercept is lowered by what rounding may be worth at any state.
    """
    weights = buffers.weight[worker]
    penalty = weigh_outcomes(
        graph,
        stage,
        buffers.value[worker],
        buffers.probability[worker],
        count,
        buffers.order[worker],
        weights,
    )
    states = len(state)
    for component in range(states):
        record[CUT_SLOPES + component] = 0.0
    intercept = -penalty
    for outcome in range(count):
        at_origin = buffers.cut_value[worker, outcome]
        for component in range(states):
            slope = buffers.slope[worker, outcome, component]
            at_origin -= slope * state[component]
            record[CUT_SLOPES + component] += weights[outcome] * slope
        intercept += weights[outcome] * at_origin
    if lp.rounding > 0.0:
        size = abs(intercept)
        for component in range(states):
            extent = max(abs(lp.state_least[node, component]), abs(lp.state_most[node, component]))
            size += abs(record[CUT_SLOPES + component]) * extent
        intercept -= lp.rounding * size
    record[CUT_INTERCEPT] = intercept


@inner_kernel
def _solve_successors(
    lp, own, graph, pool, work, basis, buffers, worker, node, forward_pass, own_pass, stage, state
):
    """Solve all openings of all nodes that may follow; a status, and the number of outcomes."""
    count = 0
    for edge in range(graph.successor_start[node], graph.successor_start[node + 1]):
        after = graph.successor[edge]
        openings = lp.num_openings[after]
        root = buffers.opening_all[forward_pass, stage + 1]
        if buffers.node_all[forward_pass, stage + 1] != after:
            root = 0
        status, opening = solve_openings(
            lp,
            own,
            pool,
            work,
            basis,
            worker,
            after,
            own_pass,
            root,
            state,
            buffers.value[worker, count:],
            buffers.cut_value[worker, count:],
            buffers.slope[worker, count:],
        )
        if status != OK:
            _record_failure(buffers, own_pass, status, after, opening, PHASE_BACKWARD)
            return status, count
        for position in range(openings):
            buffers.probability[worker, count + position] = graph.probability[edge] * (1.0 / openings)
        count += openings
    return OK, count


@inner_kernel
def _backward_worker(lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker):
    """Make the cuts of this rank's trial points of ``stage``."""
    own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)
    while own_pass < len(buffers.pass_own):
        if makes_cut(buffers, stage, first_pass + own_pass):
            node = buffers.node_all[first_pass + own_pass, stage]
            state = outgoing_of(
                buffers.pass_own, buffers.node_all.shape[1], len(buffers.initial_state), own_pass, stage
            )
            forward_pass = first_pass + own_pass
            status, count = _solve_successors(
                lp, own, graph, pool, work, basis, buffers, worker, node, forward_pass, own_pass, stage, state
            )
            if status == OK:
                row = buffers.cut_row[first_pass + own_pass] - buffers.cut_row[first_pass]
                record = buffers.cut_own[row]
                _cut_from_outcomes(lp, graph, buffers, worker, count, stage, node, state, record)
        own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)


@inner_kernel
def _root_value(lp, own, graph, pool, work, basis, buffers):
    """Optimal value of the first node under its risk measure; NaN if an LP could not be solved."""
    first = np.int64(0)
    value = buffers.value[0]
    status, opening = solve_openings(
        lp,
        own,
        pool,
        work,
        basis,
        first,
        first,
        first,
        buffers.opening_all[0, 0],
        buffers.initial_state,
        value,
        buffers.cut_value[0],
        buffers.slope[0],
    )
    if status != OK:
        _record_failure(buffers, first, status, first, opening, PHASE_LOWER_BOUND)
        buffers.outcome[LOWER_BOUND] = np.nan
        return
    openings = lp.num_openings[0]
    for position in range(openings):
        buffers.probability[0, position] = 1.0 / openings
    weights = buffers.weight[0]
    root = np.int64(len(graph.stage_start) - 1)  # where its measure is kept
    penalty = weigh_outcomes(graph, root, value, buffers.probability[0], openings, buffers.order[0], weights)
    bound = -penalty
    for position in range(openings):
        bound += weights[position] * value[position]
    buffers.outcome[LOWER_BOUND] = bound


@inner_kernel
def run_worker(phase, lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker):
    """Take part in a phase as one worker; see :func:`cobre.sddp.kernel.phases.run_phase`."""
    if phase == PHASE_FORWARD:
        _forward_worker(lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker)
    elif phase == PHASE_BACKWARD:
        _backward_worker(lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker)
    elif worker == 0:
        _root_value(lp, own, graph, pool, work, basis, buffers)
