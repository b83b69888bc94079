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
    FAILED_STATUS,
    FORWARD_NS,
    LOWER_BOUND_NS,
    PASS_COST,
    PHASE_BACKWARD,
    PHASE_FORWARD,
    PHASE_LOWER_BOUND,
    UPPER_BOUND,
    UPPER_BOUND_STD,
    BuffersStruct,
)
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.passes import find_leaders, makes_cut
from cobre.sddp.kernel.phases import run_phase
from cobre.sddp.kernel.structs import BUFFERS, GRAPH, POOL

ITERATION_OK = 0
ITERATION_FAILED = 1
BAD_RECORD = 2
COMMUNICATION_FAILED = 100
"""Added to the communicator's status."""

_NO_SLOT = np.uint32(0xFFFFFFFF)
"""Slot of a pass whose cut could not be made."""
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
def _gather_passes(comm, buffers):
    """Gather the records of all forward passes; a status."""
    width = buffers.pass_all.shape[1]
    for rank in range(comm.size()):
        buffers.gather_count[rank] = buffers.pass_count[rank] * width
        buffers.gather_start[rank] = buffers.pass_start[rank] * width
    return _gather(comm, buffers, buffers.pass_own.reshape(-1), buffers.pass_all.reshape(-1), False)


@inner_kernel
def _upper_bound(graph, buffers):
    """Mean and standard deviation (n - 1) of the costs of all passes, folded in their order.

    Enumerated paths give the exact expectation, which has no deviation.
    """
    passes = len(buffers.pass_all)
    if len(graph.path_weight) > 0:
        total = 0.0
        for forward_pass in range(passes):
            total += graph.path_weight[forward_pass] * buffers.pass_all[forward_pass, PASS_COST]
        buffers.outcome[UPPER_BOUND] = total
        buffers.outcome[UPPER_BOUND_STD] = 0.0
        return
    mean = 0.0
    squares = 0.0
    for forward_pass in range(passes):
        cost = buffers.pass_all[forward_pass, PASS_COST]
        delta = cost - mean
        mean += delta / (forward_pass + 1)
        squares += delta * (cost - mean)
    buffers.outcome[UPPER_BOUND] = mean
    buffers.outcome[UPPER_BOUND_STD] = np.sqrt(squares / (passes - 1)) if passes > 1 else 0.0


@inner_kernel
def _number_cuts(buffers, stage):
    """Number the cuts of a stage in the order of passes, and count those of each rank, in records."""
    row = 0
    for rank in range(len(buffers.pass_count)):
        first = buffers.pass_start[rank]
        buffers.gather_start[rank] = row
        for forward_pass in range(first, first + buffers.pass_count[rank]):
            buffers.cut_row[forward_pass] = row
            if makes_cut(buffers, stage, forward_pass):
                row += 1
        buffers.gather_count[rank] = row - buffers.gather_start[rank]


@inner_kernel
def _write_headers(buffers, stage, iteration, first_pass):
    """Head the cut records of this rank; a pass that failed gets no slot."""
    header = buffers.cut_own.view(np.uint32)
    for own_pass in range(len(buffers.pass_own)):
        forward_pass = first_pass + own_pass
        if not makes_cut(buffers, stage, forward_pass):
            continue
        slot = np.uint32(iteration * len(buffers.pass_all) + forward_pass)
        if buffers.failure[own_pass, FAILED_STATUS] != OK:
            slot = _NO_SLOT
        row = buffers.cut_row[forward_pass] - buffers.cut_row[first_pass]
        header[row, 0] = slot
        header[row, 1] = np.uint32(iteration)
        header[row, 2] = np.uint32(forward_pass)
        header[row, 3] = np.uint32(0)


