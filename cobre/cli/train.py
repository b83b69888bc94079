"""``cobre train``: load a case, train a policy, write the results.

Training runs in this process, on ranks that this process starts (``--ranks``), or on the ranks of the job
that this process was launched in (:mod:`cobre.cli.joined`).
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cobre.cli.directories import choose_output
from cobre.cli.environment import default_threads, reserve_threads
from cobre.cli.exit_codes import ConfigurationError, ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import interrupted
from cobre.cli.signals import Interrupts
from cobre.cli.train_report import result_data, show_result, terminated_facts, training_facts
from cobre.cli.views import RankView, View
from cobre.errors import CobreError, Problem, WorkerError
from cobre.sddp.cpus import pin_libraries, usable_cpus

CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints in the output directory."""

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.sddp import IterationRecord, Storage, TrainingResult

    Trainer = Callable[[Callable[[IterationRecord], bool]], TrainingResult]


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


def train_command(request: TrainRequest, view: RankView, outcome: Outcome) -> None:
    """Carry out ``cobre train``; fills the outcome in and raises what goes wrong."""
    from cobre.comm.selection import explain_selection

    pin_libraries()
    ranks = 1 if request.backend == "local" or request.ranks is None else request.ranks
    if ranks > 1:
        _train_started_ranks(request, ranks, view, outcome)
        return
    selection = explain_selection(request.backend)
    if selection.error is None and selection.backend != "local":
        from cobre.cli.joined import train_joined

        train_joined(request, view, outcome)
        return
    _train_alone(request, view, outcome)


def _train_alone(request: TrainRequest, view: View, outcome: Outcome) -> None:
    threads = request.threads or default_threads()
    if threads > usable_cpus():
        warn_of_threads(outcome, threads)
        reserve_threads(threads)
    case = load_case(request, outcome)
    if case is None:
        return

    def trainer(on_iteration: Callable[[IterationRecord], bool]) -> TrainingResult:
        from cobre.sddp import Study  # imports Numba, HiGHS: only once the input is known to be good

        return Study(case).train(
            threads=threads,
            backend=request.backend,
            on_iteration=on_iteration,
            failure_directory=output,
            storage=storage_of(case, request, output),
        )

    output, warnings = choose_output(case.path, request.output)
    outcome.warnings += warnings
    _train_and_write(case, 1, threads, output, trainer, view, outcome)


def _train_started_ranks(request: TrainRequest, ranks: int, view: View, outcome: Outcome) -> None:
    from cobre.sddp.study import refuse_nested_job

    try:
        refuse_nested_job(ranks)
    except CobreError as error:
        raise ConfigurationError(error.kind, error.message, error.context, error.suggestion) from None
    threads = request.threads or default_threads(ranks=ranks)
    if ranks * threads > usable_cpus():
        warn_of_threads(outcome, ranks * threads)
    case = load_case(request, outcome)
    if case is None:
        return

    def trainer(on_iteration: Callable[[IterationRecord], bool]) -> TrainingResult:
        from cobre.sddp.workers import train_on_ranks

        try:
            return train_on_ranks(
                case,
                ranks,
                threads=threads,
                backend=request.backend,
                on_iteration=on_iteration,
                failure_directory=output,
                storage=storage_of(case, request, output),
            )
        except WorkerError as error:
            # What all ranks have to tell is told best in its own words.
            if isinstance(error.inner, CobreError) and error.inner.on_all_ranks:
                raise error.inner from None
            raise

    output, warnings = choose_output(case.path, request.output)
    outcome.warnings += warnings
    _train_and_write(case, ranks, threads, output, trainer, view, outcome)


def storage_of(case: Case, request: TrainRequest, output: Path) -> Storage:
    """Return where checkpoints go and what training starts from, by the options, else by the case."""
    from cobre.case.model import CheckpointOptions
    from cobre.sddp.persistence import KEEP_LAST, Storage

    schedule, mode = case.policy.checkpointing, case.policy.mode
    if request.checkpoint_every is not None:
        kept = schedule or CheckpointOptions(request.checkpoint_every)
        schedule = replace(kept, interval_iterations=request.checkpoint_every, initial_iteration=0)
    asked = request.resume or request.warm_start is not None
    stored = output / case.policy.path if mode == "warm_start" and not asked else None
    return Storage(
        checkpoints=output / CHECKPOINTS,
        schedule=schedule,
        resume=request.resume or (mode == "resume" and not asked),
        warm_start=request.warm_start or stored,
        keep_last=request.keep_checkpoints or KEEP_LAST,
    )


