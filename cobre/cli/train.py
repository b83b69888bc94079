"""``cobre train``: load a case, train a policy, write the results."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.cli.directories import choose_output
from cobre.cli.environment import default_threads, reserve_threads, usable_cpus
from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import interrupted
from cobre.cli.signals import Interrupts
from cobre.cli.views import View
from cobre.errors import Problem

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.sddp import IterationRecord, TrainingResult


@dataclass(frozen=True)
class TrainRequest:
    """What the command line asks for; ``None`` leaves the choice to the case or the environment."""

    case_path: Path
    output: Path | None = None
    iterations: int | None = None
    seed: int | None = None
    threads: int | None = None


def train_command(request: TrainRequest, view: View, outcome: Outcome) -> None:
    """Carry out ``cobre train``; fills the outcome in and raises what goes wrong."""
    threads = _threads(request, outcome)
    case = _load(request, outcome)
    if case is None:
        return
    output, warnings = choose_output(case.path, request.output)
    outcome.warnings += warnings
    started_at = _now()
    view.started(_facts(case, threads, output))

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

        def on_iteration(record: IterationRecord) -> bool:
            interrupts.saving = True
            view.iteration(record)
            return interrupts.requested

        from cobre.sddp import train  # imports Numba and loads HiGHS: only once the input is known to be good

        result = train(case, threads=threads, on_iteration=on_iteration, failure_directory=output)
        outcome.warnings += result.warnings
        status = "partial" if result.termination_reason == "graceful_shutdown" else "complete"
        view.terminated(_terminated(result))
        outcome.data = _data(case, result, output, status)
        outcome.summary = {"status": status, "total_time_ms": round(result.total_time_ms, 3)}
        try:
            _write(output, case, result, started_at, status)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"the results in {output} are incomplete") from None
        stopped = interrupts.requested
    outcome.show = lambda console: _show(console, case, result, output, status)
    if stopped:
        done = "training was complete" if status == "complete" else f"after {result.iterations} iterations"
        outcome.fail(ExitCode.INTERRUPTED, [interrupted(f"{done}; the results so far are in {output}")])


def _threads(request: TrainRequest, outcome: Outcome) -> int:
    threads = default_threads() if request.threads is None else request.threads
    cpus = usable_cpus()
    if threads > cpus:
        outcome.warnings.append(
            Problem(
                "TooManyThreads",
                f"{threads} threads share {cpus} processor{'' if cpus == 1 else 's'}",
                {"field": "threads", "value": threads},
                f"{cpus} would be faster; results are the same",
            )
        )
        reserve_threads(threads)
    return threads


def _load(request: TrainRequest, outcome: Outcome) -> Case | None:
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
    from cobre.results import write_training

    write_training(output, case, result, started_at, _now(), status)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _facts(case: Case, threads: int, output: Path) -> dict[str, Any]:
    return {
        "case": str(case.path.absolute()),
        "output_dir": str(output),
        "stages": len(case.stages),
        "hydros": len(case.hydros),
        "thermals": len(case.thermals),
        "buses": len(case.buses),
        "lines": len(case.lines),
        "max_iterations": case.training.iteration_limit,
        "forward_passes": case.training.forward_passes,
        "seed": case.training.tree_seed,
        "threads_per_rank": threads,
    }


def _terminated(result: TrainingResult) -> dict[str, Any]:
    return {
        "reason": result.termination_reason,
        "iterations": result.iterations,
        "final_lb": result.lower_bound,
        "final_ub": result.upper_bound,
        "total_time_ms": round(result.total_time_ms, 3),
        "total_cuts": sum(record.cuts_added for record in result.history),
    }


def _lps_per_second(result: TrainingResult) -> float:
    seconds = sum(record.iteration_time_ms for record in result.history) / 1e3
    return result.lp_solves / seconds if seconds > 0.0 else 0.0


def _data(case: Case, result: TrainingResult, output: Path, status: str) -> dict[str, Any]:
    return {
        "iterations": result.iterations,
        "lower_bound": result.lower_bound,
        "upper_bound": result.upper_bound,
        "upper_bound_std": result.upper_bound_std,
        "gap_percent": result.gap_percent,
        **_deterministic_data(result),
        "termination_reason": result.termination_reason,
        "total_time_ms": round(result.total_time_ms, 3),
        "compile_time_ms": round(result.compile_time_ms, 3),
        "lp_solves": result.lp_solves,
        "lp_solves_per_second": round(_lps_per_second(result), 3),
        "forward_passes": case.training.forward_passes,
        "cuts": result.history[-1].cuts_active,
        "backend": result.backend,
        "ranks": result.ranks,
        "threads": result.threads,
        "seed": result.seed,
        "policy_sha256": result.policy_sha256,
        "status": status,
        "case": str(case.path.absolute()),
        "output_dir": str(output),
    }


def _deterministic_data(result: TrainingResult) -> dict[str, Any]:
    bound = result.deterministic_bound
    if bound is None:
        return {}
    return {
        "deterministic_upper_bound": None if math.isinf(bound.value) else bound.value,
        "true_gap_percent": result.true_gap_percent,
        "deterministic_upper_bound_unavailable": bound.reason_unavailable,
        "deterministic_upper_bound_assumes": list(bound.assumptions),
    }


def _deterministic_rows(result: TrainingResult) -> dict[str, str]:
    bound = result.deterministic_bound
    if bound is None:
        return {}
    if math.isinf(bound.value):
        return {"deterministic upper bound": f"none: {bound.reason_unavailable}"}
    assumed = "".join(f"; assumes {text}" for text in bound.assumptions)
    return {
        "deterministic upper bound": f"{bound.value:,.6f} ${assumed}",
        "true gap": f"{result.true_gap_percent:.6g} %",
    }


def _show(console: Console, case: Case, result: TrainingResult, output: Path, status: str) -> None:
    from cobre.cli.human import show_table

    limit = case.training.iteration_limit
    rows = {
        "lower bound": f"{result.lower_bound:,.6f} $",
        "upper bound": f"{result.upper_bound:,.6f} $ (mean of the last forward passes; "
        f"standard deviation {result.upper_bound_std:,.6f} $)",
        "gap": f"{result.gap_percent:.6g} %",
        **_deterministic_rows(result),
        "iterations": f"{result.iterations} of {limit} ({result.termination_reason})",
        "LPs solved": f"{result.lp_solves:,} ({_lps_per_second(result):,.0f} per second)",
        "time": f"{result.total_time_ms / 1e3:.2f} s, of which start-up {result.compile_time_ms / 1e3:.2f} s",
        "run on": f"{result.backend}, ranks: {result.ranks}, threads: {result.threads}",
        "policy": f"{result.history[-1].cuts_active:,} cuts, sha256 {result.policy_sha256}",
        "output": str(output),
    }
    show_table(console, f"Training {status}", rows)
