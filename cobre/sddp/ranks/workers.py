"""Training on ranks that this process starts, as new processes of this machine (API-02 to API-08)."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from cobre.comm.contract import Communicator
from cobre.comm.errors import CollectiveFailed
from cobre.comm.launch import ask, launch
from cobre.comm.registry import find_backend, launchable_backends
from cobre.errors import CobreError, WorkerError
from cobre.sddp.ranks.cpus import rank_environment
from cobre.sddp.ranks.losses import AFTER_A_LOSS
from cobre.stop_signals import watched_signals

if TYPE_CHECKING:
    from cobre.sddp.plan import TrainingPlan
    from cobre.sddp.progress import TrainingResult
    from cobre.sddp.training import OnIteration

_DEFAULT: Final = "shm"


def check_backend(backend: str) -> str:
    """Return the backend that ranks are started with; refuse one whose ranks cannot be started from here.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``.
    """
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


def train_on_ranks(
    plan: TrainingPlan, *, backend: str = _DEFAULT, on_iteration: OnIteration | None = None
) -> TrainingResult:
    """Train a case on several new processes and return the result of rank 0.

    The case is sent to them as it is in memory, so that it may have been edited since it was loaded. They
    end with this call, however it ends.

    Parameters
    ----------
    backend
        One that :func:`check_backend` returns.
    on_iteration
        Called in this process; the ranks wait for what it returns, and stop if that is true.

    Raises
    ------
    WorkerError
        When a rank fails; ``inner`` is what it raised.
    """
    if plan.storage.opened is not None:  # of no use to the ranks, which get the plan without it
        plan.storage.opened.release()
    try:
        results = launch(
            _train_rank,
            plan.ranks,
            backend=backend,
            args=(plan, on_iteration is not None),
            on_progress=None if on_iteration is None else lambda rank, record: on_iteration(record),
            environment=rank_environment(plan.threads),
        )
    except WorkerError as error:
        killed = error.exit_code is not None and error.exit_code < 0
        if killed or isinstance(error.inner, CollectiveFailed):
            error.suggestion = AFTER_A_LOSS
        raise
    result: TrainingResult = results[0]
    return result


class StopRequest:
    """A signal to this rank alone that asks to stop: at the next boundary; a second one ends it."""

    def __init__(self) -> None:
        self.came = False
        self._watched = watched_signals()
        for number in self._watched:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        for other in self._watched:
            signal.signal(other, signal.SIG_DFL)


def _train_rank(comm: Communicator, plan: TrainingPlan, watched: bool) -> TrainingResult | None:
    """Train on one rank; rank 0 asks the parent after each iteration whether to go on."""
    from cobre.sddp.training import train_together

    stop = StopRequest()

    def on_iteration(record: Any) -> bool:
        asked = watched and comm.rank == 0 and ask(record)
        return asked or stop.came

    result = train_together(plan, comm, on_iteration)
    return result if comm.rank == 0 else None
