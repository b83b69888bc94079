"""What a simulation leaves besides its tables: the work of its LPs, and what it was.

::

    <simulation>/solver/  iterations.parquet  retry_histogram.parquet
                 metadata.json  _SUCCESS
"""

from __future__ import annotations

import dataclasses
import datetime
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cobre._version import __version__
from cobre.case.model import Case
from cobre.results.files import atomic_write, output_errors, write_json, write_parquet
from cobre.results.training import SOLVER_SCHEMA
from cobre.sddp.kernel import counts
from cobre.sddp.simulation.result import SimulationResult

PHASE = "simulation"
_NS_PER_MS = 1.0e6

SIMULATION_SOLVER_SCHEMA = pa.schema(
    [field.with_nullable(True) if field.name == "iteration" else field for field in SOLVER_SCHEMA]
)
"""Columns of ``solver/iterations.parquet``: those of training, with a row for each stage. ``iteration`` is
null, and so is what the row is summed over: scenarios, openings, ranks and workers."""

RETRY_SCHEMA = pa.schema(
    [
        pa.field("iteration", pa.uint32()),
        pa.field("phase", pa.string(), nullable=False),
        pa.field("stage_id", pa.int32()),
        pa.field("retry_level", pa.uint32(), nullable=False),
        pa.field("count", pa.uint64(), nullable=False),
    ]
)
"""Columns of ``solver/retry_histogram.parquet``: further attempts of HiGHS by stage, as level 1."""


def write_run_files(
    directory: Path,
    case: Case,
    result: SimulationResult,
    study: Mapping[str, Any],
    began: datetime.datetime,
) -> None:
    """Write solver tables and metadata, and ``_SUCCESS`` last.

    Parameters
    ----------
    study
        Everything that the results depend on.

    Raises
    ------
    OutputError
        When a file cannot be written.
    """
    with output_errors(directory):
        (directory / "solver").mkdir(exist_ok=True)
    write_parquet(directory / "solver" / "iterations.parquet", solver_table(case, result))
    write_parquet(directory / "solver" / "retry_histogram.parquet", retry_table(case, result))
    write_json(directory / "metadata.json", simulation_metadata(case, result, study, began))
    atomic_write(directory / "_SUCCESS", lambda file: None)


def solver_table(case: Case, result: SimulationResult) -> pa.Table:
    """Return how much work LPs were, with the columns of :data:`SIMULATION_SOLVER_SCHEMA`."""
    rows = [
        {
            "phase": PHASE,
            "stage_id": stage.id,
            "lp_solves": row[counts.LP_SOLVES],
            "lp_successes": row[counts.LP_SOLVES],
            "lp_failures": 0,
            "retry_attempts": row[counts.LP_RETRIES],
            "simplex_iterations": row[counts.SIMPLEX_ITERATIONS],
            "solve_time_ms": row[counts.BUSY_NS] / _NS_PER_MS,
            "fall_backs": row[counts.FALL_BACKS],
            "refactorisations": row[counts.REFACTORISATIONS],
            "cold_starts": row[counts.COLD_STARTS],
            "checks_failed": row[counts.CHECKS_FAILED],
            "working_set_cuts": row[counts.CUTS_ADDED],
        }
        for stage, row in zip(case.stages, result.lp_counts.tolist(), strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=SIMULATION_SOLVER_SCHEMA)


def retry_table(case: Case, result: SimulationResult) -> pa.Table:
    """Return further attempts, with the columns of :data:`RETRY_SCHEMA`; no row for stages without any."""
    rows = [
        {"phase": PHASE, "stage_id": stage.id, "retry_level": 1, "count": row[counts.LP_RETRIES]}
        for stage, row in zip(case.stages, result.lp_counts.tolist(), strict=True)
        if row[counts.LP_RETRIES]
    ]
    return pa.Table.from_pylist(rows, schema=RETRY_SCHEMA)


def simulation_metadata(
    case: Case, result: SimulationResult, study: Mapping[str, Any], began: datetime.datetime
) -> dict[str, Any]:
    """Return the content of ``metadata.json``; costs in $, discounted to the beginning of the study."""
    from cobre.lp.highs import (
        version as highs_version,  # loads the library, which simulation has done already
    )

    now = datetime.datetime.now(datetime.timezone.utc)
    found = result.as_dict()
    engine = result.lp_engine
    return {
        "software": "cobre",
        "software_version": __version__,
        "hostname": socket.gethostname(),
        "solver": "HiGHS",
        "solver_version": highs_version(),
        "started_at": _utc(began),
        "completed_at": _utc(now),
        "duration_seconds": (now - began).total_seconds(),
        "status": result.status,
        "scenarios": {"total": result.scenarios_planned, "completed": result.scenarios, "failed": 0},
        "cost": {
            name: found[name]
            for name in (
                *("mean_cost", "std_cost", "ci_95", "cvar_95", "least_cost", "most_cost"),
                *("terminal_value", "kind", "violation_share", "components"),
            )
        },
        "deficit": {name: found[name] for name in ("deficit_probability", "expected_deficit_mwh")},
        "problem_dimensions": {
            "num_stages": len(case.stages),
            "num_hydros": len(case.hydros),
            "num_thermals": len(case.thermals),
            "num_buses": len(case.buses),
            "num_lines": len(case.lines),
        },
        "solve_stats": {
            "total_lp_solves": result.lp_solves,
            "first_try": result.lp_solves - result.lp_fall_backs,
            "retried": result.lp_fall_backs,
            "failed": 0,
            "solve_seconds": float(result.lp_counts[:, counts.BUSY_NS].sum()) / 1e9,
            "parallelism": result.ranks * result.threads,
            "lp_engine": dataclasses.asdict(engine),
        },
        "distribution": {
            "backend": result.backend,
            "world_size": result.ranks,
            "ranks_participated": result.ranks,
            "threads_per_rank": result.threads,
        },
        "resumed_scenarios": result.scenarios_resumed,
        "policy_sha256": result.policy_sha256,
        "study": dict(study),
    }


def _utc(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
