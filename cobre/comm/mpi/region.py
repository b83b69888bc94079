"""Shared regions in MPI's shared windows (SHR-03 to SHR-11).

MPI frees a window collectively, and its memory is then gone. Ranks may close a region at different times, or
keep arrays of it. A closed window is therefore freed at a later collective point (another region is made, the
communicator is closed), once every rank has closed it and dropped its arrays.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cobre.comm.mpi.calls import MOST_REGIONS, REGION_TABLE, REGIONS
from cobre.comm.mpi.world import MpiWorld
from cobre.comm.regions import SharedRegion, physical_memory_bytes

_SEGMENTS: Final = "/dev/shm"
_MADV_POPULATE_WRITE: Final = 23
_SPARE_BYTES: Final = 1 << 20


class Window:
    """One shared window of the node's ranks, and whether this rank is done with it.

    Parameters
    ----------
    world
        MPI in this process.
    size
        Bytes that the leader allocates.
    """

    def __init__(self, world: MpiWorld, size: int) -> None:
        self._world = world
        allocated = max(size, 64) if world.node.rank == 0 else 0
        self._window = world.MPI.Win.Allocate_shared(allocated, 1, comm=world.node)
        self._window.Lock_all(world.MPI.MODE_NOCHECK)
        self._data: weakref.ref[NDArray[Any]] | None = None
        self.closed = False

    def attach(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the window's array, which all views of it keep alive."""
        buffer, _ = self._window.Shared_query(0)
        data: NDArray[Any] = np.frombuffer(buffer, dtype, count)
        self._data = weakref.ref(data)
        return data

    def populate(self, size: int) -> bool:
        """Have the leader's memory provided now; false where a later access would end the process."""
        if self._world.node.rank != 0 or size == 0:
            return True
        buffer, _ = self._window.Shared_query(0)
        return _populate(buffer.address, size)

    def fence(self) -> None:
        """Order the sharers' writes."""
        self._window.Sync()
        self._world.node.Barrier()
        self._window.Sync()

    @property
    def unused(self) -> bool:
        """Whether this rank has closed the region and dropped all its arrays."""
        return self.closed and (self._data is None or self._data() is None)

    def free(self) -> None:
        """Free the window; collective over the node."""
        self._window.Unlock_all()
        self._window.Free()


class MpiRegion(SharedRegion):
    """A region in a shared window; the node's ranks see the same memory."""

    def __init__(
        self, window: Window, data: NDArray[Any], fence: Callable[[Window], None], *, is_leader: bool
    ) -> None:
        super().__init__(data, is_leader=is_leader)
        self._window = window
        self._fence_window = fence

    def _fence(self) -> None:
        self._fence_window(self._window)

    def _release(self) -> None:
        self._window.closed = True


class WindowList:
    """The windows of one communicator, in the order in which all ranks made them.

    Parameters
    ----------
    world
        MPI in this process.
    state
        The kernel's state, which lists the regions that all ranks share.
    """

    def __init__(self, world: MpiWorld, state: NDArray[np.int64]) -> None:
        self._world = world
        self._state = state
        self._windows: list[tuple[Window, int, int]] = []  # with address and bytes

    def add(self, window: Window, data: NDArray[Any]) -> None:
        """Remember a window."""
        self._windows.append((window, data.ctypes.data, data.nbytes))
        self._update_table()

    def sweep(self) -> None:
        """Free the windows that no rank of the node uses any more; collective over the node."""
        if not self._windows:
            return
        unused = np.array([window.unused for window, _, _ in self._windows], np.int32)
        by_all = np.empty_like(unused)
        self._world.node.Allreduce(unused, by_all, op=self._world.MPI.MIN)
        for (window, _, _), free in zip(self._windows, by_all, strict=True):
            if free:
                window.free()
        self._windows = [entry for entry, free in zip(self._windows, by_all, strict=True) if not free]
        self._update_table()

    def close_all(self) -> None:
        """Take all regions for closed: their objects may be gone without having been closed."""
        for window, _, _ in self._windows:
            window.closed = True

    def remove_all(self) -> list[Window]:
        """Return the windows that are left, and forget them."""
        left = [window for window, _, _ in self._windows]
        self._windows.clear()
        self._update_table()
        return left

    def _update_table(self) -> None:
        # the same on all ranks, since windows are made and freed only at collective points
        shared = self._windows[:MOST_REGIONS] if self._world.shares_memory else []
        for place, (_, address, size) in enumerate(shared):
            self._state[REGION_TABLE + 2 * place] = address
            self._state[REGION_TABLE + 2 * place + 1] = size
        self._state[REGIONS] = len(shared)


def room_for(size: int) -> bool:
    """Whether this host has room for a region of so many bytes."""
    if size > physical_memory_bytes():
        return False
    try:
        segments = os.statvfs(_SEGMENTS)
    except OSError:
        return True
    return size + _SPARE_BYTES <= segments.f_bavail * segments.f_frsize


def _populate(address: int, size: int) -> bool:
    """Provide the pages of a mapping; false where the first access would be a SIGBUS."""
    libc = ctypes.CDLL(None, use_errno=True)
    start = address - address % mmap.PAGESIZE
    length = ctypes.c_size_t(address + size - start)
    if libc.madvise(ctypes.c_void_p(start), length, ctypes.c_int(_MADV_POPULATE_WRITE)) == 0:
        return True
    # kernels before 5.14 do not support it: then room_for() has to do
    return ctypes.get_errno() not in (errno.EFAULT, errno.ENOMEM)
