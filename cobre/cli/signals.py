"""SIGINT and SIGTERM during training: one asks to stop at the end of the iteration, a second stops at once.

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

_GRACE_SECONDS = 1.0
_END = 0  # no signal has this number
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM came when there was nothing to save, or a second time."""


class Interrupts:
    """Watches for SIGINT and SIGTERM while entered; outside the main thread it does nothing.

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
    interrupted
        One of them was SIGINT.
    saving
        There are results worth keeping. While false, the first signal raises ``KeyboardInterrupt``, for
        SIGTERM ``Terminated``.
    """

    def __init__(self, on_request: Callable[[], None], on_abort: Callable[[], None]) -> None:
        self.requested = False
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
        self._old_handlers: list[Any] = [signal.signal(number, self._handle) for number in _SIGNALS]
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
        for number, handler in zip(_SIGNALS, self._old_handlers, strict=True):
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.write(self._write, bytes([_END]))
        self._thread.join()
        os.close(self._read)
        os.close(self._write)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self.requested
        self.requested = True
        self.interrupted = self.interrupted or number == signal.SIGINT
        if again or not self.saving:
            self._raised.set()
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    def _watch(self) -> None:
        count = 0
        while True:
            for number in os.read(self._read, 64):
                if number == _END:
                    return
                if number not in _SIGNALS:
                    continue
                count += 1
                if count == 1:
                    self._on_request()
                elif not self._raised.wait(_GRACE_SECONDS):
                    self._on_abort()
