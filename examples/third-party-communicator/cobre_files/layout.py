"""Where everything is: files in the directory, elements of the kernel's state.

======================  ==============================================================================
``rank.<r>``            exists once rank r has joined; its process holds a lock on it while it lives
``<0 or 1>.<r>``        the message of rank r for an even or odd turn
``abort``               why the ranks have given up; the first one to give up makes it
``new.<r>``             a message, or ``abort``, that rank r is still writing
======================  ==============================================================================
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.comm.status import DETAIL_SIZE

# State: the detail record first, then
RANK = DETAIL_SIZE
SIZE = DETAIL_SIZE + 1
TURN = DETAIL_SIZE + 2
POISONED = DETAIL_SIZE + 3
BUSY = DETAIL_SIZE + 4
TIMEOUT_NS = DETAIL_SIZE + 5
STRIDE = DETAIL_SIZE + 6
"""Bytes from one path to the next."""
HEADER = DETAIL_SIZE + 7
"""Room for the header of a message, or the words of ``abort``."""
HEADER_WORDS = 4
LOCKS = HEADER + HEADER_WORDS
"""Descriptors of all ranks' ``rank.<r>``; -1 for this rank's own."""

# Paths, each a C string: three, then two for each rank.
NEW = 0
ABORT = 1
MESSAGES = 2


def path_table(directory: Path, rank: int, size: int) -> tuple[NDArray[np.uint8], int]:
    """Return all paths as C strings in one array, and the bytes from one to the next."""
    names = [f"new.{rank}", "abort", *(f"{parity}.{r}" for r in range(size) for parity in (0, 1))]
    encoded = [str(directory / name).encode() + b"\0" for name in names]
    stride = max(map(len, encoded))
    return np.frombuffer(b"".join(text.ljust(stride, b"\0") for text in encoded), np.uint8).copy(), stride
