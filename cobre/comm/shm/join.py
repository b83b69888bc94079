"""How the ranks of the shm backend find each other (SHM-04).

Every rank writes its identity into the control segment and waits for the others. Each of them is watched from
then on (:mod:`cobre.comm.shm.peers`), so that start-up and collectives detect a death at once; the rank that
detects it writes the dead rank into the segment. A rank that never joins is reported at the deadline. When
all have joined, the segment's name is removed: from then on no crash can leave it behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cobre.comm.config import ShmConfig
from cobre.comm.descriptors import require_descriptors
from cobre.comm.errors import InitializationFailed, RankLost
from cobre.comm.launch.processes import is_running, start_time
from cobre.comm.shm.layout import (
    ABORT,
    H_CREATOR_PID,
    H_CREATOR_START,
    POLLIN,
    R_CPUS,
    R_PID,
    R_START,
    RANK_WORDS,
    RANKS,
    S_DATA_OFFSET,
    S_DIRECT_BYTES,
    S_LOOKS,
    S_PIECE_BYTES,
    S_POLLS,
    S_RANK,
    S_SHARES_BYTES,
    S_SIZE,
    S_SLOT_BYTES,
    S_SPREAD,
    S_TIMEOUT_NS,
    data_offset,
)
from cobre.comm.shm.peers import Peers
from cobre.comm.shm.segment import Segment, create_segment, open_segment
from cobre.comm.status import PEER_DIED, PEER_FAILED

_LOOK_AGAIN_MS: Final = 2
PIECE_BYTES: Final = 256 * 1024
"""Payload bytes of a rank at one meeting: few enough to stay in its cache until the others read them."""

DIRECT_BYTES: Final = 64 * 1024
"""What is at least this large is read straight from its owner's memory, where the system allows it."""

SHARES_BYTES: Final = 16 * 1024
"""From this size on the ranks share the work of a reduction, at the price of one more meeting."""

_MOST_CPUS: Final = 0xFFFF

LOOKS: Final = 120
"""How often a rank polls before it yields, where every rank has a CPU."""


def join(config: ShmConfig) -> tuple[Segment, Peers]:
    """Make or find the segment and wait for all ranks.

    Raises
    ------
    InitializationFailed
        When the segment is not this job's, or a rank is missing.
    RankLost
        When a rank has ended or given up.
    AllocationFailed
        When there is no room for the segment.
    """
    deadline = time.monotonic() + config.connect_timeout_s
    require_descriptors("shm", config.size, f"each of {config.size} ranks")
    segment = create_segment(config) if config.rank == 0 else open_segment(config, deadline)
    peers = Peers()
    try:
        _register(segment, config)
        _meet(segment, config, peers, deadline)
    except BaseException as error:
        peers.close()
        if segment.words[ABORT] == 0:
            segment.words[ABORT] = _said(error, config.rank)
        segment.unlink()  # also for rank 0 when that is gone: the job cannot start any more
        segment.close()
        raise
    if config.rank == 0:
        segment.unlink()
    segment.close()
    return segment, peers


def _said(error: BaseException, rank: int) -> int:
    """Return the failure to publish to the other ranks: which rank has ended, or that this one gave up."""
    if isinstance(error, RankLost):
        return int(PEER_DIED) | ((error.rank + 1) << 8)
    return int(PEER_FAILED) | ((rank + 1) << 8)


def _register(segment: Segment, config: ShmConfig) -> None:
    identity = RANKS + config.rank * RANK_WORDS
    try:
        fcntl.lockf(segment.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, config.rank)
        taken = segment.words[identity + R_PID] != 0
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        taken = True
    if taken:
        raise InitializationFailed("shm", f"another process is rank {config.rank} already")
    segment.words[identity + R_START] = start_time(os.getpid()) or 0
    segment.words[identity + R_CPUS] = _cpus_word(os.sched_getaffinity(0))
    segment.words[identity + R_PID] = os.getpid()


