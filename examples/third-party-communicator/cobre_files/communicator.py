"""The communicator's owner, in Python."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from cobre.comm.contract import HostRanks, Topology
from cobre.comm.environment import slurm_info
from cobre.comm.owner import KernelCommunicator
from cobre.comm.status import CLOSE, DETAIL_SIZE, PEER_FAILED
from cobre_files.backend import FilesConfig
from cobre_files.kernel import FilesKernel, meet
from cobre_files.layout import BUSY, LOCKS, POISONED, RANK, SIZE, STRIDE, TIMEOUT_NS, path_table
from cobre_files.rendezvous import Place

_SCRATCH_BYTES = 1 << 16
_LONGEST_NS = 2**62


class FilesCommunicator(KernelCommunicator):
    """Owner of one rank's part of a communicator over files; made by all ranks together.

    Parameters
    ----------
    config
        How this rank finds the others.

    Raises
    ------
    InitializationFailed
        When the ranks do not come together.
    RankLost
        When one that has joined ends before all are there.
    """

    backend_name = "files"
    kernel_class = FilesKernel

    def __init__(self, config: FilesConfig) -> None:
        self.require_jit()
        self._place = Place(config)
        self._paths, stride = path_table(self._place.directory, config.rank, config.size)
        self._scratch = np.zeros(_SCRATCH_BYTES, np.uint8)
        self._state = np.zeros(LOCKS + config.size, np.int64)
        self._state[[RANK, SIZE, STRIDE]] = config.rank, config.size, stride
        self._state[TIMEOUT_NS] = int(min(config.timeout_s * 1e9, _LONGEST_NS))
        self._state[LOCKS:] = self._place.locks
        hosts = dict.fromkeys(self._place.hosts)
        ranks = [[r for r, host in enumerate(self._place.hosts) if host == name] for name in hosts]
        places = tuple(HostRanks(name, tuple(found)) for name, found in zip(hosts, ranks, strict=True))
        topology = Topology(self.backend_name, config.size, places, slurm_info())
        super().__init__(config.rank, config.size, self._state[:DETAIL_SIZE], topology)
        # a process that ends without close leaves its place all the same
        self._finalizer = weakref.finalize(self, self._place.leave)

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return self._state, self._paths, self._scratch

    @property
    def _in_use(self) -> bool:
        return bool(self._state[BUSY])

    def _disown(self) -> None:
        self._state[POISONED] = 1
        if self._finalizer.detach() is not None:
            self._place.drop()

    def _release(self, *, failed: bool) -> None:
        try:
            if failed or self._state[POISONED]:
                self._place.tell(int(PEER_FAILED), self.rank)
            else:
                # Nobody leaves while another still waits for it. Twice: one that dies waiting is missed then.
                self._call(meet, int(CLOSE))
                self._call(meet, int(CLOSE))
        finally:
            self._state[POISONED] = 1  # kernels that are still around answer, but do nothing
            self._finalizer()
