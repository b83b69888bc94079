"""The collectives, in nopython code over files.

A collective is one *turn*. In it every rank writes one message, a header and what it contributes, to a file
of its own, renames it to where the others look for it, and reads the messages of all others. A rename is
atomic: a message is there as a whole or not at all. It replaces the rank's message of two turns ago, which
everybody has read: a rank begins turn k + 2 only when all have come to turn k + 1, and so are done with k.

The header states turn, operation and arguments, so that ranks which call different things find out, all of
them (COM-42). A rank that waits looks for ``abort``, for the locks of ranks that have died, and at the clock.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import ctypes
import errno as error_codes
import fcntl
import os

import numpy as np
from numba import njit, types

from cobre.comm import checks, exclusive, folding, status
from cobre.comm.checks import (
    check_allgatherv,
    check_allreduce,
    check_root,
    fail,
    require_payload,
    require_same_dtype,
)
from cobre.comm.exclusive import enter, leave
from cobre.comm.folding import dtype_number, fold_elements
from cobre.comm.status import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    COLLECTIVE_FAILED,
    CORRUPTED,
    DIVERGED,
    IN_USE,
    INTERRUPTED,
    INVALID_COMMUNICATOR,
    LINK_BROKEN,
    OK,
    PEER_DIED,
    PEER_INTERRUPTED,
    PENDING,
    TIMED_OUT,
)
from cobre.native import bind_library, inner_kernel, monotonic_ns, stable_jitclass
from cobre.native.libc import errno, poll, sched_yield
from cobre.native.memory import address_of, copy_bytes
from cobre.native.signals import signal_handler_raised
from cobre_files import layout
from cobre_files.layout import (
    ABORT,
    BUSY,
    HEADER,
    HEADER_WORDS,
    LOCKS,
    MESSAGES,
    NEW,
    POISONED,
    RANK,
    SIZE,
    STRIDE,
    TIMEOUT_NS,
    TURN,
)

_int, _address = types.int32, types.intp
_libc = bind_library(
    ctypes.CDLL(None),
    "",
    {
        "open": _int(_address, _int, _int),
        "close": _int(_int),
        "read": _address(_int, _address, _address),
        "write": _address(_int, _address, _address),
        "rename": _int(_address, _address),
        "link": _int(_address, _address),
        "unlink": _int(_address),
        "access": _int(_address, _int),
        "flock": _int(_int, _int),
    },
)
_open, _close, _read, _write = _libc.open, _libc.close, _libc.read, _libc.write
_rename, _link, _unlink = _libc.rename, _libc.link, _libc.unlink
_access, _flock = _libc.access, _libc.flock

_TO_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_TO_READ = os.O_RDONLY | os.O_CLOEXEC
_PRIVATE = 0o600
_SHARED_NOW = fcntl.LOCK_SH | fcntl.LOCK_NB
_UNLOCK = fcntl.LOCK_UN
_EINTR = np.int32(error_codes.EINTR)

_HEADER_BYTES = 8 * HEADER_WORDS
_YIELDS = 200
"""Looks at a message that is not there, each with a yield, before this rank looks around and sleeps."""
_NAP_MS = 1
_FACTOR = np.int64(1_000_003)


@inner_kernel
def _path(state, paths, index):
    return address_of(paths, index * state[STRIDE])


@inner_kernel
def _message(state, paths, rank):
    return _path(state, paths, MESSAGES + 2 * rank + (state[TURN] & 1))


@inner_kernel
def _write_all(descriptor, address, count):
    """Write bytes; return 0 or an error code."""
    done = 0
    while done < count:
        part = _write(descriptor, address + done, count - done)
        if part < 0:
            code = errno()
            if code != _EINTR:
                return code
        else:
            done += part
    return np.int32(0)


@inner_kernel
def _read_all(descriptor, address, count):
    """Read bytes; return whether there were enough."""
    done = 0
    while done < count:
        part = _read(descriptor, address + done, count - done)
        if part == 0 or (part < 0 and errno() != _EINTR):
            return False
        done += max(part, 0)
    return True


@inner_kernel
def _put(state, paths, address, count):
    """Write the header in the state, then other bytes, to this rank's new file; return 0 or an error code."""
    descriptor = _open(_path(state, paths, NEW), _TO_WRITE, _PRIVATE)
    if descriptor < 0:
        return errno()
    code = _write_all(descriptor, address_of(state, HEADER), _HEADER_BYTES)
    if code == 0:
        code = _write_all(descriptor, address, count)
    _close(descriptor)
    return code


