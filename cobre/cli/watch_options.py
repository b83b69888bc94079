"""The command ``cobre watch`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cobre.cli import help_texts
from cobre.cli.runner import run_command
from cobre.cli.views import StreamFormat

WATCH = (
    "Follow a training run by what it writes to its output directory, on this machine or another one that "
    "sees it. Ends with the run (exit code 0; 4 when the run failed, or its process is gone). A run that has "
    "ended is shown as it ended."
)
EPILOG = (
    "Examples:\n\ncobre watch CASE/output\n\ncobre watch results --no-follow\n\n"
    "cobre watch results --output-format json-lines\n\n" + help_texts.EXIT_CODES
)


def watch(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The output directory of a run, or its case.")
    ],
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="Show how far the run is, and end at once.")
    ] = False,
    output_format: Annotated[
        StreamFormat,
        typer.Option(
            "--output-format",
            help="Text for people; one JSON document at the end; or the events as lines of JSON.",
        ),
    ] = StreamFormat.HUMAN,
) -> int:
    """Run ``cobre watch``."""
    from cobre.cli.watch import watch_command, watch_view

    view = watch_view(output_format)
    return run_command(
        "watch", view, lambda outcome: watch_command(directory, view, outcome, follow=not no_follow)
    )
