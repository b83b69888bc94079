"""Signals during training: the first asks to stop at the end of the iteration, a second stops at once.

Python runs its signal handlers only when compiled code returns, which may take as long as an iteration. A
thread that reads the signal's wake-up pipe therefore answers at once, and ends the process on the second
signal if the main thread cannot.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from cobre.stop_signals import STOP_SIGNALS, watched_signals

_GRACE_SECONDS = 1.0
_END = 0  # no signal has this number


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came when there was nothing to save, or a second time; holds its name."""


class Interrupts:
    """Watches for signals that ask to stop while entered; outside the main thread it does nothing.

    Parameters
    ----------
    on_request
        Called by another thread at the first signal.
    on_abort
        Called by another thread at the second signal when the main thread does not react to it within a
        second; it has to end the process.

    Attributes
    ----------
    requested
        A signal came: stop at the next boundary.
    number
        The first of them; 0 before.
    interrupted
        One of them was SIGINT.
    saving
        There are results worth keeping. While false, the first signal raises ``KeyboardInterrupt``, for
        the others ``Terminated``.
    """

    def __init__(self, on_request: Callable[[], None], on_abort: Callable[[], None]) -> None:
        self.requested = False
        self.number = 0
        self.interrupted = False
        self.saving = False
        self._on_request = on_request
        self._on_abort = on_abort
        self._raised = threading.Event()
        self._active = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._watch, name="cobre-signals", daemon=True)
        self._thread.start()
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old_handlers: dict[int, Any] = {
            number: signal.signal(number, self._handle) for number in watched_signals()
        }
        self._active = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._active:
            return
        self._active = False
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.write(self._write, bytes([_END]))
        self._thread.join()
        os.close(self._read)
        os.close(self._write)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self.requested
        self.requested = True
        self.number = self.number or number
        self.interrupted = self.interrupted or number == signal.SIGINT
        if again or not self.saving:
            self._raised.set()
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise Terminated(signal.Signals(number).name)

    def _watch(self) -> None:
        count = 0
        while True:
            for number in os.read(self._read, 64):
                if number == _END:
                    return
                if number not in STOP_SIGNALS:
                    continue
                count += 1
                if count == 1:
                    self._on_request()
                elif not self._raised.wait(_GRACE_SECONDS):
                    self._on_abort()
