"""The collectives of the tcp backend in nopython code (TCP-07 to TCP-11).

All have the same shape: every worker's frame goes up to rank 0, which compares it with its own call, and one
frame comes down to every worker. A rank that calls something else is therefore detected in that very call,
and no rank returns before all have arrived. Payloads that fit go through scratch memory, so that a header and
its payload need one system call and still no byte reaches the caller's array before the header is checked.

All but the folding sees addresses and bytes, so that it is the same code for every dtype.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

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
from cobre.comm.folding import fold_elements
from cobre.comm.status import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    COLLECTIVE_FAILED,
    IN_USE,
    INTERRUPTED,
    INVALID_COMMUNICATOR,
    OK,
    PEER_INTERRUPTED,
)
from cobre.comm.tcp import alarm as tcp_alarm
from cobre.comm.tcp import engine as tcp_engine
from cobre.comm.tcp import wire as tcp_wire
from cobre.comm.tcp.alarm import alarm_reason, raise_alarm
from cobre.comm.tcp.engine import (
    ALARMED,
    BLAMED,
    BUSY,
    DIGEST,
    FIRST,
    MODE,
    OWN,
    POISONED,
    RANK,
    SENDING,
    SEQUENCE,
    SIZE,
    SLOT_BYTES,
    THIRD,
    WHOLE,
    digest_word,
    set_frame,
    set_region,
    set_round,
    transfer,
    withdraw,
    withdrawal,
)
from cobre.comm.tcp.wire import Tag, dtype_code, first_word
from cobre.native import inner_kernel, stable_jitclass
from cobre.native.memory import address_of, copy_at

STAGED_BYTES: Final = 16 * 1024
"""Payloads up to this size are received into scratch memory first."""
SLOT: Final = 256 * 1024
"""Scratch memory for each link of rank 0, which folds in pieces of this size."""

_OP_SHIFT: Final = 48
_DTYPE_SHIFT: Final = 56
_GATHER_UP: Final = np.int64(first_word(Tag.ALLGATHERV_SEND, 0, 0))
_GATHER_DOWN: Final = np.int64(first_word(Tag.ALLGATHERV_RECV, 0, 0))
_REDUCE_UP: Final = np.int64(first_word(Tag.ALLREDUCE_SEND, 0, 0))
_REDUCE_DOWN: Final = np.int64(first_word(Tag.ALLREDUCE_RECV, 0, 0))
_BROADCAST: Final = np.int64(first_word(Tag.BROADCAST, 0, 0))
_BARRIER_UP: Final = np.int64(first_word(Tag.BARRIER_READY, 0, 0))
_BARRIER_DOWN: Final = np.int64(first_word(Tag.BARRIER_GO, 0, 0))
_SEED: Final = np.int64(2166136261)


def scratch_bytes(rank: int, links: int) -> int:
    """Return how much scratch memory a rank with this many links needs."""
    return links * (SLOT if rank == 0 else STAGED_BYTES)


def code_of(array: Any) -> int:
    """Return the dtype's code, in its place in a header's first word; a constant in compiled code."""
    return dtype_code(array.dtype) << _DTYPE_SHIFT


@overload(code_of)
def _code_of_overload(array: Any) -> Callable[[Any], Any]:
    code = np.int64(dtype_code(as_dtype(array.dtype)) << _DTYPE_SHIFT)

    def tell(array: Any) -> Any:
        return code

    return tell


@inner_kernel
def _conclude(state, alarm, detail, operation, reason):
    """Turn a broken transfer into a status; notify the other ranks unless they notified this one (COM-43)."""
    state[POISONED] = 1
    withdraw(state)
    if reason == ALARMED:
        detail[4] = alarm[tcp_alarm.THIRD]
        return fail(detail, COLLECTIVE_FAILED, operation, 0, alarm[tcp_alarm.BLAMED], alarm[tcp_alarm.REASON])
    told = PEER_INTERRUPTED if reason == INTERRUPTED else reason
    raise_alarm(alarm, told, state[BLAMED], state[THIRD], operation)
    detail[4] = state[THIRD]
    return fail(detail, COLLECTIVE_FAILED, operation, 0, state[BLAMED], reason)


@inner_kernel
def _begin(state, alarm, detail, operation):
    """Start a collective: refuse a poisoned communicator, report a job that broke meanwhile, count."""
    if state[POISONED] != 0:
        return fail(detail, INVALID_COMMUNICATOR, operation, 0, 0, 0)
    if alarm_reason(alarm) != 0:
        return _conclude(state, alarm, detail, operation, ALARMED)
    state[SEQUENCE] += 1
    return OK


@inner_kernel
def _clear_regions(state):
    for rank in range(state[SIZE]):
        set_region(state, rank, 0, 0)


@inner_kernel
def _set_placed(state, address, itemsize, counts, displs):
    """Every rank's region lies at its displacement."""
    for rank in range(state[SIZE]):
        set_region(state, rank, address + displs[rank] * itemsize, counts[rank] * itemsize)


