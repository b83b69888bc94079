"""What ``cobre simulate`` reports: its facts and its result."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cobre.cli.train_report import cost_rows
from cobre.rules.bounds import LEAST_SAMPLE

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
        "next_commands": next_commands(case, result),
    }


def show_simulation(console: Console, case: Case, result: SimulationResult) -> None:
    """Print the result for people: how it went, what was found, and as last lines what to do next."""
    from cobre.cli.human import show_table
    from cobre.cli.verdict import command_rows, paid_rows

    show_operation(console, result)
    rows = {
        **cost_of_operation(result, "expected cost"),
        **paid_rows(result.costs),
        **command_rows(next_commands(case, result)),
    }
    show_table(console, f"Verdict: {_title(result)}", rows)


def show_operation(console: Console, result: SimulationResult) -> None:
    """Print how a simulation went, and its cost by component."""
    from cobre.cli.human import show_table

    rows = {
        "LPs solved": f"{result.lp_solves:,}" + _fall_backs(result),
        "time": f"{result.total_time_ms / 1e3:.2f} s, of which start-up {result.compile_time_ms / 1e3:.2f} s",
        "run on": f"{result.backend}, ranks: {result.ranks}, threads: {result.threads}",
        "policy": f"sha256 {result.policy_sha256}",
        "output": f"{result.output}/simulation (a directory for each table, such as costs, hydros, buses)",
    }
    show_table(console, "Simulation complete", rows)
    if result.costs.components:
        show_table(console, "Expected cost by component", cost_rows(result.costs))


def cost_of_operation(result: SimulationResult, name: str) -> dict[str, str]:
    """Return rows of what a simulation found: its expected cost, called ``name``, its risk and deficit."""
    cost = result.cost
    boundary = (
        {"final state": f"{result.terminal_value:,.2f} $ (value by the boundary policy, not in the cost)"}
        if result.terminal_value
        else {}
    )
    return {
        name: f"{cost.mean:,.2f} ${_spread(result)}",
        **boundary,
        "range": f"{cost.least:,.2f} $ to {cost.most:,.2f} $, standard deviation {cost.std:,.2f} $",
        "CVaR 95 %": f"{cost.cvar_95:,.2f} $ (mean of the dearest 5 %)",
        "deficit": f"probability {result.deficit_probability:.4g}, "
        f"expected {result.expected_deficit_mwh:,.6g} MWh over the study",
    }


def _spread(result: SimulationResult) -> str:
    """Return how sure the expected cost is."""
    if result.kind == "exact":
        return " (all scenarios enumerated)"
    count = f"{result.scenarios:,} scenario{'' if result.scenarios == 1 else 's'}"
    if result.cost.least == result.cost.most and result.scenarios > 1:
        return f" (in each of {count})"
    if result.scenarios < LEAST_SAMPLE:
        return f" (mean of {count}; {LEAST_SAMPLE} make a confidence interval)"
    return f" ± {result.cost.ci_95:,.2f} $ (95 % confidence, {count})"


def _title(result: SimulationResult) -> str:
    cost = result.cost
    if result.kind == "exact" or (cost.least == cost.most and result.scenarios > 1):
        return "the expected cost is exact" if result.kind == "exact" else "all scenarios cost the same"
    if result.scenarios < LEAST_SAMPLE:
        return "too few scenarios to know the expected cost"
    if not cost.mean:
        return "the expected cost is a sample"
    return f"the expected cost is known to ± {100.0 * cost.ci_95 / abs(cost.mean):.2g} %"


def next_commands(case: Case, result: SimulationResult) -> list[str]:
    """Return what to do next, as command lines; the last one shows what there is.

    Before it: look at a case that pays for violations, and narrow a wide confidence interval.
    """
    from cobre.cli.verdict import path_word, study_words
    from cobre.sddp.costs import DOMINATING_SHARE

    output = result.output or case.path / "output"
    commands = []
    if result.costs.violation_share > DOMINATING_SHARE:
        commands.append(["cobre", "validate", path_word(case.path)])
    count = scenarios_needed(result)
    if count is not None:
        commands.append(["cobre", "simulate", *study_words(case.path, output), "--scenarios", str(count)])
    return [" ".join(command) for command in [*commands, ["cobre", "report", path_word(output)]]]


def scenarios_needed(result: SimulationResult) -> int | None:
    """Return how many scenarios make a confidence interval of 1 %; ``None`` where it is as narrow."""
    cost = result.cost
    few = result.scenarios < LEAST_SAMPLE and cost.least != cost.most
    if result.kind == "exact" or not cost.mean or not (few or cost.ci_95 > _WIDE * abs(cost.mean)):
        return None
    needed = result.scenarios * (cost.ci_95 / (_WIDE * abs(cost.mean))) ** 2
    if needed > _MOST_SCENARIOS:
        return None
    return max(math.ceil(needed / _ROUND), 1) * _ROUND


def _fall_backs(result: SimulationResult) -> str:
    count = result.lp_fall_backs
    return f" ({count:,} given up by the own engine, solved by HiGHS)" if count else ""
