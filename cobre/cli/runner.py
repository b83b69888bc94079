"""Runs the body of a command and turns whatever happens into an outcome, shown once."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from cobre.cli.environment import DEBUG_VARIABLE, debugging
from cobre.cli.exit_codes import ExitCode, exit_code_of
from cobre.cli.outcome import Outcome
from cobre.cli.signals import Terminated
from cobre.cli.views import View
from cobre.errors import CobreError, Problem

NOTHING_WRITTEN = "stopped before anything was written"


def run_command(command: str, view: View, body: Callable[[Outcome], None]) -> int:
    """Run a command and show how it ended.

    Parameters
    ----------
    body
        Fills the outcome in as it goes; what it has filled in is shown even when it raises.

    Returns
    -------
    int
        The exit code.
    """
    outcome = Outcome(command)
    try:
        body(outcome)
    except (KeyboardInterrupt, Exception) as error:
        record_failure(outcome, error)
    view.finish(outcome)
    return int(outcome.exit_code)


def record_failure(outcome: Outcome, error: BaseException) -> None:
    """Fill into the outcome what an exception means for the command."""
    if isinstance(error, CobreError):
        outcome.fail(exit_code_of(error), error.problems)
    elif isinstance(error, Terminated):
        outcome.fail(ExitCode.TERMINATED, [interrupted(NOTHING_WRITTEN, str(error) or "SIGTERM")])
    elif isinstance(error, KeyboardInterrupt):
        outcome.fail(ExitCode.INTERRUPTED, [interrupted(str(error) or NOTHING_WRITTEN)])
    elif isinstance(error, MemoryError):
        outcome.fail(ExitCode.RUNTIME, [_out_of_memory(error)])
    else:
        outcome.fail(ExitCode.RUNTIME, [_internal_error(error)])


def interrupted(message: str, signal_name: str = "SIGINT") -> Problem:
    """Return the problem that reports a signal."""
    return Problem("Interrupted", message, {"signal": signal_name})


def _out_of_memory(error: MemoryError) -> Problem:
    return Problem(
        "OutOfMemory",
        f"there is not enough memory: {error}".rstrip(": "),
        {},
        "cuts take iterations x forward passes x stages x states numbers: ask for fewer iterations or passes",
    )


def _internal_error(error: BaseException) -> Problem:
    if debugging():
        traceback.print_exception(error, file=sys.stderr)
        suggestion = "please report this, with the traceback"
    else:
        suggestion = f"this is a fault of cobre: set {DEBUG_VARIABLE}=1 to see the traceback, and report it"
    return Problem(
        "InternalError", f"{type(error).__name__}: {error}", {"exception": type(error).__name__}, suggestion
    )
