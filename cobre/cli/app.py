"""The commands and their options; what they do lies in the modules beside this one, imported when needed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cobre._version import __version__
from cobre.cli import (
    help_texts,
    mcp_options,
    report_options,
    results_commands,
    simulation_commands,
    synthetic,
    watch_options,
)
from cobre.cli.choices import LpEngineName, PolicyFormat, TemplateName
from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.runner import run_command
from cobre.cli.streams import safe_streams
from cobre.cli.views import OutputFormat, RankView, StreamFormat, WarningDetail, make_view
from cobre.errors import Problem
from cobre.machine import save_memory

_UsageError: Any = typer.BadParameter.__base__  # click's, which newer versions of typer carry inside

_MAX_SEED = 2**64 - 1
_MAX_ITERATIONS = 2**31 - 1


class _PlainFlags:
    """Shows flags in the help without a type: ``--quiet``, not ``--quiet <bool>``, and names of backends."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
            if parameter.name == "backend":
                parameter.metavar = f"<{'|'.join(_backends(parameter.default))}>"
        return parameters


def _backends(default: str) -> list[str]:
    """Return what ``--backend`` may be: the installed ones, and ``auto`` where that is the default."""
    from cobre._communicators import backend_names

    return [*(["auto"] if default == "auto" else []), *backend_names()]


def check_installed(ctx: Any, parameter: Any, value: str) -> str:
    """Refuse a backend that is not installed."""
    names = _backends(parameter.default)
    if value not in names:
        listed = ", ".join(map(repr, names))
        raise typer.BadParameter(f"{value!r} is not one of {listed}", ctx=ctx, param=parameter)
    return value


class _Group(_PlainFlags, TyperGroup):
    """The root command."""


class _Command(_PlainFlags, TyperCommand):
    """A command."""


app = typer.Typer(
    name="cobre",
    cls=_Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=help_texts.EXIT_CODES,
)

_command = partial(app.command, cls=_Command)

