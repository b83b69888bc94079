"""The shm backend in nopython code: collectives made of meetings (:mod:`cobre.comm.shm.meeting`).

Small payloads travel in the arrival lines, larger ones in the ranks' slots, in rounds of pieces that stay in
the cache until they are read. What is large in a gather or broadcast is read straight from the memory of the
process that has it, where the system allows that: one copy instead of two.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from cobre.comm import checks, exclusive, folding, status
from cobre.comm.checks import (
    check_allgatherv,
    check_allreduce,
    check_root,
    require_payload,
    require_same_dtype,
)
from cobre.comm.exclusive import enter, leave
from cobre.comm.folding import dtype_number, fold_elements
from cobre.comm.shm import layout as shm_layout
from cobre.comm.shm import meeting as shm_meeting
from cobre.comm.shm.layout import (
    A_PAYLOAD,
    ARRIVALS,
    INLINE_BYTES,
    LINE,
    RANK_WORDS,
    S_BUSY,
    S_DIRECT_BYTES,
    S_PIECE_BYTES,
    S_POLLS,
    S_RANK,
    S_SEQUENCE,
    S_SHARES_BYTES,
    S_SIZE,
    S_SPREAD,
    S_VECTORS,
)
from cobre.comm.shm.meeting import (
    DIGEST_START,
    arrive,
    await_all,
    describe,
    give_up,
    mix,
    payload_place,
    usable,
)
from cobre.comm.status import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    GATHER_SHARED,
    IN_USE,
    INVALID_COMMUNICATOR,
    OK,
)
from cobre.native import inner_kernel, stable_jitclass
from cobre.native.libc import errno, process_vm_readv
from cobre.native.memory import address_of, borrowed, copy_bytes


@inner_kernel
def _barrier_alone(state, words):
    """Hold one meeting without payload; return a status."""
    if usable(state, BARRIER) != OK:
        return INVALID_COMMUNICATOR
    descriptor = describe(BARRIER, 0, DIGEST_START)
    arrive(state, words, descriptor)
    return await_all(state, words, descriptor)


@inner_kernel
def _exchange_alone(state, words, data, operation, send, recv, agreed):
    """Gather equally many small elements of every rank under the name of any operation; return a status.

    ``agreed`` must be the same on all ranks.
    """
    if usable(state, operation) != OK:
        return INVALID_COMMUNICATOR
    bytes_each = len(send) * send.itemsize
    base, stride = payload_place(state, True)
    copy_bytes(data, base + state[S_RANK] * stride, send, 0, bytes_each)
    digest = mix(DIGEST_START, bytes_each)
    for value in agreed:
        digest = mix(digest, value)
    descriptor = describe(operation, dtype_number(send), digest)
    arrive(state, words, descriptor)
    outcome = await_all(state, words, descriptor)
    if outcome == OK:
        for r in range(state[S_SIZE]):
            copy_bytes(recv, r * bytes_each, data, base + r * stride, bytes_each)
    return outcome


@inner_kernel
def _offer(state, words, value):
    """Write one number for the next meeting; return the place of rank 0's."""
    first = ARRIVALS + ((state[S_SEQUENCE] + 1) & 1) * LINE + A_PAYLOAD
    words[first + state[S_RANK] * RANK_WORDS] = value
    return first


@inner_kernel
def _read_from(state, peer, remote, local, count):
    """Copy bytes from an address of a peer's process to one of this; return 0 or an error code.

    Ranks only read each other's memory: a peer that has left the call, by an interrupt or its timeout, may do
    with its buffers what it wants.
    """
    pid = np.int32(state[S_POLLS + state[S_SIZE] + peer])
    done = np.int64(0)
    while done < count:
        state[S_VECTORS] = local + done
        state[S_VECTORS + 1] = count - done
        state[S_VECTORS + 2] = remote + done
        state[S_VECTORS + 3] = count - done
        ours, theirs = address_of(state, S_VECTORS), address_of(state, S_VECTORS + 2)
        moved = process_vm_readv(pid, ours, 1, theirs, 1, 0)
        if moved <= 0:
            return max(errno(), np.int32(1))
        done += moved
    return np.int32(0)


