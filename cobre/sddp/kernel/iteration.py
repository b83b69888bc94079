"""One SDDP iteration as one nopython function over any communicator.

    forward passes -> gather costs -> gather states -> for t = T-2 .. 0: cuts of my
    trial points of stage t, gather cuts, insert into the pools of their nodes -> lower bound on rank 0,
    broadcast

:func:`iterate` takes the communicator's jitclass and is compiled once for each backend: no branch on the
backend is left in it. :mod:`cobre.sddp.entry` has a thin cached entry for each.

A rank that fails goes on to the next collective and tells the others there (a NaN cost, an impossible cut
slot, a NaN lower bound), so that all ranks leave the iteration together and nobody is left waiting.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.arrays import BasisStruct, LpStruct, PoolStruct, WorkspaceStruct
from cobre.lp.engine import OK
from cobre.native import inner_kernel, monotonic_ns
from cobre.sddp.kernel.buffers import (
    BACKWARD_NS,
    COMMUNICATION_NS,
    FAILED_STATUS,
    FORWARD_NS,
    LOWER_BOUND,
    LOWER_BOUND_NS,
    PHASE_BACKWARD,
    PHASE_FORWARD,
    PHASE_LOWER_BOUND,
    RECORD_HEADER_WORDS,
    RECORD_INTERCEPT,
    UPPER_BOUND,
    UPPER_BOUND_STD,
    BuffersStruct,
)
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.passes import find_leaders, makes_cut
from cobre.sddp.kernel.phases import run_phase

ITERATION_OK = 0
ITERATION_FAILED = 1
BAD_RECORD = 2
COMMUNICATION_FAILED = 100
"""Added to the communicator's status."""

_NO_SLOT = np.uint32(0xFFFFFFFF)
_NO_CUT = np.uint32(0xFFFFFFFE)
"""Slot of a pass whose trial point is another pass's too."""
_ROOT = 0


@inner_kernel
def _gather_rows(comm, buffers, width, send, receive):
    """Gather ``width`` float64 for each forward pass, in pass order."""
    start = monotonic_ns()
    for rank in range(comm.size()):
        buffers.gather_count[rank] = buffers.pass_count[rank] * width
        buffers.gather_start[rank] = buffers.pass_start[rank] * width
    status = comm.allgatherv(send, receive, buffers.gather_count, buffers.gather_start)
    buffers.elapsed_ns[COMMUNICATION_NS] += monotonic_ns() - start
    return status


@inner_kernel
def _upper_bound(graph, buffers):
    """Mean and standard deviation (n - 1) of the trajectory costs, folded in pass order.

    Enumerated paths give the exact expectation, which has no deviation.
    """
    if len(graph.path_weight) > 0:
        total = 0.0
        for position in range(len(buffers.cost_all)):
            total += graph.path_weight[position] * buffers.cost_all[position]
        buffers.outcome[UPPER_BOUND] = total
        buffers.outcome[UPPER_BOUND_STD] = 0.0
        return
    mean = 0.0
    squares = 0.0
    for position in range(len(buffers.cost_all)):
        delta = buffers.cost_all[position] - mean
        mean += delta / (position + 1)
        squares += delta * (buffers.cost_all[position] - mean)
    passes = len(buffers.cost_all)
    buffers.outcome[UPPER_BOUND] = mean
    buffers.outcome[UPPER_BOUND_STD] = np.sqrt(squares / (passes - 1)) if passes > 1 else 0.0


@inner_kernel
def _write_headers(buffers, stage, iteration, first_pass):
    """Number the cut records of this rank; a pass that failed gets no slot."""
    header = buffers.cut_own.view(np.uint32)
    passes = len(buffers.cost_all)
    for own_pass in range(len(buffers.cost_own)):
        forward_pass = first_pass + own_pass
        slot = np.uint32(iteration * passes + forward_pass)
        if not makes_cut(buffers, stage, forward_pass):
            slot = _NO_CUT
        if buffers.failure[own_pass, FAILED_STATUS] != OK:
            slot = _NO_SLOT
        header[own_pass, 0] = slot
        header[own_pass, 1] = np.uint32(iteration)
        header[own_pass, 2] = np.uint32(forward_pass)
        header[own_pass, 3] = np.uint32(0)


@inner_kernel
def _insert_cuts(pool, buffers, stage, iteration):
    """Check the gathered records and append them to the pools of their nodes, in pass order."""
    header = buffers.cut_all.view(np.uint32)
    passes = len(buffers.cost_all)
    states = pool.slope.shape[2]
    for forward_pass in range(passes):
        slot = header[forward_pass, 0]
        if slot == _NO_SLOT:
            return ITERATION_FAILED
        expected = iteration * passes + forward_pass
        if not makes_cut(buffers, stage, forward_pass):
            expected = np.int64(_NO_CUT)
        if (
            np.int64(slot) != expected
            or np.int64(header[forward_pass, 1]) != iteration
            or np.int64(header[forward_pass, 2]) != forward_pass
        ):
            return BAD_RECORD
    for forward_pass in range(passes):
        if not makes_cut(buffers, stage, forward_pass):
            continue
        node = buffers.node_all[stage, forward_pass]
        place = pool.num_cuts[node]
        if place >= pool.intercept.shape[1]:
            return BAD_RECORD
        pool.intercept[node, place] = buffers.cut_all[forward_pass, RECORD_INTERCEPT]
        for component in range(states):
            pool.slope[node, place, component] = buffers.cut_all[
                forward_pass, RECORD_HEADER_WORDS + component
            ]
        pool.iteration[node, place] = iteration + 1
        pool.forward_pass[node, place] = forward_pass
        pool.num_cuts[node] = place + 1
    return ITERATION_OK


