"""``cobre stochastic``: fit and draw a study's uncertainty, report it, and write it as input files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.errors import Problem
from cobre.machine import check_process

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.stochastic.report.document import StochasticReport

_SHOWN = 20
"""Plants, and lowered orders, that are listed for people; the JSON document has all."""


def stochastic_command(case_path: Path, output: Path | None, outcome: Outcome) -> None:
    """Carry out ``cobre stochastic``.

    Parameters
    ----------
    output
        Where exports and the page go; nothing is written without it.
    """
    check_process()
    from cobre.case import check
    from cobre.output import choose_output

    case, errors, warnings = check(case_path)
    outcome.warnings += warnings
    if errors or case is None:
        outcome.fail(ExitCode.INPUT, errors)
        return
    if output is not None:
        output, _ = choose_output(case.path, output)
    report = case.stochastic()
    outcome.warnings += report.inflow.notes
    outcome.data = report.as_dict()
    files = [] if output is None else [str(path) for path in _write(output, report, outcome)]
    outcome.data["files"] = files
    outcome.summary = _largest(report)
    outcome.show = lambda console: _show(console, report, files)


def _write(output: Path, report: StochasticReport, outcome: Outcome) -> list[Path]:
    from cobre.results.pages.stochastic_page import ReportExtraError, write_page
    from cobre.results.stochastic import OPENINGS, write_stochastic
    from cobre.stochastic.report.tables import why_openings_stay

    files = list(write_stochastic(output, report))
    reason = why_openings_stay(report)
    if reason is not None:
        outcome.warnings.append(
            Problem("NotExported", f"{OPENINGS} is not written: {reason}.", {"file": OPENINGS})
        )
    try:
        files.append(write_page(output, report))
    except ReportExtraError as error:
        outcome.warnings += error.problems
    return files


def _largest(report: StochasticReport) -> dict[str, Any]:
    """Return the largest deviation of generated moments of any season and plant; null where unknown."""
    return {
        f"largest_{name}_deviation": None if np.isnan(values).all() else float(np.nanmax(np.abs(values)))
        for name, values in report.quality.deviations().items()
    }


def _show(console: Console, report: StochasticReport, files: list[str]) -> None:
    from cobre.cli.human import show_table

    show_table(console, "Stochastic model", report.rows())
    case, quality = report.case, report.quality
    if case.hydros:
        show_table(console, _title(report), {hydro.name: _line(report, at) for at, hydro in _worst(report)})
    reductions = report.tables["reductions"].to_pylist()
    if reductions:
        names = {hydro.id: hydro.name for hydro in case.hydros}
        more = f", the first {_SHOWN} of {len(reductions)}" if len(reductions) > _SHOWN else ""
        show_table(
            console,
            f"Orders lowered{more}",
            {
                f"{names[row['hydro_id']]}, season {row['season_id']}": f"{row['original_order']} to "
                f"{row['reduced_order']}: {row['reason'].replace('_', ' ')}"
                for row in reductions[:_SHOWN]
            },
        )
    if not quality.has_observations and case.hydros:
        text = "There is no history: generated moments are compared with those that the case states."
        console.print(text, soft_wrap=True)
    if files:
        show_table(console, "Written", {Path(path).name: path for path in files})


def _title(report: StochasticReport) -> str:
    sample, hydros = report.quality.generated, len(report.case.hydros)
    what = f"{sample.size} years" if sample.kind == "season cycle" else f"{sample.size} runs of the study"
    some = f", the worst {_SHOWN} of {hydros} plants" if hydros > _SHOWN else ""
    return f"Fit over {what}: order, largest deviations{some}"


def _worst(report: StochasticReport) -> list[tuple[int, Any]]:
    """Return positions and plants, those whose deviation is generated worst first."""
    hydros = list(enumerate(report.case.hydros))
    if len(hydros) <= _SHOWN:
        return hydros
    size = _per_plant(report)["std"]
    order = np.argsort(-np.nan_to_num(size), kind="stable")[:_SHOWN]
    return [hydros[at] for at in order.tolist()]


def _per_plant(report: StochasticReport) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the deviation that is largest in size over seasons, by plant; NaN where there is none."""
    found = {}
    for name, values in report.quality.deviations().items():
        size = np.nan_to_num(np.abs(values), nan=-1.0)
        row = size.argmax(axis=0)
        found[name] = values[row, np.arange(values.shape[1])]
    return found


def _line(report: StochasticReport, hydro: int) -> str:
    fit = report.inflow.fit if report.provenance.ar_coefficients_source == "history" else None
    orders = report.inflow.order[:, hydro] if fit is None else fit.order[:, hydro]
    low, high = int(orders.min(initial=99)), int(orders.max(initial=0))
    parts = [f"order {low}" if low == high else f"orders {low} to {high}"]
    deviation = {name: float(values[hydro]) for name, values in _per_plant(report).items()}
    for name, text in (("mean", "mean"), ("std", "standard deviation")):
        if not np.isnan(deviation[name]):
            parts.append(f"{text} {100.0 * deviation[name]:+.1f} %")
    for name, text in (("lag1", "lag-1 correlation"), ("spatial", "correlation with others")):
        if not np.isnan(deviation[name]) and not (name == "spatial" and len(report.case.hydros) == 1):
            parts.append(f"{text} {deviation[name]:+.3f}")
    if len(parts) == 1:
        parts.append("not random")
    return ", ".join(parts)
