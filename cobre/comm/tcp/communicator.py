"""The tcp backend: ranks on any hosts, joined by a star of connections over rank 0 (TCP-01 to TCP-13).

By default rank 0 listens on the loopback interface. Every job of several ranks has a token, and peers prove
to each other that they hold it (:mod:`cobre.comm.tcp.handshake`).

**What the handshake does not give:** after it, payloads are neither encrypted nor authenticated. An
attacker who can read the network can read the case, and one who can inject into a connection can change
results. Use a network that you trust, or a tunnel (ssh, WireGuard).

All other ranks detect, and name, a rank that is killed at once, and one that is stopped or cut off after
``silence_s``. A rank that is merely slow sends heartbeats, and the others wait for it up to the
configuration's ``timeout_s``. ``close`` waits for all ranks too, so that no death goes undetected.

The wire format is :mod:`cobre.comm.tcp.wire`, the start :mod:`cobre.comm.tcp.rendezvous`, the transfer
:mod:`cobre.comm.tcp.engine`, the collectives :mod:`cobre.comm.tcp.kernel`, the heartbeats
:mod:`cobre.comm.tcp.watch`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import weakref
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from cobre.comm.config import TcpConfig
from cobre.comm.contract import HostRanks, Topology
from cobre.comm.descriptors import require_descriptors
from cobre.comm.environment import slurm_info
from cobre.comm.errors import InitializationFailed
from cobre.comm.owner import KernelCommunicator, compile_gather, exit_code
from cobre.comm.status import CLOSE, COLLECTIVE_FAILED, PENDING, error_from_status, new_detail
from cobre.comm.tcp import engine
from cobre.comm.tcp.alarm import BLAMED, FAIL, REASON, STOP, THIRD
from cobre.comm.tcp.alarm import CLOSE as CLOSE_REQUEST
from cobre.comm.tcp.handshake import Identity, configuration_digest
from cobre.comm.tcp.kernel import SLOT, STAGED_BYTES, TcpKernel, scratch_bytes
from cobre.comm.tcp.rendezvous import BACKEND, Coordinator, Party, Worker, open_listener
from cobre.comm.tcp.watch import Link, Watcher, compile_watcher, nanoseconds

_YIELDS: Final = 100
# Rank 0 knows which ranks are missing: workers give it time to report them.
_WORKER_GRACE_S: Final = 0.5


class TcpCommunicator(KernelCommunicator):
    """Owner of a tcp communicator; made by all ranks together.

    Parameters
    ----------
    config
        How this rank finds the others.

    Raises
    ------
    InitializationFailed
        When the ranks do not all connect.
    RankLost
        When one that has joined ends before all are there.
    """

    backend_name = BACKEND
    kernel_class = TcpKernel

    def __init__(self, config: TcpConfig) -> None:
        self.require_jit()
        if sys.byteorder != "little":
            raise InitializationFailed(BACKEND, "the wire format needs little-endian hosts")
        party = _meet(config)
        super().__init__(config.rank, config.size, new_detail(), _topology(party.hosts))
        self._state = _new_state(config, party.links)
        self._scratch = np.zeros(scratch_bytes(config.rank, len(party.links)), np.uint8)
        watcher = Watcher(config.rank, party.links, config.heartbeat_s, config.silence_s, _patience_s(config))
        self._transport = _Transport(party.links, watcher)
        # a process that ends without close still sends a shutdown frame: it may simply be done
        self._finalizer = weakref.finalize(self, self._transport.leave, STOP)

    @property
    def _arguments(self) -> tuple[NDArray[Any], ...]:
        return self._state, self._scratch, self._transport.watcher.alarm, self._detail

    @property
    def _in_use(self) -> bool:
        return bool(self._state[engine.BUSY])

    def _disown(self) -> None:
        self._state[engine.POISONED] = 1
        if self._finalizer.detach() is not None:
            self._transport.drop()

    def _release(self, *, failed: bool) -> None:
        self._finalizer.detach()
        broken = failed or bool(self._state[engine.POISONED])
        self._state[engine.POISONED] = 1  # for kernels that nopython code still holds
        self._transport.leave(FAIL if broken else CLOSE_REQUEST)
        alarm = self._transport.watcher.alarm
        if not broken and alarm[REASON] != 0:  # not reported so far
            self._detail[:PENDING] = CLOSE, 0, alarm[BLAMED], alarm[REASON], alarm[THIRD]
            raise error_from_status(COLLECTIVE_FAILED, self._detail)

    def abort(self, code: int) -> NoReturn:
        """End all ranks with this exit code; never returns."""
        self._require_own_process()
        code = exit_code(code)
        sys.stdout.flush()
        sys.stderr.flush()
        if not self._closed and self.size > 1:
            self._transport.watcher.abort(code)
        os._exit(code)


class _Transport:
    """What has to be freed: the watcher and the connections."""

    def __init__(self, links: Sequence[Link], watcher: Watcher) -> None:
        self._links = links
        self.watcher = watcher

    def leave(self, request: int) -> None:
        """Part from the peers (TCP-12), end the watcher, close the connections."""
        try:
            self.watcher.stop(request)
        finally:
            self._close()

    def drop(self) -> None:
        """In a forked child, which has no watcher thread: close its copies of the descriptors."""
        self.watcher.drop()
        self._close()

    def _close(self) -> None:
        for link in self._links:
            link.data.close()
            link.control.close()


def _patience_s(config: TcpConfig) -> float:
    """Return how long a rank waits for others that are alive."""
    return config.timeout_s + (0.0 if config.rank == 0 else _WORKER_GRACE_S)


def _meet(config: TcpConfig) -> Party:
    """Connect the ranks; a job of one rank needs no network."""
    host = socket.gethostname()
    if config.size == 1:
        if config.listener_fd is not None:
            with contextlib.suppress(OSError):  # taken over only to be closed
                os.close(config.listener_fd)
        compile_watcher()
        return Party([], [host])
    assert config.token is not None  # a configuration of several ranks has one
    identity = Identity(config.size, config.token, configuration_digest(config.heartbeat_s, config.silence_s))
    if config.rank == 0:
        connections = 2 * (config.size - 1)
        require_descriptors(BACKEND, connections, f"rank 0 of {config.size} ranks")
        listener = open_listener(config)  # first, so that the others find the port while this rank compiles
        try:
            # while the others compile the watcher, which this rank then loads
            words = np.zeros(1, np.int64)
            compile_gather(TcpKernel, BACKEND, (words, np.zeros(1, np.uint8), words, new_detail()))
            compile_watcher()
        except BaseException:
            listener.close()
            raise
        return Coordinator(listener, identity, host, config.connect_timeout_s, config.silence_s).assemble()
    compile_watcher()
    return Worker(config, identity, host).join()


def _new_state(config: TcpConfig, links: Sequence[Link]) -> NDArray[np.int64]:
    """Return the state of the kernel (:mod:`cobre.comm.tcp.engine`)."""
    state = np.zeros(engine.state_words(config.size, len(links)), np.int64)
    state[engine.RANK] = config.rank
    state[engine.SIZE] = config.size
    state[engine.LINKS] = len(links)
    state[engine.TIMEOUT_NS] = nanoseconds(_patience_s(config))
    state[engine.YIELDS] = _YIELDS
    state[engine.SLOT_BYTES] = SLOT if config.rank == 0 else STAGED_BYTES
    for index, link in enumerate(links):
        base = engine.LINK_TABLE + engine.LINK_WORDS * index
        state[base + engine.DESCRIPTOR] = link.data.fileno()
        state[base + engine.PEER] = link.peer
        state[base + engine.WORKER] = max(link.peer, config.rank)
    return state


def _topology(hosts: Sequence[str]) -> Topology:
    ranks: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    places = tuple(HostRanks(host, tuple(members)) for host, members in ranks.items())
    return Topology(BACKEND, len(hosts), places, slurm_info())
