"""Everything that the command line reads from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cobre.cli.exit_codes import ConfigurationError
from cobre.errors import CobreError
from cobre.machine import NUMBA_THREADS_VARIABLE, number_of_threads, usable_cpus
from cobre.sddp.cpus import requested_threads, threads_of_ranks

DEBUG_VARIABLE = "COBRE_DEBUG"


def default_threads(environment: Mapping[str, str] | None = None, ranks: int | None = None) -> int:
    """Return the threads of a rank when the command line gives none.

    That is ``COBRE_NUM_THREADS``, else ``SLURM_CPUS_PER_TASK``, else 1 for a process alone and processors ÷
    ``ranks`` for one of several ranks of this machine; an empty variable counts as unset.

    Raises
    ------
    ConfigurationError
        When the variable that decides holds no positive whole number, or too large a one.
    """
    try:
        if ranks is not None:
            return threads_of_ranks(ranks, environment)
        return requested_threads(environment) or 1
    except CobreError as error:
        raise ConfigurationError(error.kind, error.message, error.context, error.suggestion) from None


def reserve_threads(count: int) -> None:
    """Let Numba start ``count`` threads where it would start fewer; only before Numba is imported."""
    text = os.environ.get(NUMBA_THREADS_VARIABLE, "").strip()
    if count > (number_of_threads(NUMBA_THREADS_VARIABLE, text) if text else usable_cpus()):
        os.environ[NUMBA_THREADS_VARIABLE] = str(count)


def debugging(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether tracebacks of unexpected errors shall be shown."""
    variables = os.environ if environment is None else environment
    return variables.get(DEBUG_VARIABLE, "") not in ("", "0")
