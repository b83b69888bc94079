"""Where the ranks of a run are: this process, new ones, or those of a pool."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cobre.errors import CobreError, Problem
from cobre.machine import check_workers, usable_cpus
from cobre.sddp.ranks.cpus import rank_environment, threads_of_ranks

if TYPE_CHECKING:
    from cobre.comm import Communicator
    from cobre.sddp.ranks.pool import WorkerPool

_DEFAULT: Final = "shm"


@dataclass(frozen=True)
class Processes:
    """Processes other than this one, of this machine.

    Attributes
    ----------
    ranks, threads
        How many, and threads of each.
    backend
        How they communicate.
    pool
        What they belong to; ``None`` for new ones, which end with a call.
    """

    ranks: int
    threads: int
    backend: str
    pool: WorkerPool | None

    def call(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        on_progress: Callable[[int, Any], object],
    ) -> list[Any]:
        """Call a function with a communicator and the arguments on all ranks; return the results by rank."""
        if self.pool is not None:
            return self.pool.run(function, args=arguments, on_progress=on_progress)
        from cobre.comm.launch import launch

        return launch(
            function,
            self.ranks,
            backend=self.backend,
            args=arguments,
            on_progress=on_progress,
            environment=rank_environment(self.threads),
        )


def processes_for(
    ranks: int | None, threads: int | None, backend: str, pool: WorkerPool | None
) -> Processes | None:
    """Return the processes of a run that is asked for like this; ``None`` where it is this one.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` for a backend whose ranks cannot be started from here, and in a process
        that is a rank itself; ``PoolInUse`` and ``PoolClosed``.
    ValidationError
        When these are too many.
    """
    if pool is not None:
        pool.require_usable()
        return Processes(pool.ranks, pool.threads, pool.backend, pool)
    if ranks in (None, 1) or backend == "local":
        return None
    assert ranks is not None
    backend = check_backend(backend)
    refuse_nested_job(ranks)
    threads = threads or threads_of_ranks(ranks)
    check_workers(ranks, threads)
    return Processes(ranks, threads, backend, None)


def pool_problems(
    pool: Any, communicator: Any, ranks: int | None, threads: int | None, backend: str
) -> list[Problem]:
    """Return what is wrong with asking for a pool together with these."""
    from cobre.sddp.ranks.pool import WorkerPool

    if not isinstance(pool, WorkerPool):
        text = f"pool must be a cobre.WorkerPool, not {pool!r:.80}"
        return [Problem("InvalidValue", text, {"field": "pool"})]
    given = {
        "ranks": (ranks, pool.ranks),
        "threads": (threads, pool.threads),
        "backend": (None if backend == "auto" else backend, pool.backend),
    }
    problems = [
        Problem(
            "InvalidValue",
            f"{name}={asked!r} contradicts the pool, which has {name}={own!r}",
            {"field": name, "value": asked},
            f"leave {name} out, or make another pool",
        )
        for name, (asked, own) in given.items()
        if asked is not None and asked != own
    ]
    if communicator is not None:
        text = "communicator and pool exclude each other: each has its own ranks"
        problems.append(Problem("InvalidValue", text, {"field": "communicator"}, "leave one of them out"))
    return problems


def check_backend(backend: str) -> str:
    """Return the backend that ranks are started with; refuse one whose ranks cannot be started from here.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``.
    """
    from cobre.comm.registry import find_backend, launchable_backends

    name = _DEFAULT if backend == "auto" else backend
    described = find_backend(name)
    if described.transport is None:
        usable = launchable_backends()
        raise CobreError(
            "IncompatibleSettings",
            f"ranks that talk by {backend!r} cannot be started from here",
            {"setting": "backend", "requested_value": backend, "available_backends": list(usable)},
            f"use {' or '.join(usable)}; {described.how_to_start}",
        )
    return name


def share_of_processors(comm: Communicator) -> int:
    """Return this rank's part of the processors that it shares with other ranks of its host; 1 alone."""
    from cobre.sddp.ranks.agreement import gather_texts

    if comm.size == 1:
        return 1
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(usable_cpus()))
    place = json.dumps([socket.gethostname(), cpus])
    return max(1, len(cpus) // gather_texts(comm, place).count(place))


def backend_of_one(backend: str) -> str:
    """A single rank that no launcher has configured needs no communication (API-01)."""
    from cobre.comm import MissingConfiguration, explain_selection
    from cobre.comm.registry import find_backend

    if backend == "auto" or not isinstance(explain_selection(backend).error, MissingConfiguration):
        return backend
    return "local" if find_backend(backend).membership(os.environ) is None else backend


def refuse_nested_job(ranks: int) -> None:
    """Refuse to start ranks from a process that is a rank itself: each would start a whole job.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``.
    """
    from cobre.comm import explain_selection

    selection = explain_selection("auto")
    if selection.backend != "local" or selection.error is not None:
        raise CobreError(
            "IncompatibleSettings",
            f"{ranks} ranks were asked for in a process that is itself a rank of another job "
            f"({'; '.join(selection.reasons)})",
            {"setting": "ranks", "value": ranks},
            "leave the number of ranks to the launcher, or start one process without it",
        )
