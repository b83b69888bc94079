"""Everything that the command line reads from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cobre.cli.exit_codes import ConfigurationError

THREADS_VARIABLE = "COBRE_NUM_THREADS"
SLURM_THREADS_VARIABLE = "SLURM_CPUS_PER_TASK"
DEBUG_VARIABLE = "COBRE_DEBUG"
NUMBA_THREADS_VARIABLE = "NUMBA_NUM_THREADS"


def default_threads(environment: Mapping[str, str] | None = None) -> int:
    """Return the threads of this process when the command line gives none.

    That is ``COBRE_NUM_THREADS``, else ``SLURM_CPUS_PER_TASK``, else 1; an empty variable counts as unset.

    Raises
    ------
    ConfigurationError
        When the variable that decides does not hold a positive whole number.
    """
    variables = os.environ if environment is None else environment
    for name in (THREADS_VARIABLE, SLURM_THREADS_VARIABLE):
        text = variables.get(name, "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise ConfigurationError(
                "IncompatibleSettings",
                f"the environment variable {name} must be a positive whole number, not {text!r}",
                {"setting": name, "value": text},
                f"set {name} to the number of threads, unset it, or give --threads",
            )
        return int(text)
    return 1


def reserve_threads(count: int) -> None:
    """Let Numba start ``count`` threads, more than there are processors; only before Numba is imported."""
    text = os.environ.get(NUMBA_THREADS_VARIABLE, "")
    if not text.isdigit() or int(text) < count:
        os.environ[NUMBA_THREADS_VARIABLE] = str(count)


def debugging(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether tracebacks of unexpected errors shall be shown."""
    variables = os.environ if environment is None else environment
    return variables.get(DEBUG_VARIABLE, "") not in ("", "0")


def usable_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
