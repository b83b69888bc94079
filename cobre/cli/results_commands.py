"""The commands ``show`` and ``compare`` and their options."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cobre.cli import help_texts
from cobre.cli.runner import run_command
from cobre.cli.views import OutputFormat, make_view


class TableFormat(enum.Enum):
    """How a table is printed."""

    HUMAN = "human"
    JSON = "json"
    CSV = "csv"


Output = Annotated[
    Path, typer.Argument(metavar="DIR", help="The output directory of a run, such as CASE/output.")
]


def add_commands(command: Callable[..., Any]) -> None:
    """Declare the commands by the decorator ``command``."""
    command(
        "show",
        help=help_texts.SHOW,
        epilog="Examples:\n\ncobre show results\n\ncobre show results hydros --entity Furnas --stage 3\n\n"
        "cobre show results buses --where 'deficit_mw > 0' --columns deficit_mw,spot_price\n\n"
        "cobre show results hydros --quantiles --columns storage_final_hm3\n\n"
        "cobre show results thermals --output-format csv > thermals.csv\n\n" + help_texts.EXIT_CODES,
    )(_show)
    command(
        "compare",
        help=help_texts.COMPARE,
        epilog="Examples:\n\ncobre compare base/output variant/output\n\n"
        "cobre compare A B --all --output-format json\n\n"
        + help_texts.EXIT_CODES.replace("130 stopped", "5 with --exit-code: they differ; 130 stopped"),
    )(_compare)


def _show(
    directory: Output,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="A table; without it, a list of all.")
    ] = None,
    entity: Annotated[
        list[str] | None,
        typer.Option("--entity", metavar="NAME", help="Name or id of an entity; may be repeated."),
    ] = None,
    stage: Annotated[
        list[int] | None, typer.Option("--stage", metavar="ID", help="Id of a stage; may be repeated.")
    ] = None,
    scenario: Annotated[
        list[int] | None,
        typer.Option("--scenario", metavar="N", help="Number of a scenario; may be repeated."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="COLUMN OPERATOR VALUE with = != < <= > >=, several joined by 'and'.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Only these columns, beside ids and names.")
    ] = None,
    quantiles: Annotated[
        bool,
        typer.Option(
            "--quantiles", help="Mean and quantiles over scenarios in place of rows (see --levels)."
        ),
    ] = False,
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels", metavar="Q,Q", help="Quantiles from 0 to 1; default 0.05,0.25,0.5,0.75,0.95."
        ),
    ] = None,
    describe: Annotated[
        bool,
        typer.Option("--describe", help="What the columns mean, with types and units, in place of rows."),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            metavar="N",
            help="At most N rows; default 40 for people, 10000 in JSON, all in CSV.",
        ),
    ] = None,
    output_format: Annotated[
        TableFormat, typer.Option("--output-format", help="Text for people, one JSON document, or CSV.")
    ] = TableFormat.HUMAN,
) -> int:
    """Run ``cobre show``."""
    from cobre.cli.results import ShowRequest, show_command

    if quantiles and describe:
        raise typer.BadParameter("--quantiles and --describe exclude each other", param_hint="--describe")
    if levels is not None and not quantiles:
        raise typer.BadParameter("it needs --quantiles", param_hint="--levels")
    request = ShowRequest(
        directory=directory,
        table=table,
        entities=tuple(entity or ()),
        stages=tuple(stage or ()),
        scenarios=tuple(scenario or ()),
        where=where,
        columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
        quantiles=quantiles,
        levels=None if levels is None else _numbers(levels),
        describe=describe,
        limit=limit,
        format=output_format.value,
    )
    if table is None and request.needs_table:
        raise typer.BadParameter("these options need a table", param_hint="TABLE")
    shown = OutputFormat.JSON if output_format is TableFormat.JSON else OutputFormat.HUMAN
    return run_command("show", make_view("show", shown), lambda outcome: show_command(request, outcome))


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a list of numbers such as 0.1,0.9", param_hint="--levels"
        ) from error


def _compare(
    one: Annotated[Path, typer.Argument(metavar="A", help="The output directory of a run.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="That of another one.")],
    every: Annotated[
        bool, typer.Option("--all", help="All quantities, also those of stages and those that are the same.")
    ] = False,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", min=0.0, metavar="R", help="Relative difference up to which numbers are the same."
        ),
    ] = 1e-9,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Fail with exit code 5 where anything differs.")
    ] = False,
    output_format: Annotated[
        OutputFormat,
        typer.Option("--output-format", help="Text for people, or one JSON document on stdout."),
    ] = OutputFormat.HUMAN,
) -> int:
    """Run ``cobre compare``."""
    from cobre.cli.results import compare_command

    return run_command(
        "compare",
        make_view("compare", output_format),
        lambda outcome: compare_command(
            one, other, outcome, every=every, tolerance=tolerance, exit_code=exit_code
        ),
    )
