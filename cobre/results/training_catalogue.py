"""What the columns of training's tables mean; their types are those of the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

Meaning = tuple[str, str]
"""Unit (empty where there is none) and description."""

MEANINGS: Final[Mapping[str, Mapping[str, Meaning]]] = {
    "convergence": {
        "iteration": ("", "Number of the iteration, from 1"),
        "lower_bound": ("$", "Lower bound of the optimal cost"),
        "lower_bound_kind": ("", "bound, or estimate where cuts may lie above the cost"),
        "upper_bound": ("$", "Mean cost of the forward passes, or the exact cost of the policy"),
        "upper_bound_std": ("$", "Standard deviation of the passes' costs; null where there is none"),
        "upper_bound_kind": ("", "statistical (sampled passes) or exact (enumerated paths)"),
        "gap_percent": (
            "%",
            "100 (upper - lower) / max(1, |lower|); null where that is no gap between bounds",
        ),
        "cuts_added": ("", "Cuts made in the iteration"),
        "cuts_removed": ("", "Cuts that selection took out of the LPs"),
        "cuts_active": ("", "Cuts in the LPs after the iteration"),
        "time_forward_ms": ("ms", "Duration of the forward passes"),
        "time_backward_ms": ("ms", "Duration of the backward pass"),
        "time_total_ms": ("ms", "Duration of the iteration"),
        "forward_passes": ("", "Forward passes of the iteration, over all ranks"),
        "lp_solves": ("", "LPs solved in the iteration, over all ranks"),
    },
    "iteration_timing": {
        "iteration": ("", "Number of the iteration, from 1"),
        "rank": ("", "Rank, from 0"),
        "forward_time_ms": ("ms", "Forward passes of the rank"),
        "backward_time_ms": ("ms", "Backward pass of the rank"),
        "lower_bound_time_ms": ("ms", "Lower bound"),
        "communication_time_ms": ("ms", "In collectives"),
        "idle_time_ms": ("ms", "Threads that had nothing left to do"),
        "lp_solves": ("", "LPs that the rank solved"),
        "scenarios_processed": ("", "Forward passes of the rank"),
    },
    "solver_iterations": {
        "iteration": ("", "Number of the iteration, from 1; null in a simulation"),
        "scenario_id": ("", "Null: rows are sums over scenarios"),
        "phase": ("", "forward, backward, lower_bound or simulation"),
        "stage_id": ("", "Declared id of the stage; null for the lower bound"),
        "opening_index": ("", "Null: rows are sums over openings"),
        "rank": ("", "Null: rows are sums over ranks"),
        "worker_id": ("", "Null: rows are sums over threads"),
        "lp_solves": ("", "LPs solved"),
        "lp_successes": ("", "LPs that were solved to optimality"),
        "lp_failures": ("", "LPs without a solution; a run with one stops"),
        "retry_attempts": ("", "Further attempts at LPs that were not solved at once"),
        "simplex_iterations": ("", "Pivots of the simplex method"),
        "solve_time_ms": ("ms", "Time in LPs, summed over threads"),
        "fall_backs": ("", "LPs that the own engine left to HiGHS"),
        "refactorisations": ("", "Factorisations of a basis"),
        "cold_starts": ("", "LPs that started without a basis"),
        "checks_failed": ("", "Results of the own engine that its check refused"),
        "working_set_cuts": ("", "Cuts in the LPs as they were solved, summed over LPs"),
    },
    "cut_selection": {
        "iteration": ("", "Number of the iteration, from 1"),
        "stage_id": ("", "Declared id of the stage"),
        "cuts_populated": ("", "Cuts made at the stage so far"),
        "cuts_active_before": ("", "Cuts in the LPs before selection"),
        "cuts_deactivated": ("", "Cuts that selection took out"),
        "cuts_reactivated": ("", "Cuts that selection put back"),
        "cuts_active_after": ("", "Cuts in the LPs after selection"),
        "selection_time_ms": ("ms", "Duration of selection"),
        "budget_evicted": ("", "Cuts taken out by the cap; null without one"),
        "active_after_budget": ("", "Cuts in the LPs after the cap; null without one"),
    },
    "stage_costs": {
        "iteration": ("", "Number of the iteration: the first and the last one of a run"),
        "stage_id": ("", "Declared id of the stage"),
        "component": ("", "What was paid for"),
        "is_violation": ("", "Whether it is the price of a load or limit that is not kept"),
        "cost": ("$", "Expected cost, discounted to the first stage"),
    },
    "entity_costs": {
        "iteration": ("", "Number of the iteration: the first and the last one of a run"),
        "component": ("", "What was paid for"),
        "entity": ("", "Name of who paid"),
        "is_violation": ("", "Whether it is the price of a load or limit that is not kept"),
        "cost": ("$", "Expected cost over all stages, discounted to the first one"),
    },
}
"""By table and column."""

_NAMES: Final = {
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
    "uint32": "u32",
    "uint64": "u64",
    "double": "f64",
    "date32[day]": "date32",
}


def training_variable_rows() -> list[tuple[str, ...]]:
    """Return a row of ``variables.csv`` for each column of training's tables."""
    return [
        (
            name,
            field.name,
            _NAMES.get(str(field.type), str(field.type)),
            *MEANINGS[name].get(field.name, ("", "")),
            "true" if field.nullable else "false",
        )
        for name, schema in training_schemas().items()
        for field in schema
    ]


def training_schemas() -> dict[str, pa.Schema]:
    """Return the schemas of training's tables by the names that cobre-rs gives them."""
    from cobre.results import training
    from cobre.results.costs import ENTITY_COST_SCHEMA, STAGE_COST_SCHEMA

    return {
        "convergence": training.CONVERGENCE_SCHEMA,
        "iteration_timing": training.TIMING_SCHEMA,
        "solver_iterations": training.SOLVER_SCHEMA,
        "cut_selection": training.SELECTION_SCHEMA,
        "stage_costs": STAGE_COST_SCHEMA,
        "entity_costs": ENTITY_COST_SCHEMA,
    }
