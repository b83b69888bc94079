"""Meetings of all ranks in the control segment of the shm backend, in nopython code.

A *meeting* is a barrier at which every rank states the operation it called. Each rank writes one word into a
line of its own, the number of the meeting and a descriptor of the operation, and waits until the lines of all
others show the same number. If ranks called different operations, all of them see it (COM-42).

There is no common counter of arrivals: no two ranks write the same cache line, small payloads travel in the
line of the arrival, and a rank that gives up leaves no wrong count behind.

Lines and slots alternate between two halves, by the parity of the meeting (SHM-09): what a rank wrote for
meeting k is overwritten for meeting k + 2, which cannot begin before all ranks have arrived at meeting k + 1;
by then each has read everything of meeting k. So one meeting is enough for a collective.

A rank waits by polling, then by yielding, then by sleeping on the generation word until a rank that finds all
others arrived wakes it. It sleeps in slices, between which it checks whether a peer has died (SHM-03). With
more ranks than CPUs it yields at once: polling would keep the others from running.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import errno as error_codes
from typing import Final

import numpy as np

from cobre.comm.checks import fail
from cobre.comm.shm.layout import (
    A_ARRIVAL,
    A_PAYLOAD,
    ABORT,
    ARRIVALS,
    GENERATION,
    LINE,
    POLLIN,
    RANK_WORDS,
    S_DATA_OFFSET,
    S_LOOKS,
    S_POISONED,
    S_POLLS,
    S_RANK,
    S_SEQUENCE,
    S_SIZE,
    S_SLOT_BYTES,
    S_TIMEOUT_NS,
    S_TIMESPEC,
    SLEEPERS,
    WORD_BYTES,
)
from cobre.comm.status import (
    COLLECTIVE_FAILED,
    DIVERGED,
    INTERRUPTED,
    INVALID_COMMUNICATOR,
    OK,
    PEER_DIED,
    PEER_INTERRUPTED,
    PENDING,
    TIMED_OUT,
)
from cobre.native import atomic_fetch_add, inner_kernel, monotonic_ns
from cobre.native.atomics import (
    atomic_compare_exchange,
    atomic_fence,
    atomic_load,
    atomic_load_ordered,
    atomic_store,
    cpu_pause,
    prefetch_to_write,
)
from cobre.native.libc import futex_wait, futex_wake, poll, sched_yield
from cobre.native.memory import address_of
from cobre.native.signals import signal_handler_raised

_QUICK_LOOKS: Final = 100
"""Polls without a pause: a pause takes longer than a write needs to reach another core."""
_YIELDS: Final = 100
"""Yields before it sleeps."""
_SLICE_NS: Final = np.int64(100_000_000)
"""How long it sleeps before it checks for dead peers."""
_EINTR: Final = np.int32(error_codes.EINTR)

# FNV-1a. Unsigned: Numba lets LLVM assume that signed products do not overflow.
DIGEST_START: Final = np.uint64(14695981039346656037)
_DIGEST_FACTOR: Final = np.uint64(1099511628211)
_DIGEST_FOLD: Final = np.uint64(29)
_BITS_HEAD: Final = np.uint64(24)
_MASK_SEQUENCE: Final = np.int64(255)
_MASK_PEER: Final = np.int64(2**24 - 1)
_LARGEST_THIRD: Final = np.int64(2**31 - 1)


@inner_kernel
def mix(digest, value):
    """Return a digest that also covers one more number."""
    return (digest ^ np.uint64(value)) * _DIGEST_FACTOR


@inner_kernel
def describe(operation, number, digest):
    """Pack operation and dtype, to be named in a message, and a digest of the other arguments.

    The lowest byte stays free, for the number of the meeting.
    """
    spread = np.int64((digest ^ (digest >> _DIGEST_FOLD)) << _BITS_HEAD)
    return (np.int64(operation) << 8) | (np.int64(number) << 16) | spread


@inner_kernel
def operation_of(descriptor):
    """Return the operation of a descriptor."""
    return (descriptor >> 8) & 255


@inner_kernel
def _same_meeting(arrival, expected):
    """Whether an arrival is at the expected meeting; until then its line shows an older one."""
    return (arrival ^ expected) & _MASK_SEQUENCE == 0


@inner_kernel
def give_up(state, words, operation, reason, peer, third):
    """Poison this communicator and publish the reason to the other ranks; return the status."""
    told = reason
    culprit = peer
    if reason == INTERRUPTED:
        told, culprit = PEER_INTERRUPTED, state[S_RANK]
    spare = min(np.int64(third), _LARGEST_THIRD)
    word = np.int64(told) | ((np.int64(culprit) + 1) << 8) | (spare << 32)
    atomic_compare_exchange(words, ABORT, 0, word)  # the first failure counts
    atomic_fetch_add(words, GENERATION, 1)
    futex_wake(words, GENERATION)
    state[S_POISONED] = 1
    state[4] = third
    return fail(state, COLLECTIVE_FAILED, operation, 0, peer, reason)


@inner_kernel
def _heed_abort(state, words, operation):
    """Return the failure that another rank has published, or OK."""
    word = atomic_load_ordered(words, ABORT)
    if word == 0:
        return OK
    state[S_POISONED] = 1
    state[4] = word >> 32
    return fail(state, COLLECTIVE_FAILED, operation, 0, ((word >> 8) & _MASK_PEER) - 1, word & 255)


@inner_kernel
def _dead_peer(state):
    """Return a rank whose process has ended, or -1. A zombie has ended too."""
    size = state[S_SIZE]
    if poll(address_of(state, S_POLLS), size, 0) > 0:
        for r in range(size):
            if (state[S_POLLS + r] >> 48) & POLLIN:
                return r
    return np.int64(-1)


@inner_kernel
def _sleep_until(state, words, place, expected, peer):
    """Sleep until a peer's line shows the meeting; return a status, and whether it was missing at first."""
    operation = operation_of(expected)
    began = monotonic_ns()
    outcome = OK
    missed = False
    atomic_fetch_add(words, SLEEPERS, 1)
    while True:
        # The generation first: an arrival after the second load changes it, and the futex does not sleep.
        generation = atomic_load_ordered(words, GENERATION)
        if _same_meeting(atomic_load_ordered(words, place), expected):
            break
        missed = True
        outcome = _heed_abort(state, words, operation)
        if outcome != OK:
            break
        error = futex_wait(words, GENERATION, generation, _SLICE_NS, state, S_TIMESPEC)
        if error == 0:
            continue
        if error == _EINTR and signal_handler_raised(state, PENDING):
            outcome = give_up(state, words, operation, INTERRUPTED, -1, 0)
            break
        dead = _dead_peer(state)
        if _same_meeting(atomic_load_ordered(words, place), expected):  # it arrived, and ended after that
            break
        if dead >= 0:
            # A rank that gave up has published the reason before it ended, and is not the one to name.
            outcome = _heed_abort(state, words, operation)
            if outcome == OK:
                outcome = give_up(state, words, operation, PEER_DIED, dead, 0)
            break
        waited = monotonic_ns() - began
        if waited > state[S_TIMEOUT_NS]:
            outcome = give_up(state, words, operation, TIMED_OUT, peer, waited // 1_000_000)
            break
    atomic_fetch_add(words, SLEEPERS, -1)
    return outcome, missed


@inner_kernel
def arrive(state, words, descriptor):
    """Publish the arrival of this rank, after its payload is written."""
    sequence = state[S_SEQUENCE] + 1
    state[S_SEQUENCE] = sequence
    line = ARRIVALS + (sequence & 1) * LINE + state[S_RANK] * RANK_WORDS
    atomic_store(words, line + A_ARRIVAL, descriptor | (sequence & _MASK_SEQUENCE))


@inner_kernel
def await_all(state, words, descriptor):
    """Wait until all ranks have arrived with the same descriptor; return a status."""
    sequence, size, looks = state[S_SEQUENCE], state[S_SIZE], state[S_LOOKS]
    expected = descriptor | (sequence & _MASK_SEQUENCE)
    first = ARRIVALS + (sequence & 1) * LINE + A_ARRIVAL
    different = np.int64(0)
    tries = 0
    slept = False
    for r in range(size):
        place = first + r * RANK_WORDS
        arrival = atomic_load(words, place)
        while not _same_meeting(arrival, expected):
            tries += 1
            if tries <= looks:
                if tries > _QUICK_LOOKS:
                    cpu_pause()
            elif tries <= looks + _YIELDS:
                sched_yield()
            else:
                outcome, missed = _sleep_until(state, words, place, expected, r)
                slept = slept or missed
                if outcome != OK:
                    return outcome
            arrival = atomic_load(words, place)
        different |= arrival ^ expected
    if not slept:
        _wake_sleepers(words)
    # The peers have read this rank's line of the previous meeting and do not poll it yet for the next one:
    # it can be fetched back for writing without contention.
    prefetch_to_write(words, ARRIVALS + (~sequence & 1) * LINE + state[S_RANK] * RANK_WORDS + A_ARRIVAL)
    if different != 0:
        return _diverged(state, words, first, expected)
    if atomic_load(words, ABORT) != 0:  # one arrived and then gave up
        return _heed_abort(state, words, operation_of(descriptor))
    return OK


@inner_kernel
def _wake_sleepers(words):
    """Wake sleeping ranks; called by every rank that has seen all others arrive and did not sleep itself.

    Between its arrival and this check for sleepers each rank passes a fence: the one below or, if it
    slept, its entry among the sleepers. Fences have one order. A sleeper that missed a peer entered before
    the peer's fence; so the rank whose fence is last has missed no peer, calls this, and sees all sleepers.
    Waking a sleeper twice is harmless.
    """
    atomic_fence()
    if atomic_load_ordered(words, SLEEPERS) != 0:
        atomic_fetch_add(words, GENERATION, 1)
        futex_wake(words, GENERATION)


@inner_kernel
def _diverged(state, words, first, expected):
    """Give up because a rank called another operation; return a status."""
    r = 0
    while words[first + r * RANK_WORDS] == expected:
        r += 1
    theirs = operation_of(words[first + r * RANK_WORDS])
    return give_up(state, words, operation_of(expected), DIVERGED, r, theirs)


@inner_kernel
def usable(state, operation):
    """Refuse a communicator that is broken or closed; a status (COM-43)."""
    if state[S_POISONED] != 0:
        return fail(state, INVALID_COMMUNICATOR, operation, 0, 0, 0)
    return OK


@inner_kernel
def payload_place(state, small):
    """Return offset and stride, in bytes, of the ranks' payloads at the next meeting."""
    parity = (state[S_SEQUENCE] + 1) & 1
    if small:
        return (ARRIVALS + parity * LINE + A_PAYLOAD) * WORD_BYTES, np.int64(RANK_WORDS * WORD_BYTES)
    slot = state[S_SLOT_BYTES]
    return state[S_DATA_OFFSET] + parity * state[S_SIZE] * slot, slot
