"""What ``cobre train`` reports of a run: its facts, its result, and where the time of each rank went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cobre.cli.verdict import show_verdict, verdict_data

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.sddp import TrainingResult
    from cobre.sddp.costs import CostBreakdown
    from cobre.sddp.timing import WorkerInfo

_LEAST_SHARE = 1e-6
_MIB = 1 << 20


def terminated_facts(result: TrainingResult) -> dict[str, Any]:
    """Return how training ended."""
    return {
        "reason": result.termination_reason,
        "iterations": result.iterations,
        "final_lb": result.lower_bound,
        "final_lb_kind": result.lower_bound_kind,
        "final_ub": result.upper_bound,
        "final_ub_kind": result.history[-1].upper_bound_kind,
        "final_gap_percent": result.gap_percent,
        "total_time_ms": round(result.total_time_ms, 3),
        "total_cuts": sum(record.cuts_added for record in result.history),
    }


def _lps_per_second(result: TrainingResult) -> float:
    seconds = sum(record.iteration_time_ms for record in result.history) / 1e3
    return result.lp_solves / seconds if seconds > 0.0 else 0.0


def result_data(case: Case, result: TrainingResult) -> dict[str, Any]:
    """Return the data of the JSON envelope."""
    from cobre.sddp.timing import balance_of

    return {
        "iterations": result.iterations,
        "lower_bound": result.lower_bound,
        "lower_bound_kind": result.lower_bound_kind,
        "lower_bound_note": result.lower_bound_note,
        "upper_bound": result.upper_bound,
        "upper_bound_std": result.history[-1].sample_std,
        "upper_bound_kind": result.history[-1].upper_bound_kind,
        "gap_percent": result.gap_percent,
        "verdict": verdict_data(case, result),
        **_deterministic_data(result),
        "termination_reason": result.termination_reason,
        "total_time_ms": round(result.total_time_ms, 3),
        "compile_time_ms": round(result.compile_time_ms, 3),
        "lp_solves": result.lp_solves,
        "lp_solves_per_second": round(_lps_per_second(result), 3),
        "lp_engine": None if result.lp_engine is None else asdict(result.lp_engine),
        "lp_fall_backs": result.lp_fall_backs,
        "forward_passes": case.training.forward_passes,
        "cuts": result.history[-1].cuts_active,
        "backend": result.backend,
        "ranks": result.ranks,
        "threads": result.threads,
        "seed": result.seed,
        "policy_sha256": result.policy_sha256,
        "status": result.status,
        "costs": None if result.costs is None else result.costs.as_dict(),
        "workers": [asdict(worker) for worker in result.workers],
        "balance": asdict(balance_of(result.workers)),
        "case": str(case.path.absolute()),
        "output_dir": str(result.output),
    }


def _lower_bound_rows(result: TrainingResult) -> dict[str, str]:
    if result.lower_bound_kind == "bound":
        return {"lower bound": f"{result.lower_bound:,.6f} $"}
    return {"estimate": f"{result.lower_bound:,.6f} $ (no lower bound: {result.lower_bound_note})"}


_ENGINE_WORDS = {"own": "own engine", "highs": "HiGHS", "both": "own engine and HiGHS"}


def _engine(result: TrainingResult) -> str:
    return "" if result.lp_engine is None else f", {_ENGINE_WORDS[result.lp_engine.used]}"


def _fall_back_row(result: TrainingResult) -> dict[str, str]:
    count = result.lp_fall_backs
    return {"fall-backs": f"{count:,} LPs that the own engine gave up, solved by HiGHS"} if count else {}


def show_result(console: Console, case: Case, result: TrainingResult) -> None:
    """Print the result for people, its verdict as the last lines."""
    from cobre.cli.human import show_table

    show_training(console, case, result)
    if result.costs is not None and result.costs.components:
        title = f"Mean cost of the forward passes of iteration {result.costs.iteration}"
        show_table(console, title, cost_rows(result.costs))
    show_verdict(console, case, result)


def show_training(console: Console, case: Case, result: TrainingResult) -> None:
    """Print how training went."""
    from cobre.cli.human import show_table

    limit = case.training.iteration_limit
    rows = {
        **_lower_bound_rows(result),
        **_upper_bound_rows(result),
        "iterations": f"{result.iterations} of {limit} ({result.termination_reason})",
        "LPs solved": f"{result.lp_solves:,} ({_lps_per_second(result):,.0f} per second){_engine(result)}",
        **_fall_back_row(result),
        "time": f"{result.total_time_ms / 1e3:.2f} s, of which start-up {result.compile_time_ms / 1e3:.2f} s",
        "run on": f"{result.backend}, ranks: {result.ranks}, threads: {result.threads}",
        "policy": f"{result.history[-1].cuts_active:,} cuts, sha256 {result.policy_sha256}",
        "memory": _memory(result.workers),
        "output": str(result.output),
    }
    show_table(console, f"Training {result.status}", rows)
    if result.ranks > 1:
        _show_ranks(console, result.workers)


def cost_rows(costs: CostBreakdown) -> dict[str, str]:
    """Return a row for each component that is more than rounding, the largest first."""
    shares = {name: costs.share(name) for name in costs.components}
    shown = {name: share for name, share in shares.items() if abs(share) >= _LEAST_SHARE}
    width = max((len(f"{costs.components[name]:,.2f}") for name in shown), default=0)
    return {
        name.replace("_", " "): f"{costs.components[name]:>{width},.2f} $  {share:>7.2%}"
        for name, share in shown.items()
    }


def _memory(workers: Sequence[WorkerInfo]) -> str:
    """Return the memory that a rank takes, and its own part where ranks share."""
    text = f"{max(worker.memory_bytes for worker in workers) / _MIB:,.0f} MiB"
    share = max(worker.memory_share_bytes for worker in workers)
    if len(workers) > 1:
        text += " of the largest rank"
        if share > 0:
            text += f", {share / _MIB:,.0f} MiB when what ranks share is divided among them"
    return text


def _show_ranks(console: Console, workers: Sequence[WorkerInfo]) -> None:
    from rich.text import Text

    from cobre.sddp.timing import balance_of

    heads = ("rank", "forward", "backward", "communication", "idle", "LPs", "passes", "MiB")
    rows = [
        (
            str(worker.rank),
            f"{worker.forward_time_ms / 1e3:.2f} s",
            f"{worker.backward_time_ms / 1e3:.2f} s",
            f"{worker.communication_time_ms / 1e3:.2f} s",
            f"{worker.idle_time_ms / 1e3:.2f} s",
            f"{worker.lp_solves:,}",
            f"{worker.scenarios_processed:,}",
            f"{worker.memory_bytes / _MIB:,.0f}",
        )
        for worker in workers
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        line = "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        console.print(Text(f"  {line}"), soft_wrap=True)
    balance = balance_of(workers)
    advice = "; more than a tenth: fewer ranks would do" if balance.too_many_ranks else ""
    console.print(
        Text(
            f"  load imbalance {balance.imbalance:.2f} ({balance.imbalance_word}), "
            f"communication {balance.communication_fraction:.1%}{advice}"
        ),
        soft_wrap=True,
    )


def _deterministic_data(result: TrainingResult) -> dict[str, Any]:
    bound = result.deterministic_bound
    if bound is None:
        return {"deterministic_upper_bound": None, "deterministic_upper_bound_note": result.upper_bound_note}
    return {
        "deterministic_upper_bound": None if math.isinf(bound.value) else bound.value,
        "deterministic_upper_bound_note": result.upper_bound_note,
        "deterministic_upper_bound_unavailable": bound.reason_unavailable,
        "deterministic_upper_bound_assumes": list(bound.assumptions),
    }


def _upper_bound_rows(result: TrainingResult) -> dict[str, str]:
    """Return the rows of proven upper bounds, or of the cost of the last passes."""
    from cobre.cli.human import passes_words

    bound, last, rows = result.deterministic_bound, result.history[-1], {}
    if bound is not None and math.isfinite(bound.value):
        assumed = "".join(f"; assumes {text}" for text in bound.assumptions)
        rows["upper bound"] = f"{bound.value:,.6f} $ (deterministic{assumed})"
    if last.upper_bound_kind == "exact":
        words = "exact expected cost of the last passes"
        name = f"{passes_words(last)} of passes" if rows else passes_words(last)
        rows[name] = f"{last.upper_bound:,.6f} $ ({words})"
    gap = result.gap_percent
    return rows if gap is None else {**rows, "gap": f"{gap:.6g} %"}
