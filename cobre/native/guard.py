"""Several processes that start at once compile once.

Numba's disk cache has no lock: processes that compile different signatures of one function at the same time
can write over each other's code. So the first process compiles under a file lock; the others wait for it
and then load. Once all kernels of a set are on disk a marker file is written, and no process locks any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.registry import cpu_target

from cobre.errors import CobreError
from cobre.native.cache import cache_directory
from cobre.native.stamp import package_stamp

_in_process = threading.RLock()
_holder_pid = 0  # process id of the lock's holder: a guard inside a guard must not wait for itself


@functools.cache
def target_digest() -> str:
    """Return a digest of the machine as Numba's cache key has it: target triple, CPU name and features."""
    return hashlib.sha256(repr(cpu_target.target_context.codegen().magic_tuple()).encode()).hexdigest()[:16]


def ready_marker(tag: str) -> Path:
    """Return the path of the marker file: all kernels of this tag are on disk for this machine."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", tag):
        raise ValueError(f"a compile tag has letters, digits, '_', '.' and '-' only, not {tag!r}")
    return cache_directory() / f".ready-{tag}-{package_stamp()[:16]}-{target_digest()}"


@contextlib.contextmanager
def compile_guard(tag: str) -> Iterator[None]:
    """Guard the block in which a set of kernels is compiled or loaded for the first time.

    While no process has completed the block for this tag, processes pass through it one after the other: the
    first compiles, the next ones load. A process that dies inside frees the lock; one that raises leaves no
    marker, so that the next one compiles.

    Parameters
    ----------
    tag
        Names the set of kernels and signatures, for example the backend; letters, digits, ``_``, ``.``,
        ``-``. Two sets that differ in any signature need different tags.

    Raises
    ------
    CobreError
        Kind ``CacheUnavailable`` when the file system of the cache has no locks.
    """
    if numba.config.DISABLE_JIT:
        yield
        return
    marker = ready_marker(tag)
    if marker.exists():
        yield
        return
    with _in_process, _file_lock(marker.parent / f".lock-{tag}", marker):
        yield
        marker.touch(mode=0o600)


@contextlib.contextmanager
def _file_lock(path: Path, marker: Path) -> Iterator[None]:
    """Hold the lock for the block, unless this process has it already or the marker appears meanwhile."""
    global _holder_pid
    if _holder_pid == os.getpid():
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise CobreError(
                "CacheUnavailable",
                f"the kernel cache cannot be locked: {path} ({error.strerror})",
                {"file": str(path)},
                "set COBRE_CACHE_DIR to a directory on a local disk",
            ) from error
        if marker.exists():  # somebody else compiled while this process waited: load beside the others
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            yield
            return
        _holder_pid = os.getpid()
        try:
            yield
        finally:
            _holder_pid = 0
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def compile_for(dispatcher: Any, tag: str, *arguments: Any) -> None:
    """Compile a kernel for the types of these arguments, or load it, under the guard; do not run it.

    Parameters
    ----------
    dispatcher
        A function decorated with ``@njit(cache=True)``.
    tag
        As in :func:`compile_guard`; different for different types that this kernel is compiled for.
    *arguments
        Sample arguments; only their types are used.
    """
    if numba.config.DISABLE_JIT:
        return
    with compile_guard(tag):
        dispatcher.compile(tuple(dispatcher.typeof_pyval(argument) for argument in arguments))


def kernel_cache_stats(dispatcher: Any) -> tuple[int, int]:
    """Return how many signatures of a kernel this process loaded from disk, and how many it compiled.

    Parameters
    ----------
    dispatcher
        A function decorated with ``@njit(cache=True)``.

    Returns
    -------
    tuple of int
        ``(hits, misses)``; ``(0, 0)`` for a plain function (``NUMBA_DISABLE_JIT``).
    """
    stats = getattr(dispatcher, "stats", None)
    if stats is None:
        return 0, 0
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
