"""The command ``cobre mcp`` and its options."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from cobre.cli import help_texts
from cobre.cli.exit_codes import ConfigurationError
from cobre.cli.outcome import Outcome
from cobre.cli.runner import run_command
from cobre.cli.views import OutputFormat, make_view
from cobre.errors import CobreError
from cobre.machine import most_workers, usable_cpus

TOKEN_VARIABLE: Final = "COBRE_MCP_TOKEN"

MCP = (
    "Serve agents by the Model Context Protocol: they inspect, edit and validate cases, train, simulate, "
    "query and explain, all below one directory. On standard input and output unless --http is given.\n\n"
    "The server only reads unless --allow-write is given. Trainings and simulations are jobs: they take "
    "turns, go on when the server ends, and are there when another one starts. Needs the extra mcp: pip "
    "install 'cobre-sddp\\[mcp]'."
)
EPILOG = (
    "Examples:\n\ncobre mcp --root plans\n\ncobre mcp --root plans --allow-write --max-minutes 60\n\n"
    "cobre mcp --root plans --http --port 3000\n\n" + help_texts.EXIT_CODES
)


def mcp(
    root: Annotated[
        Path,
        typer.Option(
            "--root", metavar="DIR", help="The directory with cases and results; nothing else is seen."
        ),
    ] = Path(),
    allow_write: Annotated[
        bool,
        typer.Option("--allow-write", help="Let clients edit and create cases, run jobs and export results."),
    ] = False,
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP in place of standard input.")] = False,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="HOST", help="Where HTTP listens; others than this machine's need a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Of HTTP; 0 takes a free one.")
    ] = 3000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="What HTTP clients must give as 'Authorization: Bearer TOKEN'; 16 bytes or more, mode "
            f"0600. In its place the variable {TOKEN_VARIABLE}.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A further name of this server in clients' addresses."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin", metavar="ORIGIN", help="Pages that may talk to it, such as https://a.example."
        ),
    ] = None,
    max_ranks: Annotated[
        int | None,
        typer.Option("--max-ranks", min=1, metavar="N", help="Processes of a job; default processors."),
    ] = None,
    max_threads: Annotated[
        int | None,
        typer.Option(
            "--max-threads",
            min=1,
            metavar="N",
            help="Threads of a job, of all its processes; default processors.",
        ),
    ] = None,
    max_minutes: Annotated[
        float,
        typer.Option(
            "--max-minutes",
            min=0.001,
            metavar="M",
            help="Longest time of a job, which is then stopped with what it has.",
        ),
    ] = 1440.0,
    max_jobs: Annotated[
        int,
        typer.Option(
            "--max-jobs", min=1, max=1000, metavar="N", help="Jobs that run at the same time; others wait."
        ),
    ] = 1,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=64,
            metavar="N",
            help="Processes that answer calls; default processors, at most 4.",
        ),
    ] = None,
) -> int:
    """Run ``cobre mcp``."""

    def serve(_: Outcome) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise CobreError(
                "ExtraMissing",
                "this needs the SDK of the Model Context Protocol, which is not installed",
                {"package": "mcp"},
                "pip install 'cobre-sddp[mcp]'",
            )
        import cobre.mcp
        from cobre.mcp.contract import Settings
        from cobre.mcp.jobs.store import JobStore
        from cobre.mcp.paths import Root

        token = _token(token_file)
        cpus = usable_cpus()
        settings = Settings(
            root=Root.at(root),
            allow_write=allow_write,
            max_ranks=min(max_ranks or cpus, most_workers()),
            max_threads=min(max_threads or cpus, most_workers()),
            max_minutes=max_minutes,
            max_jobs=max_jobs,
            workers=workers or min(cpus, 4),
        )
        # Python imports from the working directory, where a case may hold anything.
        os.chdir("/")
        # Processes that answer calls run the file of the program again: let it be one that does nothing.
        vars(sys.modules["__main__"])["__file__"] = cobre.mcp.__file__
        if allow_write:
            JobStore(settings).revive()
        from cobre.mcp.server import make_server
        from cobre.mcp.transports import Address, serve_http, serve_stdio

        server = make_server(settings)
        if http:
            names, origins = tuple(allow_host or ()), tuple(allow_origin or ())
            serve_http(server, Address(host, port, token, names, origins))
        else:
            serve_stdio(server)

    return run_command("mcp", make_view("mcp", OutputFormat.HUMAN, quiet=True), serve)


def _token(file: Path | None) -> str | None:
    """Return the token of HTTP clients; processes that this one starts do not get it."""
    given = os.environ.pop(TOKEN_VARIABLE, None)
    if file is None:
        return given or None
    from cobre.comm.environment import read_token

    try:
        return read_token(str(file)).decode()
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            "InvalidToken", f"{file} cannot be used: {error}", {"field": "token_file", "value": str(file)}
        ) from error