@inner_kernel
def _finish_reading(state, words, descriptor, error):
    """Keep buffers in place until all have read them; a status, and whether all ranks could.

    Where one could not (some systems forbid it) all of them take the slots, now and from now on.
    """
    first = _offer(state, words, error)
    arrive(state, words, descriptor)
    outcome = await_all(state, words, descriptor)
    if outcome == OK:
        for r in range(state[S_SIZE]):
            if words[first + r * RANK_WORDS] != 0:
                state[S_DIRECT_BYTES] = 0
                return outcome, False
    return outcome, True


@inner_kernel
def _gather_directly(state, words, descriptor, send, recv, counts, displs):
    rank, size, width = state[S_RANK], state[S_SIZE], send.itemsize
    first = _offer(state, words, address_of(send, 0))
    arrive(state, words, descriptor)
    copy_bytes(recv, displs[rank] * width, send, 0, counts[rank] * width)
    outcome = await_all(state, words, descriptor)
    if outcome != OK:
        return outcome, True
    error = np.int32(0)
    for k in range(1, size):
        r = (rank + k) % size
        if error == 0:
            source = words[first + r * RANK_WORDS]
            target = address_of(recv, 0) + displs[r] * width
            error = _read_from(state, r, source, target, counts[r] * width)
    return _finish_reading(state, words, descriptor, error)


@inner_kernel
def _allgatherv_alone(state, words, data, send, recv, counts, displs):
    """Gather by way of the slots, in rounds where a part is larger than a piece; a status (SHM-06)."""
    rank, size = state[S_RANK], state[S_SIZE]
    fault = check_allgatherv(rank, size, send, recv, counts, displs, state)
    if fault != OK:
        return fault
    if usable(state, ALLGATHERV) != OK:
        return INVALID_COMMUNICATOR
    width = send.itemsize
    largest = np.int64(0)
    digest = DIGEST_START
    for r in range(size):
        largest = max(largest, counts[r] * width)
        digest = mix(digest, counts[r])
    descriptor = describe(ALLGATHERV, dtype_number(send), digest)
    if size > 1 and 0 < state[S_DIRECT_BYTES] <= largest:
        outcome, done_by_all = _gather_directly(state, words, descriptor, send, recv, counts, displs)
        if done_by_all:
            return outcome
    small = largest <= INLINE_BYTES
    piece = np.int64(INLINE_BYTES) if small else state[S_PIECE_BYTES]
    done = np.int64(0)
    while True:
        base, stride = payload_place(state, small)
        own = min(counts[rank] * width - done, piece)
        if own > 0:
            copy_bytes(data, base + rank * stride, send, done, own)
        arrive(state, words, descriptor)
        if own > 0:  # while the others are on their way, and the piece is still in the cache
            copy_bytes(recv, displs[rank] * width + done, send, done, own)
        outcome = await_all(state, words, descriptor)
        if outcome != OK:
            return outcome
        for k in range(1, size):
            r = (rank + k) % size
            part = min(counts[r] * width - done, piece)
            if part > 0:
                copy_bytes(recv, displs[r] * width + done, data, base + r * stride, part)
        done += piece
        if done >= largest:
            return OK


@inner_kernel
def _gather_shared_alone(state, words, send, recv, counts, displs):
    """Write this rank's part into the shared array in place, then hold a meeting; return a status."""
    rank, size = state[S_RANK], state[S_SIZE]
    fault = check_allgatherv(rank, size, send, recv, counts, displs, state)
    if fault != OK:
        return fault
    if usable(state, GATHER_SHARED) != OK:
        return INVALID_COMMUNICATOR
    digest = DIGEST_START
    for r in range(size):
        digest = mix(mix(digest, counts[r]), displs[r])
    descriptor = describe(GATHER_SHARED, dtype_number(send), digest)
    copy_bytes(recv, displs[rank] * send.itemsize, send, 0, len(send) * send.itemsize)
    arrive(state, words, descriptor)
    return await_all(state, words, descriptor)


@inner_kernel
def _fold_slots(recv, start, count, data, base, stride, size, op):
    """Fold elements of all ranks in their order (COM-21)."""
    copy_bytes(recv, start * recv.itemsize, data, base, count * recv.itemsize)
    for r in range(1, size):
        fold_elements(recv, start, count, data, base + r * stride, op)


