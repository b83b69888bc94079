"""Where things lie in the control segment of the shm backend, and in the state of its kernel.

The segment is an array of 64-bit words in lines of 128 bytes, so that no two ranks write to one cache line
(nor to the neighbour that processors fetch along with it):

======================  ====================================================================================
lines 0 and 1           header: magic (written last), what identifies the segment, its sizes, its creator
line 2                  generation: the futex word; changes when sleepers have to look again
line 3                  sleepers: how many ranks sleep, or are about to
line 4                  abort: 0, or why the communicator is broken
lines 8 ...             for each rank three lines: who it is, then its arrivals at odd and at even meetings
then, on a page         two halves of one slot for each rank
======================  ====================================================================================

An arrival line holds one word with the number of the meeting and a descriptor of the operation, and payloads
that are small enough.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cobre.comm.status import DETAIL_SIZE

WORD_BYTES: Final = 8
LINE: Final = 16
"""Words of a line."""
PAGE_BYTES: Final = 4096

MAGIC: Final = int.from_bytes(b"cobreshm", "little")
LAYOUT_VERSION: Final = 1

# header
H_MAGIC: Final = 0
H_VERSION: Final = 1
H_SIZE: Final = 2
H_NONCE: Final = 3  # two words
H_TOTAL_BYTES: Final = 5
H_CREATOR_PID: Final = 6
H_CREATOR_START: Final = 7
H_SLOT_BYTES: Final = 8
H_STAMP: Final = 9  # two words: digest of the package's sources
HEADER_WORDS: Final = 2 * LINE

GENERATION: Final = 2 * LINE
SLEEPERS: Final = 3 * LINE
ABORT: Final = 4 * LINE
RANKS: Final = 8 * LINE
RANK_WORDS: Final = 3 * LINE
"""Words of one rank: its identity and two arrival lines."""

# identity of a rank
R_PID: Final = 0  # written last
R_START: Final = 1
R_CPUS: Final = 2  # the same for ranks that may run on the same CPUs; its low 16 bits are their number

# arrival line
A_ARRIVAL: Final = 0  # written last
A_PAYLOAD: Final = 1
INLINE_BYTES: Final = (LINE - A_PAYLOAD) * WORD_BYTES
"""Payloads up to this size travel in the arrival line itself."""

ARRIVALS: Final = RANKS + LINE
"""Arrival line of rank 0 at even meetings; that of odd ones follows."""

# state of the kernel: the detail record, then
S_RANK: Final = DETAIL_SIZE
S_SIZE: Final = DETAIL_SIZE + 1
S_SEQUENCE: Final = DETAIL_SIZE + 2
S_POISONED: Final = DETAIL_SIZE + 3
S_SLOT_BYTES: Final = DETAIL_SIZE + 4
S_PIECE_BYTES: Final = DETAIL_SIZE + 5
S_DATA_OFFSET: Final = DETAIL_SIZE + 6
S_TIMEOUT_NS: Final = DETAIL_SIZE + 7
S_TIMESPEC: Final = DETAIL_SIZE + 8  # two words
S_DIRECT_BYTES: Final = DETAIL_SIZE + 10
"""What is at least this large is read straight from its owner's memory; 0: never."""
S_VECTORS: Final = DETAIL_SIZE + 11  # two struct iovec
S_LOOKS: Final = DETAIL_SIZE + 15
"""How often a rank polls before it yields its processor."""
S_SHARES_BYTES: Final = DETAIL_SIZE + 16
"""From this size on the ranks share the work of a reduction."""
S_SPREAD: Final = DETAIL_SIZE + 17
"""1 where every rank has a CPU, else 0; the same on all ranks."""
S_BUSY: Final = DETAIL_SIZE + 18
"""1 while a thread of this process is in a collective."""
S_POLLS: Final = DETAIL_SIZE + 19  # one struct pollfd for each rank; then their process ids
POLLIN: Final = np.int64(1)


def data_offset(size: int) -> int:
    """Return where the slots of ``size`` ranks begin, in bytes."""
    control = (RANKS + size * RANK_WORDS) * WORD_BYTES
    return -(-control // PAGE_BYTES) * PAGE_BYTES


def slot_bytes(capacity_bytes: int, size: int) -> int:
    """Return the bytes of one rank's slot in one half: whole lines, at least one page."""
    share = capacity_bytes // (2 * size)
    return max(share // PAGE_BYTES, 1) * PAGE_BYTES


def total_bytes(slot: int, size: int) -> int:
    """Return the bytes of a segment with such slots."""
    return data_offset(size) + 2 * size * slot
