"""What the launchers share: the ranks' environment, their CPUs, watching and ending their processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from cobre.comm.shm_segment import is_running, start_time

LAUNCHER_VARIABLE: Final = "COBRE_LAUNCHER"
"""Process id and start time of the launcher, for ranks that it has not started itself but through others."""

# API-08: what would make a rank believe that another launcher started it, or that it belongs to another job.
_FOREIGN_PREFIXES: Final = (
    "PMI_",
    "PMIX_",
    "OMPI_",
    "PRTE_",
    "HYDI_",
    "HYDRA_",
    "MPI_LOCAL",
    "COBRE_TCP_",
    "COBRE_SHM_",
)
_FOREIGN_NAMES: Final = frozenset(
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "COBRE_COMM_BACKEND", LAUNCHER_VARIABLE}
)

_GRACE_SECONDS: Final = 2.0
_EXIT_ORPHANED: Final = 3
_watches_launcher = False
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of launchers and of transports."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _FOREIGN_NAMES and not name.startswith(_FOREIGN_PREFIXES)
    }


def cpu_slices(ranks: int) -> list[list[int]] | None:
    """Divide this process's CPUs into disjoint slices, one for each rank.

    Slices rather than single CPUs, because a rank's threads inherit its mask. Returns ``None`` where there
    are fewer CPUs than ranks, or the platform cannot tell.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < ranks:
        return None
    quotient, rest = divmod(len(cpus), ranks)
    starts = [rank * quotient + min(rank, rest) for rank in range(ranks + 1)]
    return [cpus[start:stop] for start, stop in pairwise(starts)]


@contextlib.contextmanager
def exit_watches(processes: Iterable[subprocess.Popen[bytes]]) -> Iterator[dict[int, int]]:
    """Give file descriptors that become readable when a process ends, by descriptor its place.

    Empty where the platform has none (Linux before 5.3); ``Popen.poll`` tells it there.
    """
    watches: dict[int, int] = {}
    try:
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                for place, process in enumerate(processes):
                    watches[os.pidfd_open(process.pid)] = place
        yield watches
    finally:
        for descriptor in watches:
            os.close(descriptor)


def bind_to_parent(parent: int, number: int, cpus: Sequence[int] | None = None) -> None:
    """Let a new process get a signal when the thread that started it ends; for ``preexec_fn``, on Linux.

    Parameters
    ----------
    parent
        Number of the process that starts it.
    number
        The signal: SIGKILL, or SIGTERM for a launcher that has to end ranks of its own.
    cpus
        The CPUs to run on, or ``None`` for all.
    """
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(128 + number)
        if cpus is not None:
            os.sched_setaffinity(0, cpus)


def launcher_mark() -> str:
    """Return what names this process to the ranks that it starts (``LAUNCHER_VARIABLE``)."""
    return f"{os.getpid()}:{start_time(os.getpid()) or 0}"


def end_with_launcher(environment: Mapping[str, str] | None = None) -> None:
    """Let this process end when the launcher named in its environment does; without one do nothing.

    A rank that a launcher has started itself is killed with it (:func:`bind_to_parent`). One that a script or
    wrapper stands between is not: it watches by a thread.
    """
    global _watches_launcher
    pid, _, started = (environment or os.environ).get(LAUNCHER_VARIABLE, "").partition(":")
    if _watches_launcher or not (pid.isdigit() and started.isdigit()) or not hasattr(os, "pidfd_open"):
        return
    _watches_launcher = True
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        os._exit(_EXIT_ORPHANED)
    except OSError:
        return  # a system without pidfds
    if not is_running(int(pid), int(started)):
        os._exit(_EXIT_ORPHANED)

    def wait() -> None:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        while not poller.poll():
            pass
        os._exit(_EXIT_ORPHANED)

    threading.Thread(target=wait, name="cobre-launcher", daemon=True).start()


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process that leads a group, and to all of that group."""
    # until it is reaped its number cannot belong to another process
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def end_processes(processes: Sequence[subprocess.Popen[bytes]], grace_s: float = _GRACE_SECONDS) -> None:
    """End processes that lead groups of their own, and wait for them: SIGTERM, a grace, SIGKILL."""
    for process in processes:
        signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    for process in processes:
        signal_group(process, signal.SIGKILL)
    for process in processes:
        process.wait()
