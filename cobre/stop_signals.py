"""The signals that ask a run to stop and keep what it has: Ctrl-C, a scheduler, a terminal that goes away."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def watched_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop this process: not SIGHUP where ``nohup`` has it ignored."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return tuple(number for number in STOP_SIGNALS if not (ignored and number is signal.SIGHUP))
