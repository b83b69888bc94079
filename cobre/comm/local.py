"""The communicator of a single process: rank 0 of 1 (LOC-01, LOC-02, LOC-03).

``allgatherv`` and ``allreduce`` are copies; ``broadcast`` and ``barrier`` compile to nothing. Arguments are
checked like on any other backend, so that code which runs here also runs there.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from cobre.comm import checks, status
from cobre.comm.checks import (
    check_allgatherv,
    check_allreduce,
    check_buffer,
    check_pair,
    check_root,
    integers,
    require_payload,
    require_same_dtype,
)
from cobre.comm.contract import Communicator, HostRanks, ReduceOp, Topology
from cobre.comm.environment import slurm_info
from cobre.comm.errors import InvalidCommunicator
from cobre.comm.status import OK, error_from_status, new_detail
from cobre.native import compile_for, stable_jitclass

BACKEND = "local"


@stable_jitclass([("_detail", types.int64[::1])], depends_on=(checks, status))
class LocalKernel:
    """The local communicator in nopython code; see :mod:`cobre.comm.contract` for its methods.

    Parameters
    ----------
    detail
        The detail record, an int64 array of ``DETAIL_SIZE`` elements that the caller owns.
    """

    def __init__(self, detail: Any) -> None:
        self._detail = detail

    def allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Copy ``send`` to ``recv[displs[0]:]``; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        fault = check_allgatherv(0, 1, send, recv, counts, displs, self._detail)
        if fault != OK:
            return fault
        start = displs[0]
        region = recv[start : start + len(send)]
        for i in range(len(send)):
            region[i] = send[i]
        return OK

    def allreduce(self, send: Any, recv: Any, op: Any) -> Any:
        """Copy ``send`` to ``recv``; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        fault = check_allreduce(send, recv, op, self._detail)
        if fault != OK:
            return fault
        for i in range(len(send)):
            recv[i] = send[i]
        return OK

    def broadcast(self, buf: Any, root: Any) -> Any:
        """Do nothing but check the root; return a status."""
        require_payload(buf)
        return check_root(root, 1, self._detail)

    def barrier(self) -> Any:
        """Do nothing; return a status."""
        return OK

    def rank(self) -> Any:
        """Return 0."""
        return 0

    def size(self) -> Any:
        """Return 1."""
        return 1


# What the owner calls: the kernel is made inside, so that the signatures hold plain arrays and numbers.


@njit(cache=True, nogil=True)
def _allgatherv(detail, send, recv, counts, displs):  # type: ignore[no-untyped-def]
    return LocalKernel(detail).allgatherv(send, recv, counts, displs)


@njit(cache=True, nogil=True)
def _allreduce(detail, send, recv, op):  # type: ignore[no-untyped-def]
    return LocalKernel(detail).allreduce(send, recv, op)


@njit(cache=True, nogil=True)
def _broadcast(detail, buf, root):  # type: ignore[no-untyped-def]
    return LocalKernel(detail).broadcast(buf, root)


class LocalCommunicator(Communicator):
    """Owner of the communicator of a single process."""

    def __init__(self) -> None:
        self._detail = new_detail()
        self._kernel: Any = None
        self._open = True
        self._compiled: set[tuple[Any, ...]] = set()
        self._topology = Topology(BACKEND, 1, (HostRanks(socket.gethostname(), (0,)),), slurm_info())

    @property
    def backend(self) -> str:
        """The string ``"local"``."""
        return BACKEND

    @property
    def rank(self) -> int:
        """Always 0."""
        return 0

    @property
    def size(self) -> int:
        """Always 1."""
        return 1

    @property
    def kernel(self) -> Any:
        """The jitclass, made at the first use: its constructor has to be compiled in every process."""
        self._require_open()
        if self._kernel is None:
            self._kernel = LocalKernel(self._detail)
        return self._kernel

    @property
    def kernel_arguments(self) -> tuple[NDArray[np.int64]]:
        """The detail record, the only argument of :class:`LocalKernel`."""
        self._require_open()
        return (self._detail,)

    @property
    def detail(self) -> NDArray[np.int64]:
        """The detail record."""
        return self._detail

    def allgatherv(
        self,
        send: NDArray[Any],
        recv: NDArray[Any],
        counts: Sequence[int] | NDArray[np.integer[Any]],
        displs: Sequence[int] | NDArray[np.integer[Any]],
    ) -> None:
        """Copy ``send`` to its region of ``recv``; see :meth:`Communicator.allgatherv`."""
        self._require_open()
        check_pair(send, recv, "allgatherv")
        counts_array = integers(counts, "counts", "allgatherv")
        displs_array = integers(displs, "displs", "allgatherv")
        self._call(_allgatherv, send, recv, counts_array, displs_array)

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any], op: ReduceOp) -> None:
        """Copy ``send`` to ``recv``; see :meth:`Communicator.allreduce`."""
        self._require_open()
        check_pair(send, recv, "allreduce")
        self._call(_allreduce, send, recv, int(op))

    def broadcast(self, buf: NDArray[Any], root: int) -> None:
        """Check the arguments; see :meth:`Communicator.broadcast`."""
        self._require_open()
        check_buffer(buf, "buf", "broadcast", writable=True)
        self._call(_broadcast, buf, int(root))

    def barrier(self) -> None:
        """Return at once."""
        self._require_open()

    def abort(self, code: int) -> NoReturn:
        """End this process with the exit code, without unwinding."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def topology(self) -> Topology:
        """Return this host with rank 0."""
        return self._topology

    def close(self) -> None:
        """Make the communicator unusable."""
        self._open = False
        self._kernel = None

    def _require_open(self) -> None:
        if not self._open:
            raise InvalidCommunicator

    def _call(self, entry: Any, *arguments: Any) -> None:
        variant = tuple(
            (a.dtype.name, a.flags.writeable) if isinstance(a, np.ndarray) else int for a in arguments
        )
        if (entry, variant) not in self._compiled:
            dtype, writable = arguments[0].dtype.name, arguments[0].flags.writeable
            mode = "rw" if writable else "ro"
            compile_for(entry, f"comm-local{entry.__name__}-{dtype}-{mode}", self._detail, *arguments)
            self._compiled.add((entry, variant))
        fault = entry(self._detail, *arguments)
        if fault != OK:
            raise error_from_status(fault, self._detail)
