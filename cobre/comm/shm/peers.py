"""How a rank of the shm backend sees that another one's process has ended (SHM-03, 10.7).

For each peer there is a descriptor that becomes readable when its process ends; start-up and collectives poll
them. As a rule it is a pidfd. Old kernels, sandboxes and Python builds have none; there a thread looks at the
peers several times a second, by process id and start time, and makes a plain eventfd readable. It needs the
GIL for a moment only, which collectives release.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import threading
from typing import Final

from cobre.comm.launch.processes import is_running, start_time

_PROBE_S: Final = 0.2


class Peers:
    """The processes of all other ranks; its creator closes it."""

    def __init__(self) -> None:
        self.descriptors: dict[int, int] = {}
        """By rank, what becomes readable when its process has ended."""
        self._prober: _Prober | None = None

    def add(self, rank: int, pid: int) -> None:
        """Watch a process from now on; one that ended before is a ProcessLookupError."""
        descriptor = _open_pidfd(pid)
        if descriptor is None:
            if self._prober is None:
                self._prober = _Prober()
            descriptor = self._prober.add(pid)
        self.descriptors[rank] = descriptor

    def ended(self, wait_ms: int) -> int | None:
        """Return a rank whose process has ended, after at most this time."""
        poller = select.poll()
        by_descriptor = {}
        for rank, descriptor in self.descriptors.items():
            poller.register(descriptor, select.POLLIN)
            by_descriptor[descriptor] = rank
        ready = poller.poll(wait_ms)
        return by_descriptor[ready[0][0]] if ready else None

    def signal_all(self, number: int) -> None:
        """Send a signal to all peers that still run."""
        if self._prober is not None:
            self._prober.signal_all(number)
            return
        for descriptor in self.descriptors.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)

    def close(self) -> None:
        """Close all descriptors; harmless when called again."""
        if self._prober is not None:
            self._prober.stop()
            self._prober = None
        for descriptor in self.descriptors.values():
            os.close(descriptor)
        self.descriptors.clear()


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor of a process, ``None`` where there are none."""
    if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM):
            return None
        raise


class _Prober:
    """A thread that polls for processes that have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[int, int]] = {}  # by descriptor, process id and start time
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cobre-shm-prober", daemon=True)
        self._thread.start()

    def add(self, pid: int) -> int:
        """Watch a process; return the descriptor that signals its end."""
        started = start_time(pid)
        if started is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        with self._lock:
            self._watched[descriptor] = pid, started
        return descriptor

    def signal_all(self, number: int) -> None:
        """Send a signal to all processes that still run."""
        with self._lock:
            for pid, started in self._watched.values():
                with contextlib.suppress(ProcessLookupError):
                    if is_running(pid, started):
                        os.kill(pid, number)

    def stop(self) -> None:
        """End the thread; the descriptors may be closed then."""
        self._stop.set()
        if threading.current_thread() is not self._thread:  # where the collector may run finalizers
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_PROBE_S):
            with self._lock:
                for descriptor in [d for d, process in self._watched.items() if not is_running(*process)]:
                    if self._stop.is_set():
                        return
                    del self._watched[descriptor]
                    os.eventfd_write(descriptor, 1)
