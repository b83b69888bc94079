"""``cobre train``: what the options ask for, handed to :class:`cobre.Study`, and what is shown of it.

Training runs in this process, on ranks that this process starts (``--ranks``), or on the ranks of the job
that this process was launched in (:mod:`cobre.cli.joined`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cobre.cli.environment import default_threads, reserve_threads
from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import interrupted
from cobre.cli.signals import Interrupts, Terminated
from cobre.cli.train_report import result_data, show_result, terminated_facts, training_facts
from cobre.cli.views import RankView, View
from cobre.errors import CobreError, Problem, WorkerError
from cobre.machine import check_process, check_workers, usable_cpus
from cobre.sddp.ranks.cpus import pin_libraries

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.comm import Communicator
    from cobre.sddp import IterationRecord, TrainingPlan, TrainingResult


@dataclass(frozen=True)
class TrainRequest:
    """What the command line asks for; ``None`` leaves the choice to the case or the environment."""

    case_path: Path
    output: Path | None = None
    iterations: int | None = None
    seed: int | None = None
    threads: int | None = None
    ranks: int | None = None
    backend: str = "auto"
    resume: bool = False
    warm_start: Path | None = None
    checkpoint_every: int | None = None
    keep_checkpoints: int | None = None
    force: bool = False


def train_command(request: TrainRequest, view: RankView, outcome: Outcome) -> None:
    """Carry out ``cobre train``; fills the outcome in and raises what goes wrong."""
    pin_libraries()
    check_workers(request.ranks, request.threads)
    check_process()
    from cobre.comm.selection import explain_selection

    ranks = 1 if request.backend == "local" or request.ranks is None else request.ranks
    if ranks == 1:
        selection = explain_selection(request.backend)
        if selection.error is None and selection.backend != "local":
            from cobre.cli.joined import train_joined

            train_joined(request, view, outcome)
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
        result = run_study(case, request, ranks, threads, interrupts, view, outcome)
    conclude(result, outcome, signalled=interrupts.number, by_sigint=interrupts.interrupted)


def run_study(
    case: Case,
    request: TrainRequest,
    ranks: int,
    threads: int | None,
    interrupts: Interrupts,
    view: View,
    outcome: Outcome,
    communicator: Communicator | None = None,
) -> TrainingResult:
    """Train as asked for, showing what happens; fills the outcome in as far as the run gets."""
    from cobre.sddp.study import Study  # imports Numba, HiGHS: only once the input is known to be good

    trained: list[TrainingResult] = []
    plans: list[TrainingPlan] = []

    def on_start(plan: TrainingPlan) -> None:
        plans.append(plan)
        view.started(training_facts(plan), outcome.warnings)

    def on_iteration(record: IterationRecord) -> bool:
        interrupts.saving = True
        view.iteration(record)
        return interrupts.requested

    def on_trained(result: TrainingResult) -> None:
        trained.append(result)
        view.terminated(terminated_facts(result))
        outcome.data = result_data(plans[0].case, result)
        outcome.summary = {"status": result.status, "total_time_ms": round(result.total_time_ms, 3)}

    try:
        result = Study(case).train(
            ranks=ranks,
            threads=threads,
            backend=request.backend,
            iterations=request.iterations,
            seed=request.seed,
            output=request.output or True,
            resume=request.resume,
            warm_start=request.warm_start,
            checkpoint_every=request.checkpoint_every,
            keep_checkpoints=request.keep_checkpoints,
            force=request.force,
            on_start=on_start,
            on_iteration=on_iteration,
            on_trained=on_trained,
            communicator=communicator,
        )
    except WorkerError as error:
        # An error that all ranks report is shown unchanged.
        if isinstance(error.inner, CobreError) and error.inner.on_all_ranks:
            raise error.inner from None
        raise
    except Terminated:
        raise
    except KeyboardInterrupt:
        if trained:
            raise KeyboardInterrupt(f"the results in {trained[0].output} are incomplete") from None
        raise
    finally:
        if trained:
            outcome.warnings += trained[0].warnings
    outcome.warnings += result.warnings[len(trained[0].warnings) :]
    outcome.show = lambda console: show_result(console, plans[0].case, result)
    return result


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
        when = " at the end of this iteration" if interrupts.saving else ""
        view.notice(f"stopping{when}; press Ctrl-C again to stop at once")

    with Interrupts(acknowledge, abort) as interrupts:
        yield interrupts


def conclude(result: TrainingResult, outcome: Outcome, *, signalled: int, by_sigint: bool) -> None:
    """Report that a signal came: SIGINT fails the command, others do not (SIG-01)."""
    if not signalled:
        return
    done = "training was complete" if result.status == "complete" else f"after {result.iterations} iterations"
    kept = any(problem.kind == "LongerPolicyKept" for problem in result.warnings)
    where = "its earlier, longer policy stays in" if kept else "the results so far are in"
    story = f"{done}; {where} {result.output}"
    if by_sigint:
        outcome.fail(ExitCode.INTERRUPTED, [interrupted(story)])
    else:
        outcome.warnings.append(interrupted(story, signal.Signals(signalled).name))


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


def load_case(request: TrainRequest, outcome: Outcome) -> Case | None:
    """Load and check the case; ``None``, with the errors in the outcome, when it is wrong."""
    from cobre.case import check

    case, errors, warnings = check(request.case_path)
    outcome.warnings += warnings
    if errors or case is None:
        outcome.fail(ExitCode.INPUT, errors)
        return None
    return case
