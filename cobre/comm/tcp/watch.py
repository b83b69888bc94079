"""The watcher: a thread of every rank that distinguishes slow peers from dead ones (TCP-11, 10.7).

Each worker has a second connection to rank 0, for control. The watcher sends heartbeats on it, listens, and
raises the alarm when the other end is closed or silent. It runs nopython code without the GIL, so that a rank
that computes, compiles or holds the GIL for minutes still counts as alive, and one that is killed, stopped or
cut off does not. Rank 0's watcher forwards every alarm, with the rank to blame, to all workers.

To wake a kernel that waits for a dead peer, the watcher shuts down the data connections.

It also closes the communicator (TCP-12). A rank that closes announces it, ends its side of the data
connections and is watched as before. When all have announced it, rank 0 sends the final shutdown frame and
all ranks leave; a rank that dies before that is detected and named like one that dies in a collective.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import errno as codes
import os
import select
import signal
import socket
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.comm.status import CLOSE as CLOSE_OPERATION
from cobre.comm.status import (
    CORRUPTED,
    DIVERGED,
    LINK_BROKEN,
    PEER_CLOSED,
    PEER_DIED,
    PEER_FAILED,
    PEER_SILENT,
    TIMED_OUT,
)
from cobre.comm.tcp.alarm import (
    ABORT,
    BLAMED,
    CLOSE,
    EXIT_CODE,
    FAIL,
    GOODBYE,
    OPERATION,
    REQUEST,
    STOP,
    THIRD,
    alarm_reason,
    new_alarm,
    raise_alarm,
)
from cobre.comm.tcp.wire import HEADER_BYTES, Tag, first_word
from cobre.native import compile_for, inner_kernel, monotonic_ns
from cobre.native.atomics import atomic_load, atomic_store
from cobre.native.libc import errno, poll
from cobre.native.memory import address_of
from cobre.native.sockets import eventfd_read, exit_process, get_option, receive, send, shutdown

_RANK: Final = 0
_LINKS: Final = 1
_INTERVAL_NS: Final = 2
_SILENCE_NS: Final = 3
_WAKE: Final = 4
_EVENT: Final = 5  # what an eventfd is read into
_TOLD: Final = 6
_TEACHER: Final = 7  # the link on which the alarm arrived, to which it is not sent back; -1 for none
_FRAME: Final = 8  # the header to send
_CLOSE_NS: Final = 12  # how long to wait for the others at the end
_DEADLINE: Final = 13  # until when; 0 before this rank closes
_INFO: Final = 14  # start of struct tcp_info
_INFO_LENGTH: Final = 15
_LINK_TABLE: Final = 16

_LINK_WORDS: Final = 11
_CONTROL: Final = 0
_DATA: Final = 1
_PEER: Final = 2
_PHASE: Final = 3
_HEARD_NS: Final = 4
_FILLED: Final = 5  # bytes of the header that have arrived
_HEADER: Final = 6
_STALLED_NS: Final = 10  # since when the data connection retransmits without acknowledgement; 0: it does not

_OPEN: Final = 0
_CLOSING: Final = 1  # the peer has announced that it closes, and waits for the others
_LEAVING: Final = 2  # the peer has sent the final shutdown frame: its silence and its end are expected
_GONE: Final = 3

_FLAGS: Final = np.int32(socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
_EAGAIN: Final = codes.EAGAIN
_EINTR: Final = codes.EINTR
_ETIMEDOUT: Final = codes.ETIMEDOUT
_TCP: Final = np.int32(socket.IPPROTO_TCP)
_TCP_INFO: Final = np.int32(socket.TCP_INFO)
_INFO_BYTES: Final = 8
_RETRANSMITS_SHIFT: Final = 16  # the third byte counts timeouts since the last acknowledgement
_POLLIN: Final = select.POLLIN
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_LINGER_NS: Final = 1_000_000_000
_LONGEST_NS: Final = 2**62
_SEND_SIDE: Final = np.int32(socket.SHUT_WR)
_BOTH_SIDES: Final = np.int32(socket.SHUT_RDWR)

_HEARTBEAT: Final = np.int64(first_word(Tag.HEARTBEAT, 0, 0))
_SHUTDOWN: Final = np.int64(first_word(Tag.SHUTDOWN, 0, 0))
_WILL_SHUT_DOWN: Final = np.int64(first_word(Tag.SHUTDOWN, 1, 0))
_ABORT: Final = np.int64(first_word(Tag.ABORT, 0, 0))
_ERROR: Final = np.int64(first_word(Tag.ERROR, 0, 0))
_OP_SHIFT: Final = 48
_OP_BITS: Final = np.int64(0xFF << _OP_SHIFT)
_LOW: Final = (1 << 32) - 1


@inner_kernel
def _send_frame(watch, link, first, sequence, source):
    """Send a header without payload, unless the peer has left.

    The socket's buffer has room for thousands of them. A full one belongs to a peer that reads nothing, which
    is then detected by its silence.
    """
    base = _LINK_TABLE + link * _LINK_WORDS
    if watch[base + _PHASE] > _CLOSING:
        return
    watch[_FRAME] = first
    watch[_FRAME + 1] = sequence
    watch[_FRAME + 2] = 0
    watch[_FRAME + 3] = source
    descriptor = np.int32(watch[base + _CONTROL])
    sent = send(descriptor, address_of(watch, _FRAME), HEADER_BYTES, _FLAGS)
    if 0 < sent < HEADER_BYTES:  # a frame cut in two cannot be repaired
        shutdown(descriptor, _BOTH_SIDES)


@inner_kernel
def _tell(watch, alarm):
    """Pass an alarm on to the peers and wake the own kernel, once."""
    reason = alarm_reason(alarm)
    if reason == 0 or watch[_TOLD] != 0:
        return
    watch[_TOLD] = 1
    for link in range(watch[_LINKS]):
        base = _LINK_TABLE + link * _LINK_WORDS
        told, blamed, third = reason, alarm[BLAMED], alarm[THIRD]
        if blamed == watch[base + _PEER] and reason in (DIVERGED, PEER_CLOSED):
            # each of the two gets the operation of the other
            told, blamed, third = np.int64(DIVERGED), watch[_RANK], alarm[OPERATION]
        elif reason == DIVERGED and watch[_DEADLINE] != 0:  # it is this rank that does something else
            told, blamed, third = np.int64(PEER_CLOSED), watch[_RANK], np.int64(0)
        if link != watch[_TEACHER]:
            _send_frame(watch, link, _ERROR | told << _OP_SHIFT, third, blamed & _LOW)
    for link in range(watch[_LINKS]):
        shutdown(np.int32(watch[_LINK_TABLE + link * _LINK_WORDS + _DATA]), _BOTH_SIDES)


@inner_kernel
def _linger(watch):
    """End what this rank sends and wait, for a moment, until the peers have read it and closed as well."""
    for link in range(watch[_LINKS]):
        base = _LINK_TABLE + link * _LINK_WORDS
        if watch[base + _PHASE] != _GONE:
            shutdown(np.int32(watch[base + _CONTROL]), _SEND_SIDE)
    polls = _LINK_TABLE + watch[_LINKS] * _LINK_WORDS
    deadline = monotonic_ns() + _LINGER_NS
    while True:
        count = 0
        for link in range(watch[_LINKS]):
            base = _LINK_TABLE + link * _LINK_WORDS
            while watch[base + _PHASE] != _GONE:
                descriptor = np.int32(watch[base + _CONTROL])
                got = receive(descriptor, address_of(watch, base + _HEADER), HEADER_BYTES, _FLAGS)
                if got > 0:
                    continue
                code = errno()
                if got < 0 and code == _EINTR:
                    continue
                if got < 0 and code == _EAGAIN:
                    watch[polls + count] = watch[base + _CONTROL] | _POLLIN << 32
                    count += 1
                    break
                watch[base + _PHASE] = _GONE
        left = deadline - monotonic_ns()
        if count == 0 or left <= 0:
            return
        poll(address_of(watch, polls), count, np.int32(left // _NS_PER_MS + 1))


@inner_kernel
def _abort(watch, code, teacher):
    """Send the peers an Abort frame and end this process, whatever its other threads do (COM-02)."""
    for link in range(watch[_LINKS]):
        if link != teacher:
            _send_frame(watch, link, _ABORT, code, watch[_RANK])
    _linger(watch)
    exit_process(np.int32(code))


@inner_kernel
def _handle(watch, alarm, link):
    """Do what a frame on the control link asks for."""
    base = _LINK_TABLE + link * _LINK_WORDS
    peer = watch[base + _PEER]
    first = watch[base + _HEADER]
    sequence = watch[base + _HEADER + 1]
    source = watch[base + _HEADER + 3] & _LOW
    empty = watch[base + _HEADER + 2] == 0
    if empty and source == peer and first == _HEARTBEAT:
        return
    if empty and source == peer and first == _WILL_SHUT_DOWN:
        watch[base + _PHASE] = _CLOSING
        atomic_store(alarm, GOODBYE + link, np.int64(1))
    elif empty and source == peer and first == _SHUTDOWN:
        watch[base + _PHASE] = _LEAVING
        atomic_store(alarm, GOODBYE + link, np.int64(1))
        shutdown(np.int32(watch[base + _CONTROL]), _SEND_SIDE)
    elif empty and source == peer and first == _ABORT:
        _abort(watch, sequence, link)
    elif empty and first & ~_OP_BITS == _ERROR:
        reason = (first & _OP_BITS) >> _OP_SHIFT
        if reason < PEER_DIED or reason > LINK_BROKEN:
            reason = PEER_FAILED
        if alarm_reason(alarm) == 0:
            watch[_TEACHER] = link
        raise_alarm(alarm, reason, np.int64(-1) if source == _LOW else source, sequence, -1)
    else:
        raise_alarm(alarm, CORRUPTED, peer, 0, -1)
        shutdown(np.int32(watch[base + _CONTROL]), _BOTH_SIDES)
        watch[base + _PHASE] = _GONE


@inner_kernel
def _listen(watch, alarm, link, now):
    """Read what has arrived on a control link."""
    base = _LINK_TABLE + link * _LINK_WORDS
    while watch[base + _PHASE] != _GONE:
        filled = watch[base + _FILLED]
        place = address_of(watch, base + _HEADER) + filled
        got = receive(np.int32(watch[base + _CONTROL]), place, HEADER_BYTES - filled, _FLAGS)
        if got > 0:
            watch[base + _HEARD_NS] = now
            watch[base + _FILLED] = (filled + got) % HEADER_BYTES
            if filled + got == HEADER_BYTES:
                _handle(watch, alarm, link)
            continue
        if got < 0:
            code = errno()
            if code == _EINTR:
                continue
            if code == _EAGAIN:
                return
        if watch[base + _PHASE] <= _CLOSING:
            raise_alarm(alarm, PEER_DIED, watch[base + _PEER], 0, -1)
        watch[base + _PHASE] = _GONE


@inner_kernel
def _check_data(watch, alarm, link, now):
    """Raise the alarm when nothing of what a data connection sent has been acknowledged for too long.

    The peer lives, as its heartbeats show, but the network has lost this connection. A peer that is merely
    slow to read still acknowledges what it has received, and raises no alarm.
    """
    base = _LINK_TABLE + link * _LINK_WORDS
    watch[_INFO] = 0
    watch[_INFO_LENGTH] = _INFO_BYTES
    descriptor = np.int32(watch[base + _DATA])
    get_option(descriptor, _TCP, _TCP_INFO, address_of(watch, _INFO), address_of(watch, _INFO_LENGTH))
    if (watch[_INFO] >> _RETRANSMITS_SHIFT) & 255 == 0:
        watch[base + _STALLED_NS] = 0
    elif watch[base + _STALLED_NS] == 0:
        watch[base + _STALLED_NS] = now
    elif now - watch[base + _STALLED_NS] > watch[_SILENCE_NS]:
        raise_alarm(alarm, LINK_BROKEN, watch[base + _PEER], _ETIMEDOUT, -1)


@inner_kernel
def _rest(watch, until):
    """Sleep until a frame arrives, the owner or the kernel calls, or the given time."""
    polls = _LINK_TABLE + watch[_LINKS] * _LINK_WORDS
    watch[polls] = watch[_WAKE] | _POLLIN << 32
    count = 1
    for link in range(watch[_LINKS]):
        base = _LINK_TABLE + link * _LINK_WORDS
        if watch[base + _PHASE] != _GONE:
            watch[polls + count] = watch[base + _CONTROL] | _POLLIN << 32
            count += 1
    milliseconds = (until - monotonic_ns()) // _NS_PER_MS + 1
    poll(address_of(watch, polls), count, np.int32(max(milliseconds, 0)))
    eventfd_read(np.int32(watch[_WAKE]), address_of(watch, _EVENT))


@inner_kernel
def _begin_close(watch, now):
    """Announce to the peers that this rank closes; the data links end next."""
    watch[_DEADLINE] = now + watch[_CLOSE_NS]
    for link in range(watch[_LINKS]):
        _send_frame(watch, link, _WILL_SHUT_DOWN, 0, watch[_RANK])
        shutdown(np.int32(watch[_LINK_TABLE + link * _LINK_WORDS + _DATA]), _SEND_SIDE)


@inner_kernel
def _awaited(watch):
    """Return a peer whose shutdown frame this rank still needs before it may leave, or -1.

    Rank 0 waits until all workers close, and the workers until rank 0 sends the final frame.
    """
    for link in range(watch[_LINKS]):
        base = _LINK_TABLE + link * _LINK_WORDS
        phase = watch[base + _PHASE]
        if phase == _OPEN or (phase == _CLOSING and watch[_RANK] != 0):
            return watch[base + _PEER]
    return np.int64(-1)


@inner_kernel
def _may_leave(watch, alarm, request, now):
    """Whether the owner's request is fulfilled; raises the alarm when a close has waited too long."""
    if request != CLOSE:
        return request in (STOP, FAIL)
    peer = _awaited(watch)
    if peer >= 0 and now > watch[_DEADLINE]:
        raise_alarm(alarm, TIMED_OUT, peer, watch[_CLOSE_NS] // _NS_PER_MS, CLOSE_OPERATION)
        _tell(watch, alarm)
    return peer < 0 or alarm_reason(alarm) != 0


@njit(cache=True, nogil=True)
def _run(watch, alarm):
    """Watch until the owner requests the stop."""
    now = monotonic_ns()
    beat = now
    for link in range(watch[_LINKS]):
        watch[_LINK_TABLE + link * _LINK_WORDS + _HEARD_NS] = now
    while True:
        last = now
        _rest(watch, min(beat, watch[_DEADLINE]) if watch[_DEADLINE] != 0 else beat)
        now = monotonic_ns()
        late = now - last > watch[_SILENCE_NS] // 2  # this process was stopped: no peer was silent
        for link in range(watch[_LINKS]):
            base = _LINK_TABLE + link * _LINK_WORDS
            if late:
                watch[base + _HEARD_NS] = now
                watch[base + _STALLED_NS] = 0
            _listen(watch, alarm, link, now)
            silent = now - watch[base + _HEARD_NS] > watch[_SILENCE_NS]
            if silent and watch[base + _PHASE] <= _CLOSING:
                raise_alarm(alarm, PEER_SILENT, watch[base + _PEER], 0, -1)
        request = atomic_load(alarm, REQUEST)
        if request == ABORT:
            _abort(watch, alarm[EXIT_CODE], -1)
        if request == FAIL:
            raise_alarm(alarm, PEER_FAILED, watch[_RANK], 0, -1)
        if request == CLOSE and watch[_DEADLINE] == 0:
            _begin_close(watch, now)
        _tell(watch, alarm)
        if _may_leave(watch, alarm, request, now):
            for link in range(watch[_LINKS]):
                _send_frame(watch, link, _SHUTDOWN, 0, watch[_RANK])
            _linger(watch)
            return
        if now >= beat:
            beat = now + watch[_INTERVAL_NS]
            for link in range(watch[_LINKS]):
                _check_data(watch, alarm, link, now)
                _send_frame(watch, link, _HEARTBEAT, 0, watch[_RANK])


class Link(NamedTuple):
    """One peer's connections."""

    peer: int
    data: socket.socket
    control: socket.socket


def nanoseconds(seconds: float) -> int:
    """Return a time in ns for the kernels, capped so that it fits their integers."""
    return int(min(seconds * _NS_PER_S, _LONGEST_NS))


def compile_watcher() -> None:
    """Compile the watcher, or load it; done before any peer could wait for heartbeats."""
    words = np.zeros(1, np.int64)
    compile_for(_run, "comm-tcp-watcher", words, words)


class Watcher:
    """The watching thread of one rank.

    Parameters
    ----------
    rank
        This process's rank.
    links
        Connections to the peers; the caller closes them after :meth:`stop`.
    heartbeat_s
        How often to give a sign of life.
    silence_s
        How long a peer may give none before it is taken for dead.
    timeout_s
        How long a close may wait for peers that are alive.

    Attributes
    ----------
    alarm
        The words shared with the kernel (:mod:`cobre.comm.tcp.alarm`).
    """

    def __init__(
        self, rank: int, links: Sequence[Link], heartbeat_s: float, silence_s: float, timeout_s: float
    ) -> None:
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.alarm: NDArray[np.int64] = new_alarm(len(links), self._wake)
        self._words = np.zeros(_LINK_TABLE + _LINK_WORDS * len(links) + len(links) + 1, np.int64)
        self._words[_RANK] = rank
        self._words[_LINKS] = len(links)
        self._words[_INTERVAL_NS] = int(heartbeat_s * _NS_PER_S)
        self._words[_SILENCE_NS] = int(silence_s * _NS_PER_S)
        self._words[_CLOSE_NS] = nanoseconds(timeout_s)
        self._words[_WAKE] = self._wake
        self._words[_TEACHER] = -1
        for index, link in enumerate(links):
            base = _LINK_TABLE + _LINK_WORDS * index
            self._words[base + _CONTROL] = link.control.fileno()
            self._words[base + _DATA] = link.data.fileno()
            self._words[base + _PEER] = link.peer
        self._ended = threading.Event()
        # a daemon: an interpreter that ends without close must not wait for it
        self._thread = threading.Thread(target=self._watch, name=f"cobre-tcp-watcher-{rank}", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        try:
            _run(self._words, self.alarm)
        finally:
            self._ended.set()

    def stop(self, request: int) -> None:
        """Leave the peers by ``STOP``, ``FAIL`` or ``CLOSE``, and end the thread.

        After ``CLOSE`` the alarm is raised unless all ranks have closed.
        """
        self._ask(request)
        try:
            # not by join: interrupted by a signal handler, some versions of Python take the thread for ended
            self._ended.wait()
        except BaseException:
            self._ask(FAIL)  # leave the others at once
            raise
        finally:
            self._thread.join()
            os.close(self._wake)

    def drop(self) -> None:
        """Close the descriptor in a forked child, in which the thread does not exist."""
        os.close(self._wake)

    def abort(self, code: int) -> None:
        """End all ranks, this process included, with an exit code."""
        self.alarm[EXIT_CODE] = code
        self._ask(ABORT)
        self._thread.join()

    def _ask(self, request: int) -> None:
        self.alarm[REQUEST] = request
        os.eventfd_write(self._wake, 1)
