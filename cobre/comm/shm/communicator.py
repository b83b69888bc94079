"""Communicator of processes on one host, through shared memory (SHM-01 to SHM-13); Linux only.

Ranks find each other by the name of a control segment (:mod:`cobre.comm.shm.join`) and communicate through it
(:mod:`cobre.comm.shm.kernel`). Processes of one user trust each other; those of other users are kept out.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import weakref
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cobre.comm.config import ShmConfig
from cobre.comm.contract import SUPPORTED_DTYPES, HostRanks, Topology
from cobre.comm.environment import slurm_info
from cobre.comm.errors import AllocationFailed, BackendNotAvailable
from cobre.comm.owner import KernelCommunicator
from cobre.comm.regions import LocalGroup, SharedRegion, allocation_failed, region_layout
from cobre.comm.shm.join import join, kernel_state, pid_of
from cobre.comm.shm.kernel import ShmKernel, _exchange, _give_up
from cobre.comm.shm.layout import PAGE_BYTES, S_BUSY, S_POISONED
from cobre.comm.shm.segment import DIRECTORY, clean_stale_segments, map_shared, reserve
from cobre.comm.status import BARRIER, CLOSE, CREATE_REGION, DETAIL_SIZE, FENCE, PEER_FAILED

__all__ = ["ShmCommunicator", "ShmKernel", "ShmRegion", "clean_stale_segments"]


class ShmCommunicator(KernelCommunicator):
    """Owner of one rank's part of a shm communicator.

    Creation and ``close`` wait for all ranks. A rank that leaves by an exception notifies the others, whose
    collectives then fail; a killed rank is detected within a fraction of a second.

    Parameters
    ----------
    config
        Name, rank, size and limits; rank 0's capacity counts for all.

    Raises
    ------
    BackendNotAvailable
        On a system other than Linux.
    InitializationFailed
        When the segment is another job's or not private, or a rank does not join.
    RankLost
        When a rank ends while the ranks are joining.
    AllocationFailed
        When ``/dev/shm`` has no room for the segment.
    """

    backend_name = "shm"
    kernel_class = ShmKernel

    def __init__(self, config: ShmConfig) -> None:
        if not sys.platform.startswith("linux"):
            raise BackendNotAvailable("shm", (), message=f"the backend 'shm' does not run on {sys.platform}")
        self.require_jit()
        segment, peers = join(config)
        self._words, self._data = segment.words, segment.data
        self._leader_pid = pid_of(segment, 0)
        self._peers = peers
        self._state = kernel_state(config, segment, peers)
        host = HostRanks(socket.gethostname(), tuple(range(config.size)))
        topology = Topology(self.backend_name, config.size, (host,), slurm_info())
        super().__init__(config.rank, config.size, self._state[:DETAIL_SIZE], topology)
        self._finalizer = weakref.finalize(self, peers.close)

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return self._state, self._words, self._data

    @property
    def is_leader(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def split_local(self) -> LocalGroup:
        """Return all ranks: they are on one host."""
        return LocalGroup(self.rank, self.size, self.barrier)

    def create_shared_region(self, count: int, dtype: Any) -> SharedRegion:
        """Make a region in ``/dev/shm``; see :meth:`Communicator.create_shared_region`.

        The file never has a name, so that nothing can be left behind: the others open it through the
        leader's process.
        """
        self._require_open()
        elements, kind, size = region_layout(count, dtype)
        asked = (elements, SUPPORTED_DTYPES.index(kind))
        descriptor, failure = -1, 0
        try:
            if self.is_leader:
                descriptor, failure = _allocate(size)
            offer = self._exchange(CREATE_REGION, (failure, descriptor), asked)[0]
            if offer[0] == 0 and not self.is_leader:
                descriptor, failure = _attach(self._leader_pid, int(offer[1]))
            failures = self._exchange(CREATE_REGION, (failure,), asked)[:, 0]
            if failures.any():
                raise allocation_failed(size, os.strerror(int(failures[failures != 0][0])))
            try:
                memory = map_shared(descriptor, max(size, PAGE_BYTES))
                failure = 0
            except OSError as error:
                failure = error.errno or 1
            failures = self._exchange(CREATE_REGION, (failure,), asked)[:, 0]
            if failures.any():
                raise allocation_failed(size, os.strerror(int(failures[failures != 0][0])))
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return self._keep(ShmRegion(np.frombuffer(memory, kind, elements), self))

    def abort(self, code: int) -> NoReturn:
        """End all ranks: the others by SIGTERM, this one with the exit code; see COM-02."""
        self._require_own_process()
        if not self._closed:
            _give_up(self._state, self._words, BARRIER, PEER_FAILED, self.rank)
            self._peers.signal_all(signal.SIGTERM)
        super().abort(code)

    def fence(self) -> None:
        """Wait for all ranks, under the name of a region's fence."""
        self._require_open()
        self._exchange(FENCE, ())

    def _exchange(
        self, operation: np.int64, values: tuple[int, ...], agreed: tuple[int, ...] = ()
    ) -> NDArray[np.int64]:
        """Return a row of numbers from every rank; they must agree on the operation and its arguments."""
        send = np.array(values, np.int64)
        recv = np.zeros((self.size, len(values)), np.int64)
        self._call(_exchange, int(operation), send, recv.ravel(), np.array(agreed, np.int64))
        return recv

    @property
    def _in_use(self) -> bool:
        return bool(self._state[S_BUSY])

    def _disown(self) -> None:
        self._state[S_POISONED] = 1
        self._finalizer()  # closes this process's own descriptors

    def _release(self, *, failed: bool) -> None:
        try:
            if failed or self._state[S_POISONED]:
                _give_up(self._state, self._words, CLOSE, PEER_FAILED, self.rank)
            else:
                # No rank leaves while another waits. The second exchange detects a death in the first.
                self._exchange(CLOSE, ())
                self._exchange(CLOSE, ())
        finally:
            self._state[S_POISONED] = 1  # kernels that are still around answer, but do nothing
            self._words, self._data = np.zeros(0, np.int64), np.zeros(0, np.uint8)
            self._finalizer()


class ShmRegion(SharedRegion):
    """A region in memory that all ranks have mapped; only rank 0 may write all of it."""

    def __init__(self, data: NDArray[Any], owner: ShmCommunicator) -> None:
        super().__init__(data, is_leader=owner.is_leader)
        self._owner = owner

    def _fence(self) -> None:
        self._owner.fence()

    def _release(self) -> None:
        """The memory is unmapped when the last array that refers to it is gone."""


def _allocate(size: int) -> tuple[int, int]:
    """Return a file without a name and 0, or -1 and an error code."""
    try:
        descriptor = os.open(DIRECTORY, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return -1, error.errno or 1
    try:
        reserve(descriptor, max(size, PAGE_BYTES), "create_shared_region")
    except AllocationFailed as error:
        os.close(descriptor)
        cause = error.__cause__
        return -1, (cause.errno or 1) if isinstance(cause, OSError) else 1
    return descriptor, 0


def _attach(pid: int, number: int) -> tuple[int, int]:
    """Return the leader's file and 0, or -1 and an error code."""
    try:
        return os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC), 0
    except OSError as error:
        return -1, error.errno or 1
