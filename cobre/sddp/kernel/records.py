"""What ranks exchange in an iteration, and what each makes of it: bounds of costs, cuts of records.

Nothing here calls the communicator, so that it is compiled once for all of them
(:mod:`cobre.sddp.kernel.phases`).
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.engine import OK
from cobre.native import inner_kernel
from cobre.sddp.kernel.buffers import FAILED_STATUS, PASS_COST, UPPER_BOUND, UPPER_BOUND_STD
from cobre.sddp.kernel.passes import find_leaders, makes_cut

ITERATION_OK = 0
ITERATION_FAILED = 1
BAD_RECORD = 2

_NO_SLOT = np.uint32(0xFFFFFFFF)
"""Slot of a pass whose cut could not be made."""


@inner_kernel
def place_passes(buffers):
    """Write where a gather puts the pass records of each rank."""
    width = buffers.pass_all.shape[1]
    for rank in range(len(buffers.pass_count)):
        buffers.gather_count[rank] = buffers.pass_count[rank] * width
        buffers.gather_start[rank] = buffers.pass_start[rank] * width


@inner_kernel
def judge_passes(graph, buffers):
    """Take the records of all passes: the upper bound, and which of them make cuts; a status."""
    for forward_pass in range(len(buffers.pass_all)):
        model = buffers.model_all[forward_pass]
        if model != forward_pass:
            buffers.pass_all[forward_pass] = buffers.pass_all[model]
            buffers.node_all[forward_pass] = buffers.node_all[model]
            buffers.opening_all[forward_pass] = buffers.opening_all[model]
        if np.isnan(buffers.pass_all[forward_pass, PASS_COST]):
            return ITERATION_FAILED
    _upper_bound(graph, buffers)
    find_leaders(graph, buffers)
    return ITERATION_OK


@inner_kernel
def _upper_bound(graph, buffers):
    """Mean and standard deviation (n - 1) of the costs of all passes made, folded in their order.

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
    made = 0
    for forward_pass in range(passes):
        if buffers.model_all[forward_pass] != forward_pass:
            continue
        made += 1
        cost = buffers.pass_all[forward_pass, PASS_COST]
        delta = cost - mean
        mean += delta / made
        squares += delta * (cost - mean)
    buffers.outcome[UPPER_BOUND] = mean
    buffers.outcome[UPPER_BOUND_STD] = np.sqrt(squares / (made - 1)) if made > 1 else 0.0


@inner_kernel
def number_cuts(buffers, stage):
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
def place_cuts(graph, pool, buffers, stage):
    """Write where a gather puts the cut records of each rank: behind the cuts of a stage's only node."""
    node = graph.stage_start[stage]
    place = pool.num_cuts[node] if graph.stage_start[stage + 1] - node == 1 else 0
    width = pool.record.shape[2]
    for rank in range(len(buffers.pass_count)):
        buffers.gather_count[rank] *= width
        buffers.gather_start[rank] = (place + buffers.gather_start[rank]) * width


@inner_kernel
def write_headers(buffers, stage, iteration, first_pass):
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