@inner_kernel
def _fold_in_shares(state, words, data, descriptor, recv, start, count, base, stride, op):
    """Fold this rank's share of the elements and copy the others' after a meeting; return a status."""
    rank, size, width = state[S_RANK], state[S_SIZE], recv.itemsize
    own, end = count * rank // size, count * (rank + 1) // size
    _fold_slots(recv, start + own, end - own, data, base + own * width, stride, size, op)
    base, stride = payload_place(state, False)
    copy_bytes(data, base + rank * stride, recv, (start + own) * width, (end - own) * width)
    arrive(state, words, descriptor)
    outcome = await_all(state, words, descriptor)
    if outcome == OK:
        for k in range(1, size):
            r = (rank + k) % size
            first, end = count * r // size, count * (r + 1) // size
            copy_bytes(recv, (start + first) * width, data, base + r * stride, (end - first) * width)
    return outcome


@inner_kernel
def _allreduce_alone(state, words, data, send, recv, op):
    """Let every rank fold all slots or, where that is much, its share of them, in rounds; return a status."""
    rank, size = state[S_RANK], state[S_SIZE]
    fault = check_allreduce(send, recv, op, state)
    if fault != OK:
        return fault
    if usable(state, ALLREDUCE) != OK:
        return INVALID_COMMUNICATOR
    width = send.itemsize
    digest = mix(mix(DIGEST_START, op), len(send))
    descriptor = describe(ALLREDUCE, dtype_number(send), digest)
    small = len(send) * width <= INLINE_BYTES
    in_shares = size > 2 and len(send) * width >= state[S_SHARES_BYTES]
    most = (np.int64(INLINE_BYTES) if small else state[S_PIECE_BYTES]) // width
    done = np.int64(0)
    while done < len(send):
        count = min(len(send) - done, most)
        base, stride = payload_place(state, small)
        copy_bytes(data, base + rank * stride, send, done * width, count * width)
        arrive(state, words, descriptor)
        outcome = await_all(state, words, descriptor)
        if outcome != OK:
            return outcome
        if in_shares:
            outcome = _fold_in_shares(state, words, data, descriptor, recv, done, count, base, stride, op)
            if outcome != OK:
                return outcome
        else:
            _fold_slots(recv, done, count, data, base, stride, size, op)
        done += count
    return OK


@inner_kernel
def _broadcast_directly(state, words, descriptor, buf, root):
    """Let all ranks read the root's buffer; ends like a gather."""
    own = address_of(buf, 0)
    first = _offer(state, words, own)
    arrive(state, words, descriptor)
    outcome = await_all(state, words, descriptor)
    if outcome != OK:
        return outcome, True
    error = np.int32(0)
    if state[S_RANK] != root:
        error = _read_from(state, root, words[first + root * RANK_WORDS], own, len(buf) * buf.itemsize)
    return _finish_reading(state, words, descriptor, error)


@inner_kernel
def _broadcast_alone(state, words, data, buf, root):
    """Copy in pieces through the root's slot, one written while another is read; return a status."""
    rank, size = state[S_RANK], state[S_SIZE]
    fault = check_root(root, size, state)
    if fault != OK:
        return fault
    if usable(state, BROADCAST) != OK:
        return INVALID_COMMUNICATOR
    total = len(buf) * buf.itemsize
    digest = mix(mix(DIGEST_START, root), len(buf))
    descriptor = describe(BROADCAST, dtype_number(buf), digest)
    # Ranks that take turns on a CPU should not wait for each other's whole copies.
    if size > 1 and state[S_SPREAD] != 0 and 0 < state[S_DIRECT_BYTES] <= total:
        outcome, done_by_all = _broadcast_directly(state, words, descriptor, buf, root)
        if done_by_all:
            return outcome
    small = total <= INLINE_BYTES
    piece = np.int64(INLINE_BYTES) if small else state[S_PIECE_BYTES]
    done = np.int64(0)
    while True:
        base, stride = payload_place(state, small)
        part = min(total - done, piece)
        if rank == root and part > 0:
            copy_bytes(data, base + root * stride, buf, done, part)
        arrive(state, words, descriptor)
        outcome = await_all(state, words, descriptor)
        if outcome != OK:
            return outcome
        if rank != root and part > 0:
            copy_bytes(buf, done, data, base + root * stride, part)
        done += piece
        if done >= total:
            return OK


# The collectives, one at a time; each returns a status.


@inner_kernel
def barrier(state, words):
    """Wait for all ranks."""
    if not enter(state, S_BUSY):
        return IN_USE
    outcome = _barrier_alone(state, words)
    leave(state, S_BUSY)
    return outcome


