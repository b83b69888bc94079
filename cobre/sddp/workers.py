"""Training on ranks that this process starts, as new processes of this machine (API-02 to API-08)."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from cobre.comm.contract import Communicator
from cobre.comm.launch import ask, launch
from cobre.errors import CobreError
from cobre.sddp.cpus import rank_environment

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.sddp.persistence import Storage
    from cobre.sddp.progress import TrainingResult
    from cobre.sddp.training import OnIteration

_BACKENDS = ("auto", "shm", "tcp")


def train_on_ranks(
    case: Case,
    ranks: int,
    *,
    threads: int,
    backend: str = "auto",
    on_iteration: OnIteration | None = None,
    failure_directory: Path | None = None,
    storage: Storage | None = None,
) -> TrainingResult:
    """Train a case on several new processes and return the result of rank 0.

    The case is sent to them as it is in memory, so that it may have been edited since it was loaded. They
    end with this call, however it ends.

    Parameters
    ----------
    ranks, threads
        How many processes, and threads of each.
    backend
        ``"shm"`` or ``"tcp"``; ``"auto"`` means shm.
    on_iteration
        Called in this process; the ranks wait for what it returns, and stop if that is true.

    Raises
    ------
    WorkerError
        When a rank fails; ``inner`` is what it raised.
    CobreError
        Kind ``IncompatibleSettings`` when the backend's ranks cannot be started from here.
    """
    if backend not in _BACKENDS:
        raise CobreError(
            "IncompatibleSettings",
            f"ranks that talk by {backend!r} cannot be started from here",
            {"setting": "backend", "requested_value": backend, "available_backends": list(_BACKENDS)},
            "use shm or tcp; an MPI job is started by mpiexec"
            if backend == "mpi"
            else "use shm or tcp, or one rank",
        )
    results = launch(
        _train_rank,
        ranks,
        backend="shm" if backend == "auto" else backend,
        args=(case, threads, on_iteration is not None, failure_directory, storage),
        on_progress=None if on_iteration is None else lambda rank, record: on_iteration(record),
        environment=rank_environment(threads),
    )
    result: TrainingResult = results[0]
    return result


class _StopRequest:
    """SIGINT or SIGTERM to this rank alone: stop at the end of the iteration; a second one ends it."""

    def __init__(self) -> None:
        self.came = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        for other in (signal.SIGINT, signal.SIGTERM):
            signal.signal(other, signal.SIG_DFL)


def _train_rank(
    comm: Communicator,
    case: Case,
    threads: int,
    watched: bool,
    failure_directory: Path | None,
    storage: Storage | None,
) -> TrainingResult | None:
    """Train on one rank; rank 0 asks the parent after each iteration whether to go on."""
    from cobre.sddp.training import train

    stop = _StopRequest()

    def on_iteration(record: Any) -> bool:
        asked = watched and comm.rank == 0 and ask(record)
        return asked or stop.came

    result = train(
        case,
        communicator=comm,
        threads=threads,
        on_iteration=on_iteration,
        failure_directory=failure_directory,
        storage=storage,
    )
    return result if comm.rank == 0 else None
