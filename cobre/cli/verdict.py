"""The last lines of a run: its verdict in words, and what to do next, as commands."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.rules.bounds import LEAST_SAMPLE

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.sddp import TrainingResult
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


def verdict_data(case: Case, result: TrainingResult) -> dict[str, Any]:
    """Return the verdict for JSON, with the commands that come next."""
    verdict = result.verdict
    return {**verdict.as_dict(), "next_commands": next_commands(case, result, verdict)}


def show_verdict(console: Console, case: Case, result: TrainingResult) -> None:
    """Print the verdict, the last lines of a run."""
    from cobre.cli.human import show_table

    verdict = result.verdict
    rows = {**verdict_rows(verdict.as_dict()), **_paid_rows(result.costs)}
    for place, command in enumerate(next_commands(case, result, verdict)):
        rows["then" if place else "next"] = command
    show_table(console, f"Verdict: {TITLES[verdict.conclusion]}", rows)


def verdict_rows(verdict: dict[str, Any]) -> dict[str, str]:
    """Return a row for each part of a verdict, as :meth:`cobre.sddp.verdict.Verdict.as_dict` has it."""
    rows = {f"{verdict['cost_kind']} cost": _cost(verdict), "distance": _distance(verdict)}
    if verdict["sample"] is not None:
        rows["sample cost"] = _sample(verdict)
    name = "lower bound" if verdict["lower_bound_kind"] == "bound" else "estimate"
    rows[f"{name} moved"] = _move(verdict)
    return rows


def next_commands(case: Case, result: TrainingResult, verdict: Verdict) -> list[str]:
    """Return what to do next, as command lines; the last one shows what there is."""
    output = result.output or case.path / "output"
    elsewhere = output.absolute() != (case.path / "output").absolute()
    study = [_word(case.path), *(["--output", _word(output)] if elsewhere else [])]
    train = ["cobre", "train", *study, "--resume"]
    if result.status == "partial":
        commands = [train]
    elif verdict.next_step == "train_on":
        commands = [[*train, "--iterations", str(verdict.next_iterations)]]
    else:
        commands = [["cobre", "simulate", *study]]
        if verdict.next_step == "check_case":
            commands.insert(0, ["cobre", "validate", _word(case.path)])
    return [" ".join(command) for command in [*commands, ["cobre", "report", _word(output)]]]


def _word(path: Path) -> str:
    """Return a path as one word of a command line, relative where it lies below here."""
    try:
        text = str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        text = str(path.absolute())
    return shlex.quote(text)


def _cost(verdict: dict[str, Any]) -> str:
    lower, upper = verdict["lower_bound"], verdict["upper_bound"]
    if verdict["lower_bound_kind"] == "estimate":
        known = "" if upper is None else f"; at most {_money(upper)} in the optimum"
        return f"about {_money(lower)} (an estimate, no bound){known}"
    if upper is None:
        return f"at least {_money(lower)} in the optimum"
    if verdict["conclusion"] == "optimal":
        return f"{_money(lower)} in the optimum"
    return f"{lower:,.2f} to {_money(upper)} in the optimum"


def _distance(verdict: dict[str, Any]) -> str:
    gap, likely = verdict["gap_percent"], verdict["likely_gap_percent"]
    if verdict["lower_bound_kind"] == "estimate":
        return "unknown: there is no lower bound"
    if gap is not None:
        assumed = "".join(f"; assumes {text}" for text in verdict["upper_bound_assumes"])
        sure = likely is not None and likely < gap
        closer = f"; 95 % sure: {_at_most(likely)}" if sure else ""
        return f"{_at_most(gap)} from the optimum{closer}{assumed}"
    why = verdict["upper_bound_note"]
    unknown = "no upper bound is known" + (f" ({why})" if why else "")
    return unknown if likely is None else f"95 % sure: {_at_most(likely)} above the optimum; {unknown}"


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


def _paid_rows(costs: CostBreakdown | None) -> dict[str, str]:
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