@inner_kernel
def exchange(state, words, data, operation, send, recv, agreed):
    """Gather a few numbers under the name of any operation."""
    if not enter(state, S_BUSY):
        return IN_USE
    outcome = _exchange_alone(state, words, data, operation, send, recv, agreed)
    leave(state, S_BUSY)
    return outcome


@inner_kernel
def allgatherv(state, words, data, send, recv, counts, displs):
    """Gather every rank's elements."""
    if not enter(state, S_BUSY):
        return IN_USE
    outcome = _allgatherv_alone(state, words, data, send, recv, counts, displs)
    leave(state, S_BUSY)
    return outcome


@inner_kernel
def gather_shared(state, words, send, recv, counts, displs):
    """Gather into a shared region."""
    if not enter(state, S_BUSY):
        return IN_USE
    outcome = _gather_shared_alone(state, words, send, recv, counts, displs)
    leave(state, S_BUSY)
    return outcome


@inner_kernel
def allreduce(state, words, data, send, recv, op):
    """Fold the ranks' elements."""
    if not enter(state, S_BUSY):
        return IN_USE
    outcome = _allreduce_alone(state, words, data, send, recv, op)
    leave(state, S_BUSY)
    return outcome


@inner_kernel
def broadcast(state, words, data, buf, root):
    """Copy the root's elements."""
    if not enter(state, S_BUSY):
        return IN_USE
    outcome = _broadcast_alone(state, words, data, buf, root)
    leave(state, S_BUSY)
    return outcome


@stable_jitclass(
    [("_state", types.int64[::1]), ("_words", types.int64[::1]), ("_data", types.uint8[::1])],
    depends_on=(
        *(checks, exclusive, folding, shm_layout, shm_meeting, status),
        *(_offer, _read_from, _finish_reading, _gather_directly, _broadcast_directly),
        *(_fold_slots, _fold_in_shares),
        *(_barrier_alone, _allgatherv_alone, _gather_shared_alone, _allreduce_alone, _broadcast_alone),
        *(barrier, allgatherv, gather_shared, allreduce, broadcast),
    ),
)
class ShmKernel:
    """The shm communicator in nopython code; see :mod:`cobre.comm.contract` for its methods.

    Parameters
    ----------
    state
        The detail record and this rank's numbers (:mod:`cobre.comm.shm.layout`).
    words, data
        The whole control segment, as 64-bit words and as bytes.
    """

    def __init__(self, state: Any, words: Any, data: Any) -> None:
        self._state = state
        self._words = words
        self._data = data

    def allgatherv(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Gather every rank's elements; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        return allgatherv(
            borrowed(self._state),
            borrowed(self._words),
            borrowed(self._data),
            borrowed(send),
            borrowed(recv),
            borrowed(counts),
            borrowed(displs),
        )

    def gather_shared(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        """Gather into the target of a shared region; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        return gather_shared(
            borrowed(self._state),
            borrowed(self._words),
            borrowed(send),
            borrowed(recv),
            borrowed(counts),
            borrowed(displs),
        )

    def allreduce(self, send: Any, recv: Any, op: Any) -> Any:
        """Fold the ranks' elements; return a status."""
        require_payload(send)
        require_payload(recv)
        require_same_dtype(send, recv)
        return allreduce(
            borrowed(self._state),
            borrowed(self._words),
            borrowed(self._data),
            borrowed(send),
            borrowed(recv),
            op,
        )

    def broadcast(self, buf: Any, root: Any) -> Any:
        """Copy the root's elements; return a status."""
        require_payload(buf)
        return broadcast(
            borrowed(self._state), borrowed(self._words), borrowed(self._data), borrowed(buf), root
        )

    def barrier(self) -> Any:
        """Wait for all ranks; return a status."""
        return barrier(borrowed(self._state), borrowed(self._words))

    def rank(self) -> Any:
        """Return this process's rank."""
        return self._state[S_RANK]

    def size(self) -> Any:
        """Return the number of ranks."""
        return self._state[S_SIZE]


# What the owner calls besides.


@njit(cache=True, nogil=True)
def _exchange(arguments, operation, send, recv, agreed):
    state, words, data = arguments
    return exchange(state, words, data, operation, send, recv, agreed)


@njit(cache=True, nogil=True)
def _give_up(state, words, operation, reason, peer):
    return give_up(state, words, operation, reason, peer, 0)
