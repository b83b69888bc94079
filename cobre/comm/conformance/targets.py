"""What the suite can be put to: the backends of this package, and how one of another package joins in."""

from __future__ import annotations

import importlib
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cobre.comm.contract import Communicator
from cobre.comm.errors import BackendNotAvailable
from cobre.comm.launch.processes import scrubbed
from cobre.comm.mpi.launchers import MpiLauncher, find_mpi_launchers
from cobre.comm.registry import Backend, Seat, Traits, find_backend, installed_backends

DEFAULT_TIMEOUT_SECONDS: Final = 120.0


@dataclass(frozen=True)
class Target:
    """A backend that the suite can check.

    Attributes
    ----------
    name
        For reports.
    factory
        ``"module:function"`` that every rank's process imports; the function takes a
        :class:`~cobre.comm.registry.Seat` and returns a communicator. Or the name of an installed backend.
    traits
        What the backend can do.
    sizes
        Numbers of ranks it can have.
    launcher
        What starts the ranks of MPI jobs; ``None`` for processes that are started individually.
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
    """Return what makes a communicator: ``"module:function"``, or an installed backend, given by its name."""
    module, _, name = path.partition(":")
    if not name:
        return find_backend(path).join
    factory: Callable[[Seat], Communicator] = getattr(importlib.import_module(module), name)
    return factory


def new_session() -> str:
    """Return a word that no other communicator has."""
    return secrets.token_hex(10)


def target_of(backend: Backend) -> Target:
    """Return the target for a backend whose ranks are started individually."""
    return Target(backend.name, backend.name, backend.traits, backend.sizes, leftovers=backend.leftovers)


def mpi_target(launcher: MpiLauncher) -> Target:
    """Return the target for one MPI implementation."""
    backend = find_backend("mpi")
    return Target(f"mpi-{launcher.name}", backend.name, backend.traits, backend.sizes, launcher)


def available_targets() -> list[Target]:
    """Return what can be tested here: the available backends, mpi once for each implementation found."""
    usable = [backend for backend in installed_backends() if backend.obstacle() is None]
    targets = [target_of(backend) for backend in reversed(usable) if backend.name != "mpi"]
    if len(targets) < len(usable):
        targets += [mpi_target(launcher) for launcher in find_mpi_launchers()]
    return targets


def targets_named(name: str) -> list[Target]:
    """Return the targets of a name: one backend, one MPI implementation (``mpi-mpich``), or ``all``.

    Raises
    ------
    BackendNotAvailable
        When there is none.
    InvalidBackend
        When no backend has this name.
    """
    if name != "all":
        find_backend(name.partition("-")[0])
    available = available_targets()
    found = [target for target in available if name in ("all", target.name, target.name.partition("-")[0])]
    if not found:
        raise BackendNotAvailable(name, [target.name for target in available])
    return found
