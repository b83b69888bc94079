"""``cobre validate``: read a case and report what is wrong with it, or what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.errors import CobreError
from cobre.machine import check_process

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.case.summary import CaseSummary
    from cobre.lp.scaling import Range, ScalingReport

_WORST_FITS = 3
"""Fitted plants that are listed for people; the JSON document has all."""


def validate_command(case_path: Path, outcome: Outcome, *, lps: bool = True) -> None:
    """Carry out ``cobre validate``; writes nothing to disk.

    Parameters
    ----------
    lps
        Whether the stage LPs are built, for their size and scaling.
    """
    check_process()
    from cobre.case import check

    case, errors, warnings = check(case_path)
    outcome.warnings += warnings
    outcome.summary = {"error_count": len(errors), "warning_count": len(warnings)}
    if errors or case is None:
        outcome.fail(ExitCode.INPUT, errors)
        return
    from cobre.case.balance import balance_warnings, energy_balance
    from cobre.lp.state import StateLayout

    layout = StateLayout(case)
    outcome.warnings += layout.inflow.notes
    balance = energy_balance(case, layout.inflow.mean_m3s)
    outcome.warnings += balance_warnings(balance, len(case.stages))
    outcome.summary["warning_count"] = len(outcome.warnings)
    summary = case.summary()
    data = _data(case, summary)
    report: ScalingReport | None = None
    if lps:
        from cobre.lp.measure import measure_stages

        try:
            report = measure_stages(case)
        except CobreError as error:
            outcome.summary["error_count"] = len(error.problems)
            raise
        data["lp"] = _lp_data(report, len(case.stages))
        outcome.warnings += report.problems
        outcome.summary["warning_count"] = len(outcome.warnings)
    from cobre.sddp.effort import estimate_effort

    parts = () if report is None else report.stages
    rows = [part.num_rows for part in parts] or None
    effort = estimate_effort(case, len(layout.components), rows, [part.num_cols for part in parts])
    data["balance"], data["effort"] = balance.as_dict(), effort.as_dict()
    plausible = {**balance.rows(), **effort.rows()}
    # A case is called valid only once every check has passed.
    outcome.data = data
    outcome.show = lambda console: _show(console, summary, report, plausible, len(outcome.warnings))


def _data(case: Case, summary: CaseSummary) -> dict[str, Any]:
    data = summary.as_dict()
    return {
        **data,
        **{kind: data["entities"][kind] for kind in ("buses", "lines", "thermals", "hydros")},
        "case": str(case.path.absolute()),
        "forward_passes": case.training.forward_passes,
        "lp": None,
    }


def _lp_data(report: ScalingReport, stages: int) -> dict[str, Any]:
    parts = report.stages
    before, after = _ranges(report, "before"), _ranges(report, "after")
    return {
        "stages_built": len(parts),
        "stages": stages,
        "columns": [min(part.num_cols for part in parts), max(part.num_cols for part in parts)],
        "rows": [min(part.num_rows for part in parts), max(part.num_rows for part in parts)],
        "nonzeros": [min(part.num_nonzeros for part in parts), max(part.num_nonzeros for part in parts)],
        "before_scaling": before,
        "after_scaling": after,
        "scaling": report.as_dict(),
    }


def _ranges(report: ScalingReport, when: str) -> dict[str, list[float]]:
    def join(ranges: Sequence[Range]) -> list[float]:
        return [min(item.least for item in ranges), max(item.most for item in ranges)]

    return {
        what: join([getattr(stage, f"{what}_{when}") for stage in report.stages])
        for what in ("matrix", "objective")
    }


def _show(
    console: Console,
    summary: CaseSummary,
    report: ScalingReport | None,
    plausible: dict[str, str],
    warnings: int,
) -> None:
    from cobre.cli.human import show_table

    title = "Valid case" if not warnings else f"Valid case, warnings: {warnings}"
    show_table(console, title, summary.rows())
    if len(summary.fits) > 1:
        show_table(
            console,
            f"Fitted production planes, the worst of {len(summary.fits)} plants",
            {
                plant.name: f"{plant.planes} planes, deviation {100.0 * plant.relative_deviation:.2f} % on "
                f"average, at most {plant.max_deviation_mw:.4g} MW, alpha {plant.alpha:.4g}"
                for plant in summary.fits[:_WORST_FITS]
            },
        )
    show_table(console, "Plausibility", plausible)
    if report is not None:
        _show_lps(console, _lp_data(report, summary.stages))


def _show_lps(console: Console, data: dict[str, Any]) -> None:
    from cobre.cli.human import show_table

    built, stages = data["stages_built"], data["stages"]
    title = "Stage LPs" if built == stages else f"Stage LPs ({built} of {stages} stages)"
    rows = {name: _size(data[name]) for name in ("columns", "rows", "nonzeros")}
    for what in ("matrix", "objective"):
        before, after = data["before_scaling"][what], data["after_scaling"][what]
        rows[f"{what} range"] = f"{_range(before)}, scaled {_range(after)}"
    show_table(console, title, rows)


def _size(ends: list[int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _range(ends: list[float]) -> str:
    return f"{ends[0]:.3g} .. {ends[1]:.3g}"
