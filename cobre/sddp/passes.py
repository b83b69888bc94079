"""Forward and backward pass of one rank's scenarios, spread over its threads, in nopython.

Forward, for pass m and stages t in order, with the opening w_t drawn for (iteration, m, t):

    x_t = outgoing state of the stage LP at (x_{t-1}, w_t),   cost_m = sum_t D_t (objective_t - d_t theta_t)

with d_t the one-step discount and D_t = d_0 ... d_{t-1}. Backward, for a trial point x of stage t-1 and all
openings w of stage t, with optimal values Q_w and slopes pi_w at x:

    cut of stage t-1:   theta >= alpha + pi . x',   pi = mean(pi_w),   alpha = mean(Q_w - pi_w . x)

A worker is a thread of a ``prange`` with an LP workspace of its own. Workers take passes from a shared
counter; what they compute depends on the pass alone, and sums run over openings in order, so neither the
number of threads nor their timing changes a bit of the result.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np
from numba import njit, prange

from cobre.lp.engine import OK, future_cost, objective, outgoing_state, solve_one, solve_openings
from cobre.native import atomic_fetch_add, inner_kernel
from cobre.sddp.buffers import (
    FAILED_OPENING,
    FAILED_PHASE,
    FAILED_STAGE,
    FAILED_STATUS,
    LOWER_BOUND,
    PHASE_BACKWARD,
    PHASE_FORWARD,
    PHASE_LOWER_BOUND,
    RECORD_HEADER_WORDS,
    RECORD_INTERCEPT,
)
from cobre.stochastic import sample_opening


@inner_kernel
def _record_failure(buffers, own_pass, status, stage, opening, phase):
    buffers.failure[own_pass, FAILED_STATUS] = status
    buffers.failure[own_pass, FAILED_STAGE] = stage
    buffers.failure[own_pass, FAILED_OPENING] = opening
    buffers.failure[own_pass, FAILED_PHASE] = phase


@inner_kernel
def _trajectory(lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, worker, own_pass):
    """Simulate one pass through all stages; its cost is NaN if an LP could not be solved."""
    stages = len(lp.num_cols)
    state = buffers.initial_state
    total = 0.0
    cumulative_discount = 1.0
    for stage in range(stages):
        opening = sample_opening(
            tree_seed, iteration + 1, first_pass + own_pass, stage, lp.num_openings[stage]
        )
        status = solve_one(lp, pool, work, basis, worker, stage, own_pass, opening, state)
        if status != OK:
            _record_failure(buffers, own_pass, status, stage, opening, PHASE_FORWARD)
            buffers.cost_own[own_pass] = np.nan
            return
        stage_cost = objective(lp, work, worker, stage) - future_cost(lp, work, worker, stage)
        total += cumulative_discount * stage_cost
        cumulative_discount *= lp.discount[stage]
        outgoing_state(lp, work, worker, stage, buffers.state_own[stage, own_pass])
        state = buffers.state_own[stage, own_pass]
    buffers.cost_own[own_pass] = total


@inner_kernel
def _forward_worker(lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, worker):
    own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)
    while own_pass < len(buffers.cost_own):
        _trajectory(lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, worker, own_pass)
        own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)


@inner_kernel
def _cut_from_openings(buffers, worker, openings, state, record):
    """Average values and slopes over the openings into the cut's intercept and slopes."""
    weight = 1.0 / openings
    states = len(state)
    for component in range(states):
        record[RECORD_HEADER_WORDS + component] = 0.0
    intercept = 0.0
    for opening in range(openings):
        at_origin = buffers.value[worker, opening]
        for component in range(states):
            slope = buffers.slope[worker, opening, component]
            at_origin -= slope * state[component]
            record[RECORD_HEADER_WORDS + component] += weight * slope
        intercept += weight * at_origin
    record[RECORD_INTERCEPT] = intercept


@inner_kernel
def _backward_worker(lp, pool, work, basis, buffers, stage, worker):
    own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)
    while own_pass < len(buffers.cost_own):
        state = buffers.state_own[stage - 1, own_pass]
        status, opening = solve_openings(
            lp,
            pool,
            work,
            basis,
            worker,
            stage,
            own_pass,
            state,
            buffers.value[worker],
            buffers.slope[worker],
        )
        if status == OK:
            _cut_from_openings(buffers, worker, lp.num_openings[stage], state, buffers.cut_own[own_pass])
        else:
            _record_failure(buffers, own_pass, status, stage, opening, PHASE_BACKWARD)
        own_pass = atomic_fetch_add(buffers.next_pass, 0, 1)


@inner_kernel
def _root_value(lp, pool, work, basis, buffers):
    """Expected optimal value of the first stage over its openings; NaN if an LP could not be solved."""
    first = np.int64(0)
    value, slope = buffers.value[0], buffers.slope[0]
    status, opening = solve_openings(
        lp, pool, work, basis, first, first, first, buffers.initial_state, value, slope
    )
    if status != OK:
        _record_failure(buffers, first, status, first, opening, PHASE_LOWER_BOUND)
        buffers.outcome[LOWER_BOUND] = np.nan
        return
    openings = lp.num_openings[0]
    weight = 1.0 / openings
    bound = 0.0
    for position in range(openings):
        bound += weight * value[position]
    buffers.outcome[LOWER_BOUND] = bound


@inner_kernel
def _work(phase, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, stage, worker):
    if phase == PHASE_FORWARD:
        _forward_worker(lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, worker)
    elif phase == PHASE_BACKWARD:
        _backward_worker(lp, pool, work, basis, buffers, stage, worker)
    elif worker == 0:
        _root_value(lp, pool, work, basis, buffers)


@njit(cache=True, nogil=True, parallel=True)
def run_phase(phase, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, stage):
    """Run one phase of an iteration over this rank's passes, one worker a thread.

    ``PHASE_FORWARD`` fills ``state_own`` and ``cost_own``; ``PHASE_BACKWARD`` intercepts and slopes of
    ``cut_own`` from all openings of ``stage``; ``PHASE_LOWER_BOUND`` the lower bound in ``outcome`` (one
    worker). What fails is in ``failure``. One function serves all phases, because each parallel loop costs
    seconds of compilation.
    """
    buffers.next_pass[0] = 0
    for worker in prange(work.handle.shape[0]):
        _work(
            phase, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, stage, np.int64(worker)
        )