@inner_kernel
def _give_up(state, paths, operation, reason, peer, third):
    """Poison this communicator, leave word for the others, and return the status."""
    state[POISONED] = 1
    state[HEADER] = PEER_INTERRUPTED if reason == INTERRUPTED else reason
    state[HEADER + 1] = state[RANK] if reason == INTERRUPTED else peer
    state[HEADER + 2] = third
    if _put(state, paths, 0, 0) == 0:
        _link(_path(state, paths, NEW), _path(state, paths, ABORT))  # fails if another gave up before
        _unlink(_path(state, paths, NEW))  # what is written next must not change it
    state[4] = third
    return fail(state, COLLECTIVE_FAILED, operation, 0, peer, reason)


@inner_kernel
def _heed_abort(state, paths, operation):
    """Report why another rank has given up; OK when none has."""
    descriptor = _open(_path(state, paths, ABORT), _TO_READ, 0)
    if descriptor < 0:
        return OK
    complete = _read_all(descriptor, address_of(state, HEADER), _HEADER_BYTES)
    _close(descriptor)
    state[POISONED] = 1
    if not complete:
        return fail(state, COLLECTIVE_FAILED, operation, 0, -1, CORRUPTED)
    state[4] = state[HEADER + 2]
    return fail(state, COLLECTIVE_FAILED, operation, 0, state[HEADER + 1], state[HEADER])


@inner_kernel
def _dead_peer(state):
    """Return a rank whose process has ended, or -1: nobody holds its lock any more."""
    for r in range(state[SIZE]):
        lock = np.int32(state[LOCKS + r])
        if lock >= 0 and _flock(lock, _SHARED_NOW) == 0:
            _flock(lock, _UNLOCK)
            return r
    return -1


@inner_kernel
def _opened(state, paths, rank):
    """Return a descriptor of a rank's message of this turn, behind its header, or -1."""
    descriptor = _open(_message(state, paths, rank), _TO_READ, 0)
    if descriptor >= 0:
        if _read_all(descriptor, address_of(state, HEADER), _HEADER_BYTES) and state[HEADER] == state[TURN]:
            return descriptor
        _close(descriptor)  # that of two turns ago
    return np.int32(-1)