def _meet(segment: Segment, config: ShmConfig, peers: Peers, deadline: float) -> None:
    missing = [r for r in range(config.size) if r != config.rank]
    while True:
        missing = [r for r in missing if not _found(segment, r, peers)]
        if not missing:
            return
        ended = peers.ended(_LOOK_AGAIN_MS)
        if ended is None and 0 in missing and not is_running(*_creator(segment)):
            ended = 0
        if ended is not None or segment.words[ABORT]:
            raise _lost(segment, ended)
        if time.monotonic() > deadline:
            names = ", ".join(str(r) for r in missing)
            raise InitializationFailed(
                "shm", f"rank {names} did not join within {config.connect_timeout_s:g} s"
            )


def _found(segment: Segment, rank: int, peers: Peers) -> bool:
    identity = RANKS + rank * RANK_WORDS
    pid = int(segment.words[identity + R_PID])
    if pid == 0:
        return False
    try:
        peers.add(rank, pid)
    except ProcessLookupError:
        raise _lost(segment, rank, "has ended, or runs in another process namespace,") from None
    if start_time(pid) != segment.words[identity + R_START]:
        raise _lost(segment, rank)
    return True


def _creator(segment: Segment) -> tuple[int, int]:
    """Return process id and start time of rank 0, which may not have registered yet."""
    return int(segment.words[H_CREATOR_PID]), int(segment.words[H_CREATOR_START])


def _lost(segment: Segment, rank: int | None, what: str = "has ended") -> RankLost:
    """Return the error for a rank that has ended, or for the failure already published in the segment."""
    said = int(segment.words[ABORT])
    if said:
        rank, what = (said >> 8) - 1, "has ended" if said & 255 == PEER_DIED else "gave up"
    assert rank is not None
    return RankLost("shm", rank, f"{what} while the ranks were joining")


def kernel_state(config: ShmConfig, segment: Segment, peers: Peers) -> NDArray[np.int64]:
    """Return the numbers that a rank's kernel needs."""
    state = np.zeros(S_POLLS + 2 * config.size, np.int64)
    state[S_RANK], state[S_SIZE] = config.rank, config.size
    state[S_SLOT_BYTES] = segment.slot_bytes
    state[S_PIECE_BYTES] = min(segment.slot_bytes, PIECE_BYTES)
    state[S_DATA_OFFSET] = data_offset(config.size)
    state[S_TIMEOUT_NS] = int(min(config.timeout_s * 1e9, 2**62))
    state[S_DIRECT_BYTES] = DIRECT_BYTES
    state[S_SHARES_BYTES] = SHARES_BYTES
    crowded = _crowded(config, segment)
    state[S_LOOKS] = 0 if crowded[config.rank] else LOOKS
    state[S_SPREAD] = not crowded.any()
    state[S_POLLS + config.size :] = [pid_of(segment, r) for r in range(config.size)]
    polls = (
        state[S_POLLS : S_POLLS + config.size].view(np.int32).reshape(config.size, 2)
    )  # struct pollfd: fd; events, revents
    polls[:, 0] = -1  # ignored by poll
    polls[:, 1] = POLLIN
    for rank, descriptor in peers.descriptors.items():
        polls[rank, 0] = descriptor
    return state


def _cpus_word(cpus: set[int]) -> int:
    """Return a word that identifies a set of CPUs; its low 16 bits are their number."""
    return (hash(frozenset(cpus)) & ~_MOST_CPUS) | min(len(cpus), _MOST_CPUS)


def _crowded(config: ShmConfig, segment: Segment) -> NDArray[np.bool_]:
    """Return for every rank whether more ranks than CPUs run on its CPUs.

    Busy waiting there would keep the others from running.
    """
    cpus = segment.words[RANKS + R_CPUS : RANKS + config.size * RANK_WORDS : RANK_WORDS]
    sharing = np.count_nonzero(cpus[:, None] == cpus[None, :], axis=1)
    crowded: NDArray[np.bool_] = sharing > (cpus & _MOST_CPUS)
    return crowded


def pid_of(segment: Segment, rank: int) -> int:
    """Return the process id of a rank that has joined."""
    return int(segment.words[RANKS + rank * RANK_WORDS + R_PID])
