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


class _Buffers:
    """What one operation works on: the same arrays for everything that is compared with each other."""

    def __init__(self, communicator: Communicator, operation: Operation) -> None:
        count, size = operation.count, communicator.size
        received = operation.received_bytes(size) // 8
        self.send = np.full(count, float(communicator.rank))
        self.counts, self.displs = np.full(size, count, np.int64), count * np.arange(size, dtype=np.int64)
        self.regions: list[Any] = []
        if operation.kind == "gather_shared":
            self.regions = [communicator.create_shared_region(received, np.float64) for _ in range(2)]
            for region in self.regions:
                region.fence()
        else:
            self.recv = np.zeros(received)

    def close(self) -> None:
        """Give the regions back."""
        for region in self.regions:
            region.close()


def measure_communicator(
    communicator: Communicator,
    operations: Sequence[Operation],
    repetitions: int,
    column: str,
    mpi: Any = None,
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
    mpi
        The module ``mpi4py.MPI``: measure it, too, as a Python program calls it, on a duplicate of the world.
        Its repetitions alternate with those of the kernel, so that both see the same disturbances.
        Gathers into shared regions are left out.

    Returns
    -------
    list of Result
        In the order of operations, those of mpi4py (named ``"<column> mpi4py"``) after those of the kernel.
    """
    world = None if mpi is None else mpi.COMM_WORLD.Dup()
    kernel_results, python_results = [], []
    for operation in operations:
        buffers = _Buffers(communicator, operation)
        loops = [_kernel_loop(communicator, operation, buffers)]
        if world is not None and operation.kind != "gather_shared":
            loops.append(_mpi4py_loop(mpi, world, operation, buffers))
        first, *others = _alternate(communicator, operation, loops, repetitions)
        kernel_results.append(summary(column, communicator.size, operation, first))
        python_results += [
            summary(f"{column} mpi4py", communicator.size, operation, times) for times in others
        ]
        del loops
        buffers.close()
    if world is not None:
        world.Free()
    return kernel_results + python_results


Loop = Callable[[int], Times]
"""Makes so many calls and returns the time of each."""


def _alternate(
    communicator: Communicator, operation: Operation, loops: Sequence[Loop], repetitions: int
) -> list[list[Times]]:
    """Return the times of each loop, one array for each repetition."""
    slowest = max(float(np.median(loop(_WARM_CALLS))) for loop in loops)
    # fewer calls than wanted where ranks wait for a CPU
    affordable = np.clip(_REPETITION_NS // max(slowest, 1.0), _WARM_CALLS, operation.calls)
    calls = np.array([affordable], np.int64)
    communicator.broadcast(calls, 0)
    repeated: list[list[Times]] = [[] for _ in loops]
    for _ in range(repetitions):
        for loop, times in zip(loops, repeated, strict=True):
            loop(_WARM_CALLS)
            times.append(loop(int(calls[0])))
    return repeated


def _kernel_loop(communicator: Communicator, operation: Operation, buffers: _Buffers) -> Loop:
    entry, arguments = _kernel_call(operation, buffers)
    kernel = communicator.kernel
    name = f"bench-{communicator.backend}{entry.__name__}"
    compile_for(entry, name, kernel, np.zeros(_WARM_CALLS, np.int64), *arguments)

    def loop(calls: int) -> Times:
        times = np.zeros(calls, np.int64)
        status = entry(kernel, times, *arguments)
        if status != OK:
            raise error_from_status(status, communicator.detail)
        return times

    return loop


def _kernel_call(operation: Operation, buffers: _Buffers) -> tuple[Any, tuple[Any, ...]]:
    places = (buffers.counts, buffers.displs)
    if operation.kind == "barrier":
        return _time_barrier, ()
    if operation.kind == "allreduce":
        return _time_allreduce, (buffers.send, buffers.recv)
    if operation.kind == "broadcast":
        return _time_broadcast, (buffers.send,)
    if operation.kind == "allgatherv":
        return _time_allgatherv, (buffers.send, buffers.recv, *places)
    targets = tuple(region.target for region in buffers.regions)
    return _time_gather_shared, (buffers.send, *targets, *places)


def _mpi4py_loop(mpi: Any, world: Any, operation: Operation, buffers: _Buffers) -> Loop:
    call = _mpi4py_call(mpi, world, operation, buffers)
    barriers = operation.kind == "broadcast"  # as around that of the kernel
    clock = time.perf_counter_ns

    def loop(calls: int) -> Times:
        times = np.zeros(calls, np.int64)
        for k in range(calls):
            if barriers:
                world.Barrier()
            start = clock()
            call()
            if barriers:
                world.Barrier()
            times[k] = clock() - start
        return times

    return loop


def _mpi4py_call(mpi: Any, world: Any, operation: Operation, buffers: _Buffers) -> Callable[[], None]:
    send = buffers.send
    if operation.kind == "barrier":
        return world.Barrier  # type: ignore[no-any-return]
    if operation.kind == "allreduce":
        return lambda: world.Allreduce(send, buffers.recv, mpi.SUM)
    if operation.kind == "broadcast":
        return lambda: world.Bcast(send, 0)
    recv = [buffers.recv, buffers.counts.tolist(), buffers.displs.tolist(), mpi.DOUBLE]
    return lambda: world.Allgatherv(send, recv)


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