def _train_and_write(
    case: Case, ranks: int, threads: int, output: Path, trainer: Trainer, view: View, outcome: Outcome
) -> None:
    """Train, write and tell, on the only process that does so."""
    started_at = now()
    view.started(training_facts(case, ranks, threads, output), outcome.warnings)
    with watch_signals(view, outcome) as interrupts:

        def on_iteration(record: IterationRecord) -> bool:
            interrupts.saving = True
            view.iteration(record)
            return interrupts.requested

        result = trainer(on_iteration)
        finish_training(case, result, output, started_at, view, outcome)
    conclude(result, output, outcome, stopped=interrupts.requested, by_sigint=interrupts.interrupted)


@contextmanager
def watch_signals(view: View, outcome: Outcome) -> Iterator[Interrupts]:
    """Watch for signals that ask to stop, and answer them."""

    def abort() -> None:
        # Compiled code holds the main thread: nobody else can end the process.
        with contextlib.suppress(Exception):
            outcome.fail(ExitCode.INTERRUPTED, [interrupted("stopped at once; nothing was written")])
            view.finish(outcome)
        os._exit(int(ExitCode.INTERRUPTED))

    def acknowledge() -> None:
        when = " at the end of this iteration" if interrupts.saving else ""
        view.notice(f"stopping{when}; press Ctrl-C again to stop at once")

    with Interrupts(acknowledge, abort) as interrupts:
        yield interrupts


def finish_training(
    case: Case,
    result: TrainingResult,
    output: Path,
    started_at: datetime.datetime,
    view: View,
    outcome: Outcome,
) -> None:
    """Fill the outcome in and write the results."""
    outcome.warnings += result.warnings
    status = status_of(result)
    view.terminated(terminated_facts(result))
    outcome.data = result_data(case, result, output, status)
    outcome.summary = {"status": status, "total_time_ms": round(result.total_time_ms, 3)}
    try:
        _write(output, case, result, started_at, status)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the results in {output} are incomplete") from None
    outcome.show = lambda console: show_result(console, case, result, output, status)


def status_of(result: TrainingResult) -> str:
    """Return ``partial`` for training that was stopped from outside, else ``complete``."""
    return "partial" if result.termination_reason == "graceful_shutdown" else "complete"


def conclude(
    result: TrainingResult, output: Path, outcome: Outcome, *, stopped: bool, by_sigint: bool
) -> None:
    """Say that a signal came: SIGINT fails the command, SIGTERM does not (SIG-01)."""
    if not stopped:
        return
    complete = status_of(result) == "complete"
    done = "training was complete" if complete else f"after {result.iterations} iterations"
    story = f"{done}; the results so far are in {output}"
    if by_sigint:
        outcome.fail(ExitCode.INTERRUPTED, [interrupted(story)])
    else:
        outcome.warnings.append(interrupted(story, "SIGTERM"))


def warn_of_threads(outcome: Outcome, threads: int) -> None:
    """Say that there are fewer processors than threads."""
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
    options = case.training
    if request.iterations is not None:
        options = replace(options, iteration_limit=request.iterations)
    if request.seed is not None:
        options = replace(options, tree_seed=request.seed)
    return replace(case, training=options)


def _write(
    output: Path, case: Case, result: TrainingResult, started_at: datetime.datetime, status: str
) -> None:
    from cobre.results import write_stochastic, write_training

    write_training(output, case, result, started_at, now(), status)
    if case.exports.stochastic:
        write_stochastic(output, case.stochastic())


def now() -> datetime.datetime:
    """Return the time, with its zone."""
    return datetime.datetime.now(datetime.timezone.utc)
