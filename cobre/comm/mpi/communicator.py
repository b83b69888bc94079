"""The communicator of an MPI job (extra ``mpi``): mpi4py starts MPI, nopython code calls it directly.

The collectives run on a duplicate of MPI's world, so that their messages never mix with others. MPI reports
errors by codes (ERRORS_RETURN); divergence of ranks is not detected, unlike on shm and tcp. All ranks make,
and close, communicators and regions in the same order. Use it in the thread that started MPI.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.comm import checks, exclusive, folding, status
from cobre.comm.checks import require_payload, require_same_dtype
from cobre.comm.contract import SUPPORTED_DTYPES, ReduceOp
from cobre.comm.errors import CollectiveFailed, CommError, InvalidCommunicator
from cobre.comm.exclusive import enter, leave
from cobre.comm.mpi import calls as mpi_calls
from cobre.comm.mpi.calls import (
    BUSY,
    COMM,
    CORNER,
    DATATYPES,
    ERROR_CLASSES,
    FUNCTION_NAMES,
    FUNCTIONS,
    IS_SHARED,
    LARGEST_COUNT,
    LIMIT,
    OPEN,
    OPERATIONS,
    RANK,
    SIZE,
    SLOT_BYTES,
    STATE_SIZE,
    STRIDE,
    mpi_allgatherv,
    mpi_allreduce,
    mpi_barrier,
    mpi_broadcast,
    mpi_gather_shared,
)
from cobre.comm.mpi.region import MpiRegion, Window, WindowList, room_for
from cobre.comm.mpi.world import MpiWorld
from cobre.comm.owner import KernelCommunicator, exit_code
from cobre.comm.regions import LocalGroup, SharedRegion, allocation_failed, region_layout
from cobre.comm.status import COLLECTIVE_FAILED, IN_USE, OPERATION_NAMES, new_detail
from cobre.errors import Problem, ValidationError
from cobre.native import memory, stable_jitclass


@stable_jitclass(
    [("_state", types.int64[::1]), ("_scratch", types.uint8[::1]), ("_detail", types.int64[::1])],
    depends_on=(checks, exclusive, folding, status, mpi_calls, memory),
)
class MpiKernel:
    """The MPI communicator in nopython code; see :mod:`cobre.comm.contract` for its methods.

    Parameters
    ----------
    state
        Numbers, addresses and handles; see :mod:`cobre.comm.mpi.calls`.
    scratch
        Room for counts and for the elements that are folded; see :mod:`cobre.comm.mpi.scratch`.
    detail
        The detail record.
    """

    def __init__(self, state: Any, scratch: Any, detail: Any) -> None:
        self._state = state
        self._scratch = scratch
        self._detail = detail

    def allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Gather every rank's elements on every rank; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = mpi_allgatherv(self._state, self._scratch, self._detail, send, recv, counts, displs)
        leave(self._state, BUSY)
        return outcome

    def gather_shared(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Gather into a shared region; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = mpi_gather_shared(self._state, self._scratch, self._detail, send, recv, counts, displs)
        leave(self._state, BUSY)
        return outcome

    def allreduce(self, send: Any, recv: Any, op: Any) -> Any:
        """Fold the ranks' elements; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = mpi_allreduce(self._state, self._scratch, self._detail, send, recv, op)
        leave(self._state, BUSY)
        return outcome

    def broadcast(self, buf: Any, root: Any) -> Any:
        """Copy the root's buffer to all ranks; return a status."""
        require_payload(buf)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = mpi_broadcast(self._state, self._scratch, self._detail, buf, root)
        leave(self._state, BUSY)
        return outcome

    def barrier(self) -> Any:
        """Wait for all ranks; return a status."""
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = mpi_barrier(self._state, self._scratch, self._detail)
        leave(self._state, BUSY)
        return outcome

    def rank(self) -> Any:
        """Return this process's rank."""
        return self._state[RANK]

    def size(self) -> Any:
        """Return the number of ranks."""
        return self._state[SIZE]