CaseArgument = Annotated[
    Path, typer.Argument(metavar="CASE", help="The case directory (config.json, stages.json, system/, ...).")
]
FormatOption = Annotated[
    OutputFormat, typer.Option("--output-format", help="Text for people, or one JSON document on stdout.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
WarningsOption = Annotated[
    WarningDetail,
    typer.Option(
        "--warnings",
        help="Group warnings by kind, with counts and three examples, or print all; JSON output has all.",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cobre {__version__}")
        raise typer.Exit


@app.callback(help=help_texts.ROOT)
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options before the command."""


@_command(
    "train",
    help=help_texts.TRAIN,
    epilog="Examples:\n\ncobre train examples/random-inflow\n\n"
    "cobre train CASE --iterations 50 --threads 4 --output results\n\n"
    "cobre train CASE --ranks 4\n\nmpiexec -n 4 python -m cobre.sddp train CASE\n\n"
    "cobre train CASE --ranks 4 --checkpoint-every 10\n\n"
    "cobre train CASE --resume --iterations 200\n\n"
    "cobre train CASE --output-format json > result.json\n\n" + help_texts.EXIT_CODES,
)
def _train(
    case: CaseArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Where results go; default CASE/output, or ./NAME-output if CASE cannot be written.",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations", min=1, max=_MAX_ITERATIONS, metavar="N", help="In place of the case's limit."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=_MAX_SEED, metavar="N", help="In place of the case's tree_seed."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            min=1,
            metavar="N",
            help="Of each rank. Default COBRE_NUM_THREADS, else SLURM_CPUS_PER_TASK, else 1, with several "
            "ranks processors / ranks. Results do not depend on it.",
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks",
            min=1,
            metavar="N",
            help="Start so many processes and train on all of them. Results do not depend on it.",
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            "--backend",
            callback=check_installed,
            help="How ranks talk. By default shm with --ranks, else as the launcher of this process has set "
            "it up (mpiexec, cobre launch, COBRE_COMM_BACKEND).",
        ),
    ] = "auto",
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-every",
            min=1,
            max=_MAX_ITERATIONS,
            metavar="N",
            help="Write a checkpoint to OUTPUT/checkpoints every N iterations; default as the case has it, "
            "with --resume as the run before. One at the end is always written.",
        ),
    ] = None,
    keep_checkpoints: Annotated[
        int | None,
        typer.Option("--keep-checkpoints", min=1, max=1000, metavar="K", help="The last K stay; default 3."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the last checkpoint, also of a finished run: the same bytes as a run that was "
            "never stopped, on any number of ranks. The limit of iterations counts those before.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace what OUTPUT holds even if it is another study's or longer; refused without.",
        ),
    ] = False,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            "--warm-start",
            metavar="POLICY",
            help="Start with the cuts of a policy directory (of cobre or cobre-rs), and count from 1.",
        ),
    ] = None,
    lp_engine: Annotated[
        LpEngineName | None,
        typer.Option(
            "--lp-engine",
            help="What solves LPs: auto, a fixed rule of their sizes (default; with --resume as the run "
            "before), HiGHS, or cobre's own.",
        ),
    ] = None,
    output_format: Annotated[
        StreamFormat,
        typer.Option(
            "--output-format",
            help="Text for people; one JSON document; or lines of JSON with the progress.",
        ),
    ] = StreamFormat.HUMAN,
    quiet: QuietOption = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="Print the result, but no progress.")
    ] = False,
    warnings: WarningsOption = WarningDetail.GROUPED,
) -> int:
    """Run ``cobre train``."""
    from cobre.cli.train import TrainRequest, train_command

    view = RankView(
        make_view("train", output_format, quiet=quiet, progress=not no_progress, warnings=warnings)
    )
    if resume and warm_start is not None:
        raise typer.BadParameter("--resume and --warm-start exclude each other", param_hint="--warm-start")
    request = TrainRequest(
        case,
        output,
        iterations,
        seed,
        threads,
        ranks,
        backend,
        resume,
        warm_start,
        checkpoint_every,
        keep_checkpoints,
        force,
        None if lp_engine is None else lp_engine.value,
    )
    return run_command("train", view, lambda outcome: train_command(request, view, outcome))


simulation_commands.add_commands(_command)
results_commands.add_commands(_command)
_command("watch", help=watch_options.WATCH, epilog=watch_options.EPILOG)(watch_options.watch)
_command("mcp", help=mcp_options.MCP, epilog=mcp_options.EPILOG)(mcp_options.mcp)
_command("report", help=report_options.REPORT, epilog=report_options.EPILOG)(report_options.report)


@_command(
    "validate",
    help="List everything that is wrong with a case, by file, entity, field and value; for a case without "
    "errors, report its entities, stages and uncertainty, and the size and scaling of its stage LPs. "
    "Nothing is written.",
    epilog="Examples:\n\ncobre validate examples/random-inflow\n\n"
    "cobre validate CASE --output-format json\n\n" + help_texts.EXIT_CODES,
)
def _validate(
    case: CaseArgument,
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
    no_lp: Annotated[bool, typer.Option("--no-lp", help="Do not build the stage LPs.")] = False,
    warnings: WarningsOption = WarningDetail.GROUPED,
) -> int:
    """Run ``cobre validate``."""
    from cobre.cli.validate import validate_command

    view = make_view("validate", output_format, quiet=quiet, warnings=warnings)
    return run_command("validate", view, lambda outcome: validate_command(case, outcome, lps=not no_lp))


@_command(
    "stochastic",
    help=help_texts.STOCHASTIC,
    epilog="Examples:\n\ncobre stochastic CASE\n\ncobre stochastic CASE --output results\n\n"
    "cobre stochastic CASE --output-format json > model.json\n\n" + help_texts.EXIT_CODES,
)
def _stochastic(
    case: CaseArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Write DIR/stochastic (files that a case can use) and DIR/stochastic.html.",
        ),
    ] = None,
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
    warnings: WarningsOption = WarningDetail.GROUPED,
) -> int:
    """Run ``cobre stochastic``."""
    from cobre.cli.stochastic import stochastic_command

    view = make_view("stochastic", output_format, quiet=quiet, warnings=warnings)
    return run_command("stochastic", view, lambda outcome: stochastic_command(case, output, outcome))


@_command(
    "init",
    help=help_texts.INIT,
    epilog="Examples:\n\ncobre init --list\n\ncobre init my-case --template cascade\n\n"
    "cobre init big --template synthetic --size mid --hydros 60 --stages 24 --seed 7\n\n"
    + help_texts.EXIT_CODES,
)
def _init(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where the case goes; created if needed.")
    ] = None,
    template: Annotated[
        TemplateName, typer.Option("--template", help="What the case is like; see --list.")
    ] = TemplateName.TOY,
    list_templates: Annotated[bool, typer.Option("--list", help="List the templates and exit.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace files of the same names in a directory that is not empty."),
    ] = False,
    size: synthetic.Size = None,
    hydros: synthetic.Hydros = None,
    thermals: synthetic.Thermals = None,
    buses: synthetic.Buses = None,
    stages: synthetic.Stages = None,
    blocks: synthetic.Blocks = None,
    openings: synthetic.Openings = None,
    order: synthetic.Order = None,
    correlation: synthetic.Correlation = None,
    fpha_share: synthetic.FphaShare = None,
    forward_passes: synthetic.ForwardPasses = None,
    iterations: synthetic.Iterations = None,
    seed: synthetic.Seed = None,
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
) -> int:
    """Run ``cobre init``."""
    from cobre.cli.init import init_command, list_command

    sizes = {
        "hydros": hydros,
        "thermals": thermals,
        "buses": buses,
        "stages": stages,
        "blocks": blocks,
        "openings": openings,
        "order": order,
        "correlation": correlation,
        "fpha_share": fpha_share,
        "forward_passes": forward_passes,
        "iterations": iterations,
        "seed": seed,
    }

    view = make_view("init", output_format, quiet=quiet)
    if list_templates:
        return run_command("init", view, list_command)
    if directory is None:
        raise typer.BadParameter("give the directory of the new case", param_hint="DIR")
    chosen = synthetic.choose_template(template.value, size, sizes)
    return run_command("init", view, lambda outcome: init_command(directory, chosen, force, outcome))


@_command(
    "schema",
    help=help_texts.SCHEMA,
    epilog="Examples:\n\ncobre schema schemas\n\ncobre schema schemas --output-format json\n\n"
    + help_texts.EXIT_CODES,
)
def _schema(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where the schemas go; created if needed, files replaced.")
    ],
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
) -> int:
    """Run ``cobre schema``."""
    from cobre.cli.schema import schema_command

    view = make_view("schema", output_format, quiet=quiet)
    return run_command("schema", view, lambda outcome: schema_command(directory, outcome))


_policy_app = typer.Typer(name="policy", cls=_Group, help=help_texts.POLICY, epilog=help_texts.EXIT_CODES)
app.add_typer(_policy_app)
_policy_command = partial(_policy_app.command, cls=_Command)

PolicyArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A policy directory or checkpoint, of cobre or cobre-rs.")
]
PolicyCaseOption = Annotated[
    Path | None,
    typer.Option(
        "--case", metavar="CASE", help="The case of the study; files of cobre-rs cannot do without."
    ),
]


@_policy_command(
    "show",
    help=help_texts.POLICY_SHOW,
    epilog="Examples:\n\ncobre policy show results/policy\n\n"
    "cobre policy show results/checkpoints/latest --output-format json\n\n" + help_texts.EXIT_CODES,
)
def _policy_show(
    directory: PolicyArgument,
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
) -> int:
    """Run ``cobre policy show``."""
    from cobre.cli.policy import show_command

    view = make_view("policy show", output_format, quiet=quiet)
    return run_command("policy show", view, lambda outcome: show_command(directory, outcome))


@_policy_command(
    "convert",
    help=help_texts.POLICY_CONVERT,
    epilog="Examples:\n\n"
    "cobre policy convert results/policy out --to cobre-rs --case CASE --for-version 0.18.0\n\n"
    "cobre policy convert theirs/policy ours --to cobre --case CASE\n\n"
    "cobre policy convert results/checkpoints/latest policy-so-far --to cobre\n\n" + help_texts.EXIT_CODES,
)
def _policy_convert(
    directory: PolicyArgument,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where the new directory goes.")],
    to: Annotated[PolicyFormat, typer.Option("--to", help="The format to write.")],
    case: PolicyCaseOption = None,
    for_version: Annotated[
        str | None,
        typer.Option(
            "--for-version",
            metavar="VERSION",
            help="Of cobre-rs, which loads only policies that give its own version as their writer's.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a policy that OUT holds.")] = False,
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
    warnings: WarningsOption = WarningDetail.GROUPED,
) -> int:
    """Run ``cobre policy convert``."""
    from cobre.cli.policy import convert_command

    view = make_view("policy convert", output_format, quiet=quiet, warnings=warnings)
    return run_command(
        "policy convert",
        view,
        lambda outcome: convert_command(
            directory, target, to.value, case, outcome, force=force, for_version=for_version
        ),
    )


@_policy_command(
    "compare",
    help=help_texts.POLICY_COMPARE,
    epilog="Examples:\n\ncobre policy compare results/policy other/policy\n\n"
    "cobre policy compare ours/policy theirs/policy --case CASE\n\n"
    + help_texts.EXIT_CODES.replace("130 stopped", "5 the policies differ; 130 stopped"),
)
def _policy_compare(
    one: Annotated[Path, typer.Argument(metavar="A", help="A policy directory or checkpoint.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    case: PolicyCaseOption = None,
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
) -> int:
    """Run ``cobre policy compare``."""
    from cobre.cli.policy import compare_command

    view = make_view("policy compare", output_format, quiet=quiet)
    return run_command("policy compare", view, lambda outcome: compare_command(one, other, case, outcome))


@_command("warmup", help=help_texts.WARMUP, epilog=help_texts.EXIT_CODES)
def _warmup(
    backend: Annotated[
        str,
        typer.Option(
            "--backend", callback=check_installed, help="The communicator whose kernels are compiled."
        ),
    ] = "local",
    output_format: FormatOption = OutputFormat.HUMAN,
    quiet: QuietOption = False,
) -> int:
    """Run ``cobre warmup``."""
    from cobre.cli.information import warmup_command

    view = make_view("warmup", output_format, quiet=quiet)
    return run_command("warmup", view, lambda outcome: warmup_command(outcome, backend))


@_command(
    "version", help="Print the versions of cobre and of the libraries it uses.", epilog=help_texts.EXIT_CODES
)
def _version(output_format: FormatOption = OutputFormat.HUMAN) -> int:
    """Run ``cobre version``."""
    from cobre.cli.information import version_command

    return run_command("version", make_view("version", output_format), version_command)


@_command(
    "launch",
    help=help_texts.LAUNCH,
    context_settings={"allow_interspersed_args": False},
    epilog="Examples:\n\ncobre launch -n 4 -- python script.py --option\n\n"
    "cobre launch -n 2 --backend tcp --prefix -- python script.py",
)
def _launch(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="The program and its arguments.")
    ],
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1, metavar="N", help="Number of copies.")],
    backend: Annotated[
        str, typer.Option("--backend", callback=check_installed, help="How they talk; not mpi, local.")
    ] = "shm",
    prefix: Annotated[
        bool, typer.Option("--prefix", help="Put \\[rank] before each line of output.")
    ] = False,
    no_pin: Annotated[bool, typer.Option("--no-pin", help="Let the ranks run on any CPU.")] = False,
) -> int:
    """Run ``cobre launch``."""
    from cobre.comm.launch.command import run_command as run_ranks

    codes: list[int] = []

    def run(outcome: Outcome) -> None:
        codes.append(run_ranks(command, ranks, backend=backend, prefix=prefix, pin=not no_pin))

    failure = run_command("launch", make_view("launch", OutputFormat.HUMAN), run)
    return failure or codes[0]


@_command(
    "clean-shm",
    help="Remove shared-memory segments of this user that belong to no running job. Jobs clean up behind "
    "themselves; this is for what is left when all processes of a job are killed while it starts.",
)
def _clean_shm() -> int:
    """Run ``cobre clean-shm``."""
    from cobre.comm.__main__ import main as comm_main

    return comm_main(["clean-shm"])


def main(arguments: Sequence[str] | None = None, program: str = "cobre") -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        In place of ``sys.argv[1:]``.
    program
        What the help calls the program.

    Returns
    -------
    int
        The exit code, see :class:`~cobre.cli.exit_codes.ExitCode`.
    """
    if arguments is None:
        save_memory()
    given = list(sys.argv[1:] if arguments is None else arguments)
    with safe_streams() as stdout, _interruptible():
        code = _dispatch(given, program)
        stdout.flush()
        if stdout.error is not None:
            print(f"error: standard output cannot be written: {stdout.error.strerror}", file=sys.stderr)
            code = code or int(ExitCode.RUNTIME)
        return code


def _dispatch(given: Sequence[str], program: str) -> int:
    command = typer.main.get_command(app)
    try:
        result = command.main(args=given, prog_name=program, standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        return int(ExitCode.INTERRUPTED)
    except _UsageError as error:
        return _usage_error(given, program, error)
    return result if isinstance(result, int) else int(ExitCode.OK)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGINT raise even where a shell has started this process with the signal ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    saved: Any = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, saved)


def _usage_error(given: Sequence[str], program: str, error: Any) -> int:
    """Show an error in the arguments in the format they ask for, as far as that is known."""
    command = _command_of(given)
    option = getattr(getattr(error, "param", None), "opts", None) or getattr(error, "option_name", None)
    outcome = Outcome(command)
    if not given and error.ctx is not None:
        with redirect_stdout(sys.stderr):  # typer's help prints itself
            print(error.ctx.get_help())
    outcome.fail(
        ExitCode.ARGUMENTS,
        [
            Problem(
                "InvalidArgument",
                error.format_message().replace(": Value error, ", ": ") or "a command is needed",
                _place(given, option) if isinstance(option, list) else {"field": option} if option else {},
                f"see '{' '.join(filter(None, (program, command)))} --help'",
            )
        ],
    )
    make_view(command, _requested_format(given)).finish(outcome)
    return int(outcome.exit_code)


def _command_of(given: Sequence[str]) -> str:
    """Return the command, such as ``train`` or ``policy show``, as far as the arguments name one."""
    names = {command.name for command in app.registered_commands}
    groups = {"policy": {command.name for command in _policy_app.registered_commands}}
    for word, follower in pairwise([*given, ""]):
        if word in names:
            return word
        if word in groups:
            return f"{word} {follower}" if follower in groups[word] else word
    return ""


def _place(given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the option whose value is wrong, and that value, as far as the arguments show it."""
    values = [value for name, value in pairwise(given) if name in names]
    values += [word.split("=", 1)[1] for word in given if word.split("=", 1)[0] in names and "=" in word]
    return {"field": names[0], **({"value": values[-1]} if values else {})}


def _requested_format(given: Sequence[str]) -> StreamFormat:
    """Find the output format in arguments that could not be parsed."""
    words = [value for name, value in pairwise(given) if name == "--output-format"]
    words += [word.removeprefix("--output-format=") for word in given if word.startswith("--output-format=")]
    known = [word for word in words if word in {item.value for item in StreamFormat}]
    return StreamFormat(known[-1] if known else StreamFormat.HUMAN.value)
