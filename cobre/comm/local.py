"""The communicator of a single process: rank 0 of 1 (LOC-01, LOC-02, LOC-03).

``allgatherv`` and ``allreduce`` are copies; ``broadcast`` and ``barrier`` compile to nothing. Arguments are
checked like on any other backend, so that code which runs here also runs there.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.comm import checks, status
from cobre.comm.checks import (
    check_allgatherv,
    check_allreduce,
    check_root,
    require_payload,
    require_same_dtype,
)
from cobre.comm.contract import HostRanks, Topology
from cobre.comm.environment import slurm_info
from cobre.comm.owner import KernelCommunicator
from cobre.comm.status import OK, new_detail
from cobre.native import stable_jitclass


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

    def gather_shared(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Copy like ``allgatherv``, since the region is not shared; return a status."""
        return self.allgatherv(send, recv, counts, displs)

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


class LocalCommunicator(KernelCommunicator):
    """Owner of the communicator of a single process."""

    backend_name = "local"
    kernel_class = LocalKernel
    needs_jit = False

    def __init__(self) -> None:
        topology = Topology(self.backend_name, 1, (HostRanks(socket.gethostname(), (0,)),), slurm_info())
        super().__init__(0, 1, new_detail(), topology)

    @property
    def _arguments(self) -> tuple[NDArray[np.int64]]:
        return (self._detail,)

    def _release(self, *, failed: bool) -> None:
        """There is nothing to free."""
