"""Frames in nopython code: all links of a rank are driven at once, without a thread for each.

A collective has two halves: every worker sends one frame up to rank 0, and rank 0 sends one frame down to
every worker. A frame's payload is made of *regions*, one for each rank, that lie anywhere in memory and
travel in the order of ranks. On the link of worker w either w's own region travels (``own``) or those of all
other ranks, since a worker never gets what it sent.

The **state** is one int64 array. Structures of C (iovec, msghdr, pollfd) lie in it as 64-bit Linux has them;
that and the headers' byte order make the engine little-endian.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import errno as codes
import select
import socket
from typing import Final

import numpy as np

from cobre.comm.status import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    CORRUPTED,
    DIVERGED,
    INTERRUPTED,
    LINK_BROKEN,
    PEER_CLOSED,
    PEER_DIED,
    PENDING,
    TIMED_OUT,
)
from cobre.comm.tcp.alarm import GOODBYE, alarm_reason
from cobre.comm.tcp.wire import HEADER_BYTES, HEADER_WORDS, Tag
from cobre.native import inner_kernel, monotonic_ns
from cobre.native.atomics import atomic_load
from cobre.native.libc import errno, poll, sched_yield
from cobre.native.memory import address_of
from cobre.native.signals import signal_handler_raised
from cobre.native.sockets import receive, recvmsg, sendmsg, shutdown

RANK: Final = 0
SIZE: Final = 1
LINKS: Final = 2
SEQUENCE: Final = 3
TIMEOUT_NS: Final = 4
YIELDS: Final = 5
"""How often to try again, letting others run, before sleeping in ``poll``."""
POISONED: Final = 6
SLOT_BYTES: Final = 7
"""Scratch memory for each link."""
BLAMED: Final = 8
THIRD: Final = 9
MODE: Final = 10
"""How the next frame travels: a sum of the three below. Kept here and not passed as an argument, because
Numba compiles a function again for every constant argument."""
FIRST: Final = 11
"""First word of the next frame's header."""
DIGEST: Final = 12
"""Digest in the next frame's header."""
BUSY: Final = 13
"""1 while a thread of this process is in a collective."""
SENDING: Final = 1
OWN: Final = 2
"""On each link only the worker's own region travels; else the regions of all other ranks."""
WHOLE: Final = 4
"""Header and payload may be received at once, since the regions are scratch memory."""
_MESSAGE: Final = 16  # struct msghdr: 7 words
_VECTORS: Final = 24  # struct iovec[]
_VECTOR_COUNT: Final = 64
LINK_TABLE: Final = _VECTORS + 2 * _VECTOR_COUNT

# One entry of the table of links
LINK_WORDS: Final = 15
DESCRIPTOR: Final = 0
PEER: Final = 1
"""Rank at the other end."""
WORKER: Final = 2
"""Rank of whichever end is the worker."""
DONE: Final = 3
"""Bytes of the frame that have travelled, header included."""
TOTAL: Final = 4
REGION: Final = 5
OFFSET: Final = 6
OUT: Final = 7
"""Header to send; while receiving, the one to expect."""
IN: Final = 11

ALARMED: Final = np.int64(-1)
"""Outcome of a transfer that somebody else's alarm ended."""