class MpiCommunicator(KernelCommunicator):
    """Owner of the communicator of an MPI job; collective over all its ranks.

    While it is open, an uncaught exception on one rank ends the whole job.

    Raises
    ------
    InitializationFailed
        When MPI does not start, or its number of ranks is not the launcher's.
    """

    backend_name = "mpi"
    kernel_class = MpiKernel

    def __init__(self) -> None:
        self.require_jit()
        self._world = MpiWorld.get()
        self._comm = self._world.world.Dup()
        self._comm.Set_errhandler(self._world.MPI.ERRORS_RETURN)  # MPI-05
        rank, size = self._comm.rank, self._comm.size
        self._state = self._make_state(rank, size)
        self._scratch = self._world.scratch.data
        self._windows = WindowList(self._world, self._state)
        super().__init__(rank, size, new_detail(), self._world.topology)
        self._world.join(self)

    def _make_state(self, rank: int, size: int) -> NDArray[np.int64]:
        world, mpi, scratch = self._world, self._world.MPI, self._world.scratch
        state = np.zeros(STATE_SIZE, np.int64)
        state[[OPEN, RANK, SIZE, LIMIT]] = 1, rank, size, LARGEST_COUNT
        state[[SLOT_BYTES, STRIDE]] = scratch.slot_bytes, scratch.stride
        state[[CORNER, IS_SHARED]] = scratch.corner, scratch.is_shared
        classes = (mpi.ERR_COMM, mpi.ERR_BUFFER, mpi.ERR_COUNT, mpi.ERR_ROOT, mpi.ERR_NO_MEM)
        state[ERROR_CLASSES : ERROR_CLASSES + len(classes)] = classes
        state[FUNCTIONS : FUNCTIONS + len(FUNCTION_NAMES)] = world.function_addresses
        state[COMM] = world.handle(self._comm)
        names = ("FLOAT", "DOUBLE", "INT32_T", "INT64_T", "UINT8_T", "UINT32_T", "UINT64_T")
        datatypes = [world.handle(getattr(mpi, name)) for name in names]
        state[DATATYPES : DATATYPES + len(SUPPORTED_DTYPES)] = datatypes
        operations = [world.handle(operation) for operation in (mpi.SUM, mpi.MIN, mpi.MAX, mpi.BOR)]
        state[OPERATIONS : OPERATIONS + len(ReduceOp)] = operations
        return state

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return self._state, self._scratch, self._detail

    def _require_open(self) -> None:
        super()._require_open()
        if self._world.has_ended:
            raise InvalidCommunicator
        if threading.current_thread() is not threading.main_thread():  # MPI-02
            problem = Problem("IncompatibleSettings", "the mpi backend is for the main thread only")
            raise ValidationError([problem], "the use of the communicator")

    def _raise(self, status_code: int) -> NoReturn:
        try:
            super()._raise(status_code)
        except CollectiveFailed as error:
            if status_code != COLLECTIVE_FAILED:
                raise
            code = error.mpi_error_code
            text = f"{error.operation}: {self._world.MPI.Get_error_string(code)}"
            raise CollectiveFailed(error.operation, code, text) from None

    def create_shared_region(self, count: int, dtype: Any) -> SharedRegion:
        """Make a region that this host's ranks share; see :meth:`Communicator.create_shared_region`."""
        self._require_open()
        elements, kind, size = region_layout(count, dtype)
        try:
            return self._keep(self._create_region(elements, kind, size))
        except self._world.MPI.Exception as error:
            raise self._failed("create_shared_region", error) from error

    def _create_region(self, elements: int, kind: np.dtype[Any], size: int) -> SharedRegion:
        self._windows.sweep()
        self._agree_on_region(elements, SUPPORTED_DTYPES.index(kind), room_for(size))
        window = Window(self._world, size)
        data = window.attach(elements, kind)
        if not self._all_ranks(window.populate(size)):
            del data
            window.free()
            raise allocation_failed(size, "no memory for shared segments")
        if self.is_leader:
            data[:] = 0
        window.fence()
        self._windows.add(window, data)
        return MpiRegion(window, data, self._fence_window, is_leader=self.is_leader)

    def _agree_on_region(self, elements: int, kind: int, has_room: bool) -> None:
        mine = np.array([elements, kind, has_room], np.int64)
        everybody = np.zeros((self._size, 3), np.int64)
        self._comm.Allgather(mine, everybody)
        different = np.flatnonzero((everybody[:, :2] != everybody[0, :2]).any(axis=1))
        if len(different):
            self._poisoned = True
            text = f"create_shared_region: rank {different[0]} asks for another region than rank 0"
            raise CollectiveFailed("create_shared_region", 0, text)
        if not everybody[:, 2].all():
            size = elements * SUPPORTED_DTYPES[kind].itemsize
            raise allocation_failed(size, "more than a host has for shared segments")

    def _all_ranks(self, answer: bool) -> bool:
        mine, everybody = np.array([answer], np.int32), np.zeros(1, np.int32)
        self._comm.Allreduce(mine, everybody, op=self._world.MPI.MIN)
        return bool(everybody[0])

    def _fence_window(self, window: Window) -> None:
        self._require_open()
        try:
            window.fence()
        except self._world.MPI.Exception as error:
            raise self._failed("fence", error) from error

    def split_local(self) -> LocalGroup:
        """Return the ranks that share this one's memory (SHR-05)."""
        self._require_open()
        return LocalGroup(self._world.node.rank, self._world.node.size, self._local_barrier)

    def _local_barrier(self) -> None:
        self._require_open()
        try:
            self._world.node.Barrier()
        except self._world.MPI.Exception as error:
            raise self._failed("barrier", error) from error

    @property
    def is_leader(self) -> bool:
        """Whether this rank is the first of those that share its memory."""
        return bool(self._world.node.rank == 0)

    def _failed(self, operation: str, error: Any) -> CommError:
        """Return the error for an exception of mpi4py; the communicator cannot be used any more."""
        self._poisoned = True
        assert operation in OPERATION_NAMES
        return CollectiveFailed(operation, error.Get_error_code(), f"{operation}: {error.Get_error_string()}")

    def abort(self, code: int) -> NoReturn:
        """End all ranks with the exit code."""
        self._require_own_process()
        self._world.abort(exit_code(code))

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._world.note_exit(exception)
        super().__exit__(exception_type, exception, traceback)

    @property
    def _in_use(self) -> bool:
        return bool(self._state[BUSY])

    def _disown(self) -> None:
        self._state[OPEN] = 0

    def leave_world(self) -> None:
        """Close because MPI ends."""
        self._close(failed=self._poisoned)

    def _release(self, *, failed: bool) -> None:
        self._state[OPEN] = 0
        if self._world.has_ended:
            return
        if failed:
            # the others may be in a collective: do not wait for them, and let an uncaught exception end them
            self._world.abandon(self._comm, *self._windows.remove_all())
            return
        self._windows.close_all()
        self._windows.sweep()
        self._world.free_at_exit(self._windows.remove_all())  # somebody still has arrays of these
        self._comm.Free()
        self._world.leave(self)