@inner_kernel
def _gather_cuts(comm, graph, pool, buffers, stage):
    """Gather the cut records of a stage behind the cuts of its node, or into ``cut_all``; a status."""
    node = graph.stage_start[stage]
    straight = graph.stage_start[stage + 1] - node == 1
    place = 0
    receive = buffers.cut_all.reshape(-1)
    if straight:
        place = pool.num_cuts[node]
        receive = pool.record[node].reshape(-1)
    width = pool.record.shape[2]
    for rank in range(comm.size()):
        buffers.gather_count[rank] *= width
        buffers.gather_start[rank] = (place + buffers.gather_start[rank]) * width
    send = buffers.cut_own.reshape(-1)[: buffers.gather_count[comm.rank()]]
    return _gather(comm, buffers, send, receive, straight and pool.shared != 0)


@inner_kernel
def insert_cuts(graph, pool, buffers, stage, iteration):
    """Check the records gathered, and make them cuts of their nodes, in pass order.

    Nothing of them counts before all of them are right.
    """
    first_node = graph.stage_start[stage]
    straight = graph.stage_start[stage + 1] - first_node == 1
    records = buffers.cut_all
    place = 0
    if straight:
        records = pool.record[first_node]
        place = pool.num_cuts[first_node]
    header = records.view(np.uint32)
    passes = len(buffers.pass_all)
    for forward_pass in range(passes):
        if not makes_cut(buffers, stage, forward_pass):
            continue
        row = place + buffers.cut_row[forward_pass]
        if header[row, 0] == _NO_SLOT:
            return ITERATION_FAILED
        if (
            np.int64(header[row, 0]) != iteration * passes + forward_pass
            or np.int64(header[row, 1]) != iteration
            or np.int64(header[row, 2]) != forward_pass
        ):
            return BAD_RECORD
    for forward_pass in range(passes):
        if not makes_cut(buffers, stage, forward_pass):
            continue
        node = buffers.node_all[forward_pass, stage]
        slot = pool.num_cuts[node]
        if slot >= pool.record.shape[1]:
            return BAD_RECORD
        if not straight:
            for word in range(records.shape[1]):
                pool.record[node, slot, word] = records[buffers.cut_row[forward_pass], word]
        pool.iteration[node, slot] = iteration + 1
        pool.forward_pass[node, slot] = forward_pass
        pool.num_cuts[node] = slot + 1
    return ITERATION_OK


@inner_kernel
def _backward(comm, study, graph, pool, buffers, iteration, first_pass):
    """Stages from the last but one to the first: own cuts, gather, insert."""
    for stage in range(len(graph.stage_start) - 3, -1, -1):
        _number_cuts(buffers, stage)
        run_phase(PHASE_BACKWARD, study, first_pass, stage)
        _write_headers(buffers, stage, iteration, first_pass)
        status = _gather_cuts(comm, graph, pool, buffers, stage)
        if status != OK:
            return COMMUNICATION_FAILED + status
        status = insert_cuts(graph, pool, buffers, stage, iteration)
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
        run_phase(PHASE_FORWARD, study, first_pass, stage)
    buffers.elapsed_ns[FORWARD_NS] = monotonic_ns() - start

    status = _gather_passes(comm, buffers)
    if status != OK:
        return COMMUNICATION_FAILED + status
    for forward_pass in range(len(buffers.pass_all)):
        if np.isnan(buffers.pass_all[forward_pass, PASS_COST]):
            return ITERATION_FAILED
    _upper_bound(graph, buffers)
    find_leaders(graph, buffers)

    start = monotonic_ns() - buffers.elapsed_ns[COMMUNICATION_NS]
    status = _backward(comm, study, graph, pool, buffers, iteration, first_pass)
    buffers.elapsed_ns[BACKWARD_NS] = monotonic_ns() - start - buffers.elapsed_ns[COMMUNICATION_NS]
    if status != ITERATION_OK:
        return status

    if comm.rank() == _ROOT:
        start = monotonic_ns()
        run_phase(PHASE_LOWER_BOUND, study, first_pass, no_stage)
        buffers.elapsed_ns[LOWER_BOUND_NS] = monotonic_ns() - start
    return ITERATION_OK