_FLAGS: Final = np.int32(socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
_PEEK: Final = np.int32(socket.MSG_PEEK)
_BOTH_SIDES: Final = np.int32(socket.SHUT_RDWR)
_SLICE_MS: Final = 100
_CAUSE_SLICE_MS: Final = 5
_CAUSE_SLICES: Final = 400
_MAGIC_AND_VERSION: Final = (1 << 40) - 1
_SOURCE: Final = (1 << 32) - 1
_LOW: Final = (1 << 32) - 1
_NS_PER_MS: Final = 1_000_000

_TAG_OPERATIONS: Final = np.full(256, -1, np.int64)
for _tag, _operation in (
    (Tag.ALLGATHERV_SEND, ALLGATHERV),
    (Tag.ALLGATHERV_RECV, ALLGATHERV),
    (Tag.ALLREDUCE_SEND, ALLREDUCE),
    (Tag.ALLREDUCE_RECV, ALLREDUCE),
    (Tag.BROADCAST, BROADCAST),
    (Tag.BARRIER_READY, BARRIER),
    (Tag.BARRIER_GO, BARRIER),
):
    _TAG_OPERATIONS[_tag] = _operation

_EINTR: Final = codes.EINTR
_EAGAIN: Final = codes.EAGAIN
_EPIPE: Final = codes.EPIPE
_ECONNRESET: Final = codes.ECONNRESET
_POLLIN: Final = select.POLLIN
_POLLOUT: Final = select.POLLOUT
_PASSED_OVER: Final = (1 << 32) - 1  # descriptor -1, which poll ignores


def state_words(size: int, links: int) -> int:
    """Return how many words the state of a rank has."""
    return LINK_TABLE + LINK_WORDS * links + 2 * size + links


@inner_kernel
def region_word(state, rank):
    """Return where the state keeps a rank's region: its address, then its length in bytes."""
    return LINK_TABLE + LINK_WORDS * state[LINKS] + 2 * rank


@inner_kernel
def set_region(state, rank, address, length):
    """Set where a rank's part of the payload is, or goes."""
    word = region_word(state, rank)
    state[word] = address
    state[word + 1] = length


@inner_kernel
def set_frame(state):
    """Prepare every link for a frame by ``MODE``, ``FIRST``, ``DIGEST`` and the regions."""
    sending = state[MODE] & SENDING != 0
    own = state[MODE] & OWN != 0
    total = np.int64(0)
    for rank in range(state[SIZE]):
        total += state[region_word(state, rank) + 1]
    for link in range(state[LINKS]):
        base = LINK_TABLE + link * LINK_WORDS
        worker = state[base + WORKER]
        length = state[region_word(state, worker) + 1]
        if not own:
            length = total - length
        state[base + OUT] = state[FIRST]
        state[base + OUT + 1] = state[SEQUENCE]
        state[base + OUT + 2] = length
        source = state[RANK] if sending else state[base + PEER]
        state[base + OUT + 3] = source | state[DIGEST] << 32
        state[base + DONE] = 0
        state[base + TOTAL] = HEADER_BYTES + length
        state[base + REGION] = worker if own else 0
        state[base + OFFSET] = 0


@inner_kernel
def set_round(state, length, first):
    """Let the next piece of each worker's own payload travel, into the start of its region."""
    for link in range(state[LINKS]):
        base = LINK_TABLE + link * LINK_WORDS
        worker = state[base + WORKER]
        state[region_word(state, worker) + 1] = length
        state[base + DONE] = 0 if first else HEADER_BYTES
        state[base + TOTAL] = HEADER_BYTES + length
        state[base + REGION] = worker
        state[base + OFFSET] = 0


@inner_kernel
def _fill_vectors(state, base):
    """List what a link has still to move; return the number of pieces.

    Without ``WHOLE`` a receiver asks for the header alone first: no payload is written before it is checked.
    """
    sending = state[MODE] & SENDING != 0
    own = state[MODE] & OWN != 0
    count = 0
    done = state[base + DONE]
    if done < HEADER_BYTES:
        state[_VECTORS] = address_of(state, base + (OUT if sending else IN)) + done
        state[_VECTORS + 1] = HEADER_BYTES - done
        count = 1
        if state[MODE] & (SENDING | WHOLE) == 0:
            return count
    worker = state[base + WORKER]
    rank = state[base + REGION]
    offset = state[base + OFFSET]
    stop = worker + 1 if own else state[SIZE]
    while rank < stop and count < _VECTOR_COUNT:
        word = region_word(state, rank)
        length = state[word + 1] - offset
        if length > 0 and (own or rank != worker):
            address = state[word] + offset
            last = _VECTORS + 2 * (count - 1)
            if count > 0 and state[last] + state[last + 1] == address:
                state[last + 1] += length
            else:
                state[last + 2] = address
                state[last + 3] = length
                count += 1
        rank += 1
        offset = 0
    return count


@inner_kernel
def _advance(state, base, moved):
    """Count bytes that have travelled on a link."""
    own = state[MODE] & OWN != 0
    done = state[base + DONE]
    state[base + DONE] = done + moved
    if done < HEADER_BYTES:
        moved -= min(moved, HEADER_BYTES - done)
    worker = state[base + WORKER]
    while moved > 0:
        rank = state[base + REGION]
        left = state[region_word(state, rank) + 1] - state[base + OFFSET]
        if not own and rank == worker:
            left = 0
        if moved < left:
            state[base + OFFSET] += moved
            moved = 0
        else:
            moved -= left
            state[base + REGION] = rank + 1
            state[base + OFFSET] = 0


@inner_kernel
def _check_header(state, base):
    """Compare a header with what this call expects (COM-42); return 0 or a reason."""
    same = True
    for word in range(HEADER_WORDS):
        same = same and state[base + IN + word] == state[base + OUT + word]
    if same:
        return np.int64(0)
    first = state[base + IN]
    state[BLAMED] = state[base + PEER]
    state[THIRD] = _TAG_OPERATIONS[(first >> 40) & 255]
    if (first ^ state[base + OUT]) & _MAGIC_AND_VERSION != 0 or state[THIRD] < 0:
        return CORRUPTED
    if (state[base + IN + 3] ^ state[base + OUT + 3]) & _SOURCE != 0:
        return CORRUPTED
    return DIVERGED


@inner_kernel
def _move(state, base):
    """Let a link move what it can now; return what C returned."""
    for word in range(7):
        state[_MESSAGE + word] = 0
    count = _fill_vectors(state, base)
    state[_MESSAGE + 2] = address_of(state, _VECTORS)
    state[_MESSAGE + 3] = count
    descriptor = np.int32(state[base + DESCRIPTOR])
    if state[MODE] & SENDING != 0:
        return sendmsg(descriptor, address_of(state, _MESSAGE), _FLAGS)
    return recvmsg(descriptor, address_of(state, _MESSAGE), _FLAGS)


@inner_kernel
def _cause(state, alarm, link):
    """Return why a link is closed: its peer's watcher reports it on the control link, or is gone as well."""
    state[BLAMED] = state[LINK_TABLE + link * LINK_WORDS + PEER]
    for _ in range(_CAUSE_SLICES):
        closed = atomic_load(alarm, GOODBYE + link) != 0  # first: a peer reports a failure before it closes
        if alarm_reason(alarm) != 0:
            return ALARMED
        if closed:
            return PEER_CLOSED
        poll(0, 0, np.int32(_CAUSE_SLICE_MS))
    return PEER_DIED


@inner_kernel
def _await_links(state, milliseconds):
    """Wait until a link that has something to move can; return what C returned.

    What poll reports of a link is then in its entry, at the place of the link: all others stay untouched, so
    that rank 0's work grows with the links that have something to do and not with those that wait.
    """
    polls = region_word(state, state[SIZE])
    events = _POLLOUT if state[MODE] & SENDING != 0 else _POLLIN
    for link in range(state[LINKS]):
        base = LINK_TABLE + link * LINK_WORDS
        unfinished = state[base + DONE] < state[base + TOTAL]
        descriptor = state[base + DESCRIPTOR] if unfinished else np.int64(_PASSED_OVER)
        state[polls + link] = descriptor | events << 32
    return poll(address_of(state, polls), state[LINKS], np.int32(milliseconds))


@inner_kernel
def _late(state):
    """Return the rank of the first link that has something to move."""
    for link in range(state[LINKS]):
        base = LINK_TABLE + link * LINK_WORDS
        if state[base + DONE] < state[base + TOTAL]:
            return state[base + PEER]
    return np.int64(-1)


@inner_kernel
def _closed_receiver(state, alarm):
    """Return a peer that has closed and to which there is something to send, or -1.

    It will never take it: a rank that closes has received all frames of the collectives that it took part in.
    """
    for link in range(state[LINKS]):
        base = LINK_TABLE + link * LINK_WORDS
        if state[base + DONE] < state[base + TOTAL] and atomic_load(alarm, GOODBYE + link) != 0:
            return state[base + PEER]
    return np.int64(-1)


@inner_kernel
def withdrawal(state, alarm):
    """Return why rank 0 must not answer although all have arrived: ``ALARMED`` or a reason; 0 if it may.

    A worker that has arrived sends nothing more before it is answered. If anything follows, even the end of
    the connection, it has given up since (:func:`withdraw`), and rank 0 must not complete the collective.
    """
    polls = region_word(state, state[SIZE])
    for link in range(state[LINKS]):
        state[polls + link] = state[LINK_TABLE + link * LINK_WORDS + DESCRIPTOR] | _POLLIN << 32
    if poll(address_of(state, polls), state[LINKS], np.int32(0)) > 0:
        for link in range(state[LINKS]):
            if state[polls + link] >> 48 != 0:
                base = LINK_TABLE + link * LINK_WORDS
                descriptor = np.int32(state[base + DESCRIPTOR])
                if receive(descriptor, address_of(state, base + IN), 1, _FLAGS | _PEEK) > 0:
                    state[BLAMED] = state[base + PEER]
                    return CORRUPTED
                return _cause(state, alarm, link)
    return np.int64(0) if alarm_reason(alarm) == 0 else ALARMED


@inner_kernel
def withdraw(state):
    """Let rank 0 detect, however late it arrives, that this worker no longer takes part.

    The watcher sends the reason, but perhaps only after this rank has returned from the collective.
    """
    if state[RANK] != 0:
        shutdown(np.int32(state[LINK_TABLE + DESCRIPTOR]), _BOTH_SIDES)


@inner_kernel
def transfer(state, alarm, detail):
    """Move every link's frame; return 0, ``ALARMED``, or a reason, with ``BLAMED`` and ``THIRD`` set.

    Parameters
    ----------
    state, alarm
        Prepared by :func:`set_frame` or :func:`set_round`.
    detail
        The detail record; keeps the exception of a signal handler.
    """
    sending = state[MODE] & SENDING != 0
    several = state[LINKS] > 1
    reports = region_word(state, state[SIZE])
    reported = several and not sending  # whether poll has reported which links can move
    if reported:
        _await_links(state, 0)
    idle = 0
    deadline = np.int64(0)
    while True:
        moved = False
        waiting = False
        for link in range(state[LINKS]):
            base = LINK_TABLE + link * LINK_WORDS
            done = state[base + DONE]
            if done >= state[base + TOTAL]:
                continue
            if reported and state[reports + link] >> 48 == 0:
                waiting = True
                continue
            outcome = _move(state, base)
            if outcome > 0:
                moved = True
                _advance(state, base, outcome)
                if not sending and done < HEADER_BYTES and state[base + DONE] >= HEADER_BYTES:
                    fault = _check_header(state, base)
                    if fault != 0:
                        return fault
            elif outcome == 0:
                return _cause(state, alarm, link)
            else:
                code = errno()
                if code in (_EPIPE, _ECONNRESET):
                    return _cause(state, alarm, link)
                if code not in (_EAGAIN, _EINTR):
                    state[BLAMED] = state[base + PEER]
                    state[THIRD] = code
                    return LINK_BROKEN
            waiting = waiting or state[base + DONE] < state[base + TOTAL]
        if not waiting:
            return np.int64(0)
        if moved:
            deadline = 0
            if not several:  # a single link is simply tried again
                idle = 0
                continue
        idle += 1
        if idle <= state[YIELDS]:
            if several:
                reported = True
                if _await_links(state, 0) > 0:
                    continue
            sched_yield()
            continue
        closed = _closed_receiver(state, alarm) if sending else np.int64(-1)
        if alarm_reason(alarm) != 0:
            return ALARMED
        if closed >= 0:
            state[BLAMED] = closed
            return PEER_CLOSED
        reported = several
        if _await_links(state, _SLICE_MS) > 0:
            continue
        # a signal, or nothing for a while; a signal that arrived while this thread was awake shows here
        if signal_handler_raised(detail, PENDING):
            state[BLAMED] = state[RANK]
            return INTERRUPTED
        now = monotonic_ns()
        if deadline == 0:
            deadline = now + state[TIMEOUT_NS] - _SLICE_MS * _NS_PER_MS
        elif now > deadline:
            state[BLAMED] = _late(state)
            state[THIRD] = state[TIMEOUT_NS] // _NS_PER_MS
            return TIMED_OUT


@inner_kernel
def digest_word(digest, value):
    """Mix a number into a 32-bit digest (FNV-1a over its halves)."""
    digest = ((digest ^ (value & _LOW)) * 16777619) & _LOW
    return ((digest ^ ((value >> 32) & _LOW)) * 16777619) & _LOW
