"""Which exit code an error leads to (ERR-09)."""

from __future__ import annotations

import enum

from cobre.errors import CobreError, OutputError, ValidationError


class ExitCode(enum.IntEnum):
    """Meaning of the exit code of a command."""

    OK = 0
    ARGUMENTS = 1
    """The command line is wrong."""
    CONFIGURATION = 2
    """An environment variable, the output directory or the way ranks are started is wrong."""
    INPUT = 3
    """The case, or a policy, is wrong."""
    RUNTIME = 4
    """A solver, a communicator or cobre itself failed."""
    DIFFERENT = 5
    """What was compared is not the same (``cobre policy compare``)."""
    INTERRUPTED = 130
    """Stopped by SIGINT."""
    TERMINATED = 143
    """Ended by SIGTERM or SIGHUP before there was anything to keep."""


class ConfigurationError(CobreError, ValueError):
    """The run is configured wrongly: an environment variable, or where it shall write."""


_ARGUMENT_FIELDS = frozenset(
    {
        *("iterations", "seed", "threads", "ranks", "checkpoint_every", "keep_checkpoints"),
        *("warm_start", "output", "lp_engine", "scenarios", "policy", "force"),
    }
)
_CONFIGURATION_KINDS = frozenset(
    {
        *("CacheUnavailable", "UnsafeCacheDirectory", "SolverLibrary"),
        *("InvalidRoot", "TokenNeeded", "InvalidToken", "HostNameNeeded", "AddressInUse"),
    }
)


def exit_code_of(error: CobreError) -> ExitCode:
    """Return the exit code of an error that ended a command."""
    by_kind = error.kind in _CONFIGURATION_KINDS
    by_setting = error.kind in ("IncompatibleSettings", "MpiError") and "setting" in error.context
    if isinstance(error, (ConfigurationError, OutputError)) or by_kind or by_setting:
        return ExitCode.CONFIGURATION
    if isinstance(error, ValidationError):
        about_arguments = all(
            "file" not in problem.context
            and ("argument" in problem.context or problem.context.get("field") in _ARGUMENT_FIELDS)
            for problem in error.problems
        )
        return ExitCode.ARGUMENTS if about_arguments else ExitCode.INPUT
    return ExitCode.RUNTIME
