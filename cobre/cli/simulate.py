"""``cobre simulate`` and ``cobre run``: what the options ask for, handed to :class:`cobre.Study`."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import interrupted
from cobre.cli.signals import Interrupts
from cobre.cli.simulate_report import show_operation, show_simulation, simulation_data, simulation_facts
from cobre.cli.study_command import Conclude, carry_out
from cobre.cli.train import TrainRequest, conclude, run_study
from cobre.cli.train_report import show_training
from cobre.cli.verdict import show_verdict, verdict_data
from cobre.cli.views import RankView, View
from cobre.errors import CobreError, WorkerError
from cobre.sddp.ranks.losses import AFTER_A_LOSS_SIMULATING

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.comm import Communicator
    from cobre.policy import LpEngine
    from cobre.sddp import SimulationProgress, SimulationResult, TrainingResult
    from cobre.sddp.simulation.plan import PolicySource, SimulationPlan


@dataclass(frozen=True)
class SimulateRequest:
    """What the command line asks for; ``None`` leaves the choice to the case or the environment."""

    case_path: Path
    policy: Path | None = None
    scenarios: int | None = None
    seed: int | None = None
    output: Path | None = None
    threads: int | None = None
    ranks: int | None = None
    backend: str = "auto"
    resume: bool | Literal["auto"] = False
    force: bool = False
    lp_engine: LpEngine | None = None


def simulate_command(request: SimulateRequest, view: RankView, outcome: Outcome) -> None:
    """Carry out ``cobre simulate``; fills the outcome in and raises what goes wrong."""

    def work(
        case: Case,
        ranks: int,
        threads: int | None,
        interrupts: Interrupts,
        view: View,
        outcome: Outcome,
        communicator: Communicator | None,
    ) -> Conclude:
        result = run_simulation(
            case, request, request.policy, ranks, threads, interrupts, view, outcome, communicator
        )
        outcome.data = simulation_data(case, result)
        outcome.summary = {"status": result.status, "total_time_ms": round(result.total_time_ms, 3)}
        outcome.show = lambda console: show_simulation(console, case, result)
        return lambda signalled, by_sigint: conclude_simulation(result, outcome, signalled, by_sigint)

    carry_out(request, view, outcome, work, AFTER_A_LOSS_SIMULATING)


def run_command(request: TrainRequest, scenarios: int | None, view: RankView, outcome: Outcome) -> None:
    """Carry out ``cobre run``: train, and simulate where the case asks for it."""

    def work(
        case: Case,
        ranks: int,
        threads: int | None,
        interrupts: Interrupts,
        view: View,
        outcome: Outcome,
        communicator: Communicator | None,
    ) -> Conclude:
        from cobre.sddp.study import simulates

        trained: TrainingResult | None = None
        trained_case = case
        if case.training.enabled:
            trained_case, trained = run_study(
                case, request, ranks, threads, interrupts, view, outcome, communicator
            )
            if trained.status == "partial" or not simulates(case, scenarios):
                result = trained
                outcome.data = {"training": outcome.data, "simulation": None}
                return lambda signalled, by_sigint: conclude(
                    result, outcome, signalled=signalled, by_sigint=by_sigint
                )
        data = outcome.data
        asked = SimulateRequest(
            case.path,
            scenarios=scenarios,
            output=request.output if trained is None else trained.output,
            backend=request.backend,
            resume="auto" if request.resume else False,
            force=request.force,
            lp_engine=request.lp_engine,
        )
        simulated = run_simulation(
            case, asked, trained, ranks, threads, interrupts, view, outcome, communicator
        )
        if trained is not None and data is not None:
            data["verdict"] = verdict_data(trained_case, trained, simulated)
        outcome.data = {"training": data, "simulation": simulation_data(case, simulated)}
        total = simulated.total_time_ms + (0.0 if trained is None else trained.total_time_ms)
        outcome.summary = {"status": simulated.status, "total_time_ms": round(total, 3)}

        def show_both(console: Console) -> None:
            if trained is None:
                show_simulation(console, case, simulated)
                return
            show_training(console, trained_case, trained)
            show_operation(console, simulated)
            show_verdict(console, trained_case, trained, simulated)

        outcome.show = show_both
        return lambda signalled, by_sigint: conclude_simulation(simulated, outcome, signalled, by_sigint)

    carry_out(request, view, outcome, work, AFTER_A_LOSS_SIMULATING)


def run_simulation(
    case: Case,
    request: SimulateRequest,
    policy: PolicySource,
    ranks: int,
    threads: int | None,
    interrupts: Interrupts,
    view: View,
    outcome: Outcome,
    communicator: Communicator | None,
) -> SimulationResult:
    """Simulate as asked for, showing what happens."""
    from cobre.sddp.study import Study  # imports Numba, HiGHS: only once the input is known to be good

    def on_start(plan: SimulationPlan) -> None:
        view.step = "round of scenarios"
        outcome.warnings += plan.warnings
        view.started(simulation_facts(plan), outcome.warnings)

    def on_progress(progress: SimulationProgress) -> bool:
        interrupts.saving |= progress.scenarios_done > 0
        view.scenarios(progress)
        return interrupts.requested

    try:
        result = Study(case).simulate(
            policy,
            scenarios=request.scenarios,
            ranks=ranks,
            threads=threads,
            backend=request.backend,
            seed=request.seed,
            output=request.output or True,
            resume=request.resume,
            force=request.force,
            lp_engine=request.lp_engine,
            on_start=on_start,
            on_progress=on_progress,
            communicator=communicator,
        )
    except WorkerError as error:
        # An error that all ranks report is shown unchanged.
        if isinstance(error.inner, CobreError) and error.inner.on_all_ranks:
            raise error.inner from None
        raise
    known = {id(warning) for warning in outcome.warnings}
    outcome.warnings += [warning for warning in result.warnings if id(warning) not in known]
    view.terminated(_terminated_facts(result))
    return result


def _terminated_facts(result: SimulationResult) -> dict[str, Any]:
    return {
        "phase": "simulation",
        "reason": "complete" if result.status == "complete" else "graceful_shutdown",
        "scenarios": result.scenarios,
        "mean_cost": result.mean_cost,
        "total_time_ms": round(result.total_time_ms, 3),
    }


def conclude_simulation(result: SimulationResult, outcome: Outcome, signalled: int, by_sigint: bool) -> None:
    """Report that a signal came; what it has stopped can be gone on with."""
    if not signalled:
        return
    if result.status == "complete":
        story = f"the simulation was complete; its results are in {result.output}"
        if not by_sigint:
            outcome.warnings.append(interrupted(story, signal.Signals(signalled).name))
            return
    else:
        story = (
            f"after {result.scenarios} of {result.scenarios_planned} scenarios; "
            "run the same command with --resume to go on"
        )
    outcome.data = outcome.summary = outcome.show = None
    code = ExitCode.INTERRUPTED if by_sigint else ExitCode.TERMINATED
    outcome.fail(code, [interrupted(story, signal.Signals(signalled).name)])
