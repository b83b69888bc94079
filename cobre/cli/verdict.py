"""The last lines of a run: its verdict in words, and what to do next, as commands."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.rules.bounds import LEAST_SAMPLE, SampleCost, simulated_gap_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from cobre.case.model import Case
    from cobre.sddp import SimulationResult, TrainingResult
    from cobre.sddp.costs import CostBreakdown
    from cobre.sddp.verdict import Verdict

TITLES = {
    "optimal": "optimal",
    "near_optimal": "nearly optimal",
    "settled": "the lower bound has settled",
    "unsettled": "not converged",
}
_LEAST_SHARE = 5e-3
_NAMED = 4


def verdict_data(
    case: Case, result: TrainingResult, simulated: SimulationResult | None = None
) -> dict[str, Any]:
    """Return the verdict for JSON, with the commands that come next."""
    verdict = result.verdict
    return {**verdict.as_dict(), "next_commands": next_commands(case, result, verdict, simulated)}


def show_verdict(
    console: Console, case: Case, result: TrainingResult, simulated: SimulationResult | None = None
) -> None:
    """Print the verdict, the last lines of a run; with what its policy cost where that was simulated."""
    from cobre.cli.human import show_table
    from cobre.cli.simulate_report import cost_of_operation

    verdict = result.verdict
    if simulated is None:
        rows = {**verdict_rows(verdict.as_dict()), **paid_rows(result.costs)}
    else:
        rows = verdict_rows(verdict.as_dict(), _policy_of(case, verdict, simulated))
        rows |= {**cost_of_operation(simulated, "simulated cost"), **paid_rows(simulated.costs)}
    rows |= command_rows(next_commands(case, result, verdict, simulated))
    show_table(console, f"Verdict: {TITLES[verdict.conclusion]}", rows)


def command_rows(commands: Sequence[str]) -> dict[str, str]:
    """Return rows of what to do, in order."""
    names = ("next", "then", "and")
    return {names[min(place, len(names) - 1)]: command for place, command in enumerate(commands)}


def _policy_of(case: Case, verdict: Verdict, simulated: SimulationResult) -> str | None:
    """Return how far a simulated policy is from the optimum; ``None`` where scenarios are not comparable."""
    source = case.simulation.source
    in_sample = {source.inflow, source.load, source.ncs} == {"in_sample"}
    bounded = verdict.lower_bound_kind == "bound" and verdict.cost_kind == "expected"
    if not (in_sample and bounded) or simulated.terminal_value:
        return None
    exact = simulated.kind == "exact"
    cost = SampleCost(simulated.cost.mean, simulated.cost.std, simulated.scenarios, 1)
    gap = simulated_gap_percent(verdict.lower_bound, cost, exact=exact)
    how = "all scenarios simulated" if exact else "95 % sure, simulated"
    return None if gap is None else _policy(gap, how)


def verdict_rows(verdict: dict[str, Any], simulated: str | None = None) -> dict[str, str]:
    """Return a row for each part of a verdict, as :meth:`cobre.sddp.verdict.Verdict.as_dict` has it.

    Parameters
    ----------
    simulated
        How far the policy is from the optimum, by a simulation of it.
    """
    rows = {f"{verdict['cost_kind']} cost": _cost(verdict), "distance": _distance(verdict, simulated)}
    if verdict["sample"] is not None:
        rows["sample cost"] = _sample(verdict)
    name = "lower bound" if verdict["lower_bound_kind"] == "bound" else "estimate"
    rows[f"{name} moved"] = _move(verdict)
    return rows


def next_commands(
    case: Case, result: TrainingResult, verdict: Verdict, simulated: SimulationResult | None = None
) -> list[str]:
    """Return what to do next, as command lines; the last one shows what there is."""
    from cobre.cli.simulate_report import scenarios_needed

    output = result.output or case.path / "output"
    study = study_words(case.path, output)
    needed = None if simulated is None else scenarios_needed(simulated)
    # The limit of this run, which need not be the case's.
    stopped = result.status == "partial"
    limit = case.training.iteration_limit if stopped else verdict.next_iterations
    commands: list[list[str]] = []
    if stopped or verdict.next_step == "train_on":
        again = "train" if simulated is None else "run"
        commands.append(["cobre", again, *study, "--resume", "--iterations", str(limit)])
        if simulated is not None:
            commands[-1] += _scenario_words(case, simulated, needed)
    else:
        if verdict.next_step == "check_case":
            commands.append(["cobre", "validate", path_word(case.path)])
        if simulated is None:
            commands.append(["cobre", "simulate", *study])
        elif needed is not None:
            commands.append(["cobre", "simulate", *study, "--scenarios", str(needed)])
    return [" ".join(command) for command in [*commands, ["cobre", "report", path_word(output)]]]


def _scenario_words(case: Case, simulated: SimulationResult, needed: int | None) -> list[str]:
    """Return the option by which a run simulates so many scenarios again; none where the case has them."""
    options, wanted = case.simulation, needed or simulated.scenarios_planned
    as_in_case = options.enabled and (options.enumerated or options.num_scenarios == wanted)
    return [] if as_in_case else ["--scenarios", str(wanted)]


def study_words(case: Path, output: Path) -> list[str]:
    """Return the words of a command line that name a case, and its output where that lies elsewhere."""
    elsewhere = output.absolute() != (case / "output").absolute()
    return [path_word(case), *(["--output", path_word(output)] if elsewhere else [])]


def path_word(path: Path) -> str:
    """Return a path as one word of a command line, relative where it lies below here."""
    try:
        text = str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        text = str(path.absolute())
    return shlex.quote(text)


def _cost(verdict: dict[str, Any]) -> str:
    lower, upper = verdict["lower_bound"], verdict["upper_bound"]
    if verdict["lower_bound_kind"] == "estimate":
        known = "" if upper is None else f"; the optimum is at most {_money(upper)}"
        return f"about {_money(lower)} (an estimate, no bound){known}"
    if upper is None:
        return f"the optimum is at least {_money(lower)}"
    if verdict["conclusion"] == "optimal":
        return f"{_money(lower)}, the optimum"
    return f"the optimum lies between {lower:,.2f} and {_money(upper)}"


def _distance(verdict: dict[str, Any], simulated: str | None) -> str:
    """Return how far the policy is above the optimum, and how well that is known."""
    if verdict["lower_bound_kind"] == "estimate":
        return "unknown: there is no lower bound"
    gap, likely = verdict["gap_percent"], verdict["likely_gap_percent"]
    exact = verdict.get("policy_gap_percent")  # events of earlier versions do not have it
    policy = simulated
    if policy is None and exact is not None:
        policy = _policy(exact)
    elif policy is None and likely is not None:
        policy = _policy(likely, "95 % sure")
    parts = [] if policy is None else [policy]
    if gap is None:
        why = verdict["upper_bound_note"]
        parts.append("no upper bound of the optimum is known" + (f" ({why})" if why else ""))
    else:
        assumed = "".join(f", assuming {text}" for text in verdict["upper_bound_assumes"])
        parts.insert(0, f"{_at_most(gap)} between the bounds of the optimum{assumed}")
    return "; ".join(parts)


def _policy(gap_percent: float, how: str = "") -> str:
    return f"the policy is {_at_most(gap_percent)} above the optimum" + (f" ({how})" if how else "")


def _sample(verdict: dict[str, Any]) -> str:
    sample, position = verdict["sample"], verdict["bound_position"]
    passes = f"{sample['passes']:,} forward pass{'' if sample['passes'] == 1 else 'es'}"
    since = f"{passes} since iteration {sample['first_iteration']}"
    if sample["ci_95"] is None:
        return f"{_money(sample['mean'])}, of {since}; {LEAST_SAMPLE} make a confidence interval"
    text = f"{sample['mean']:,.2f} \u00b1 {_money(sample['ci_95'])} (95 %, {since})"
    if position is not None:
        return f"{text}; {_POSITIONS[position]}"
    if verdict["cost_kind"] == "risk-adjusted":
        return f"{text}; a mean, not comparable with the risk-adjusted cost"
    if verdict["lower_bound_kind"] == "estimate":
        return text
    return f"{text}; drawn outside of the opening tree, which the bounds are of"


_POSITIONS = {
    "within": "the lower bound lies within it",
    "below": "the lower bound lies below it: the policy may be improved",
    "above": "the lower bound lies above it: the passes have missed dear outcomes, more of them are needed",
}


def _move(verdict: dict[str, Any]) -> str:
    move, iterations = verdict["bound_move_percent"], verdict["bound_move_iterations"]
    if move is None:
        return "unknown after one iteration"
    shown = "less than 0.001 %" if 0.0 < abs(move) < 1e-3 else _percent(move)
    return f"{shown} over the last {iterations} iteration{'' if iterations == 1 else 's'}"


def paid_rows(costs: CostBreakdown | None) -> dict[str, str]:
    """Return what is paid for, and a warning where violations dominate."""
    if costs is None:
        return {}
    shares = {name.replace("_", " "): costs.share(name) for name in costs.components}
    shown = [f"{name} {share:.1%}" for name, share in shares.items() if abs(share) >= _LEAST_SHARE]
    more = ", ..." if len(shown) > _NAMED else ""
    rows = {"paid for": (", ".join(shown[:_NAMED]) or "nothing") + more}
    if costs.warnings():
        named = ", ".join(name.replace("_", " ") for name in list(costs.violations)[:_NAMED])
        rows["warning"] = f"{costs.violation_share:.1%} pays for violations and deficit ({named})"
    return rows


def _at_most(percent: float) -> str:
    return f"at most {_percent(max(percent, 1e-3))}"


def _percent(value: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{min(digits, 3)}f} %"


def _money(value: float) -> str:
    return f"{value:,.2f} $"