@inner_kernel
def _move_frame(state, alarm, detail, mode, first):
    """Let one frame travel on every link; rank 0 answers only while all workers still wait for it."""
    if state[RANK] == 0 and mode & SENDING != 0:
        reason = withdrawal(state, alarm)
        if reason != 0:
            return reason
    state[MODE] = mode
    state[FIRST] = first
    set_frame(state)
    return transfer(state, alarm, detail)


@inner_kernel
def _gather_at_coordinator(state, scratch, alarm, detail, recv, itemsize, code, counts, displs):
    """Send the workers' parts to rank 0, and to each worker what it lacks, packed by rank (TCP-07)."""
    size = state[SIZE]
    largest = np.int64(0)
    for rank in range(1, size):
        largest = max(largest, counts[rank] * itemsize)
    staged = largest <= STAGED_BYTES
    _set_placed(state, recv, itemsize, counts, displs)
    if staged:
        for rank in range(1, size):
            slot = address_of(scratch, (rank - 1) * state[SLOT_BYTES])
            set_region(state, rank, slot, counts[rank] * itemsize)
    mode = OWN | WHOLE if staged else OWN
    reason = _move_frame(state, alarm, detail, np.int64(mode), _GATHER_UP | code)
    if reason != 0:
        return reason
    if staged:
        for rank in range(1, size):
            slot = address_of(scratch, (rank - 1) * state[SLOT_BYTES])
            copy_at(recv + displs[rank] * itemsize, slot, counts[rank] * itemsize)
        _set_placed(state, recv, itemsize, counts, displs)
    return _move_frame(state, alarm, detail, np.int64(SENDING), _GATHER_DOWN | code)


@inner_kernel
def _gather_at_worker(state, scratch, alarm, detail, send, recv, itemsize, code, counts, displs):
    """Send the own part to rank 0 and receive all the others."""
    me = state[RANK]
    _clear_regions(state)
    set_region(state, me, send, counts[me] * itemsize)
    reason = _move_frame(state, alarm, detail, np.int64(SENDING | OWN), _GATHER_UP | code)
    if reason != 0:
        return reason
    lacking = np.int64(0)
    for rank in range(state[SIZE]):
        if rank != me:
            lacking += counts[rank] * itemsize
    staged = lacking <= STAGED_BYTES
    _set_placed(state, recv, itemsize, counts, displs)
    if staged:
        place = address_of(scratch, 0)
        for rank in range(state[SIZE]):
            if rank != me:
                set_region(state, rank, place, counts[rank] * itemsize)
                place += counts[rank] * itemsize
    mode = WHOLE if staged else 0
    reason = _move_frame(state, alarm, detail, np.int64(mode), _GATHER_DOWN | code)
    if reason == 0 and staged:
        place = address_of(scratch, 0)
        for rank in range(state[SIZE]):
            if rank != me:
                copy_at(recv + displs[rank] * itemsize, place, counts[rank] * itemsize)
                place += counts[rank] * itemsize
    return reason


@inner_kernel
def gather(state, scratch, alarm, detail, send, recv, itemsize, code, counts, displs):
    """``allgatherv`` of checked arguments, buffers given by address; return a status."""
    fault = _begin(state, alarm, detail, ALLGATHERV)
    if fault != OK:
        return fault
    me = state[RANK]
    copy_at(recv + displs[me] * itemsize, send, counts[me] * itemsize)
    if state[SIZE] == 1:
        return OK
    digest = _SEED
    for rank in range(state[SIZE]):
        digest = digest_word(digest, counts[rank])
    state[DIGEST] = digest
    if me == 0:
        reason = _gather_at_coordinator(state, scratch, alarm, detail, recv, itemsize, code, counts, displs)
    else:
        reason = _gather_at_worker(state, scratch, alarm, detail, send, recv, itemsize, code, counts, displs)
    return OK if reason == 0 else _conclude(state, alarm, detail, ALLGATHERV, reason)


