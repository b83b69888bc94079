"""Commands that work on a case: in this process, on ranks that it starts, or on those of a job."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cobre.cli.environment import default_threads, reserve_threads
from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import interrupted
from cobre.cli.signals import Interrupts
from cobre.cli.views import RankView, View
from cobre.errors import Problem
from cobre.machine import check_process, check_workers, return_memory_early, usable_cpus
from cobre.sddp.ranks.cpus import pin_libraries

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.comm import Communicator

Conclude = Callable[[int, bool], None]
"""Reports the signal that came (0 = none), and whether one was SIGINT."""


class StudyRequest(Protocol):
    """What every such command is asked for."""

    @property
    def case_path(self) -> Path:
        """The case directory."""

    @property
    def threads(self) -> int | None:
        """Of each rank."""

    @property
    def ranks(self) -> int | None:
        """To start."""

    @property
    def backend(self) -> str:
        """How ranks talk."""


class Work(Protocol):
    """What the command does with the case."""

    def __call__(
        self,
        case: Case,
        ranks: int,
        threads: int | None,
        interrupts: Interrupts,
        view: View,
        outcome: Outcome,
        communicator: Communicator | None,
    ) -> Conclude:
        """Do it, and return what reports a signal."""


def carry_out(request: StudyRequest, view: RankView, outcome: Outcome, work: Work, after_a_loss: str) -> None:
    """Load the case and do the work; fills the outcome in and raises what goes wrong.

    Parameters
    ----------
    after_a_loss
        What to do when a rank of a job is lost.
    """
    pin_libraries()
    return_memory_early()
    check_workers(request.ranks, request.threads)
    check_process()
    from cobre.comm.selection import explain_selection

    ranks = 1 if request.backend == "local" or request.ranks is None else request.ranks
    if ranks == 1:
        selection = explain_selection(request.backend)
        if selection.error is None and selection.backend != "local":
            from cobre.cli.joined import work_joined

            work_joined(request, view, outcome, work, after_a_loss)
            return
        threads = request.threads or default_threads()
        reserve_threads(threads)
    else:
        threads = request.threads or default_threads(ranks=ranks)
    if ranks * threads > usable_cpus():
        warn_of_threads(outcome, ranks * threads)
    case = load_case(request, outcome)
    if case is None:
        return
    with watch_signals(view, outcome) as interrupts:
        conclude = work(case, ranks, threads, interrupts, view, outcome, None)
    conclude(interrupts.number, interrupts.interrupted)


@contextmanager
def watch_signals(view: View, outcome: Outcome) -> Iterator[Interrupts]:
    """Watch for signals that ask to stop, and answer them."""

    def abort() -> None:
        # Compiled code holds the main thread: nothing else can end the process.
        with contextlib.suppress(Exception):
            outcome.fail(ExitCode.INTERRUPTED, [interrupted("stopped at once; nothing was written")])
            view.finish(outcome)
        os._exit(int(ExitCode.INTERRUPTED))

    def acknowledge() -> None:
        when = f" at the end of this {view.step}" if interrupts.saving else ""
        view.notice(f"stopping{when}; press Ctrl-C again to stop at once")

    with Interrupts(acknowledge, abort) as interrupts:
        yield interrupts


def warn_of_threads(outcome: Outcome, threads: int) -> None:
    """Warn that there are fewer processors than threads."""
    cpus = usable_cpus()
    outcome.warnings.append(
        Problem(
            "TooManyThreads",
            f"{threads} threads share {cpus} processor{'' if cpus == 1 else 's'}",
            {"field": "threads", "value": threads},
            f"{cpus} would be faster; results are the same",
        )
    )


def load_case(request: StudyRequest, outcome: Outcome) -> Case | None:
    """Load and check the case; ``None``, with the errors in the outcome, when it is wrong."""
    from cobre.case import check

    case, errors, warnings = check(request.case_path)
    outcome.warnings += warnings
    if errors or case is None:
        outcome.fail(ExitCode.INPUT, errors)
        return None
    return case
