"""What training writes: the convergence, the policy's cuts, and what the run was.

::

    <output>/training/   convergence.parquet  timing/iterations.parquet  metadata.json  _SUCCESS
                         costs.parquet  costs_by_entity.parquet  what forward passes were paid for
                         cut_selection/iterations.parquet        where cuts are selected
                         solver/iterations.parquet               how much work LPs were
                         and what the study was resolved to, see :mod:`cobre.results.models`
    <output>/policy/     a policy directory, see :mod:`cobre.policy.store`; the case may give it another name

``_SUCCESS`` is an empty file, removed first and written last, by a run that was not stopped from outside:
where it lies, the others belong together and are complete.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cobre._version import __version__
from cobre.policy import with_fingerprint, write_policy_directory
from cobre.results.costs import entity_cost_table, stage_cost_table
from cobre.results.files import atomic_write, output_errors, sync_directory, write_json, write_parquet
from cobre.results.models import write_models
from cobre.rules.stopping import CONVERGED

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.sddp import TrainingResult

CONVERGENCE_SCHEMA = pa.schema(
    [
        pa.field("iteration", pa.int32(), nullable=False),
        pa.field("lower_bound", pa.float64(), nullable=False),
        pa.field("lower_bound_kind", pa.string(), nullable=False),
        pa.field("upper_bound", pa.float64(), nullable=False),
        pa.field("upper_bound_std", pa.float64()),
        pa.field("upper_bound_kind", pa.string(), nullable=False),
        pa.field("gap_percent", pa.float64()),
        pa.field("cuts_added", pa.int32(), nullable=False),
        pa.field("cuts_removed", pa.int32(), nullable=False),
        pa.field("cuts_active", pa.int64(), nullable=False),
        pa.field("time_forward_ms", pa.int64(), nullable=False),
        pa.field("time_backward_ms", pa.int64(), nullable=False),
        pa.field("time_total_ms", pa.int64(), nullable=False),
        pa.field("forward_passes", pa.int32(), nullable=False),
        pa.field("lp_solves", pa.int64(), nullable=False),
    ]
)
"""Columns of ``convergence.parquet``: costs in $, times in ms, one row for each iteration.