@inner_kernel
def _send_region(state, alarm, detail, buf, length, owner, mode, first):
    """Send a buffer, the region of its owner."""
    _clear_regions(state)
    set_region(state, owner, buf, length)
    return _move_frame(state, alarm, detail, SENDING | mode, first)


@inner_kernel
def _receive_region(state, scratch, alarm, detail, buf, length, owner, mode, first):
    """Receive a buffer, the region of its owner; the owner itself receives a header only."""
    staged = length <= STAGED_BYTES
    place = address_of(scratch, 0) if staged else buf
    _clear_regions(state)
    set_region(state, owner, place, length)
    reason = _move_frame(state, alarm, detail, mode | WHOLE if staged else mode, first)
    if reason == 0 and staged and owner != state[RANK]:
        copy_at(buf, place, length)
    return reason


@inner_kernel
def _fold_workers(state, scratch, alarm, detail, recv, op, first):
    """Receive the workers' elements, as many at a time as a slot holds, and fold them by rank (TCP-08)."""
    itemsize = recv.itemsize
    most = state[SLOT_BYTES] // itemsize
    _clear_regions(state)
    for rank in range(1, state[SIZE]):
        slot = address_of(scratch, (rank - 1) * state[SLOT_BYTES])
        set_region(state, rank, slot, len(recv) * itemsize)
    state[MODE] = OWN | WHOLE
    state[FIRST] = first
    set_frame(state)
    start = 0
    while start < len(recv):
        count = min(most, len(recv) - start)
        set_round(state, count * itemsize, start == 0)
        reason = transfer(state, alarm, detail)
        if reason != 0:
            return reason
        for rank in range(1, state[SIZE]):
            fold_elements(recv, start, count, scratch, (rank - 1) * state[SLOT_BYTES], op)
        start += count
    return np.int64(0)


@inner_kernel
def reduce(state, scratch, alarm, detail, send, recv, op):
    """``allreduce`` of checked arguments; return a status."""
    fault = _begin(state, alarm, detail, ALLREDUCE)
    if fault != OK:
        return fault
    kind = np.int64(op) << _OP_SHIFT | code_of(send)
    length = len(send) * send.itemsize
    state[DIGEST] = _SEED
    if state[RANK] == 0:
        copy_at(address_of(recv, 0), address_of(send, 0), length)
        if state[SIZE] == 1:
            return OK
        reason = _fold_workers(state, scratch, alarm, detail, recv, op, _REDUCE_UP | kind)
    else:
        mine = address_of(send, 0)
        owner = state[RANK]
        reason = _send_region(state, alarm, detail, mine, length, owner, np.int64(OWN), _REDUCE_UP | kind)
    if reason == 0:
        reason = _spread_from_coordinator(
            state, scratch, alarm, detail, address_of(recv, 0), length, np.int64(0), _REDUCE_DOWN | kind
        )
    return OK if reason == 0 else _conclude(state, alarm, detail, ALLREDUCE, reason)


@inner_kernel
def _spread_from_coordinator(state, scratch, alarm, detail, buf, length, owner, first):
    """Send the owner's region, which rank 0 holds, to all others."""
    if state[RANK] == 0:
        return _send_region(state, alarm, detail, buf, length, owner, np.int64(0), first)
    return _receive_region(state, scratch, alarm, detail, buf, length, owner, np.int64(0), first)


