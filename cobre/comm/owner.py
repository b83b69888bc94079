"""What the owners of all backends have in common: checks, compilation, and how a failure shows.

A backend derives its owner from :class:`KernelCommunicator` and gives the jitclass of its kernel. The owner
calls it through entries: cached nopython functions that take the kernel's arguments as one tuple, then those
of the operation, make the kernel inside and call it. Signatures then hold plain arrays and numbers, which
load faster than a jitclass.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
import weakref
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Final, NoReturn

import numba
import numpy as np
from numpy.typing import NDArray

from cobre.comm.checks import check_buffer, check_pair, integer, integers
from cobre.comm.contract import Communicator, ReduceOp, Topology
from cobre.comm.errors import (
    InitializationFailed,
    InvalidCommunicator,
    InvalidRoot,
    communicator_in_use,
    communicator_of_another_process,
)
from cobre.comm.regions import HeapRegion, LocalGroup, SharedRegion
from cobre.comm.status import COLLECTIVE_FAILED, INVALID_COMMUNICATOR, OK, error_from_status
from cobre.errors import Problem, ValidationError
from cobre.native import compile_for, function_over
from cobre.native.guard import ready_marker

Integers = Sequence[int] | NDArray[np.integer[Any]]

_LARGEST_EXIT_CODE: Final = 255


# Templates of entries: copied for each jitclass, which then replaces this name.
Kernel: Any = None


def _allgatherv(arguments: Any, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
    return Kernel(*arguments).allgatherv(send, recv, counts, displs)


def _allreduce(arguments: Any, send: Any, recv: Any, op: Any) -> Any:
    return Kernel(*arguments).allreduce(send, recv, op)


def _broadcast(arguments: Any, buf: Any, root: Any) -> Any:
    return Kernel(*arguments).broadcast(buf, root)


def _barrier(arguments: Any) -> Any:
    return Kernel(*arguments).barrier()


def _gather_shared(arguments: Any, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
    return Kernel(*arguments).gather_shared(send, recv, counts, displs)


@dataclass(frozen=True)
class Entries:
    """The cached nopython functions that an owner calls."""

    allgatherv: Any
    allreduce: Any
    broadcast: Any
    barrier: Any
    gather_shared: Any


@functools.cache
def entries_over(kernel_class: Any) -> Entries:
    """Return the entries of a kernel, given by its jitclass."""
    templates = (_allgatherv, _allreduce, _broadcast, _barrier, _gather_shared)
    return Entries(*(function_over(template, kernel_class) for template in templates))


def compile_gather(kernel_class: Any, backend: str, arguments: tuple[Any, ...]) -> None:
    """Compile the gather of float64 for a backend if no process of this machine has; load nothing.

    For a rank that is about to wait for others, which have something else to compile meanwhile.

    Parameters
    ----------
    arguments
        What the jitclass is made of, or arrays of the same types.
    """
    entry = entries_over(kernel_class).allgatherv
    numbers, counts = np.zeros(1), np.zeros(1, np.int64)
    tag = _tag(backend, entry, [numbers])
    if not numba.config.DISABLE_JIT and not ready_marker(tag).exists():
        compile_for(entry, tag, arguments, numbers, numbers, counts, counts)


def _tag(backend: str, entry: Any, arrays: Sequence[NDArray[Any]]) -> str:
    # counts and displacements have a fixed type: the first array and its mode identify the variant
    kinds = [f"-{array.dtype.name}-{'rw' if array.flags.writeable else 'ro'}" for array in arrays[:1]]
    return f"comm-{backend}{entry.__name__}{''.join(kinds)}"


_living: weakref.WeakSet[KernelCommunicator] = weakref.WeakSet()


def _disown_all() -> None:
    """In a forked child: make all communicators useless, and let none of their exit handlers run."""
    for communicator in list(_living):
        communicator._disown()


os.register_at_fork(after_in_child=_disown_all)


def exit_code(code: int) -> int:
    """Return what a process can end with: 1 for a number that the system would cut to something else."""
    number = operator.index(code)
    return number if 0 <= number <= _LARGEST_EXIT_CODE else 1


class KernelCommunicator(Communicator):
    """Base of owners whose kernel is a jitclass over plain arrays and numbers.

    A subclass sets ``backend_name`` and ``kernel_class``, and defines :attr:`_arguments` and
    :meth:`_release`; one with a transport also :attr:`_in_use` and :meth:`_disown`. Regions are those of the
    heap unless it overrides this.

    It belongs to the process that made it, and to one call at a time: a forked child and a second thread are
    refused by :class:`~cobre.comm.errors.InvalidCommunicator`.

    Parameters
    ----------
    rank, size
        This process's rank, and how many there are.
    detail
        The detail record that the kernel fills.
    topology
        Where the ranks run.
    """

    backend_name: ClassVar[str]
    needs_jit: ClassVar[bool] = True
    """Whether the kernel works as machine code only (``NUMBA_DISABLE_JIT`` then refuses the backend)."""

    def __init__(self, rank: int, size: int, detail: NDArray[np.int64], topology: Topology) -> None:
        self._rank = rank
        self._size = size
        self._detail = detail
        self._topology = topology
        self._kernel: Any = None
        self._closed = False
        self._poisoned = False
        self._compiled: set[tuple[Any, ...]] = set()
        self._regions: weakref.WeakSet[SharedRegion] = weakref.WeakSet()
        self._pid = os.getpid()
        _living.add(self)

    @classmethod
    def require_jit(cls) -> None:
        """Refuse to start if Numba's compiler is disabled but machine code is needed."""
        if cls.needs_jit and numba.config.DISABLE_JIT:
            raise InitializationFailed(cls.backend_name, "NUMBA_DISABLE_JIT is set; only 'local' works then")

    @property
    @abstractmethod
    def _arguments(self) -> tuple[Any, ...]:
        """What the jitclass's constructor takes."""

    @abstractmethod
    def _release(self, *, failed: bool) -> None:
        """Free the transport; called once. ``failed``: leave at once, without waiting for anybody."""

    @property
    def entries(self) -> Entries:
        """The functions by which this owner calls its kernel."""
        return entries_over(self.kernel_class)

    @property
    def _in_use(self) -> bool:
        """Whether a thread is in a collective."""
        return False

    def _disown(self) -> None:
        """In a forked child: make the kernel refuse, drop what the child has inherited of the transport.

        The parent's rank must not notice; nothing may be sent, signalled or waited for.
        """

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self.backend_name

    @property
    def rank(self) -> int:
        """This process's rank."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def kernel(self) -> Any:
        """The jitclass, made at the first use: its constructor has to be compiled in every process."""
        self._require_open()
        if self._kernel is None:
            self._kernel = self.kernel_class(*self._arguments)
        return self._kernel

    @property
    def kernel_arguments(self) -> tuple[Any, ...]:
        """What the jitclass's constructor takes: plain arrays and numbers."""
        self._require_open()
        return self._arguments

    @property
    def detail(self) -> NDArray[np.int64]:
        """The detail record."""
        return self._detail

    def allgatherv(self, send: NDArray[Any], recv: NDArray[Any], counts: Integers, displs: Integers) -> None:
        """Gather every rank's elements; see :meth:`Communicator.allgatherv`."""
        self._require_open()
        check_pair(send, recv, "allgatherv")
        counts_array = integers(counts, "counts", "allgatherv")
        displs_array = integers(displs, "displs", "allgatherv")
        self._call(self.entries.allgatherv, send, recv, counts_array, displs_array)

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp) -> None:
        """Fold the ranks' elements; see :meth:`Communicator.allreduce`."""
        self._require_open()
        check_pair(send, recv, "allreduce")
        self._call(self.entries.allreduce, send, recv, integer(op, "op", "allreduce"))

    def broadcast(self, buf: NDArray[Any], root: int) -> None:
        """Copy the root's buffer; see :meth:`Communicator.broadcast`."""
        self._require_open()
        check_buffer(buf, "buf", "broadcast", writable=True)
        number = integer(root, "root", "broadcast", any_size=True)
        if not 0 <= number < self._size:
            raise InvalidRoot(number, self._size)
        self._call(self.entries.broadcast, buf, number)

    def barrier(self) -> None:
        """Wait for all ranks; see :meth:`Communicator.barrier`."""
        self._require_open()
        self._call(self.entries.barrier)

    def create_shared_region(self, count: int, dtype: Any) -> SharedRegion:
        """Make a region on the heap; see :meth:`Communicator.create_shared_region`."""
        self._require_open()
        return self._keep(HeapRegion.allocate(count, dtype))

    def split_local(self) -> LocalGroup:
        """Return the group of this rank alone: its regions are not shared (SHR-05)."""
        return LocalGroup(0, 1, self._require_open)

    @property
    def is_leader(self) -> bool:
        """Always true: this rank's regions are not shared (SHR-07)."""
        return True

    def gather_shared(
        self, send: NDArray[Any], region: SharedRegion, counts: Integers, displs: Integers
    ) -> None:
        """Gather into a region; see :meth:`Communicator.gather_shared`."""
        self._require_open()
        if region not in self._regions:
            problem = Problem("IncompatibleSettings", "gather_shared: the region is of another communicator")
            raise ValidationError([problem], "the arguments of gather_shared")
        recv = region.target
        check_pair(send, recv, "gather_shared")
        counts_array = integers(counts, "counts", "gather_shared")
        displs_array = integers(displs, "displs", "gather_shared")
        self._call(self.entries.gather_shared, send, recv, counts_array, displs_array)

    def abort(self, code: int) -> NoReturn:
        """End this process with the exit code, without unwinding; peers notice that it is gone."""
        self._require_own_process()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code(code))

    def topology(self) -> Topology:
        """Return where the ranks run."""
        return self._topology

    def close(self) -> None:
        """Release regions, then the transport; harmless when called again (SHR-11)."""
        self._close(failed=self._poisoned)

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(failed=self._poisoned or exception_type is not None)

    def _close(self, *, failed: bool) -> None:
        if self._closed or os.getpid() != self._pid:  # the parent's is the parent's to close
            return
        if self._in_use:
            raise communicator_in_use()
        self._closed = True
        self._kernel = None
        for region in list(self._regions):
            region.close()
        self._release(failed=failed)

    def _keep(self, region: SharedRegion) -> SharedRegion:
        """Remember a region, to be released before the transport."""
        self._regions.add(region)
        return region

    def _require_own_process(self) -> None:
        here = os.getpid()
        if here != self._pid:
            raise communicator_of_another_process(self._pid, here)

    def _require_open(self) -> None:
        self._require_own_process()
        if self._closed or self._poisoned:
            raise InvalidCommunicator

    def _call(self, entry: Any, *arguments: Any) -> None:
        """Run an entry with the kernel's arguments; raise the error of its status, if any."""
        self._compile(entry, arguments)
        try:
            status = entry(self._arguments, *arguments)
        except BaseException:  # a signal handler raised before the status was known
            self._poisoned = True
            raise
        if status != OK:
            self._raise(status)

    def _compile(self, entry: Any, arguments: tuple[Any, ...]) -> None:
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        variant = (entry, *((a.dtype.name, a.flags.writeable) for a in arrays))
        if variant in self._compiled:
            return
        compile_for(entry, _tag(self.backend_name, entry, arrays), self._arguments, *arguments)
        self._compiled.add(variant)

    def _raise(self, status: int) -> NoReturn:
        # COM-43: a collective that broke down leaves the ranks out of step; refused arguments do not
        if status in (COLLECTIVE_FAILED, INVALID_COMMUNICATOR):
            self._poisoned = True
        raise error_from_status(status, self._detail)
