"""``cobre train``: what the options ask for, handed to :class:`cobre.Study`, and what is shown of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import interrupted
from cobre.cli.signals import Interrupts, Terminated
from cobre.cli.study_command import Conclude, carry_out
from cobre.cli.train_report import result_data, show_result, terminated_facts
from cobre.cli.views import RankView, View
from cobre.errors import CobreError, WorkerError
from cobre.sddp.ranks.losses import AFTER_A_LOSS

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.comm import Communicator
    from cobre.policy import LpEngine
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
    lp_engine: LpEngine | None = None


def train_command(request: TrainRequest, view: RankView, outcome: Outcome) -> None:
    """Carry out ``cobre train``; fills the outcome in and raises what goes wrong."""

    def work(
        case: Case,
        ranks: int,
        threads: int | None,
        interrupts: Interrupts,
        view: View,
        outcome: Outcome,
        communicator: Communicator | None,
    ) -> Conclude:
        _, result = run_study(case, request, ranks, threads, interrupts, view, outcome, communicator)
        return lambda signalled, by_sigint: conclude(
            result, outcome, signalled=signalled, by_sigint=by_sigint
        )

    carry_out(request, view, outcome, work, AFTER_A_LOSS)


def run_study(
    case: Case,
    request: TrainRequest,
    ranks: int,
    threads: int | None,
    interrupts: Interrupts,
    view: View,
    outcome: Outcome,
    communicator: Communicator | None = None,
) -> tuple[Case, TrainingResult]:
    """Train as asked for, showing what happens; fills the outcome in as far as the run gets.

    Returns the case as it was trained, with what the request replaces, and the result.
    """
    from cobre.sddp.events import plan_facts
    from cobre.sddp.study import Study  # imports Numba, HiGHS: only once the input is known to be good

    trained: list[TrainingResult] = []
    plans: list[TrainingPlan] = []

    def on_start(plan: TrainingPlan) -> None:
        plans.append(plan)
        view.step = "iteration"
        view.started(plan_facts(plan), outcome.warnings)

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
            lp_engine=request.lp_engine,
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
    return plans[0].case, result


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
