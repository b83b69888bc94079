"""``python -m cobre.comm``: what communicators there are, how fast, and whether they keep their contract."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cobre._communicators import backend_names
from cobre.errors import CobreError

_EXIT_ARGUMENTS = 1
_EXIT_FAILURE = 4

_BENCH_HELP = """\
Measure barrier, allreduce, broadcast and gathers of several sizes on each backend of this machine, in
nopython code, next to mpi4py called from Python and to a plain copy in memory. Ranks are pinned to disjoint
CPUs where there are enough. Other work on the machine spoils the figures.

  python -m cobre.comm bench
  python -m cobre.comm bench --ranks 2 4 --backends shm mpi --json > figures.json
"""
_INFO_HELP = """\
Report which backend 'auto' would choose in this environment and why, which backends and MPI implementations
are there, and the versions of what they use.
"""
_LAUNCH_HELP = """\
Run copies of a command, each as one rank. A Python program finds its rank with
cobre.comm.create_communicator(). When one copy fails the others are ended; the exit code is that of the first
failure, 128 plus the signal's number if a signal ended it. SIGINT and SIGTERM are passed on.

  python -m cobre.comm launch -n 4 -- python script.py --option
  python -m cobre.comm launch -n 2 --backend tcp --prefix -- python script.py
"""
_CLEAN_HELP = """\
Remove shared-memory segments of this user that belong to no running job. Jobs clean up behind themselves;
this is for what is left when all processes of a job are killed while it starts.
"""
_CONFORMANCE_HELP = """\
Run the suite that defines a communicator on backends: every check on every rank, from Python and from
nopython code.

  python -m cobre.comm conformance --backend shm -n 3
  python -m cobre.comm conformance --backend all
  python -m cobre.comm conformance --backend my_package.ring:make -n 2 3
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        code: int = given.run(given)
    except CobreError as error:
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_FAILURE
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(backend_names())
    parser: argparse.ArgumentParser = _Parser(prog="python -m cobre.comm", description=__doc__)
    commands: Any = parser.add_subparsers(metavar="COMMAND", required=True)

    bench = _command(commands, "bench", _bench, "measure the backends of this machine", _BENCH_HELP)
    bench.add_argument("--ranks", type=_positive, nargs="+", default=[2], metavar="N", help="default 2")
    bench.add_argument(
        "--backends",
        nargs="+",
        metavar="NAME",
        help=f"{names}, mpi-mpich, ...; default all whose ranks can be started",
    )
    bench.add_argument(
        "--repetitions", type=_positive, default=5, metavar="N", help="of each measurement; default 5"
    )
    bench.add_argument("--json", action="store_true", help="one JSON document instead of tables")

    info = _command(commands, "info", _info, "report what 'auto' would choose, and why", _INFO_HELP)
    info.add_argument("--json", action="store_true", help="one JSON document instead of text")

    launch = _command(commands, "launch", _launch, "run copies of a command as ranks", _LAUNCH_HELP)
    launch.add_argument("-n", "--ranks", type=_positive, required=True, metavar="N", help="number of copies")
    launch.add_argument("--backend", default="shm", metavar="NAME", help=f"one of {names}; default shm")
    launch.add_argument("--prefix", action="store_true", help="put [rank] before each line of output")
    launch.add_argument("--no-pin", action="store_true", help="let the ranks run on any CPU")
    launch.add_argument("command", nargs="+", metavar="-- COMMAND", help="the program and its arguments")

    _command(commands, "clean-shm", _clean_shm, "remove abandoned segments", _CLEAN_HELP)

    suite = _command(
        commands, "conformance", _conformance, "check that backends keep the contract", _CONFORMANCE_HELP
    )
    suite.add_argument("--backend", default="all", metavar="NAME", help=f"{names}, all, or module:function")
    suite.add_argument("-n", "--ranks", type=_positive, nargs="+", metavar="N", help="default 1 2 3 4")
    suite.add_argument("-v", "--verbose", action="store_true", help="also list what passed")
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser with the exit code that cobre has for wrong arguments."""

    def exit(self, status: int = 0, message: str | None = None) -> None:  # type: ignore[override]
        super().exit(_EXIT_ARGUMENTS if status else 0, message)


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _bench(given: argparse.Namespace) -> int:
    from cobre.comm.bench import as_json, as_text, run_bench
    from cobre.comm.information import describe

    def tell(column: str, ranks: int) -> None:
        print(f"measuring {column} on {ranks} ranks ...", file=sys.stderr)

    results = run_bench(given.ranks, given.backends, repetitions=given.repetitions, on_job=tell)
    print(as_json(results, describe()) if given.json else as_text(results))
    return 0


def _info(given: argparse.Namespace) -> int:
    from cobre.comm.information import as_text, describe

    about = describe()
    print(json.dumps(about, indent=2) if given.json else as_text(about))
    return 0


def _launch(given: argparse.Namespace) -> int:
    from cobre.comm.launch.command import run_command

    return run_command(
        given.command, given.ranks, backend=given.backend, prefix=given.prefix, pin=not given.no_pin
    )


def _clean_shm(given: argparse.Namespace) -> int:
    from cobre.comm.shm.segment import clean_stale_segments

    removed = clean_stale_segments()
    for name in removed:
        print(f"removed {name}")
    if not removed:
        print("nothing to remove")
    return 0


def _conformance(given: argparse.Namespace) -> int:
    from cobre.comm.conformance import ALL_TRAITS, Target, run_conformance, targets_named

    name: str = given.backend
    targets = [Target(name, name, ALL_TRAITS)] if ":" in name else targets_named(name)
    passed = True
    for target in targets:
        for ranks in given.ranks or target.sizes:
            if ranks in target.sizes or ":" in name:
                report = run_conformance(target, ranks)
                passed = passed and report.passed
                for line in report.lines(only_faults=not given.verbose):
                    print(line, flush=True)
    return 0 if passed else _EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main())
