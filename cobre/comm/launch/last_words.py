"""Output that has to reach the launcher before a rank ends the whole job.

A launcher reads the output of its ranks through pipes, but learns of an abort by another channel. MPICH's
launcher ends the job at once: what is still in a pipe, such as the traceback of the cause, is lost. A rank
therefore waits until its pipes have been read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import sys
import termios
import time
from collections.abc import Iterable
from typing import Final

_STANDARD_STREAMS: Final = (1, 2)
_LONGEST_WAIT_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.002
_INT: Final = struct.Struct("i")


def deliver_output() -> None:
    """Flush both standard streams and wait until their readers have everything, at most 5 s."""
    for stream in (sys.stdout, sys.stderr):
        # a stream that is closed or gone must not keep the job from its end
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    wait_until_read(_STANDARD_STREAMS, _LONGEST_WAIT_S)


def wait_until_read(descriptors: Iterable[int], limit_s: float) -> bool:
    """Wait until nothing that was written to these descriptors is unread; false when the time is over."""
    deadline = time.monotonic() + limit_s
    for descriptor in descriptors:
        while unread_bytes(descriptor) > 0:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_AGAIN_S)
    return True


def unread_bytes(descriptor: int) -> int:
    """Return how much of what was written to a pipe, socket or terminal is unread; 0 for anything else."""
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode):
            request = termios.FIONREAD
        elif stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
            request = termios.TIOCOUTQ
        else:
            return 0
        return int(_INT.unpack(fcntl.ioctl(descriptor, request, bytes(_INT.size)))[0])
    except OSError:  # closed, or a device without this query
        return 0
