"""One SDDP iteration as one nopython function over any communicator.

    forward passes -> gather costs -> gather states -> for t = T-1 .. 1: cuts of my trial points,
    gather cuts, insert into pool[t-1] -> lower bound on rank 0, broadcast

:func:`iterate` takes the communicator's jitclass and is compiled once for each backend: no branch on the
backend is left in it. Each backend has a thin cached entry below, whose arguments are plain arrays and
numbers and which builds the jitclass inside, because a jitclass in a cached signature costs every process
seconds of compilation.

A rank that fails goes on to the next collective and tells the others there (a NaN cost, an impossible cut
slot, a NaN lower bound), so that all ranks leave the iteration together and nobody is left waiting.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np
from numba import njit

from cobre.comm.local import LocalKernel
from cobre.lp.arrays import BasisStruct, LpStruct, PoolStruct, WorkspaceStruct
from cobre.lp.engine import OK
from cobre.native import inner_kernel, monotonic_ns
from cobre.sddp.buffers import (
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
from cobre.sddp.passes import run_phase

ITERATION_OK = 0
ITERATION_FAILED = 1
BAD_RECORD = 2
COMMUNICATION_FAILED = 100
"""Added to the communicator's status."""

_NO_SLOT = np.uint32(0xFFFFFFFF)
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
def _upper_bound(buffers):
    """Mean and standard deviation (n - 1) of the trajectory costs, folded in pass order."""
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
def _write_headers(buffers, iteration, first_pass):
    """Number the cut records of this rank; a pass that failed gets no slot."""
    header = buffers.cut_own.view(np.uint32)
    passes = len(buffers.cost_all)
    for own_pass in range(len(buffers.cost_own)):
        forward_pass = first_pass + own_pass
        slot = np.uint32(iteration * passes + forward_pass)
        if buffers.failure[own_pass, FAILED_STATUS] != OK:
            slot = _NO_SLOT
        header[own_pass, 0] = slot
        header[own_pass, 1] = np.uint32(iteration)
        header[own_pass, 2] = np.uint32(forward_pass)
        header[own_pass, 3] = np.uint32(0)


@inner_kernel
def _insert_cuts(pool, buffers, stage, iteration):
    """Check the gathered records and write them into the pool of ``stage``."""
    header = buffers.cut_all.view(np.uint32)
    passes = len(buffers.cost_all)
    states = pool.slope.shape[2]
    for forward_pass in range(passes):
        slot = header[forward_pass, 0]
        if slot == _NO_SLOT:
            return ITERATION_FAILED
        expected = iteration * passes + forward_pass
        if (
            np.int64(slot) != expected
            or np.int64(header[forward_pass, 1]) != iteration
            or np.int64(header[forward_pass, 2]) != forward_pass
            or expected >= pool.intercept.shape[1]
        ):
            return BAD_RECORD
    for forward_pass in range(passes):
        slot_index = iteration * passes + forward_pass
        pool.intercept[stage, slot_index] = buffers.cut_all[forward_pass, RECORD_INTERCEPT]
        for component in range(states):
            pool.slope[stage, slot_index, component] = buffers.cut_all[
                forward_pass, RECORD_HEADER_WORDS + component
            ]
    pool.num_cuts[stage] = (iteration + 1) * passes
    return ITERATION_OK


@inner_kernel
def _backward(comm, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass):
    """Stages from last to second: own cuts, gather, insert."""
    for stage in range(len(lp.num_cols) - 1, 0, -1):
        run_phase(PHASE_BACKWARD, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, stage)
        _write_headers(buffers, iteration, first_pass)
        width = buffers.cut_all.shape[1]
        status = _gather_rows(comm, buffers, width, buffers.cut_own.reshape(-1), buffers.cut_all.reshape(-1))
        if status != OK:
            return COMMUNICATION_FAILED + status
        status = _insert_cuts(pool, buffers, stage - 1, iteration)
        if status != ITERATION_OK:
            return status
    return ITERATION_OK


@inner_kernel
def iterate(comm, lp, pool, work, basis, buffers, tree_seed, iteration):
    """Run one iteration (0-based) on this rank and leave bounds in ``buffers.outcome``.

    Parameters
    ----------
    comm
        A communicator's jitclass; compiled monomorphically against its type.
    lp, pool, work, basis, buffers
        See :mod:`cobre.lp.arrays` and :mod:`cobre.sddp.buffers`.
    tree_seed
        uint64 seed of the forward draws.

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
    run_phase(PHASE_FORWARD, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, no_stage)
    buffers.elapsed_ns[FORWARD_NS] = monotonic_ns() - start

    status = _gather_rows(comm, buffers, 1, buffers.cost_own, buffers.cost_all)
    if status != OK:
        return COMMUNICATION_FAILED + status
    for forward_pass in range(len(buffers.cost_all)):
        if np.isnan(buffers.cost_all[forward_pass]):
            return ITERATION_FAILED
    _upper_bound(buffers)
    states = len(buffers.initial_state)
    for stage in range(len(lp.num_cols)):
        send = buffers.state_own[stage].reshape(-1)
        receive = buffers.state_all[stage].reshape(-1)
        status = _gather_rows(comm, buffers, states, send, receive)
        if status != OK:
            return COMMUNICATION_FAILED + status

    start = monotonic_ns()
    status = _backward(comm, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass)
    buffers.elapsed_ns[BACKWARD_NS] = monotonic_ns() - start
    if status != ITERATION_OK:
        return status

    start = monotonic_ns()
    if comm.rank() == _ROOT:
        run_phase(
            PHASE_LOWER_BOUND, lp, pool, work, basis, buffers, tree_seed, iteration, first_pass, no_stage
        )
    status = comm.broadcast(buffers.outcome[LOWER_BOUND : LOWER_BOUND + 1], _ROOT)
    buffers.elapsed_ns[LOWER_BOUND_NS] = monotonic_ns() - start
    if status != OK:
        return COMMUNICATION_FAILED + status
    return ITERATION_FAILED if np.isnan(buffers.outcome[LOWER_BOUND]) else ITERATION_OK


@njit(cache=True, nogil=True)
def iterate_local(detail, lp, pool, work, basis, buffers, tree_seed, iteration):
    """One iteration on the local communicator; see :func:`iterate`."""
    return iterate(
        LocalKernel(detail),
        LpStruct(lp),
        PoolStruct(pool),
        WorkspaceStruct(work),
        BasisStruct(basis),
        BuffersStruct(buffers),
        tree_seed,
        iteration,
    )
