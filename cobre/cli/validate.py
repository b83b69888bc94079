"""``cobre validate``: read a case and tell everything that is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case


def validate_command(case_path: Path, outcome: Outcome) -> None:
    """Carry out ``cobre validate``; writes nothing to disk."""
    from cobre.case import check

    case, errors, warnings = check(case_path)
    outcome.warnings += warnings
    outcome.summary = {"error_count": len(errors), "warning_count": len(warnings)}
    if errors or case is None:
        outcome.fail(ExitCode.INPUT, errors)
        return
    data = _data(case)
    outcome.data = data
    outcome.show = lambda console: _show(console, data, len(warnings))


def _data(case: Case) -> dict[str, Any]:
    return {
        "case": str(case.path.absolute()),
        "stages": len(case.stages),
        "buses": len(case.buses),
        "lines": len(case.lines),
        "thermals": len(case.thermals),
        "hydros": len(case.hydros),
        "openings": [stage.num_openings for stage in case.stages],
        "forward_passes": case.training.forward_passes,
        "max_iterations": case.training.iteration_limit,
        "seed": case.training.tree_seed,
    }


def _show(console: Console, data: dict[str, Any], warnings: int) -> None:
    from cobre.cli.human import show_table

    rows = {name: str(data[name]) for name in ("case", "stages", "buses", "lines", "thermals", "hydros")}
    fewest, most = min(data["openings"]), max(data["openings"])
    rows["openings"] = f"{fewest} a stage" if fewest == most else f"{fewest} to {most} a stage"
    rows["iterations"] = f"{data['max_iterations']}, forward passes in each: {data['forward_passes']}"
    title = "Valid case" if not warnings else f"Valid case, warnings: {warnings}"
    show_table(console, title, rows)
