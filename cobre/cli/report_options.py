"""The command ``cobre report`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cobre.cli import help_texts
from cobre.cli.outcome import Outcome
from cobre.cli.runner import run_command
from cobre.cli.views import OutputFormat, make_view

REPORT = (
    "Write one page to read and to show: the verdict, bounds, cost and risk, storage, generation, marginal "
    "costs, "
    "deficit, water values, inflow, time and work of the solver. It opens in any browser, without a network. "
    "Needs the extra 'report' (plotly)."
)
EPILOG = (
    "Examples:\n\ncobre report CASE/output\n\ncobre report results --page plan.html --case CASE\n\n"
    + help_texts.EXIT_CODES
)


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The output directory of a run: trained, simulated or both.")
    ],
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Where the page goes; default DIR/report.html."),
    ] = None,
    case: Annotated[
        Path | None,
        typer.Option(
            "--case",
            metavar="CASE",
            help="The study, for how well its inflow fits; default the directory around DIR, if it is that.",
        ),
    ] = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", help="Text for people, or one JSON document on stdout.")
    ] = OutputFormat.HUMAN,
) -> int:
    """Run ``cobre report``."""
    view = make_view("report", output_format)
    return run_command("report", view, lambda outcome: report_command(directory, page, case, outcome))


def report_command(directory: Path, page: Path | None, case: Path | None, outcome: Outcome) -> None:
    """Carry out ``cobre report``."""
    from cobre.results.pages.run_page import report as write

    written = write(directory, page, case=case)
    size = written.stat().st_size
    outcome.data = {"page": str(written.absolute()), "bytes": size}
    outcome.summary = {"bytes": size}
    outcome.show = lambda console: console.print(f"{written}: {size / 1e6:.1f} MB", soft_wrap=True)