@inner_kernel
def _await(state, paths, rank, call, digest, count):
    """Wait for a rank's message of this turn; return its descriptor and a status."""
    operation = call & 255
    descriptor = _opened(state, paths, rank)
    began = monotonic_ns()
    looks = 0
    while descriptor < 0:
        looks += 1
        if looks <= _YIELDS:
            sched_yield()
            descriptor = _opened(state, paths, rank)
            continue
        outcome = _heed_abort(state, paths, operation)
        dead = _dead_peer(state)
        descriptor = _opened(state, paths, rank)
        if outcome != OK or descriptor >= 0:  # it came, and ended after that
            break
        if dead >= 0:
            # one that gave up and ended has left word before that, and is not the one to name
            outcome = _heed_abort(state, paths, operation)
            if outcome == OK:
                outcome = _give_up(state, paths, operation, PEER_DIED, dead, 0)
            return descriptor, outcome
        waited = monotonic_ns() - began
        if waited > state[TIMEOUT_NS]:
            return descriptor, _give_up(state, paths, operation, TIMED_OUT, rank, waited // 1_000_000)
        if poll(0, 0, _NAP_MS) < 0 and signal_handler_raised(state, PENDING):
            return descriptor, _give_up(state, paths, operation, INTERRUPTED, -1, 0)
    if descriptor < 0:
        return descriptor, _heed_abort(state, paths, operation)
    outcome = OK
    theirs = state[HEADER + 1]
    if theirs != call or state[HEADER + 2] != digest:
        outcome = _give_up(state, paths, operation, DIVERGED, rank, theirs & 255)
    elif state[HEADER + 3] != count:
        outcome = _give_up(state, paths, operation, CORRUPTED, rank, 0)
    if outcome != OK:
        _close(descriptor)
    return descriptor, outcome


@inner_kernel
def _begin(state, paths, call, digest, address, count):
    """Publish this rank's message of the next turn: ``count`` bytes from an address; a status."""
    operation = call & 255
    if state[POISONED] != 0:
        return fail(state, INVALID_COMMUNICATOR, operation, 0, 0, 0)
    state[TURN] += 1
    state[HEADER] = state[TURN]
    state[HEADER + 1] = call
    state[HEADER + 2] = digest
    state[HEADER + 3] = count
    code = _put(state, paths, address, count)
    if code == 0 and _rename(_path(state, paths, NEW), _message(state, paths, state[RANK])) != 0:
        code = errno()
    if code != 0:
        return _give_up(state, paths, operation, LINK_BROKEN, -1, code)
    return OK


@inner_kernel
def _take(state, paths, rank, call, digest, address, count):
    """Wait for a rank's message and read what it contributes to an address; a status."""
    descriptor, outcome = _await(state, paths, rank, call, digest, count)
    if outcome != OK:
        return outcome
    complete = _read_all(descriptor, address, count)
    _close(descriptor)
    return OK if complete else _give_up(state, paths, call & 255, CORRUPTED, rank, 0)


@inner_kernel
def _end(state, paths, call):
    """Find out whether a rank came and then gave up; a status."""
    return OK if _access(_path(state, paths, ABORT), 0) != 0 else _heed_abort(state, paths, call & 255)


@inner_kernel
def _mixed(digest, value):
    return (digest * _FACTOR) ^ np.int64(value)


@inner_kernel
def meet_all(state, paths, call):
    """Wait for all ranks, under the name of an operation; a status."""
    outcome = _begin(state, paths, call, 0, 0, 0)
    for r in range(state[SIZE]):
        if outcome == OK and r != state[RANK]:
            outcome = _take(state, paths, r, call, 0, 0, 0)
    return _end(state, paths, call) if outcome == OK else outcome


@inner_kernel
def _gather(state, paths, send, recv, counts, displs):
    fault = check_allgatherv(state[RANK], state[SIZE], send, recv, counts, displs, state)
    if fault != OK:
        return fault
    width = send.itemsize
    call = ALLGATHERV | (np.int64(dtype_number(send)) << 8)
    digest = np.int64(0)
    for r in range(state[SIZE]):
        digest = _mixed(digest, counts[r])
    outcome = _begin(state, paths, call, digest, address_of(send, 0), len(send) * width)
    for r in range(state[SIZE]):
        if outcome != OK:
            return outcome
        if r == state[RANK]:
            copy_bytes(recv, displs[r] * width, send, 0, len(send) * width)
        else:
            outcome = _take(state, paths, r, call, digest, address_of(recv, displs[r]), counts[r] * width)
    return _end(state, paths, call) if outcome == OK else outcome


@inner_kernel
def _fold_message(state, paths, scratch, rank, call, digest, recv, op):
    """Fold a rank's elements into ``recv``, as many at a time as there is room for; a status."""
    width = recv.itemsize
    descriptor, outcome = _await(state, paths, rank, call, digest, len(recv) * width)
    if outcome != OK:
        return outcome
    complete = True
    start = 0
    while complete and start < len(recv):
        part = min(len(recv) - start, len(scratch) // width)
        complete = _read_all(descriptor, address_of(scratch, 0), part * width)
        if complete:
            fold_elements(recv, start, part, scratch, 0, op)
        start += part
    _close(descriptor)
    return OK if complete else _give_up(state, paths, call & 255, CORRUPTED, rank, 0)


@inner_kernel
def _reduce(state, paths, scratch, send, recv, op):
    fault = check_allreduce(send, recv, op, state)
    if fault != OK:
        return fault
    count = len(send) * send.itemsize
    call = ALLREDUCE | (np.int64(dtype_number(send)) << 8)
    digest = _mixed(np.int64(op), len(send))
    outcome = _begin(state, paths, call, digest, address_of(send, 0), count)
    if outcome == OK:
        if state[RANK] == 0:
            copy_bytes(recv, 0, send, 0, count)
        else:
            outcome = _take(state, paths, 0, call, digest, address_of(recv, 0), count)
    for r in range(1, state[SIZE]):
        if outcome != OK:
            return outcome
        if r == state[RANK]:
            fold_elements(recv, 0, len(send), send, 0, op)
        else:
            outcome = _fold_message(state, paths, scratch, r, call, digest, recv, op)
    return _end(state, paths, call) if outcome == OK else outcome


@inner_kernel
def _spread(state, paths, buf, root):
    fault = check_root(root, state[SIZE], state)
    if fault != OK:
        return fault
    count = len(buf) * buf.itemsize
    call = BROADCAST | (np.int64(dtype_number(buf)) << 8)
    digest = _mixed(np.int64(root), len(buf))
    outcome = _begin(state, paths, call, digest, address_of(buf, 0), count if state[RANK] == root else 0)
    for r in range(state[SIZE]):
        if outcome != OK:
            return outcome
        if r != state[RANK]:
            outcome = _take(state, paths, r, call, digest, address_of(buf, 0), count if r == root else 0)
    return _end(state, paths, call) if outcome == OK else outcome


@stable_jitclass(
    [("_state", types.int64[::1]), ("_paths", types.uint8[::1]), ("_scratch", types.uint8[::1])],
    depends_on=(checks, exclusive, folding, layout, status),
)
class FilesKernel:
    """The communicator in nopython code; see :mod:`cobre.comm.contract` for its methods.

    Parameters
    ----------
    state, paths
        See :mod:`cobre_files.layout`.
    scratch
        Room for elements that are folded.
    """

    def __init__(self, state, paths, scratch):
        self._state = state
        self._paths = paths
        self._scratch = scratch

    def allgatherv(self, send, recv, counts, displs):
        """Gather every rank's elements; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = _gather(self._state, self._paths, send, recv, counts, displs)
        leave(self._state, BUSY)
        return outcome

    def gather_shared(self, send, recv, counts, displs):
        """Gather like ``allgatherv``: a region is shared with nobody; return a status."""
        return self.allgatherv(send, recv, counts, displs)

    def allreduce(self, send, recv, op):
        """Fold the ranks' elements; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = _reduce(self._state, self._paths, self._scratch, send, recv, op)
        leave(self._state, BUSY)
        return outcome

    def broadcast(self, buf, root):
        """Copy the root's elements; return a status."""
        require_payload(buf)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = _spread(self._state, self._paths, buf, root)
        leave(self._state, BUSY)
        return outcome

    def barrier(self):
        """Wait for all ranks; return a status."""
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = meet_all(self._state, self._paths, BARRIER)
        leave(self._state, BUSY)
        return outcome

    def rank(self):
        """Return this process's rank."""
        return self._state[RANK]

    def size(self):
        """Return the number of ranks."""
        return self._state[SIZE]


@njit(cache=True, nogil=True)
def meet(arguments, operation):
    """What the owner calls besides: wait for all ranks, under the name of an operation."""
    state, paths, _ = arguments
    return meet_all(state, paths, operation)
