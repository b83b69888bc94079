"""Room for the descriptors that the ranks of a job need, asked for before any is opened."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

from cobre.comm.errors import InitializationFailed

_SPARE: Final = 32
"""For what the process opens besides: files, libraries, the compiler's cache."""


def require_descriptors(backend: str, count: int, what: str) -> None:
    """Make sure that this process can open so many more descriptors; raises its own limit if that helps.

    Parameters
    ----------
    backend, what
        The backend that needs them, and what for, for the message.
    count
        How many.

    Raises
    ------
    InitializationFailed
        When the system allows fewer; names the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _open_descriptors() + count + _SPARE
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard == resource.RLIM_INFINITY or needed <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        return
    raise InitializationFailed(
        backend,
        f"file descriptors run out: {what} takes {count} besides the {needed - count - _SPARE} open ones, "
        f"and this process may have {hard}; raise the limit (ulimit -n {needed}) or start fewer ranks",
    )


def _open_descriptors() -> int:
    directory = Path("/proc/self/fd")
    return len(list(directory.iterdir())) if directory.exists() else 0
