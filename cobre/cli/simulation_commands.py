"""The commands ``simulate`` and ``run`` and their options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cobre.cli import help_texts
from cobre.cli.choices import LpEngineName
from cobre.cli.runner import run_command
from cobre.cli.views import RankView, StreamFormat, WarningDetail, make_view

_MOST = 2**31 - 1
_MAX_SEED = 2**64 - 1


def _installed(ctx: Any, parameter: Any, value: str) -> str:
    from cobre.cli.app import check_installed

    return check_installed(ctx, parameter, value)


Case = Annotated[
    Path, typer.Argument(metavar="CASE", help="The case directory (config.json, stages.json, system/, ...).")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        help="Where results go; default CASE/output, or ./NAME-output if CASE cannot be written.",
    ),
]
Scenarios = Annotated[
    int | None,
    typer.Option(
        "--scenarios", min=1, max=_MOST, metavar="N", help="So many sampled ones, in place of the case's."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="Of each rank. Default COBRE_NUM_THREADS, else SLURM_CPUS_PER_TASK, else 1, with several "
        "ranks processors / ranks. Results do not depend on it.",
    ),
]
Ranks = Annotated[
    int | None,
    typer.Option(
        "--ranks",
        min=1,
        metavar="N",
        help="Start so many processes and work on all of them. Results do not depend on it.",
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        callback=_installed,
        help="How ranks talk. By default shm with --ranks, else as the launcher of this process has set "
        "it up (mpiexec, cobre launch, COBRE_COMM_BACKEND).",
    ),
]
Engine = Annotated[
    LpEngineName | None,
    typer.Option(
        "--lp-engine",
        help="What solves LPs: auto, a fixed rule of their sizes (default), HiGHS, or cobre's own.",
    ),
]
Format = Annotated[
    StreamFormat,
    typer.Option(
        "--output-format", help="Text for people; one JSON document; or lines of JSON with the progress."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Print the result, but no progress.")]
Warnings = Annotated[
    WarningDetail,
    typer.Option(
        "--warnings",
        help="Group warnings by kind, with counts and three examples, or print all; JSON output has all.",
    ),
]


def add_commands(command: Callable[..., Any]) -> None:
    """Declare the commands by the decorator ``command``."""
    command(
        "simulate",
        help=help_texts.SIMULATE,
        epilog="Examples:\n\ncobre simulate CASE\n\ncobre simulate CASE --scenarios 500 --threads 4\n\n"
        "cobre simulate CASE --policy results/policy --output results\n\n"
        "mpiexec -n 4 python -m cobre simulate CASE\n\ncobre simulate CASE --resume\n\n"
        + help_texts.EXIT_CODES,
    )(_simulate)
    command(
        "run",
        help=help_texts.RUN,
        epilog="Examples:\n\ncobre run CASE\n\ncobre run CASE --scenarios 500 --ranks 4\n\n"
        "cobre run CASE --resume --iterations 200\n\n" + help_texts.EXIT_CODES,
    )(_run)


def _simulate(
    case: Case,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            metavar="DIR",
            help="The policy (of cobre or cobre-rs); by default the one in the output directory.",
        ),
    ] = None,
    scenarios: Scenarios = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=_MAX_SEED,
            metavar="N",
            help="By which scenarios are drawn, in place of the case's; the opening tree stays as it is.",
        ),
    ] = None,
    output: Output = None,
    threads: Threads = None,
    ranks: Ranks = None,
    backend: Backend = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an interrupted simulation of the same study, policy and seed, on any number of "
            "ranks: the same bytes as one that was never stopped.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace the simulation in OUTPUT even if it is another study's or has more scenarios; "
            "refused without.",
        ),
    ] = False,
    lp_engine: Engine = None,
    output_format: Format = StreamFormat.HUMAN,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
    warnings: Warnings = WarningDetail.GROUPED,
) -> int:
    """Run ``cobre simulate``."""
    from cobre.cli.simulate import SimulateRequest, simulate_command

    view = RankView(
        make_view("simulate", output_format, quiet=quiet, progress=not no_progress, warnings=warnings)
    )
    if resume and force:
        raise typer.BadParameter("--resume and --force exclude each other", param_hint="--force")
    request = SimulateRequest(
        case_path=case,
        policy=policy,
        scenarios=scenarios,
        seed=seed,
        output=output,
        threads=threads,
        ranks=ranks,
        backend=backend,
        resume=resume,
        force=force,
        lp_engine=None if lp_engine is None else lp_engine.value,
    )
    return run_command("simulate", view, lambda outcome: simulate_command(request, view, outcome))


def _run(
    case: Case,
    output: Output = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", min=1, max=_MOST, metavar="N", help="In place of the case's limit."),
    ] = None,
    scenarios: Scenarios = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=_MAX_SEED, metavar="N", help="In place of the case's tree_seed."),
    ] = None,
    threads: Threads = None,
    ranks: Ranks = None,
    backend: Backend = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the training in OUTPUT, with --iterations beyond its end, and with a simulation "
            "of its policy that was interrupted.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace what OUTPUT holds even if it is another study's or longer."),
    ] = False,
    lp_engine: Engine = None,
    output_format: Format = StreamFormat.HUMAN,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
    warnings: Warnings = WarningDetail.GROUPED,
) -> int:
    """Run ``cobre run``."""
    from cobre.cli.simulate import run_command as train_and_simulate
    from cobre.cli.train import TrainRequest

    view = RankView(make_view("run", output_format, quiet=quiet, progress=not no_progress, warnings=warnings))
    if resume and force:
        raise typer.BadParameter("--resume and --force exclude each other", param_hint="--force")
    request = TrainRequest(
        case,
        output,
        iterations,
        seed,
        threads,
        ranks,
        backend,
        resume=resume,
        force=force,
        lp_engine=None if lp_engine is None else lp_engine.value,
    )
    return run_command("run", view, lambda outcome: train_and_simulate(request, scenarios, view, outcome))
