"""The events of a training run, as ``OUTPUT/training/events.jsonl`` holds them (EVT-01).

``TrainingStarted``; after each iteration ``ConvergenceUpdate``, ``CutSelectionComplete`` where cuts were
selected, ``IterationSummary``; ``CheckpointComplete``; ``TrainingFinished`` when the results are on disk, or
when there will be none. The phases inside an iteration are one call of compiled code and make no events of
their own; their times are in ``IterationSummary``. Only times, host and process differ between two runs.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre._version import __version__
from cobre.errors import CobreError
from cobre.event_log import EventLog, this_process

if TYPE_CHECKING:
    from cobre.sddp.plan import TrainingPlan
    from cobre.sddp.progress import IterationRecord, TrainingResult
    from cobre.sddp.rules.selection import SelectionRecord

EVENTS_FILE = Path("training") / "events.jsonl"
"""Of an output directory."""

Event = tuple[str, dict[str, Any]]


def event_log(output: Path | None) -> EventLog:
    """Return the log of a run that writes to ``output``."""
    return EventLog(None if output is None else output / EVENTS_FILE)


def plan_facts(plan: TrainingPlan) -> dict[str, Any]:
    """Return what is known when training begins."""
    case = plan.case
    return {
        "case": str(case.path.absolute()),
        "output_dir": str(plan.output),
        "stages": len(case.stages),
        "hydros": len(case.hydros),
        "thermals": len(case.thermals),
        "buses": len(case.buses),
        "lines": len(case.lines),
        "max_iterations": case.training.iteration_limit,
        "forward_passes": case.training.forward_passes,
        "seed": case.training.tree_seed,
        "ranks": plan.ranks,
        "threads_per_rank": plan.threads,
        "lp_engine": plan.lp_engine,
    }


def started(plan: TrainingPlan) -> Event:
    """Return the event of a run that begins; the only one with a date."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    head = {"timestamp": now, "cobre_version": __version__, **this_process()}
    return "TrainingStarted", {**head, "policy_mode": plan.storage.policy_mode, **plan_facts(plan)}


def iteration_events(record: IterationRecord, selected: Sequence[SelectionRecord]) -> list[Event]:
    """Return the events of an iteration."""
    bounds = {
        "iteration": record.iteration,
        "lower_bound": record.lower_bound,
        "lower_bound_kind": record.lower_bound_kind,
        "upper_bound": record.upper_bound,
        "upper_bound_std": record.sample_std,
        "upper_bound_kind": record.upper_bound_kind,
        "risk_averse": record.risk_averse,
        "deterministic_upper_bound": record.deterministic_upper_bound,
        "gap_percent": record.gap_percent,
    }
    summary = {
        name: getattr(record, name)
        for name in (
            *("iteration", "forward_passes", "cuts_added", "cuts_removed", "cuts_active", "lp_solves"),
            *("forward_time_ms", "backward_time_ms", "communication_time_ms", "iteration_time_ms"),
            "wall_time_ms",
        )
    }
    events: list[Event] = [("ConvergenceUpdate", bounds)]
    if selected:
        dropped = sum(part.cuts_deactivated + (part.budget_evicted or 0) for part in selected)
        events.append(("CutSelectionComplete", {"iteration": record.iteration, "cuts_deactivated": dropped}))
    return [*events, ("IterationSummary", summary)]


def checkpoint_complete(iteration: int) -> Event:
    """Return the event of a checkpoint that is on disk."""
    return "CheckpointComplete", {"iteration": iteration}


def finished(result: TrainingResult) -> Event:
    """Return the event of a run whose results are on disk."""
    return "TrainingFinished", {
        "status": result.status,
        "reason": result.termination_reason,
        "iterations": result.iterations,
        "total_time_ms": result.total_time_ms,
        "policy_sha256": result.policy_sha256,
        "verdict": result.verdict.as_dict(),
    }


def failed(error: BaseException) -> Event:
    """Return the event of a run that ends without results."""
    kind = error.kind if isinstance(error, CobreError) else type(error).__name__
    status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    return "TrainingFinished", {"status": status, "error": {"kind": kind, "message": str(error)}}
