"""What a communicator is.

It has two faces. The **owner**, a :class:`Communicator`, lives in Python: it makes and frees what the
transport needs, checks arguments, and raises. Its **kernel** is a Numba jitclass that lives in nopython code
and holds numbers and array views only. A backend defines both; the conformance suite
(:mod:`cobre.comm.conformance`) checks that they keep this contract.

The kernel's methods, all callable without the GIL:

================================================  =====================================================
``allgatherv(send, recv, counts, displs)``        int32 status
``allreduce(send, recv, op)``                     int32 status; ``op`` a :class:`ReduceOp` or its number
``broadcast(buf, root)``                          int32 status
``barrier()``                                     int32 status
``gather_shared(send, recv, counts, displs)``     int32 status; ``recv`` the target of a shared region
``rank()``, ``size()``                            int64; never fail
================================================  =====================================================

A status other than 0 means failure; the detail record, an int64 array given to the kernel at creation, then
describes it (:mod:`cobre.comm.status`). Methods never raise: an exception in nopython code leaks memory and
is lost in a ``prange``.

Buffers are one-dimensional, C-contiguous, aligned arrays of one of :data:`SUPPORTED_DTYPES`, the same dtype
on all ranks (COM-03); in nopython code anything else does not compile. All ranks call the same operations in
the same order, one at a time (COM-41, COM-42). After a failed operation the receiving buffer is unspecified
(COM-40).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

    from cobre.comm.regions import LocalGroup, SharedRegion

SUPPORTED_DTYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(name) for name in ("float32", "float64", "int32", "int64", "uint8", "uint32", "uint64")
)
"""Element types that collectives move (COM-03)."""


class ReduceOp(enum.IntEnum):
    """How ``allreduce`` folds the ranks' elements (COM-04).

    MIN and MAX propagate NaN (COM-22). BITWISE_OR is for integers.
    """

    SUM = 0
    MIN = 1
    MAX = 2
    BITWISE_OR = 3


@dataclass(frozen=True)
class HostRanks:
    """The ranks that run on one host, in ascending order."""

    hostname: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class SlurmInfo:
    """The Slurm job of this process, from its environment."""

    job_id: str
    node_list: str | None
    cpus_per_task: int | None


@dataclass(frozen=True)
class MpiInfo:
    """The MPI that joins the ranks.

    Attributes
    ----------
    library
        Name and version of the implementation.
    standard
        Version of the MPI standard that it follows, such as ``"4.1"``.
    thread_level
        ``"funneled"``, ``"serialized"`` or ``"multiple"``.
    """

    library: str
    standard: str
    thread_level: str


@dataclass(frozen=True)
class Topology:
    """Where the ranks run (COM-45).

    Attributes
    ----------
    backend
        Name of the backend.
    world_size
        Number of ranks.
    hosts
        One entry for each host, in order of its lowest rank.
    slurm
        The Slurm job, or ``None`` outside of one.
    mpi
        The MPI implementation, or ``None`` for other backends.
    """

    backend: str
    world_size: int
    hosts: tuple[HostRanks, ...]
    slurm: SlurmInfo | None = None
    mpi: MpiInfo | None = None

    @property
    def num_hosts(self) -> int:
        """Number of hosts."""
        return len(self.hosts)

    @property
    def is_homogeneous(self) -> bool:
        """Whether all hosts run equally many ranks; true when there are none."""
        return len({len(host.ranks) for host in self.hosts}) <= 1

    @property
    def leader_hostname(self) -> str:
        """Host of rank 0; ``"unknown"`` when no host is known."""
        return next((host.hostname for host in self.hosts if 0 in host.ranks), "unknown")


class Communicator(ABC):
    """Owner of a communicator: a context manager that closes it at the end.

    After ``close`` collectives raise :class:`~cobre.comm.errors.InvalidCommunicator`; ``rank``, ``size`` and
    ``topology`` still answer.
    """

    kernel_class: ClassVar[Any]
    """The jitclass that ``kernel`` is made of, by :func:`~cobre.native.jitclass.stable_jitclass`; nopython
    functions that are generic over communicators are compiled for it (:mod:`cobre.native.generic`)."""

    @property
    @abstractmethod
    def backend(self) -> str:
        """Name of the backend."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """This process's rank, 0 <= rank < size; constant (COM-32)."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ranks; constant and the same on all of them (COM-32)."""

    @property
    @abstractmethod
    def kernel(self) -> Any:
        """The jitclass for nopython code.

        Raises
        ------
        InvalidCommunicator
            After ``close``.
        """

    @property
    @abstractmethod
    def kernel_arguments(self) -> tuple[Any, ...]:
        """Numbers and arrays from which nopython code can make the kernel itself.

        A cached entry that takes these and makes the jitclass inside starts faster than one that takes the
        jitclass.
        """

    @property
    @abstractmethod
    def detail(self) -> NDArray[np.int64]:
        """The detail record that the kernel fills when it fails."""

    @abstractmethod
    def allgatherv(
        self,
        send: NDArray[Any],
        recv: NDArray[Any],
        counts: Sequence[int] | NDArray[np.integer[Any]],
        displs: Sequence[int] | NDArray[np.integer[Any]],
    ) -> None:
        """Gather every rank's elements on every rank (COM-10 to COM-14).

        On return ``recv[displs[r] : displs[r] + counts[r]]`` holds rank r's ``send``, for every r and on all
        ranks; what lies between these regions is untouched. No rank returns before all have contributed.

        Parameters
        ----------
        send
            ``counts[rank]`` elements.
        recv
            At least ``max(displs + counts)`` elements; shares no memory with ``send``.
        counts, displs
            For each rank the number of its elements and where they go; not negative, regions not overlapping.

        Raises
        ------
        InvalidBufferSize
            Checked in this order: length of counts, of displs, of send, the extent in recv.
        """

    @abstractmethod
    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp) -> None:
        """Fold the ranks' arrays elementwise, in the order of ranks (COM-20 to COM-22).

        Parameters
        ----------
        send, recv
            Equally many elements, more than none; ``recv`` gets the same result on all ranks.
        op
            The operation.

        Raises
        ------
        InvalidBufferSize
            When the lengths differ; else when they are 0.
        """

    @abstractmethod
    def broadcast(self, buf: NDArray[Any], root: int) -> None:
        """Copy the root's buffer to all ranks (COM-30).

        Parameters
        ----------
        buf
            Equally long on all ranks. The root's is only read.
        root
            A rank.

        Raises
        ------
        InvalidRoot
            When no rank has this number.
        """

    @abstractmethod
    def barrier(self) -> None:
        """Wait until all ranks have called this (COM-31)."""

    @abstractmethod
    def create_shared_region(self, count: int, dtype: Any) -> SharedRegion:
        """Make an array of zeros that the ranks of one host share (SHR-01); collective.

        Parameters
        ----------
        count, dtype
            Elements and their type, one of :data:`SUPPORTED_DTYPES`; the same on all ranks.

        Raises
        ------
        AllocationFailed
            When the memory cannot be allocated; on all ranks.
        CollectiveFailed
            When the ranks ask for different things.
        """

    @abstractmethod
    def split_local(self) -> LocalGroup:
        """Return the ranks with which this one shares regions (SHR-09)."""

    @property
    @abstractmethod
    def is_leader(self) -> bool:
        """Whether this rank fills shared regions; always true where they are not shared (SHR-07)."""

    @abstractmethod
    def gather_shared(
        self,
        send: NDArray[Any],
        region: SharedRegion,
        counts: Sequence[int] | NDArray[np.integer[Any]],
        displs: Sequence[int] | NDArray[np.integer[Any]],
    ) -> None:
        """Gather into a shared region: like ``allgatherv``, with one copy for all ranks of a host.

        What it gathered stays until any rank begins the next gather into the same region. A rank that still
        reads must not be overtaken: alternate two regions, or call another collective in between.

        Parameters
        ----------
        send, counts, displs
            As in ``allgatherv``; ``displs`` the same on all ranks.
        region
            A region that this communicator has made, of the dtype of ``send``.
        """

    @abstractmethod
    def abort(self, code: int) -> NoReturn:
        """End all ranks at once with this exit code (COM-02); never returns.

        For a rank that fails while its peers would wait for it for ever.
        """

    @abstractmethod
    def topology(self) -> Topology:
        """Return where the ranks run; known since the start, not collective (COM-45)."""

    @abstractmethod
    def close(self) -> None:
        """Wait for all ranks to close, then free the transport; a second call does nothing.

        Raises
        ------
        CollectiveFailed
            When a rank has died, does not arrive, or calls another operation; the transport is freed anyway.
            Not after a failure that was already reported, nor where the transport cannot detect it (mpi).
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
