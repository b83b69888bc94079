"""The alarm: the words through which kernel, watcher and owner of one rank report failures to each other.

The first to detect that the job is broken raises the alarm, with the reason and the rank to blame; the others
read it. Reasons are those of :mod:`cobre.comm.status`, as seen by the other ranks.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cobre.native import atomic_fetch_add, inner_kernel
from cobre.native.atomics import atomic_load, atomic_store
from cobre.native.sockets import eventfd_write

CLAIM: Final = 0
"""How often somebody wanted to raise the alarm: only the first does."""
REASON: Final = 1
"""0, or why the job is broken; written last."""
BLAMED: Final = 2
"""The rank to blame, -1 for no particular rank."""
THIRD: Final = 3
"""A number that goes with the reason: the blamed rank's operation, or milliseconds."""
OPERATION: Final = 4
"""The operation in which this rank found out, for the blamed rank."""
REQUEST: Final = 5
"""What the owner wants the watcher to do."""
EXIT_CODE: Final = 6
WAKE: Final = 7
"""Descriptor that wakes the watcher."""
GOODBYE: Final = 8
"""From here on, for each link: 1 when the peer has announced that it closes."""

RUN: Final = 0
STOP: Final = 1
"""Send a shutdown frame and leave, whatever the peers do."""
ABORT: Final = 2
FAIL: Final = 3
"""Stop, and notify the peers that this rank gave up."""
CLOSE: Final = 4
"""Leave when all ranks close; if one has died instead, all of them report it."""


def new_alarm(links: int, wake: int) -> NDArray[np.int64]:
    """Return the words for a rank with this many links, nothing being wrong."""
    alarm = np.zeros(GOODBYE + links, np.int64)
    alarm[WAKE] = wake
    return alarm


@inner_kernel
def raise_alarm(alarm, reason, blamed, third, operation):
    """Raise the alarm unless somebody has done so, and wake the watcher."""
    if atomic_fetch_add(alarm, CLAIM, 1) == 0:
        alarm[BLAMED] = blamed
        alarm[THIRD] = third
        alarm[OPERATION] = operation
        atomic_store(alarm, REASON, reason)
        eventfd_write(np.int32(alarm[WAKE]), 1)


@inner_kernel
def alarm_reason(alarm):
    """Return why the job is broken, or 0; what goes with the reason may be read afterwards."""
    return atomic_load(alarm, REASON)
