"""Threads of the nopython kernels."""

from __future__ import annotations

import threading

import numba

from cobre.errors import CobreError, Problem, ValidationError

kernel_lock = threading.Lock()
"""Held while a parallel kernel runs: Numba's fallback threading layer cannot be entered twice."""


def launch_threads() -> None:
    """Start Numba's threads, as many as it was loaded with, unless they run.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` when Numba has no threading layer as ``NUMBA_THREADING_LAYER`` asks for.
    """
    try:
        numba.get_num_threads()
    except ValueError as error:
        layer = numba.config.THREADING_LAYER
        raise CobreError(
            "IncompatibleSettings",
            f"Numba cannot start threads with NUMBA_THREADING_LAYER={layer}: {' '.join(str(error).split())}",
            {"setting": "NUMBA_THREADING_LAYER", "value": layer},
            "unset NUMBA_THREADING_LAYER, or set it to workqueue",
        ) from None


def use_threads(count: int) -> None:
    """Let kernels called from this Python thread use ``count`` threads.

    Raises
    ------
    ValidationError
        When ``count`` is not positive, or is more than Numba was loaded with.
    """
    if count < 1:
        raise _refused(count, "a positive number is needed", "give --threads 1 or more")
    most = numba.config.NUMBA_NUM_THREADS
    if count > most:
        raise _refused(
            count,
            f"Numba was loaded with at most {most} threads, the processors it may use",
            "set NUMBA_NUM_THREADS before Python starts (the command line does it for you)",
        )
    numba.set_num_threads(count)


def _refused(count: int, reason: str, suggestion: str) -> ValidationError:
    problem = Problem(
        "InvalidValue",
        f"cannot use {count} threads: {reason}",
        {"field": "threads", "value": count},
        suggestion,
    )
    return ValidationError([problem], source="arguments")