@inner_kernel
def spread(state, scratch, alarm, detail, buf, length, count, code, root):
    """``broadcast`` of a buffer given by address; return a status. The root's is only read (COM-30)."""
    fault = _begin(state, alarm, detail, BROADCAST)
    if fault != OK or state[SIZE] == 1:
        return fault
    # the up half carries no payload but the root's: root and count are compared by the digest
    state[DIGEST] = digest_word(digest_word(_SEED, root), count)
    first = _BROADCAST | code
    if state[RANK] == 0:
        reason = _receive_region(state, scratch, alarm, detail, buf, length, root, np.int64(OWN), first)
    else:
        reason = _send_region(state, alarm, detail, buf, length, root, np.int64(OWN), first)
    if reason == 0:
        reason = _spread_from_coordinator(state, scratch, alarm, detail, buf, length, root, first)
    return OK if reason == 0 else _conclude(state, alarm, detail, BROADCAST, reason)


@inner_kernel
def wait(state, alarm, detail):
    """``barrier``; return a status."""
    fault = _begin(state, alarm, detail, BARRIER)
    if fault != OK or state[SIZE] == 1:
        return fault
    up = np.int64(OWN | WHOLE) if state[RANK] == 0 else np.int64(OWN | SENDING)
    _clear_regions(state)
    state[DIGEST] = _SEED
    reason = _move_frame(state, alarm, detail, up, np.int64(_BARRIER_UP))
    if reason == 0:
        down = up ^ (WHOLE | SENDING)
        reason = _move_frame(state, alarm, detail, down, np.int64(_BARRIER_DOWN))
    return OK if reason == 0 else _conclude(state, alarm, detail, BARRIER, reason)


@stable_jitclass(
    [
        ("_state", types.int64[::1]),
        ("_scratch", types.uint8[::1]),
        ("_alarm", types.int64[::1]),
        ("_detail", types.int64[::1]),
    ],
    depends_on=(checks, exclusive, folding, status, tcp_alarm, tcp_engine, tcp_wire, sys.modules[__name__]),
)
class TcpKernel:
    """The tcp communicator in nopython code; see :mod:`cobre.comm.contract` for its methods.

    Parameters
    ----------
    state, scratch, alarm
        What :class:`~cobre.comm.tcp.communicator.TcpCommunicator` has prepared; of one communicator.
    detail
        The detail record.
    """

    def __init__(self, state: Any, scratch: Any, alarm: Any, detail: Any) -> None:
        self._state = state
        self._scratch = scratch
        self._alarm = alarm
        self._detail = detail

    def allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Gather every rank's elements on every rank; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        state = self._state
        if not enter(state, BUSY):
            return IN_USE
        outcome = check_allgatherv(state[RANK], state[SIZE], send, recv, counts, displs, self._detail)
        if outcome == OK:
            mine, all_ = address_of(send, 0), address_of(recv, 0)
            itemsize, code = np.int64(send.itemsize), code_of(send)
            outcome = gather(
                state, self._scratch, self._alarm, self._detail, mine, all_, itemsize, code, counts, displs
            )
        leave(state, BUSY)
        return outcome

    def gather_shared(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Gather like ``allgatherv``: regions are each rank's own (SHR-05); return a status."""
        return self.allgatherv(send, recv, counts, displs)

    def allreduce(self, send: Any, recv: Any, op: Any) -> Any:
        """Fold the ranks' elements in the order of ranks; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = check_allreduce(send, recv, op, self._detail)
        if outcome == OK:
            outcome = reduce(self._state, self._scratch, self._alarm, self._detail, send, recv, op)
        leave(self._state, BUSY)
        return outcome

    def broadcast(self, buf: Any, root: Any) -> Any:
        """Copy the root's buffer to all ranks; return a status."""
        require_payload(buf)
        state = self._state
        if not enter(state, BUSY):
            return IN_USE
        outcome = check_root(root, state[SIZE], self._detail)
        if outcome == OK:
            count = len(buf)
            length, place, rank = count * buf.itemsize, address_of(buf, 0), np.int64(root)
            outcome = spread(
                state, self._scratch, self._alarm, self._detail, place, length, count, code_of(buf), rank
            )
        leave(state, BUSY)
        return outcome

    def barrier(self) -> Any:
        """Wait until all ranks have called this; return a status."""
        if not enter(self._state, BUSY):
            return IN_USE
        outcome = wait(self._state, self._alarm, self._detail)
        leave(self._state, BUSY)
        return outcome

    def rank(self) -> Any:
        """Return this process's rank."""
        return self._state[RANK]

    def size(self) -> Any:
        """Return the number of ranks."""
        return self._state[SIZE]
