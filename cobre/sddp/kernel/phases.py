"""The phases of an iteration between collectives, compiled once for all communicators.

A phase does not depend on communicators, but would be compiled into the iteration of each of them. It is
therefore a separate C function, which iterations call by name with the addresses of their structs: the code
of all LPs and passes is compiled and kept on disk once, and an iteration is a small function beside it. What
a worker does is another one: the functions around a parallel loop are each optimised with all they contain.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from numba import cfunc, njit, prange, types

from cobre.lp.arrays import BasisStruct, LpStruct, PoolStruct, WorkspaceStruct
from cobre.lp.engines.own.trial import OwnStruct, archive_cuts
from cobre.native import bind_address, compile_guard, inner_kernel, struct_at
from cobre.sddp.kernel.buffers import PHASE_BACKWARD, PHASE_FORWARD, PHASE_INSERT, PHASE_JUDGE, BuffersStruct
from cobre.sddp.kernel.counts import add_counts, solved_stage
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.passes import run_worker
from cobre.sddp.kernel.records import (
    ITERATION_OK,
    insert_cuts,
    judge_passes,
    number_cuts,
    place_cuts,
    place_passes,
    write_headers,
)
from cobre.sddp.kernel.structs import BASIS, BUFFERS, GRAPH, LP, OWN, POOL, WORKSPACE
from cobre.sddp.ranks.threads import launch_threads

_ADDRESSES = 7
_PHASE_SYMBOL = "cobre_run_phase"
_PHASE_SIGNATURE = types.int64(types.int64, *[types.intp] * _ADDRESSES, types.int64, types.int64, types.int64)
_call_phase = types.ExternalFunction(_PHASE_SYMBOL, _PHASE_SIGNATURE)
_WORKER_SYMBOL = "cobre_run_worker"
_WORKER_SIGNATURE = types.void(types.int64, *[types.intp] * _ADDRESSES, types.int64, types.int64, types.int64)
_call_worker = types.ExternalFunction(_WORKER_SYMBOL, _WORKER_SIGNATURE)


def _worker(phase, lp, own, graph, pool, work, basis, buffers, first_pass, stage, worker):
    workspace = struct_at(WorkspaceStruct, work)
    engine = struct_at(OwnStruct, own)
    records = struct_at(BuffersStruct, buffers)
    add_counts(workspace, engine, records, phase, stage, worker, np.int64(-1))
    run_worker(
        phase,
        struct_at(LpStruct, lp),
        engine,
        struct_at(GraphStruct, graph),
        struct_at(PoolStruct, pool),
        workspace,
        struct_at(BasisStruct, basis),
        records,
        first_pass,
        stage,
        worker,
    )
    add_counts(workspace, engine, records, phase, stage, worker, np.int64(1))


@njit(nogil=True, parallel=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _in_parallel(workers, phase, lp, own, graph, pool, work, basis, buffers, first_pass, stage):
    for worker in prange(workers):
        _call_worker(phase, lp, own, graph, pool, work, basis, buffers, first_pass, stage, np.int64(worker))


def _entry(phase, lp, own, graph, pool, work, basis, buffers, first_pass, stage, iteration):
    lps = struct_at(LpStruct, lp)
    nodes = struct_at(GraphStruct, graph)
    cuts = struct_at(PoolStruct, pool)
    records = struct_at(BuffersStruct, buffers)
    if phase == PHASE_JUDGE:
        return judge_passes(nodes, records)
    if phase == PHASE_INSERT:
        return insert_cuts(nodes, cuts, records, stage, iteration)
    if phase == PHASE_BACKWARD:
        number_cuts(records, stage)
    engine = struct_at(OwnStruct, own)
    solved = solved_stage(phase, stage)
    for node in range(nodes.stage_start[solved], nodes.stage_start[solved + 1]):
        archive_cuts(lps, engine, cuts, node)
    records.next_pass[0] = 0
    workers = len(engine.work)
    _in_parallel(workers, phase, lp, own, graph, pool, work, basis, buffers, first_pass, stage)
    if phase == PHASE_BACKWARD:
        write_headers(records, stage, iteration, first_pass)
        place_cuts(nodes, cuts, records, stage)
    elif phase == PHASE_FORWARD:
        place_passes(records)
    return ITERATION_OK


@functools.cache
def bind_phases() -> Any:
    """Compile the phases, or load them, and bind the name by which iterations call them.

    Must be called before an iteration is compiled or loaded: a name that is not bound ends the process.

    Returns
    -------
    The compiled functions, which have to live as long as iterations run; the cache of this one holds them.
    """
    if numba.config.DISABLE_JIT:
        return _entry
    launch_threads()  # binds the names by which cached code calls Numba's threads
    with compile_guard("phases"):
        worker = cfunc(_WORKER_SIGNATURE, cache=True)(_worker)
        bind_address(_WORKER_SYMBOL, worker.address)
        entry = cfunc(_PHASE_SIGNATURE, cache=True)(_entry)
    bind_address(_PHASE_SYMBOL, entry.address)
    return worker, entry


@inner_kernel
def run_phase(phase, study, first_pass, stage, iteration):
    """Run one phase of an iteration on this rank; a status of :mod:`cobre.sddp.kernel.records`.

    ``study`` are the addresses of its structs. Spread over threads, with what fails in ``failure``:
    ``PHASE_FORWARD`` fills ``pass_own`` at ``stage``; ``PHASE_BACKWARD`` makes the records ``cut_own`` of the
    trial points of ``stage``; ``PHASE_LOWER_BOUND`` the lower bound in ``outcome`` (one worker). In this
    thread: ``PHASE_JUDGE`` takes the records of all passes, ``PHASE_INSERT`` those of the cuts of ``stage``.
    One function serves all phases, because each parallel loop costs seconds of compilation.
    """
    return _call_phase(
        phase,
        study[LP],
        study[OWN],
        study[GRAPH],
        study[POOL],
        study[WORKSPACE],
        study[BASIS],
        study[BUFFERS],
        first_pass,
        stage,
        iteration,
    )