@inner_kernel
def _backward(comm, lp, graph, pool, work, basis, buffers, iteration, first_pass):
    """Stages from the last but one to the first: own cuts, gather, insert."""
    for stage in range(len(graph.stage_start) - 3, -1, -1):
        run_phase(PHASE_BACKWARD, lp, graph, pool, work, basis, buffers, first_pass, stage)
        _write_headers(buffers, stage, iteration, first_pass)
        width = buffers.cut_all.shape[1]
        status = _gather_rows(comm, buffers, width, buffers.cut_own.reshape(-1), buffers.cut_all.reshape(-1))
        if status != OK:
            return COMMUNICATION_FAILED + status
        status = _insert_cuts(pool, buffers, stage, iteration)
        if status != ITERATION_OK:
            return status
    return ITERATION_OK


@inner_kernel
def iterate(comm, lp, graph, pool, work, basis, buffers, iteration):
    """Run one iteration (0-based) on this rank and leave bounds in ``buffers.outcome``.

    Parameters
    ----------
    comm
        A communicator's jitclass; compiled monomorphically against its type.
    lp, graph, pool, work, basis, buffers
        See :mod:`cobre.lp.arrays`, :mod:`cobre.sddp.kernel.graph` and :mod:`cobre.sddp.kernel.buffers`.
        What the passes meet is in the buffers already, see :func:`cobre.sddp.kernel.draws.draw_passes`.

    Returns
    -------
    int
        ``ITERATION_OK``, ``ITERATION_FAILED`` (see ``buffers.failure`` on the rank that failed),
        ``BAD_RECORD``, or ``COMMUNICATION_FAILED`` plus the communicator's status.
    """
    first_pass = buffers.pass_start[comm.rank()]
    no_stage = np.int64(-1)
    for timer in range(len(buffers.elapsed_ns)):
        buffers.elapsed_ns[timer] = 0
    start = monotonic_ns()
    run_phase(PHASE_FORWARD, lp, graph, pool, work, basis, buffers, first_pass, no_stage)
    buffers.elapsed_ns[FORWARD_NS] = monotonic_ns() - start

    status = _gather_rows(comm, buffers, 1, buffers.cost_own, buffers.cost_all)
    if status != OK:
        return COMMUNICATION_FAILED + status
    for forward_pass in range(len(buffers.cost_all)):
        if np.isnan(buffers.cost_all[forward_pass]):
            return ITERATION_FAILED
    _upper_bound(graph, buffers)
    if buffers.stage_cost_all.shape[0] > 0:
        send, receive = buffers.stage_cost_own.reshape(-1), buffers.stage_cost_all.reshape(-1)
        status = _gather_rows(comm, buffers, buffers.stage_cost_all.shape[1], send, receive)
        if status != OK:
            return COMMUNICATION_FAILED + status
    states = len(buffers.initial_state)
    for stage in range(len(graph.stage_start) - 1):
        send = buffers.state_own[stage].reshape(-1)
        receive = buffers.state_all[stage].reshape(-1)
        status = _gather_rows(comm, buffers, states, send, receive)
        if status != OK:
            return COMMUNICATION_FAILED + status
    find_leaders(graph, buffers)

    start = monotonic_ns() - buffers.elapsed_ns[COMMUNICATION_NS]
    status = _backward(comm, lp, graph, pool, work, basis, buffers, iteration, first_pass)
    buffers.elapsed_ns[BACKWARD_NS] = monotonic_ns() - start - buffers.elapsed_ns[COMMUNICATION_NS]
    if status != ITERATION_OK:
        return status

    start = monotonic_ns()
    if comm.rank() == _ROOT:
        run_phase(PHASE_LOWER_BOUND, lp, graph, pool, work, basis, buffers, first_pass, no_stage)
    status = comm.broadcast(buffers.outcome[LOWER_BOUND : LOWER_BOUND + 1], _ROOT)
    buffers.elapsed_ns[LOWER_BOUND_NS] = monotonic_ns() - start
    if status != OK:
        return COMMUNICATION_FAILED + status
    return ITERATION_FAILED if np.isnan(buffers.outcome[LOWER_BOUND]) else ITERATION_OK


@inner_kernel
def iterate_study(comm, study, iteration):
    """Run :func:`iterate` on the tuple of arrays that Python hands to an entry."""
    lp, graph, pool, work, basis, buffers = study
    return iterate(
        comm,
        LpStruct(lp),
        GraphStruct(graph),
        PoolStruct(pool),
        WorkspaceStruct(work),
        BasisStruct(basis),
        BuffersStruct(buffers),
        iteration,
    )
