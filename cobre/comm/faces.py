"""The two faces of a communicator behind one interface, so that a check is written once for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.comm.checks import integers
from cobre.comm.contract import Communicator, ReduceOp
from cobre.comm.regions import SharedRegion
from cobre.comm.status import OK, error_from_status
from cobre.native import compile_for


class Face(Protocol):
    """What both faces of a communicator offer to a check."""

    @property
    def rank(self) -> int:
        """This process's rank."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: Sequence[int], displs: Sequence[int]
    ) -> None:
        """Gather; raise on failure."""

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp) -> None:
        """Fold; raise on failure."""

    def broadcast(self, buf: NDArray[Any], root: int) -> None:
        """Copy from the root; raise on failure."""

    def barrier(self) -> None:
        """Wait for all; raise on failure."""

    def gather_shared(
        self, send: NDArray[Any], region: SharedRegion, counts: Sequence[int], displs: Sequence[int]
    ) -> None:
        """Gather into a shared region; raise on failure."""

    def close(self) -> None:
        """Close the communicator."""


@njit(cache=True, nogil=True)
def _allgatherv(kernel, send, recv, counts, displs):  # type: ignore[no-untyped-def]
    return kernel.allgatherv(send, recv, counts, displs)


@njit(cache=True, nogil=True)
def _allreduce(kernel, send, recv, op):  # type: ignore[no-untyped-def]
    return kernel.allreduce(send, recv, op)


@njit(cache=True, nogil=True)
def _broadcast(kernel, buf, root):  # type: ignore[no-untyped-def]
    return kernel.broadcast(buf, root)


@njit(cache=True, nogil=True)
def _barrier(kernel):  # type: ignore[no-untyped-def]
    return kernel.barrier()


@njit(cache=True, nogil=True)
def _gather_shared(kernel, send, recv, counts, displs):  # type: ignore[no-untyped-def]
    return kernel.gather_shared(send, recv, counts, displs)


@njit(cache=True, nogil=True)
def _rank_and_size(kernel):  # type: ignore[no-untyped-def]
    return kernel.rank(), kernel.size()


class KernelFace:
    """A communicator's kernel, called from nopython code; statuses become exceptions here."""

    def __init__(self, communicator: Communicator) -> None:
        self._owner = communicator
        self._kernel = communicator.kernel
        self._compiled: set[str] = set()

    @property
    def rank(self) -> int:
        """What the kernel's ``rank()`` returns."""
        return int(_rank_and_size(self._kernel)[0])

    @property
    def size(self) -> int:
        """What the kernel's ``size()`` returns."""
        return int(_rank_and_size(self._kernel)[1])

    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: Sequence[int], displs: Sequence[int]
    ) -> None:
        """Call the kernel's ``allgatherv``."""
        counts_array = integers(counts, "counts", "allgatherv")
        displs_array = integers(displs, "displs", "allgatherv")
        self._call(_allgatherv, send, recv, counts_array, displs_array)

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp) -> None:
        """Call the kernel's ``allreduce``."""
        self._call(_allreduce, send, recv, int(op))

    def broadcast(self, buf: NDArray[Any], root: int) -> None:
        """Call the kernel's ``broadcast``."""
        self._call(_broadcast, buf, root)

    def barrier(self) -> None:
        """Call the kernel's ``barrier``."""
        self._call(_barrier)

    def gather_shared(
        self, send: NDArray[Any], region: SharedRegion, counts: Sequence[int], displs: Sequence[int]
    ) -> None:
        """Call the kernel's ``gather_shared``."""
        counts_array = integers(counts, "counts", "gather_shared")
        displs_array = integers(displs, "displs", "gather_shared")
        self._call(_gather_shared, send, region.target, counts_array, displs_array)

    def close(self) -> None:
        """Close the owner."""
        self._owner.close()

    def _call(self, entry: Any, *arguments: Any) -> None:
        kernel = self._owner.kernel  # raises when the owner is closed
        dtypes = "-".join(a.dtype.name for a in arguments if isinstance(a, np.ndarray))
        tag = f"faces-{self._owner.backend}{entry.__name__}-{dtypes}"
        if tag not in self._compiled:
            compile_for(entry, tag, kernel, *arguments)
            self._compiled.add(tag)
        status = entry(kernel, *arguments)
        if status != OK:
            raise error_from_status(status, self._owner.detail)


def faces(communicator: Communicator) -> tuple[Face, Face]:
    """Return both faces: the owner, then its kernel."""
    return communicator, KernelFace(communicator)
