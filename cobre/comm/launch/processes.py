"""What the launchers share: the ranks' environment, their CPUs, watching and ending their processes."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from cobre.comm.registry import variable_prefixes

LAUNCHER_VARIABLE: Final = "COBRE_LAUNCHER"
"""Names the launcher of a job in the environment of its processes."""

# API-08: what would make a rank believe that another launcher started it, or that it belongs to another job.
_FOREIGN_PREFIXES: Final = (
    "PMI_",
    "PMIX_",
    "OMPI_",
    "PRTE_",
    "HYDI_",
    "HYDRA_",
    "MPI_LOCAL",
)
_FOREIGN_NAMES: Final = frozenset(
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "COBRE_COMM_BACKEND", LAUNCHER_VARIABLE}
)

_GRACE_SECONDS: Final = 2.0
_ENDED_STATES: Final = "ZX"
_ORPHANS_PROGRAM: Final = Path(__file__).with_name("orphans.py")
_launches: Final = itertools.count()
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def start_time(pid: int) -> int | None:
    """Return when a process was started, in clock ticks since boot; ``None`` when there is no such process.

    With the process id it names a process for good: ids are used again.
    """
    status = _process_status(pid)
    return None if status is None else status[1]


def is_running(pid: int, started: int) -> bool:
    """Whether a process, named by its id and start time, has not ended; a zombie has."""
    status = _process_status(pid)
    return status is not None and status[1] == started and status[0] not in _ENDED_STATES


def _process_status(pid: int) -> tuple[str, int] | None:
    """Return a process's state (one letter) and start time, ``None`` when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name before may contain anything
    return fields[0], int(fields[19])


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of launchers and of backends."""
    prefixes = (*_FOREIGN_PREFIXES, *variable_prefixes())
    return {
        name: value
        for name, value in environment.items()
        if name not in _FOREIGN_NAMES and not name.startswith(prefixes)
    }


def cpu_slices(ranks: int) -> list[list[int]] | None:
    """Divide this process's CPUs into disjoint slices, one for each rank.

    Slices rather than single CPUs, because a rank's threads inherit its mask. Returns ``None`` where there
    are fewer CPUs than ranks, or the platform does not report them.
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
    """Yield descriptors that become readable when a process ends, as keys of the index of the process.

    Empty where the platform has none (Linux before 5.3); use ``Popen.poll`` there.
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
        The signal: SIGKILL, SIGTERM for a launcher that has to end ranks of its own, or SIGCONT for one that
        sees by other means that its parent has ended.
    cpus
        The CPUs to run on, or ``None`` for all.
    """
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(128 + number)
        if cpus is not None:
            os.sched_setaffinity(0, cpus)


class _LastingThread:
    """A thread that lives as long as this process, and calls one function after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] | None = None

    def call(self, function: Callable[[], T]) -> T:
        """Call a function there, and return what it returns or raise what it raises."""
        with self._lock:
            if self._calls is None:
                self._calls = queue.SimpleQueue()
                threading.Thread(
                    target=self._work, args=(self._calls,), name="cobre-pool", daemon=True
                ).start()
        future: Future[T] = Future()
        self._calls.put((future, function))
        return future.result()

    @staticmethod
    def _work(calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
        while True:
            future, function = calls.get()
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            del future, function


lasting_thread = _LastingThread()
"""Starts processes that shall outlive the thread that asks for them; :func:`bind_to_parent` says why."""


def _forget_thread() -> None:
    """In a forked child, which has none of its parent's threads."""
    global lasting_thread
    lasting_thread = _LastingThread()


os.register_at_fork(after_in_child=_forget_thread)


@contextlib.contextmanager
def ending_orphans() -> Iterator[dict[str, str]]:
    """Have all processes of a job killed if this one is killed meanwhile; give the variable that marks them.

    A rank that this process starts itself is killed with it (:func:`bind_to_parent`); one that a script or
    wrapper stands between is not, and cannot end by itself while it is stopped. A process that is none of the
    job kills it (:mod:`cobre.comm.launch.orphans`).
    """
    here = os.getpid()
    mark = f"{here}:{start_time(here) or 0}:{next(_launches)}"
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_ORPHANS_PROGRAM), f"{LAUNCHER_VARIABLE}={mark}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # it may be stopped as well, and has to go on then
        preexec_fn=functools.partial(bind_to_parent, here, signal.SIGCONT),
    )
    try:
        yield {LAUNCHER_VARIABLE: mark}
    finally:
        guard.kill()
        guard.communicate()


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
