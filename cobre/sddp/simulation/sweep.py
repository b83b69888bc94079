"""The stage sweeps of a block of scenarios, spread over threads, in nopython.

A block goes stage by stage: all its scenarios are solved at a stage before the next, so that a worker has
only the LPs of one stage loaded. At a stage scenarios that are alike follow each other, in groups of a fixed
size. Within a group and a node an LP starts from the basis of the scenario before it, the first one from
that of the policy (:class:`cobre.policy.bases.FirstBases`), or from nothing. What a scenario gets is
therefore a function of its block alone, whichever worker takes it and whatever that has solved before.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import cfunc, njit, prange, types

from cobre.lp.arrays import LP_SOLVES_OWN, BasisStruct, LpStruct, PoolStruct, WorkspaceStruct
from cobre.lp.engine import OK, future_cost, objective, outgoing_state, split_cost
from cobre.lp.engines.dispatch import solve_one
from cobre.lp.engines.own.trial import OwnStruct, archive_cuts, worth_of_data
from cobre.native import atomic_fetch_add, bind_address, compile_guard, inner_kernel, struct_at
from cobre.sddp.kernel.buffers import PHASE_FORWARD
from cobre.sddp.kernel.counts import add_counts
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.structs import BASIS, GRAPH, LP, OWN, POOL, WORKSPACE
from cobre.sddp.ranks.threads import launch_threads
from cobre.sddp.simulation.arrays import (
    FAILED_STAGE,
    FAILED_STATUS,
    GROUP_SIZE,
    NUM_SCENARIOS,
    SCENARIOS,
    ScenarioStruct,
)

_WORKER_SYMBOL = "cobre_simulate_worker"
_WORKER_SIGNATURE = types.void(*[types.intp] * 6, types.int64, types.int64)
_call_worker = types.ExternalFunction(_WORKER_SYMBOL, _WORKER_SIGNATURE)


@inner_kernel
def _write_columns(lp, work, block, worker, node, stage, place):
    """Keep the columns of the last solution in physical units."""
    first = block.column_start[stage] + place * block.column_width[stage]
    unit = lp.col_offset[node]
    for col in range(lp.num_cols[node]):
        block.column[first + col] = work.col_value[worker, col] * block.column_unit[unit + col]
    for col in range(lp.num_cols[node], block.column_width[stage]):
        block.column[first + col] = 0.0


@inner_kernel
def _write_duals(lp, own, pool, work, block, worker, node, stage, place, by_own):
    """Keep the duals of the rows of the template in $ per physical unit."""
    first = block.dual_start[stage] + place * block.dual_width[stage]
    unit = lp.limit_offset[node]
    rows = lp.num_rows[node]
    if by_own:
        worth_of_data(own, pool, worker, node)
        worth = own.worth[worker]
        way = block.way_first[node]
        for row in range(rows):
            total = 0.0
            for entry in range(block.way_start[way + row], block.way_start[way + row + 1]):
                total += block.way_value[entry] * worth[block.way_row[entry]]
            block.dual[first + row] = total * block.row_unit[unit + row]
    else:
        for row in range(rows):
            block.dual[first + row] = work.row_dual[worker, row] * block.row_unit[unit + row]
    for row in range(rows, block.dual_width[stage]):
        block.dual[first + row] = 0.0


@inner_kernel
def _write_realised(lp, block, node, stage, place):
    """Keep the values of the random entities as the LP has them."""
    noise, state = block.noise[place, stage], block.state[stage, place]
    out = block.realised[stage, place]
    hydros = lp.psi_start.shape[1] - 1
    for entity in range(len(noise)):
        value = noise[entity]
        if entity < hydros:
            for entry in range(lp.psi_start[node, entity], lp.psi_start[node, entity + 1]):
                value += lp.psi_value[entry] * state[lp.psi_component[entry]]
            if lp.truncated[node, entity] != 0:
                value = max(value, 0.0)
        out[entity] = value


@inner_kernel
def _simulate(lp, own, pool, work, basis, block, stage, worker, group, place):
    """Take one scenario through a stage."""
    if block.failure[place, FAILED_STATUS] != OK:
        return
    components, payers = block.component_cost[place, stage], block.payer_cost[place]
    components[:] = 0.0
    if stage == 0:
        payers[:] = 0.0
        block.discount[0, place] = 1.0
    node = block.node_all[place, stage]
    noise, state = block.noise[place, stage], block.state[stage, place]
    solved_by_own = work.counters[worker, LP_SOLVES_OWN]
    status = solve_one(lp, own, pool, work, basis, worker, node, group, noise, state)
    if status != OK:
        block.failure[place, FAILED_STATUS] = status
        block.failure[place, FAILED_STAGE] = stage
        return
    by_own = work.counters[worker, LP_SOLVES_OWN] != solved_by_own
    discount = block.discount[stage, place]
    future = future_cost(lp, work, worker, node)
    block.future_cost[place, stage] = future
    block.stage_cost[place, stage] = objective(lp, work, worker, node) - future
    split_cost(lp, work, worker, node, discount, components, payers)
    if stage == block.node_all.shape[1] - 1:
        # After the last stage nobody else counts what boundary cuts say of the future.
        components[len(components) - 1] = discount * future
    block.discount[stage + 1, place] = discount * lp.discount[node]
    outgoing_state(lp, work, worker, node, block.state[stage + 1, place])
    _write_columns(lp, work, block, worker, node, stage, place)
    _write_duals(lp, own, pool, work, block, worker, node, stage, place, by_own)
    _write_realised(lp, block, node, stage, place)


def _worker(lp, own, pool, work, basis, scenarios, stage, worker):
    """Take groups through a stage until none is left."""
    lps, engine = struct_at(LpStruct, lp), struct_at(OwnStruct, own)
    cuts, workspace = struct_at(PoolStruct, pool), struct_at(WorkspaceStruct, work)
    bases, block = struct_at(BasisStruct, basis), struct_at(ScenarioStruct, scenarios)
    add_counts(workspace, engine, block, PHASE_FORWARD, stage, worker, np.int64(-1))
    count, size = block.counts[NUM_SCENARIOS], block.counts[GROUP_SIZE]
    group = atomic_fetch_add(block.next_group, 0, 1)
    while group * size < count:
        for member in range(group * size, min((group + 1) * size, count)):
            place = block.order[member]
            _simulate(lps, engine, cuts, workspace, bases, block, stage, worker, group, place)
        group = atomic_fetch_add(block.next_group, 0, 1)
    add_counts(workspace, engine, block, PHASE_FORWARD, stage, worker, np.int64(1))


@njit(cache=True, nogil=True, parallel=True)
def simulate_stage(study, stage, workers):
    """Take the scenarios of the present block through a stage (int64), on ``workers`` threads (int64).

    Needs :func:`bind_worker`. What fails is in ``failure``. ``study`` are the addresses of its structs.
    """
    lp, own, pool = study[LP], study[OWN], study[POOL]
    work, basis, scenarios = study[WORKSPACE], study[BASIS], study[SCENARIOS]
    lps, engine, cuts = struct_at(LpStruct, lp), struct_at(OwnStruct, own), struct_at(PoolStruct, pool)
    graph, block = struct_at(GraphStruct, study[GRAPH]), struct_at(ScenarioStruct, scenarios)
    for node in range(graph.stage_start[stage], graph.stage_start[stage + 1]):
        archive_cuts(lps, engine, cuts, node)
    block.next_group[0] = 0
    for worker in prange(workers):
        _call_worker(lp, own, pool, work, basis, scenarios, stage, np.int64(worker))


@functools.cache
def bind_worker() -> Any:
    """Compile what workers do, or load it, and bind the name by which sweeps call it.

    Must be called before :func:`simulate_stage` is compiled or loaded: a name that is not bound ends the
    process. The result has to live as long as sweeps run; the cache of this function holds it.
    """
    launch_threads()  # binds the names by which cached code calls Numba's threads
    with compile_guard("simulate-worker"):
        worker = cfunc(_WORKER_SIGNATURE, cache=True)(_worker)
    bind_address(_WORKER_SYMBOL, worker.address)
    return worker
