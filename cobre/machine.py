"""What this machine and the limits of this process allow: processors, threads, ranks, address space."""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from cobre.errors import CobreError, Problem, ValidationError

_WORKERS_PER_CPU = 16
_ALWAYS_ALLOWED = 256
_MOST_DIGITS = 9
_ADDRESS_SPACE_BYTES = 5 << 29
"""Least address space of a run: compiler, solver and Arrow reserve 2.1 GiB on one thread while kernels are
compiled, of which only a part becomes memory.
"""
_ADDRESS_SPACE_OF_A_THREAD_BYTES = 72 << 20
"""A stack, and the heap that the C library reserves for a thread."""
_RETURNED_BYTES = 128 << 10
"""Least size of an array whose memory is returned at once."""
_M_MMAP_THRESHOLD = -3
NUMBA_THREADS_VARIABLE = "NUMBA_NUM_THREADS"


def usable_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_workers() -> int:
    """Return how many threads, or processes, may be asked for: 16 for each processor, and 256 in any case."""
    return max(_ALWAYS_ALLOWED, _WORKERS_PER_CPU * usable_cpus())


def check_workers(ranks: int | None, threads: int | None) -> None:
    """Refuse more ranks, threads, or threads of all ranks together than this machine can start.

    Raises
    ------
    ValidationError
        Naming the argument.
    """
    most = most_workers()
    asked = {"ranks": ranks or 1, "threads": threads or 1}
    problems = [too_many(name, value) for name, value in asked.items() if value > most]
    together = asked["ranks"] * asked["threads"]
    if together > most and not problems:
        problems = [too_many("threads", together, f"{ranks} ranks of {threads} threads")]
    if problems:
        raise ValidationError(problems, source="arguments")


def too_many(name: str, value: int, what: str | None = None) -> Problem:
    """Return the problem of an argument that asks for more than :func:`most_workers`."""
    cpus, most = usable_cpus(), most_workers()
    return Problem(
        "OutOfRange",
        f"{what or f'{value} {name}'} are more than the {most} that are accepted on "
        f"{cpus} processor{'' if cpus == 1 else 's'}",
        {"field": name, "value": value},
        f"{cpus} {'is' if cpus == 1 else 'are'} usually fastest; results do not depend on it",
    )


def number_of_threads(name: str, text: str) -> int:
    """Return the number of threads that the text of an environment variable asks for.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` when that is no positive whole number, or more than
        :func:`most_workers`.
    """
    most = most_workers()
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and 0 < int(text) <= most:
        return int(text)
    raise CobreError(
        "IncompatibleSettings",
        f"the environment variable {name} must be a positive whole number, at most {most}, not {text!r:.80}",
        {"setting": name, "value": text[:80]},
        f"set {name} to the number of threads, or unset it",
    )


def return_memory_early() -> None:
    """Have this process, and those it starts, return the memory of arrays to the system when they are freed.

    Otherwise the C library keeps it for arrays to come, more with every larger one, and so does Arrow's
    allocator; a study holds some 10 % more. For processes of the command line; before Arrow is imported.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(_RETURNED_BYTES))
    if os.environ["MALLOC_MMAP_THRESHOLD_"] == str(_RETURNED_BYTES) and sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # the variable counts for processes that are still to start
            libc.mallopt(_M_MMAP_THRESHOLD, _RETURNED_BYTES)


def check_process(threads: int = 1) -> None:
    """Refuse what would make Numba or a library below it fail when it is loaded, each in its own way.

    Those are a value of ``NUMBA_NUM_THREADS`` that Numba does not take, and a limit of the address space
    within which compiler, solver and threads do not start; call it before Numba is imported.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``, naming the variable or the limit.
    """
    text = os.environ.get(NUMBA_THREADS_VARIABLE, "").strip()
    if text:
        number_of_threads(NUMBA_THREADS_VARIABLE, text)
    _check_address_space(_ADDRESS_SPACE_BYTES + (threads - 1) * _ADDRESS_SPACE_OF_A_THREAD_BYTES)


def check_compiler() -> None:
    """Refuse to train where Numba makes no machine code.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``, naming the variable.
    """
    value = os.environ.get("NUMBA_DISABLE_JIT", "").strip()
    if value not in ("", "0"):
        raise CobreError(
            "IncompatibleSettings",
            "the environment variable NUMBA_DISABLE_JIT is set: training needs compiled kernels",
            {"setting": "NUMBA_DISABLE_JIT", "value": value[:80]},
            "unset NUMBA_DISABLE_JIT",
        )


def _check_address_space(needed: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise CobreError(
            "IncompatibleSettings",
            f"the address space of this process is limited to {limit >> 10} KiB (ulimit -v), and "
            f"compiler, solver and threads need {needed >> 10} KiB before the study takes any",
            {"setting": "ulimit -v", "value": limit >> 10},
            "run 'ulimit -v unlimited', use fewer threads, or limit memory by a control group instead",
        )


class _WithoutPandas(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("this process does without pandas", name=name)
        return None


def save_memory() -> None:
    """Have Arrow take less memory, in a process of our own and before it is imported.

    It imports pandas, wherever that is installed, with its first array: 25 MB and a third of a second. Its
    allocators keep what tables took; that of the system gives it back.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
