"""Arrays that the ranks of one host share (SHR-01 to SHR-11).

A region goes through phases: made of zeros, filled, fenced, read. The leader fills it through
:meth:`SharedRegion.writable`, or all ranks fill a part each through :meth:`SharedRegion.population_view`;
after :meth:`SharedRegion.fence` all read :attr:`SharedRegion.array`. Where ranks cannot share memory every
rank has a region of its own and is its leader (:class:`HeapRegion`), so that the same program fills them all.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm.contract import SUPPORTED_DTYPES
from cobre.comm.errors import AllocationFailed, InvalidCommunicator
from cobre.errors import Problem, ValidationError

if TYPE_CHECKING:
    from typing_extensions import Self

_LARGEST_BYTES = 2**63 - 1


@dataclass(frozen=True)
class LocalGroup:
    """The ranks that share regions with this one (SHR-09); owns nothing.

    Attributes
    ----------
    rank, size
        This process's place among them, and how many there are.
    """

    rank: int
    size: int
    _barrier: Callable[[], None]

    def barrier(self) -> None:
        """Wait until all ranks of the group have called this."""
        self._barrier()


def region_layout(count: Any, dtype: Any) -> tuple[int, np.dtype[Any], int]:
    """Return elements, dtype and bytes of a region, checked in Python's unlimited integers.

    Raises
    ------
    ValidationError
        When the count is no non-negative integer, or no collective moves the dtype.
    AllocationFailed
        When no machine could address as many bytes.
    """
    kind = np.dtype(dtype)
    if kind not in SUPPORTED_DTYPES or not kind.isnative:
        names = ", ".join(str(supported) for supported in SUPPORTED_DTYPES)
        raise _refusal("TypeMismatch", "dtype", str(kind), f"dtype {kind} is none of {names}")
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise _refusal("TypeMismatch", "count", repr(count), f"count is {count!r}, not an integer")
    elements = int(count)
    if elements < 0:
        raise _refusal("OutOfRange", "count", elements, f"count is negative: {elements}")
    size = elements * kind.itemsize
    if size > _LARGEST_BYTES:
        raise allocation_failed(size, "more than can be addressed")
    return elements, kind, size


def allocation_failed(size: int, reason: object) -> AllocationFailed:
    """Return the error for a region that could not be allocated."""
    return AllocationFailed(size, f"create_shared_region: {size} bytes could not be allocated ({reason})")


def _refusal(kind: str, argument: str, value: Any, text: str) -> ValidationError:
    context = {"operation": "shared region", "argument": argument, "value": value}
    return ValidationError([Problem(kind, f"shared region: {text}", context)], "the shared region")


class SharedRegion(ABC):
    """A one-dimensional array shared by the ranks of one host; a context manager that releases it.

    Parameters
    ----------
    data
        All elements, writable, zero.
    is_leader
        Whether this rank may write the whole region.
    """

    def __init__(self, data: NDArray[Any], *, is_leader: bool) -> None:
        self._data: NDArray[Any] | None = data
        self._is_leader = is_leader
        self._fenced = False

    @property
    def is_leader(self) -> bool:
        """Whether this rank may write the whole region."""
        return self._is_leader

    @property
    def is_closed(self) -> bool:
        """Whether the region has been released."""
        return self._data is None

    @property
    def array(self) -> NDArray[Any]:
        """The region, read-only; from the first fence on."""
        data = self._open()
        if not self._fenced:
            raise _refusal("IncompatibleSettings", "array", None, "call fence() before reading")
        view = data[:]
        view.flags.writeable = False
        return view

    @property
    def target(self) -> NDArray[Any]:
        """The region as the ``recv`` of a kernel's ``gather_shared``; for nothing else."""
        return self._open()[:]

    def writable(self) -> NDArray[Any]:
        """Return the region for the leader to write; others read what it wrote after a fence."""
        if not self._is_leader:
            self._open()
            raise _refusal("IncompatibleSettings", "writable", None, "only the leader may write all of it")
        return self._open()[:]

    def population_view(self, start: int, stop: int) -> NDArray[Any]:
        """Return a part for this rank to fill before the first fence (SHR-08).

        Parameters
        ----------
        start, stop
            Elements, 0 <= start <= stop <= len; parts of different ranks must not overlap.
        """
        data = self._open()
        if self._fenced:
            raise _refusal("IncompatibleSettings", "population_view", None, "the region is already fenced")
        if not 0 <= start <= stop <= len(data):
            text = f"[{start}:{stop}] is no part of {len(data)} elements"
            raise _refusal("OutOfRange", "population_view", [start, stop], text)
        return data[start:stop]

    def fence(self) -> None:
        """Make all writes visible to all ranks that share the region; collective over them (SHR-04)."""
        self._open()
        self._fence()
        self._fenced = True

    def close(self) -> None:
        """Release the region; harmless when called again. Arrays taken from it stay valid memory."""
        if self._data is not None:
            self._data = None
            self._release()

    @abstractmethod
    def _fence(self) -> None:
        """Wait for the sharers and order their writes."""

    @abstractmethod
    def _release(self) -> None:
        """Free what the region holds besides its array."""

    def _open(self) -> NDArray[Any]:
        if self._data is None:
            raise InvalidCommunicator
        return self._data

    def __len__(self) -> int:
        return len(self._open())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class HeapRegion(SharedRegion):
    """A region in this process's own memory, not shared (SHR-06)."""

    @classmethod
    def allocate(cls, count: int, dtype: Any) -> HeapRegion:
        """Make a region of zeros.

        Raises
        ------
        AllocationFailed
            When the memory cannot be allocated.
        """
        elements, kind, size = region_layout(count, dtype)
        present = physical_memory_bytes()
        if size > present:  # Linux would promise the memory and end the process when it is touched
            raise allocation_failed(size, f"this machine has {present}")
        try:
            data = np.zeros(elements, kind)
        except (MemoryError, ValueError) as error:
            raise allocation_failed(size, error) from error
        return cls(data, is_leader=True)

    def _fence(self) -> None:
        """Do nothing: the region is not shared."""

    def _release(self) -> None:
        """The array is all there is."""


def physical_memory_bytes() -> float:
    """Return the physical memory of the machine; infinite where it is not reported."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return math.inf
