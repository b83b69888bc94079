"""One SDDP iteration as one nopython function over any communicator.

    forward passes -> gather their records: costs, and states of all stages -> for t = T-2 .. 0: cuts of my
    trial points of stage t, gather them into the pool -> lower bound on rank 0

:func:`iterate` takes the communicator's jitclass and is compiled once for each backend: no branch on the
backend is left in it. :mod:`cobre.sddp.entry` has a thin cached entry for each.

An iteration makes 1 + (T - 1) collectives here; the driver gathers the reports of all ranks, with the lower
bound, and whether to stop: 3 + (T - 1) in all.

All ranks know all trial points, so they also know which passes make a cut and at which place of the pool it
belongs. Where a stage has one node, records therefore go straight there: with ``gather_shared`` where the
ranks of a host share the pool, with ``allgatherv`` where each has its own. Where it has several, the records
of a rank belong to different pools and go through a buffer.

A rank that fails goes on to the next collective and reports there (a NaN cost, an impossible cut slot, a NaN
lower bound), so that all ranks leave the iteration together and none is left waiting.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.arrays import PoolStruct
from cobre.lp.engine import OK
from cobre.native import inner_kernel, monotonic_ns, struct_at
from cobre.sddp.kernel.buffers import (
    BACKWARD_NS,
    COMMUNICATION_NS,
    FORWARD_NS,
    LOWER_BOUND_NS,
    PHASE_BACKWARD,
    PHASE_FORWARD,
    PHASE_INSERT,
    PHASE_JUDGE,
    PHASE_LOWER_BOUND,
    BuffersStruct,
)
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.phases import run_phase
from cobre.sddp.kernel.records import ITERATION_OK
from cobre.sddp.kernel.structs import BUFFERS, GRAPH, POOL

COMMUNICATION_FAILED = 100
"""Added to the communicator's status."""

_ROOT = 0


@inner_kernel
def _gather(comm, buffers, send, receive, shared):
    """Gather ``gather_count`` elements of each rank to ``gather_start``; a status."""
    start = monotonic_ns()
    if shared:
        status = comm.gather_shared(send, receive, buffers.gather_count, buffers.gather_start)
    else:
        status = comm.allgatherv(send, receive, buffers.gather_count, buffers.gather_start)
    buffers.elapsed_ns[COMMUNICATION_NS] += monotonic_ns() - start
    return status


@inner_kernel
def _gather_cuts(comm, graph, pool, buffers, stage):
    """Gather the cut records of a stage behind the cuts of its node, or into ``cut_all``; a status."""
    node = graph.stage_start[stage]
    straight = graph.stage_start[stage + 1] - node == 1
    receive = buffers.cut_all.reshape(-1)
    if straight:
        receive = pool.record[node].reshape(-1)
    send = buffers.cut_own.reshape(-1)[: buffers.gather_count[comm.rank()]]
    return _gather(comm, buffers, send, receive, straight and pool.shared != 0)


@inner_kernel
def _backward(comm, study, graph, pool, buffers, iteration, first_pass):
    """Stages from the last but one to the first: own cuts, gather, insert."""
    for stage in range(len(graph.stage_start) - 3, -1, -1):
        run_phase(PHASE_BACKWARD, study, first_pass, stage, iteration)
        status = _gather_cuts(comm, graph, pool, buffers, stage)
        if status != OK:
            return COMMUNICATION_FAILED + status
        status = run_phase(PHASE_INSERT, study, first_pass, stage, iteration)
        if status != ITERATION_OK:
            return status
    return ITERATION_OK


@inner_kernel
def iterate(comm, study, iteration):
    """Run one iteration (0-based) on this rank and leave bounds in ``buffers.outcome``.

    Rank 0 alone has the lower bound, NaN where an LP of it could not be solved.

    Parameters
    ----------
    comm
        A communicator's jitclass; compiled monomorphically against its type.
    study
        Addresses of its structs, see :mod:`cobre.sddp.kernel.structs`. What the passes draw is in the buffers
        already, see :func:`cobre.sddp.kernel.draws.draw_passes`.

    Returns
    -------
    int
        ``ITERATION_OK``, ``ITERATION_FAILED`` (see ``buffers.failure`` on the rank that failed),
        ``BAD_RECORD``, or ``COMMUNICATION_FAILED`` plus the communicator's status.
    """
    graph = struct_at(GraphStruct, study[GRAPH])
    pool = struct_at(PoolStruct, study[POOL])
    buffers = struct_at(BuffersStruct, study[BUFFERS])
    first_pass = buffers.pass_start[comm.rank()]
    no_stage = np.int64(-1)
    for timer in range(len(buffers.elapsed_ns)):
        buffers.elapsed_ns[timer] = 0
    start = monotonic_ns()
    for stage in range(len(graph.stage_start) - 1):
        run_phase(PHASE_FORWARD, study, first_pass, stage, iteration)
    buffers.elapsed_ns[FORWARD_NS] = monotonic_ns() - start

    send, receive = buffers.pass_own.reshape(-1), buffers.pass_all.reshape(-1)
    status = _gather(comm, buffers, send, receive, False)
    if status != OK:
        return COMMUNICATION_FAILED + status
    status = run_phase(PHASE_JUDGE, study, first_pass, no_stage, iteration)
    if status != ITERATION_OK:
        return status

    start = monotonic_ns() - buffers.elapsed_ns[COMMUNICATION_NS]
    status = _backward(comm, study, graph, pool, buffers, iteration, first_pass)
    buffers.elapsed_ns[BACKWARD_NS] = monotonic_ns() - start - buffers.elapsed_ns[COMMUNICATION_NS]
    if status != ITERATION_OK:
        return status

    if comm.rank() == _ROOT:
        start = monotonic_ns()
        run_phase(PHASE_LOWER_BOUND, study, first_pass, no_stage, iteration)
        buffers.elapsed_ns[LOWER_BOUND_NS] = monotonic_ns() - start
    return ITERATION_OK
