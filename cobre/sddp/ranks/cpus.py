"""Processors and threads of a rank, decided before Numba is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cobre.machine import NUMBA_THREADS_VARIABLE, number_of_threads, usable_cpus

THREADS_VARIABLE = "COBRE_NUM_THREADS"
SLURM_THREADS_VARIABLE = "SLURM_CPUS_PER_TASK"
# Libraries below NumPy would start their own threads beside ours; HiGHS has an option for this.
_LIBRARY_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def requested_threads(environment: Mapping[str, str] | None = None) -> int | None:
    """Return the threads that the environment asks for, or ``None``.

    That is ``COBRE_NUM_THREADS``, else ``SLURM_CPUS_PER_TASK``; an empty variable counts as unset.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` when the variable that decides holds no positive whole number, or
        one beyond :func:`cobre.machine.most_workers`.
    """
    variables = os.environ if environment is None else environment
    for name in (THREADS_VARIABLE, SLURM_THREADS_VARIABLE):
        text = variables.get(name, "").strip()
        if text:
            return number_of_threads(name, text)
    return None


def threads_of_ranks(ranks: int, environment: Mapping[str, str] | None = None) -> int:
    """Return the threads of each of several ranks of this machine: the environment's, else its share.

    The share is processors ÷ ranks, at least 1 (API-02).
    """
    return requested_threads(environment) or max(1, usable_cpus() // ranks)


def rank_environment(threads: int) -> dict[str, str]:
    """Return the variables of a process that shall run one rank with so many threads."""
    return {NUMBA_THREADS_VARIABLE: str(threads), **dict.fromkeys(_LIBRARY_VARIABLES, "1")}


def pin_libraries() -> None:
    """Keep the libraries below NumPy to one thread in this process; only before they are imported."""
    for name in _LIBRARY_VARIABLES:
        os.environ.setdefault(name, "1")
