"""Ranks that are kept for several studies."""

from __future__ import annotations

import os
from typing import Any

from cobre.comm.launch import RankPool
from cobre.display import html_table
from cobre.machine import check_compiler, check_process, check_workers
from cobre.sddp.plan import TrainingArguments
from cobre.sddp.ranks.cpus import rank_environment, threads_of_ranks
from cobre.sddp.ranks.placement import check_backend, refuse_nested_job


class WorkerPool(RankPool):
    """Processes that train and simulate one study after the other: ``study.train(pool=pool)``.

    They are started once, and keep compiled kernels loaded. Results are the same bytes as without a pool.

    >>> import cobre
    >>> with cobre.WorkerPool(4) as pool:  # doctest: +SKIP
    ...     for costs in cases:
    ...         result = cobre.Study(costs).train(pool=pool)

    One run at a time; studies that run at the same time need a pool each. A process that fails or is killed
    ends its run with a :class:`~cobre.errors.WorkerError`; another one takes its place for the next run. All
    end with the ``with`` block or ``close()``, and with this process, however that ends. ``alive`` is how
    many run at this moment, ``pids`` their numbers, and ``logs(rank)`` what one has printed.

    Parameters
    ----------
    ranks
        Number of processes.
    backend
        How they communicate, as for :meth:`cobre.Study.train`; ``"auto"`` is shm.
    threads
        Threads of each; by default ``COBRE_NUM_THREADS``, else ``SLURM_CPUS_PER_TASK``, else processors ÷
        ranks.
    log_dir
        Directory where what each process prints is appended to ``rank-N.log``; by default it is kept for
        :meth:`logs` only.
    warm
        Whether processes load, or compile, all kernels when they start, before there is a run. The
        constructor does not wait for it.

    Raises
    ------
    ValidationError
        When an argument is out of range.
    CobreError
        Kind ``IncompatibleSettings`` for a backend whose ranks cannot be started from here, in a process that
        is a rank itself, and in one that imports the main module of its parent: a script needs
        ``if __name__ == "__main__":`` around its pool where other processes import it.
    OutputError
        When logs cannot be written.
    """

    def __init__(
        self,
        ranks: int,
        backend: str = "auto",
        *,
        threads: int | None = None,
        log_dir: str | os.PathLike[str] | None = None,
        warm: bool = True,
    ) -> None:
        TrainingArguments().check(ranks=ranks, threads=threads)
        check_workers(ranks, threads)
        self._threads = threads or threads_of_ranks(ranks)
        check_workers(ranks, self._threads)
        check_process(self._threads)
        check_compiler()
        backend = check_backend(backend)
        refuse_nested_job(ranks)
        super().__init__(
            ranks,
            backend=backend,
            environment=rank_environment(self._threads),
            log_dir=log_dir,
            initializer=_warm if warm else None,
            initargs=(backend,) if warm else (),
        )

    @property
    def threads(self) -> int:
        """Threads of each process."""
        return self._threads

    def _facts(self) -> dict[str, Any]:
        state = {"closed": True} if self.closed else {"alive": self.alive}
        return {"ranks": self.ranks, "backend": self.backend, "threads": self.threads, **state}

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self._facts().items())
        return f"WorkerPool({facts})"

    def _repr_html_(self) -> str:
        rows = {name: str(value) for name, value in self._facts().items()}
        return html_table("WorkerPool", {**rows, "processes": ", ".join(map(str, self.pids))})


def _warm(backend: str) -> None:
    """Load all kernels into this process, which is a rank by itself meanwhile."""
    from cobre.sddp.warmup import train_tiny_study_alone

    train_tiny_study_alone(backend)
