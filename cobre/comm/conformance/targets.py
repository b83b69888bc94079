"""What the suite can be put to: the backends of this package, and how one of another package joins in."""

from __future__ import annotations

import importlib
import os
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cobre.comm.config import ShmConfig, TcpConfig
from cobre.comm.conformance.catalogue import Traits
from cobre.comm.contract import Communicator
from cobre.comm.errors import BackendNotAvailable
from cobre.comm.launch.processes import scrubbed
from cobre.comm.mpi.launchers import MpiLauncher, find_mpi_launchers
from cobre.comm.selection import available_backends

DEFAULT_TIMEOUT_SECONDS: Final = 120.0
_SEGMENTS: Final = Path("/dev/shm")


@dataclass(frozen=True)
class Seat:
    """One rank's place when a communicator is made; given to the factory of a target.

    Attributes
    ----------
    rank, size
        This process's rank, and how many there are.
    session
        A word that is the same on all ranks and new for every communicator.
    timeout_s
        How long a collective of this communicator may wait.
    publish
        Called once by every rank, in the factory: gives all of them what rank 0 has put in.
    """

    rank: int
    size: int
    session: str
    timeout_s: float
    publish: Callable[[Any], Any]


@dataclass(frozen=True)
class Target:
    """A backend that the suite can be put to.

    Attributes
    ----------
    name
        For reports.
    factory
        ``"module:function"`` that every rank's process imports; the function takes a :class:`Seat` and
        returns a communicator.
    traits
        What the backend can do.
    sizes
        Numbers of ranks it can have.
    launcher
        What starts the ranks of MPI jobs; ``None`` for processes that are started one by one.
    leftovers
        Takes a session, returns what its communicators have left behind on this machine.
    environment
        Further variables for the ranks.
    """

    name: str
    factory: str
    traits: Traits
    sizes: tuple[int, ...] = (1, 2, 3, 4)
    launcher: MpiLauncher | None = None
    leftovers: Callable[[str], list[str]] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def commands(self, size: int, rank_arguments: Sequence[str]) -> list[tuple[list[str], dict[str, str]]]:
        """Return the command lines that start the ranks, each with its environment."""
        program = [sys.executable, "-m", "cobre.comm.conformance.rank", *rank_arguments]
        if self.launcher is not None:
            variables = {**scrubbed(self.launcher.environment()), **self.environment}
            return [(self.launcher.command(size, program), variables)]
        variables = {**scrubbed(os.environ), **self.environment}
        return [([*program, "--rank", str(rank), "--size", str(size)], variables) for rank in range(size)]


def load_factory(path: str) -> Callable[[Seat], Communicator]:
    """Import a factory given as ``"module:function"``."""
    module, _, name = path.partition(":")
    factory: Callable[[Seat], Communicator] = getattr(importlib.import_module(module), name)
    return factory


def make_local(seat: Seat) -> Communicator:
    """Make the communicator of a single process."""
    from cobre.comm.local import LocalCommunicator

    return LocalCommunicator()


def make_shm(seat: Seat) -> Communicator:
    """Make a rank of a shm communicator."""
    from cobre.comm.shm.communicator import ShmCommunicator

    nonce = seat.session.encode()[:16].ljust(16, b"-")
    config = ShmConfig(
        _segment(seat.session),
        seat.rank,
        seat.size,
        connect_timeout_s=DEFAULT_TIMEOUT_SECONDS,
        timeout_s=seat.timeout_s,
        nonce=nonce,
    )
    return ShmCommunicator(config)


def make_tcp(seat: Seat) -> Communicator:
    """Make a rank of a tcp communicator on the loopback interface."""
    from cobre.comm.tcp.communicator import TcpCommunicator

    address = "127.0.0.1"
    listener = socket.create_server((address, 0), backlog=2 * seat.size) if seat.rank == 0 else None
    port = seat.publish(None if listener is None else listener.getsockname()[1])
    config = TcpConfig(
        address,
        seat.rank,
        seat.size,
        port=port,
        connect_timeout_s=DEFAULT_TIMEOUT_SECONDS,
        timeout_s=seat.timeout_s,
        token=seat.session.encode(),
        listener_fd=None if listener is None else listener.detach(),
    )
    return TcpCommunicator(config)


def make_mpi(seat: Seat) -> Communicator:
    """Make a rank of an MPI communicator."""
    from cobre.comm.mpi.communicator import MpiCommunicator

    return MpiCommunicator()


def new_session() -> str:
    """Return a word that no other communicator has."""
    return secrets.token_hex(10)


def _segment(session: str) -> str:
    return f"/cobre_check_{session}"


def _segments_left(session: str) -> list[str]:
    return sorted(path.name for path in _SEGMENTS.glob(f"{_segment(session)[1:]}*"))


_HERE: Final = __name__
LOCAL: Final = Target("local", f"{_HERE}:make_local", Traits(folds_in_rank_order=True), sizes=(1,))
SHM: Final = Target(
    "shm",
    f"{_HERE}:make_shm",
    Traits(True, True, True, True, True),
    leftovers=_segments_left,
)
TCP: Final = Target(
    "tcp",
    f"{_HERE}:make_tcp",
    Traits(detects_silence=True, detects_divergence=True, detects_death=True, folds_in_rank_order=True),
)


def mpi_target(launcher: MpiLauncher) -> Target:
    """Return the target for one MPI implementation."""
    traits = Traits(shares_regions=True, folds_in_rank_order=True)
    return Target(f"mpi-{launcher.name}", f"{_HERE}:make_mpi", traits, launcher=launcher)


def available_targets() -> list[Target]:
    """Return what can be tested here: the available backends, mpi once for each implementation found."""
    usable = available_backends()
    targets = [target for target in (LOCAL, SHM, TCP) if target.name in usable]
    if "mpi" in usable:
        targets += [mpi_target(launcher) for launcher in find_mpi_launchers()]
    return targets


def targets_named(name: str) -> list[Target]:
    """Return the targets of a name: one backend, one MPI implementation (``mpi-mpich``), or ``all``.

    Raises
    ------
    BackendNotAvailable
        When there is none.
    """
    available = available_targets()
    found = [target for target in available if name in ("all", target.name, target.name.partition("-")[0])]
    if not found:
        raise BackendNotAvailable(name, [target.name for target in available])
    return found
