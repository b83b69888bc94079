"""What ``cobre simulate`` reports: its facts and its result."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cobre.cli.train_report import cost_rows

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.sddp import SimulationResult
    from cobre.sddp.simulation.plan import SimulationPlan


_WIDE = 0.01
_MOST_SCENARIOS = 100_000
_ROUND = 100


def simulation_facts(plan: SimulationPlan) -> dict[str, Any]:
    """Return what is known when a simulation begins."""
    case = plan.case
    return {
        "phase": "simulation",
        "case": str(case.path.absolute()),
        "policy": "the policy in memory" if plan.policy_path is None else str(plan.policy_path),
        "policy_sha256": plan.policy_sha256,
        "output_dir": str(plan.output),
        "stages": len(case.stages),
        "scenarios": None if plan.enumerated else case.simulation.num_scenarios,
        "seed": plan.seed,
        "ranks": plan.ranks,
        "threads_per_rank": plan.threads,
        "lp_engine": plan.lp_engine,
        "resume": plan.resume,
    }


def simulation_data(case: Case, result: SimulationResult) -> dict[str, Any]:
    """Return the data of the JSON envelope."""
    return {
        **result.as_dict(),
        "scenarios_resumed": result.scenarios_resumed,
        "lp_engine": asdict(result.lp_engine),
        "total_time_ms": round(result.total_time_ms, 3),
        "compile_time_ms": round(result.compile_time_ms, 3),
        "backend": result.backend,
        "ranks": result.ranks,
        "threads": result.threads,
        "case": str(case.path.absolute()),
        "output_dir": str(result.output),
    }


def show_simulation(console: Console, case: Case, result: SimulationResult) -> None:
    """Print the result for people, what to do next as the last line."""
    from cobre.cli.human import show_table

    cost, exact = result.cost, result.kind == "exact"
    spread = (
        " (all scenarios enumerated)"
        if exact
        else f" ± {cost.ci_95:,.2f} $ (95 % confidence, {result.scenarios:,} scenarios)"
    )
    boundary = (
        {"final state": f"{result.terminal_value:,.2f} $ (value by the boundary policy, not in the cost)"}
        if result.terminal_value
        else {}
    )
    rows = {
        "expected cost": f"{cost.mean:,.2f} ${spread}",
        **boundary,
        "range": f"{cost.least:,.2f} $ to {cost.most:,.2f} $, standard deviation {cost.std:,.2f} $",
        "CVaR 95 %": f"{cost.cvar_95:,.2f} $ (mean of the dearest 5 %)",
        "deficit": f"probability {result.deficit_probability:.4g}, "
        f"expected {result.expected_deficit_mwh:,.6g} MWh over the study",
        "LPs solved": f"{result.lp_solves:,}" + _fall_backs(result),
        "time": f"{result.total_time_ms / 1e3:.2f} s, of which start-up {result.compile_time_ms / 1e3:.2f} s",
        "run on": f"{result.backend}, ranks: {result.ranks}, threads: {result.threads}",
        "policy": f"sha256 {result.policy_sha256}",
        "output": f"{result.output}/simulation (a directory for each table, such as costs, hydros, buses)",
        **_next_step(case, result),
    }
    show_table(console, "Simulation complete", rows)
    if result.costs.components:
        show_table(console, "Expected cost by component", cost_rows(result.costs))


def _next_step(case: Case, result: SimulationResult) -> dict[str, str]:
    """Return the command that narrows a wide confidence interval."""
    cost = result.cost
    if result.kind == "exact" or cost.ci_95 <= _WIDE * abs(cost.mean):
        return {}
    needed = result.scenarios * (cost.ci_95 / (_WIDE * abs(cost.mean))) ** 2 if cost.mean else 0.0
    if not 0.0 < needed <= _MOST_SCENARIOS:
        return {}
    count = math.ceil(needed / _ROUND) * _ROUND
    command = f"cobre simulate {case.path} --scenarios {count} --output {result.output}"
    return {"next": f"for a confidence interval of ± {_WIDE:.0%}: {command}"}


def _fall_backs(result: SimulationResult) -> str:
    count = result.lp_fall_backs
    return f" ({count:,} given up by the own engine, solved by HiGHS)" if count else ""
