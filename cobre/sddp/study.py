"""A study as an object: a case, and what can be done with it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.case.model import Case
from cobre.errors import CobreError
from cobre.sddp.cpus import requested_threads, threads_of_ranks

if TYPE_CHECKING:
    from cobre.sddp.persistence import Storage
    from cobre.sddp.progress import TrainingResult
    from cobre.sddp.training import OnIteration


class Study:
    """A case to plan.

    >>> study = cobre.Study("examples/random-inflow")  # doctest: +SKIP
    >>> result = study.train(ranks=4, iterations=100)  # doctest: +SKIP

    Parameters
    ----------
    case
        A case, as it is in memory, or the directory of one.

    Raises
    ------
    ValidationError
        When the directory does not hold a valid case; names everything that is wrong.
    """

    def __init__(self, case: Case | str | os.PathLike[str]) -> None:
        if not isinstance(case, Case):
            from cobre.case import load

            case = load(Path(case))
        self._case = case

    @property
    def case(self) -> Case:
        """The case."""
        return self._case

    def __repr__(self) -> str:
        return f"Study({str(self._case.path)!r})"

    def train(
        self,
        *,
        ranks: int = 1,
        threads: int | None = None,
        backend: str = "auto",
        iterations: int | None = None,
        seed: int | None = None,
        on_iteration: OnIteration | None = None,
        failure_directory: Path | None = None,
        storage: Storage | None = None,
    ) -> TrainingResult:
        """Train a policy by SDDP; the same bytes for any number of ranks and threads.

        With one rank training runs in this process, as a rank of the job that it was launched in, if any.
        With several it runs in new processes, which end with this call; a script needs
        ``if __name__ == "__main__":`` around it only where it defines things that the case holds.

        Parameters
        ----------
        ranks
            Processes to start.
        threads
            Threads of each; by default ``COBRE_NUM_THREADS``, else ``SLURM_CPUS_PER_TASK``, else processors ÷
            ranks for several ranks and 1 for one.
        backend
            ``"shm"`` or ``"tcp"``, how the processes talk; ``"auto"`` is shm for several ranks, and what the
            environment says for one. ``"local"`` is this process alone, whatever ``ranks`` says.
        iterations, seed
            In place of the case's.
        on_iteration
            Called in this process after each iteration with its ``IterationRecord``; a true return value
            stops all ranks after that iteration.
        failure_directory
            Where an LP that cannot be solved is written; by default ``output`` in the case directory.
        storage
            Checkpoints to write, and what to start from (``cobre.sddp.Storage``).

        Raises
        ------
        ValidationError
            When an argument is out of range.
        SolverError
            When a stage LP cannot be solved, with one rank.
        WorkerError
            When one of several ranks fails; ``inner`` is what it raised.
        """
        from cobre.sddp.training import check_arguments, train

        check_arguments(iterations, seed, threads, ranks)
        changes: dict[str, Any] = {}
        if iterations is not None:
            changes["iteration_limit"] = iterations
        if seed is not None:
            changes["tree_seed"] = seed
        case = replace(self._case, training=replace(self._case.training, **changes))
        if ranks == 1 or backend == "local":
            return train(
                case,
                threads=threads or requested_threads() or 1,
                backend=_backend_of_one(backend),
                on_iteration=on_iteration,
                failure_directory=failure_directory,
                storage=storage,
            )
        from cobre.sddp.workers import train_on_ranks

        refuse_nested_job(ranks)
        return train_on_ranks(
            case,
            ranks,
            threads=threads or threads_of_ranks(ranks),
            backend=backend,
            on_iteration=on_iteration,
            failure_directory=failure_directory,
            storage=storage,
        )


def _backend_of_one(backend: str) -> str:
    """A single rank of shm or tcp that no launcher has configured needs nobody to talk to (API-01)."""
    from cobre.comm import explain_selection

    if backend in ("shm", "tcp") and explain_selection(backend).error is not None:
        return "local"
    return backend


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
