"""Timing loops: in nopython code for the kernels of communicators, in Python for mpi4py."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.comm.bench.plan import Operation, Result, summary
from cobre.comm.contract import Communicator
from cobre.comm.status import OK, error_from_status
from cobre.native import compile_for, monotonic_ns
from cobre.native.memory import copy_bytes

_WARM_CALLS: Final = 5
_REPETITION_NS: Final = 500_000_000

Times = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _time_barrier(kernel, times):  # type: ignore[no-untyped-def]
    for k in range(len(times)):
        start = monotonic_ns()
        status = kernel.barrier()
        if status != OK:
            return status
        times[k] = monotonic_ns() - start
    return OK


@njit(cache=True, nogil=True)
def _time_allreduce(kernel, times, send, recv):  # type: ignore[no-untyped-def]
    for k in range(len(times)):
        start = monotonic_ns()
        status = kernel.allreduce(send, recv, 0)
        if status != OK:
            return status
        times[k] = monotonic_ns() - start
    return OK


@njit(cache=True, nogil=True)
def _time_broadcast(kernel, times, buf):  # type: ignore[no-untyped-def]
    for k in range(len(times)):
        status = kernel.barrier()
        if status != OK:
            return status
        start = monotonic_ns()
        status = kernel.broadcast(buf, 0)
        if status != OK:
            return status
        status = kernel.barrier()  # the root may be done long before the others have it
        if status != OK:
            return status
        times[k] = monotonic_ns() - start
    return OK


@njit(cache=True, nogil=True)
def _time_allgatherv(kernel, times, send, recv, counts, displs):  # type: ignore[no-untyped-def]
    for k in range(len(times)):
        start = monotonic_ns()
        status = kernel.allgatherv(send, recv, counts, displs)
        if status != OK:
            return status
        times[k] = monotonic_ns() - start
    return OK


@njit(cache=True, nogil=True)
def _time_gather_shared(kernel, times, send, recv, other, counts, displs):  # type: ignore[no-untyped-def]
    for k in range(len(times)):
        start = monotonic_ns()
        status = kernel.gather_shared(send, recv, counts, displs)
        if status != OK:
            return status
        times[k] = monotonic_ns() - start
        recv, other = other, recv
    return OK


def measure_communicator(
    communicator: Communicator, operations: Sequence[Operation], repetitions: int, column: str
) -> list[Result]:
    """Measure a communicator's kernel; called on all ranks.

    Parameters
    ----------
    communicator
        The communicator.
    operations
        What to measure.
    repetitions
        How often each is repeated.
    column
        What the results are called.
    """
    results = []
    for operation in operations:
        entry, arguments, regions = _arguments(communicator, operation)
        warm = np.zeros(_WARM_CALLS, np.int64)
        compile_for(
            entry, f"bench-{communicator.backend}{entry.__name__}", communicator.kernel, warm, *arguments
        )
        _check(communicator, entry(communicator.kernel, warm, *arguments))
        agreed = np.array([_affordable(operation, warm)], np.int64)
        communicator.broadcast(agreed, 0)
        repeated = []
        for _ in range(repetitions):
            _check(communicator, entry(communicator.kernel, warm, *arguments))
            times = np.zeros(agreed[0], np.int64)
            _check(communicator, entry(communicator.kernel, times, *arguments))
            repeated.append(times)
        results.append(summary(column, communicator.size, operation, repeated))
        del arguments
        for region in regions:
            region.close()
    return results


def _arguments(communicator: Communicator, operation: Operation) -> tuple[Any, tuple[Any, ...], list[Any]]:
    count, size = operation.count, communicator.size
    send = np.full(count, float(communicator.rank))
    counts, displs = np.full(size, count, np.int64), count * np.arange(size, dtype=np.int64)
    if operation.kind == "barrier":
        return _time_barrier, (), []
    if operation.kind == "allreduce":
        return _time_allreduce, (send, np.zeros(count)), []
    if operation.kind == "broadcast":
        return _time_broadcast, (send,), []
    if operation.kind == "allgatherv":
        return _time_allgatherv, (send, np.zeros(count * size), counts, displs), []
    regions = [communicator.create_shared_region(count * size, np.float64) for _ in range(2)]
    for region in regions:
        region.fence()
    targets = tuple(region.target for region in regions)
    return _time_gather_shared, (send, *targets, counts, displs), regions


def _affordable(operation: Operation, warm: Times) -> int:
    """Return how many calls fit into the time of a repetition; fewer where ranks wait for a CPU."""
    return int(np.clip(_REPETITION_NS // max(int(np.median(warm)), 1), _WARM_CALLS, operation.calls))


def _check(communicator: Communicator, status: int) -> None:
    if status != OK:
        raise error_from_status(status, communicator.detail)


def measure_mpi4py(mpi: Any, operations: Sequence[Operation], repetitions: int, column: str) -> list[Result]:
    """Measure mpi4py as a Python program calls it, on a duplicate of the world; called on all ranks.

    Parameters
    ----------
    mpi
        The module ``mpi4py.MPI``.
    operations
        What to measure; gathers into shared regions are left out.
    repetitions, column
        As in :func:`measure_communicator`.
    """
    world = mpi.COMM_WORLD.Dup()
    results = []
    for operation in operations:
        if operation.kind == "gather_shared":
            continue
        before, call, after = _mpi4py_calls(mpi, world, operation)
        warm = _python_loop(before, call, after, _WARM_CALLS)
        calls = world.bcast(_affordable(operation, warm))
        repeated = []
        for _ in range(repetitions):
            _python_loop(before, call, after, _WARM_CALLS)
            repeated.append(_python_loop(before, call, after, calls))
        results.append(summary(column, world.size, operation, repeated))
    world.Free()
    return results


def _mpi4py_calls(
    mpi: Any, world: Any, operation: Operation
) -> tuple[Callable[[], None] | None, Callable[[], None], Callable[[], None] | None]:
    count, size = operation.count, world.size
    send, recv = np.full(count, float(world.rank)), np.zeros(count)
    if operation.kind == "barrier":
        return None, world.Barrier, None
    if operation.kind == "allreduce":
        return None, lambda: world.Allreduce(send, recv, mpi.SUM), None
    if operation.kind == "broadcast":
        return world.Barrier, lambda: world.Bcast(send, 0), world.Barrier
    gathered = np.zeros(count * size)
    counts, displs = [count] * size, [count * rank for rank in range(size)]
    return None, lambda: world.Allgatherv(send, [gathered, counts, displs, mpi.DOUBLE]), None


def _python_loop(
    before: Callable[[], None] | None, call: Callable[[], None], after: Callable[[], None] | None, calls: int
) -> Times:
    times = np.zeros(calls, np.int64)
    clock = time.perf_counter_ns
    for k in range(calls):
        if before is not None:
            before()
        start = clock()
        call()
        if after is not None:
            after()
        times[k] = clock() - start
    return times


@njit(cache=True, nogil=True)
def _time_copy(times, target, source):  # type: ignore[no-untyped-def]
    for k in range(len(times)):
        start = monotonic_ns()
        copy_bytes(target, 0, source, 0, len(source))
        times[k] = monotonic_ns() - start


def measure_memcpy(operations: Sequence[Operation], ranks: int, repetitions: int) -> list[Result]:
    """Measure one copy, by one core, of what a rank has received at the end of each operation."""
    results = []
    for operation in operations:
        size = operation.received_bytes(ranks)
        if size == 0:
            continue
        source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        compile_for(_time_copy, "bench-memcpy", np.zeros(1, np.int64), target, source)
        repeated = []
        for _ in range(repetitions):
            times = np.zeros(operation.calls, np.int64)
            _time_copy(times[:_WARM_CALLS], target, source)
            _time_copy(times, target, source)
            repeated.append(times)
        results.append(summary("memcpy", ranks, operation, repeated))
    return results