``upper_bound`` is the mean cost of forward passes, a bound only where its kind is ``exact`` and no stage has
a risk measure; ``upper_bound_std`` is null of a single pass, ``gap_percent`` unless two bounds are proven."""

TIMING_SCHEMA = pa.schema(
    [
        pa.field("iteration", pa.int32(), nullable=False),
        pa.field("rank", pa.int32(), nullable=False),
        pa.field("forward_time_ms", pa.float64(), nullable=False),
        pa.field("backward_time_ms", pa.float64(), nullable=False),
        pa.field("lower_bound_time_ms", pa.float64(), nullable=False),
        pa.field("communication_time_ms", pa.float64(), nullable=False),
        pa.field("idle_time_ms", pa.float64(), nullable=False),
        pa.field("lp_solves", pa.int64(), nullable=False),
        pa.field("scenarios_processed", pa.int32(), nullable=False),
    ]
)
"""Columns of ``timing/iterations.parquet``: one row for each iteration and rank, times in ms."""

SOLVER_SCHEMA = pa.schema(
    [
        pa.field("iteration", pa.int32(), nullable=False),
        pa.field("scenario_id", pa.int32()),
        pa.field("phase", pa.string(), nullable=False),
        pa.field("stage_id", pa.int32()),
        *(pa.field(name, pa.int32()) for name in ("opening_index", "rank", "worker_id")),
        *(
            pa.field(name, pa.uint32(), nullable=False)
            for name in ("lp_solves", "lp_successes", "lp_failures", "retry_attempts")
        ),
        pa.field("simplex_iterations", pa.uint64(), nullable=False),
        pa.field("solve_time_ms", pa.float64(), nullable=False),
        *(
            pa.field(name, pa.uint64(), nullable=False)
            for name in (
                *("fall_backs", "refactorisations", "cold_starts", "checks_failed"),
                "working_set_cuts",
            )
        ),
    ]
)
"""Columns of ``solver/iterations.parquet``: one row for each iteration, phase and stage, see
:class:`cobre.sddp.lp_statistics.LpStatistics`. They are summed over scenarios, openings, ranks and workers,
whose columns are null, and no row is of an LP that failed."""

SELECTION_SCHEMA = pa.schema(
    [
        *(
            pa.field(name, pa.int32(), nullable=False)
            for name in (
                *("iteration", "stage_id", "cuts_populated", "cuts_active_before", "cuts_deactivated"),
                *("cuts_reactivated", "cuts_active_after"),
            )
        ),
        pa.field("selection_time_ms", pa.float64(), nullable=False),
        pa.field("budget_evicted", pa.int32()),
        pa.field("active_after_budget", pa.int32()),
    ]
)
"""Columns of ``cut_selection/iterations.parquet``: one row for each selection and stage."""


def write_training(
    output_dir: Path,
    case: Case,
    result: TrainingResult,
    started_at: datetime.datetime,
    completed_at: datetime.datetime,
    status: str,
) -> None:
    """Write the results of a training run, replacing those of an earlier one; the policy comes first.

    Parameters
    ----------
    output_dir
        Created where it is missing.
    case
        The study as it was trained, with the iteration limit and seed that were used.
    started_at, completed_at
        With a time zone.
    status
        ``"complete"``, or ``"partial"`` when training was stopped from outside; such a run gets no
        ``_SUCCESS``.

    Raises
    ------
    OutputError
        When a file cannot be written.
    """
    training = output_dir / "training"
    marker = training / "_SUCCESS"
    with output_errors(output_dir):
        for directory in (training, training / "timing", training / "solver"):
            directory.mkdir(parents=True, exist_ok=True)
        marker.unlink(missing_ok=True)
        sync_directory(training)
    write_policy_directory(output_dir / case.policy.path, with_fingerprint(result.policy, case))
    write_parquet(training / "convergence.parquet", convergence_table(result))
    write_parquet(training / "timing" / "iterations.parquet", timing_table(result))
    write_parquet(training / "solver" / "iterations.parquet", solver_table(case, result))
    _write_selection(training / "cut_selection", case, result)
    if result.costs is not None:  # otherwise those of the run that was resumed stay
        write_parquet(training / "costs.parquet", stage_cost_table(result.cost_breakdowns))
        write_parquet(training / "costs_by_entity.parquet", entity_cost_table(result.cost_breakdowns))
    write_models(output_dir, case, result.scaling)
    metadata = _training_metadata(case, result, started_at, completed_at, status)
    write_json(training / "metadata.json", metadata)
    if status == "complete":
        atomic_write(marker, lambda file: None)


def _write_selection(directory: Path, case: Case, result: TrainingResult) -> None:
    """Write the table of cut selection where a study has one, and remove that of an earlier run elsewhere."""
    options, path = case.training.cut_selection, directory / "iterations.parquet"
    with output_errors(directory):
        if options.method == "all" and options.max_active_per_stage is None:
            path.unlink(missing_ok=True)
            return
        directory.mkdir(exist_ok=True)
    write_parquet(path, selection_table(case, result))


def convergence_table(result: TrainingResult) -> pa.Table:
    """Return one row for each iteration, with the columns of :data:`CONVERGENCE_SCHEMA`."""
    rows = [
        {
            "iteration": record.iteration,
            "lower_bound": record.lower_bound,
            "lower_bound_kind": record.lower_bound_kind,
            "upper_bound": record.upper_bound,
            "upper_bound_std": record.sample_std,
            "upper_bound_kind": record.upper_bound_kind,
            "gap_percent": record.gap_percent,
            "cuts_added": record.cuts_added,
            "cuts_removed": record.cuts_removed,
            "cuts_active": record.cuts_active,
            "time_forward_ms": round(record.forward_time_ms),
            "time_backward_ms": round(record.backward_time_ms),
            "time_total_ms": round(record.iteration_time_ms),
            "forward_passes": record.forward_passes,
            "lp_solves": record.lp_solves,
        }
        for record in result.history
    ]
    return pa.Table.from_pylist(rows, schema=CONVERGENCE_SCHEMA)


def timing_table(result: TrainingResult) -> pa.Table:
    """Return one row for each iteration and rank, with the columns of :data:`TIMING_SCHEMA`."""
    rows = [vars(timing) for timing in result.timings]
    return pa.Table.from_pylist(rows, schema=TIMING_SCHEMA)


def solver_table(case: Case, result: TrainingResult) -> pa.Table:
    """Return how much work LPs were, with the columns of :data:`SOLVER_SCHEMA`."""
    rows = [
        {
            **vars(row),
            # The lower bound is that of the study, not of a stage.
            "stage_id": None if row.phase == "lower_bound" else case.stages[row.stage].id,
            "lp_successes": row.lp_solves,
            "lp_failures": 0,
            "retry_attempts": row.lp_retries,
        }
        for lps in result.lp_statistics
        for row in lps.rows()
    ]
    return pa.Table.from_pylist(rows, schema=SOLVER_SCHEMA)


def selection_table(case: Case, result: TrainingResult) -> pa.Table:
    """Return what cut selection did, with the columns of :data:`SELECTION_SCHEMA`."""
    rows = [
        {
            "iteration": record.iteration,
            "stage_id": case.stages[record.stage].id,
            "cuts_populated": record.cuts_populated,
            "cuts_active_before": record.cuts_active_before,
            "cuts_deactivated": record.cuts_deactivated,
            "cuts_reactivated": 0,  # what was dropped never returns
            "cuts_active_after": record.cuts_active_after,
            "selection_time_ms": record.selection_time_ms,
            "budget_evicted": record.budget_evicted,
            "active_after_budget": record.active_after_budget,
        }
        for record in result.selection
    ]
    return pa.Table.from_pylist(rows, schema=SELECTION_SCHEMA)


def _training_metadata(
    case: Case,
    result: TrainingResult,
    started_at: datetime.datetime,
    completed_at: datetime.datetime,
    status: str,
) -> dict[str, Any]:
    from cobre.lp.highs import version as highs_version  # loads the library, which training has done already

    history = result.history
    last, converged = history[-1], result.termination_reason in CONVERGED
    return {
        "software": "cobre",
        "software_version": __version__,
        "hostname": socket.gethostname(),
        "solver": "HiGHS",
        "solver_version": highs_version(),
        "started_at": _utc(started_at),
        "completed_at": _utc(completed_at),
        "duration_seconds": (completed_at - started_at).total_seconds(),
        "status": status,
        "configuration": {
            "seed": result.seed,
            "max_iterations": case.training.iteration_limit,
            "forward_passes": case.training.forward_passes,
            "stopping_mode": case.training.stopping_mode,
            "policy_mode": result.policy_mode,
            "lp_engine": None if result.lp_engine is None else dataclasses.asdict(result.lp_engine),
        },
        "problem_dimensions": {
            "num_stages": len(case.stages),
            "num_hydros": len(case.hydros),
            "num_thermals": len(case.thermals),
            "num_buses": len(case.buses),
            "num_lines": len(case.lines),
        },
        "iterations": {
            "completed": result.iterations,
            "converged_at": result.iterations if converged else None,
        },
        "convergence": {
            "achieved": converged,
            "final_gap_percent": _finite(result.gap_percent),
            "termination_reason": result.termination_reason,
        },
        "row_pool": {
            "total_generated": sum(record.cuts_added for record in history),
            "total_active": history[-1].cuts_active,
            "peak_active": max(record.cuts_active for record in history),
        },
        "bounds": {
            "final_lower_bound": _finite(result.lower_bound),
            "final_lower_bound_kind": result.lower_bound_kind,
            "final_lower_bound_note": result.lower_bound_note,
            "final_upper_bound": _finite(result.upper_bound),
            "final_upper_bound_std": None if last.sample_std is None else _finite(last.sample_std),
            "final_upper_bound_kind": last.upper_bound_kind,
            **_deterministic(result),
        },
        "verdict": _strict(result.verdict.as_dict()),
        "solve_stats": {
            "total_lp_solves": result.lp_solves,
            "retry_attempts": sum(record.lp_retries for record in history),
            "simplex_iterations": sum(record.simplex_iterations for record in history),
            "fall_backs": result.lp_fall_backs,
            "parallelism": result.ranks * result.threads,
        },
        "setup": {"compile_seconds": result.compile_time_ms / 1e3},
        "distribution": {
            "backend": result.backend,
            "world_size": result.ranks,
            "ranks_participated": result.ranks,
            "threads_per_rank": result.threads,
        },
        "policy_sha256": result.policy_sha256,
    }


def _deterministic(result: TrainingResult) -> dict[str, Any]:
    bound = result.deterministic_bound
    if bound is None:
        return {}
    return {
        "deterministic_upper_bound": _finite(bound.value),
        "deterministic_upper_bound_unavailable": bound.reason_unavailable,
        "deterministic_upper_bound_assumes": list(bound.assumptions),
    }


def _utc(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _strict(document: Any) -> Any:
    """Return a document of dictionaries with null in place of numbers that are not finite."""
    if isinstance(document, dict):
        return {name: _strict(value) for name, value in document.items()}
    return None if isinstance(document, float) and not math.isfinite(document) else document


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
