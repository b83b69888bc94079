"""MPI's collectives from nopython code.

Functions are called by their address and given MPI's handles as 64-bit numbers, both taken from an array at
run time: nothing of an MPI implementation is part of the compiled code. What was compiled under MPICH, whose
handles are ints, is loaded and right under Open MPI, whose handles are pointers. (A 32-bit handle may be
passed in a 64-bit slot on the little-endian 64-bit platforms.)

MPI counts with C ints. ``allreduce`` and ``broadcast`` of more elements are split; ``allgatherv`` refuses.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cobre.comm.checks import check_allgatherv, check_allreduce, check_root, fail, has_integers
from cobre.comm.contract import SUPPORTED_DTYPES, ReduceOp
from cobre.comm.folding import dtype_number, fold_elements
from cobre.comm.status import (
    ALLGATHERV,
    ALLOCATION_FAILED,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    COLLECTIVE_FAILED,
    COUNT_LIMIT,
    GATHER_SHARED,
    INVALID_BUFFER_SIZE,
    INVALID_COMMUNICATOR,
    INVALID_ROOT,
    OK,
    TRANSPORT_REFUSED,
)
from cobre.native import inner_kernel
from cobre.native.memory import address_of, copy_bytes, load_int32

LARGEST_COUNT: Final = 2**31 - 1
"""What a C int can count."""

FOLD_BYTES: Final = 64 * 1024
"""Sums of floats up to this many bytes a rank are folded in the order of ranks, as on the other backends."""

CORNER_WORDS: Final = 16
"""64-bit words of a rank's corner besides one for each rank: a counter, an error class, and padding."""

# The state array: numbers of this communicator, then MPI's numbers, addresses and handles.
OPEN: Final = 0
RANK: Final = 1
SIZE: Final = 2
LIMIT: Final = 3
SLOT_BYTES: Final = 4
"""Bytes of each rank that fit in its slot of the scratch array; a multiple of 8."""
STRIDE: Final = 5
"""Bytes from one slot to the next."""
CORNER: Final = 6
"""Where this rank's counts, displacements, counter and error class are in the scratch array."""
IS_SHARED: Final = 7
"""Whether all ranks see the same scratch array (:mod:`cobre.comm.mpi.scratch`)."""
REGIONS: Final = 8
"""How many shared regions are in the table at ``REGION_TABLE``."""
BUSY: Final = 9
"""1 while a thread of this process is in a collective."""
ERROR_CLASSES: Final = 10
ERR_COMM, ERR_BUFFER, ERR_COUNT, ERR_ROOT, ERR_NO_MEM = range(ERROR_CLASSES, ERROR_CLASSES + 5)
FUNCTIONS: Final = ERR_NO_MEM + 1
FUNCTION_NAMES: Final = (
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Allreduce",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Error_class",
)
F_BARRIER, F_BCAST, F_ALLREDUCE, F_ALLGATHER, F_ALLGATHERV, F_ERROR_CLASS = range(FUNCTIONS, FUNCTIONS + 6)
COMM: Final = F_ERROR_CLASS + 1
DATATYPES: Final = COMM + 1
"""Handles of datatypes in the order of ``SUPPORTED_DTYPES``."""
OPERATIONS: Final = DATATYPES + len(SUPPORTED_DTYPES)
"""Handles of operations in the order of ``ReduceOp``."""
REGION_TABLE: Final = OPERATIONS + len(ReduceOp)
"""Address and bytes of each region that all ranks share."""
MOST_REGIONS: Final = 64
STATE_SIZE: Final = REGION_TABLE + 2 * MOST_REGIONS

_SUM: Final = int(ReduceOp.SUM)


def _c_function(name: str, kinds: str) -> Any:
    """Return an intrinsic that calls the C function at an address: ``i`` int, ``p`` pointer or handle."""
    slots = {"i": types.int32, "p": types.int64}
    signature = types.int32(types.int64, *(slots[kind] for kind in kinds))
    c_slots = {"i": ir.IntType(32), "p": ir.IntType(64)}
    c_type = ir.FunctionType(ir.IntType(32), [c_slots[kind] for kind in kinds])

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        function = builder.inttoptr(arguments[0], c_type.as_pointer())
        return builder.call(function, arguments[1:])

    # an intrinsic has as many named parameters as its signature
    parameters = ", ".join(f"argument_{i}" for i in range(len(kinds)))
    namespace = {"signature": signature, "generate": generate}
    exec(f"def {name}(typing_context, function, {parameters}):\n    return signature, generate", namespace)
    return intrinsic(namespace[name])


_call_barrier = _c_function("_call_barrier", "p")
_call_bcast = _c_function("_call_bcast", "pipip")
_call_allreduce = _c_function("_call_allreduce", "ppippp")
_call_allgather = _c_function("_call_allgather", "pippipp")
_call_allgatherv = _c_function("_call_allgatherv", "pipppppp")
_call_error_class = _c_function("_call_error_class", "ip")


@intrinsic  # type: ignore[untyped-decorator]
def _store_int32(typing_context: Any, array: Any, offset: Any, value: Any) -> Any:
    """Write an int32 at an offset in bytes of a uint8 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(32).as_pointer())
        builder.store(arguments[2], word, align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int32), generate


@intrinsic  # type: ignore[untyped-decorator]
def _memory_fence(typing_context: Any) -> Any:
    """Order all memory accesses before it with those after it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@inner_kernel
def _datatype(state: Any, array: Any) -> Any:
    """Return the handle of an array's datatype."""
    return state[DATATYPES + dtype_number(array)]


@inner_kernel
def _closed(detail: Any, operation: Any) -> Any:
    return fail(detail, INVALID_COMMUNICATOR, operation, 0, 0, 0)


@inner_kernel
def _failure(
    state: Any, scratch: Any, detail: Any, operation: Any, code: Any, elements: Any, itemsize: Any, root: Any
) -> Any:
    """Return the status for an error code of MPI (ERR-04)."""
    size = state[SIZE]
    place = address_of(scratch, state[CORNER] + 8 * size + 8)
    _call_error_class(state[F_ERROR_CLASS], np.int32(code), place)
    error_class = np.int64(load_int32(place))
    if error_class == state[ERR_BUFFER] or error_class == state[ERR_COUNT]:
        limit = state[LIMIT]
        return fail(detail, INVALID_BUFFER_SIZE, operation, limit, elements, TRANSPORT_REFUSED)
    if error_class == state[ERR_ROOT]:
        return fail(detail, INVALID_ROOT, operation, root, size, 0)
    if error_class == state[ERR_NO_MEM]:
        return fail(detail, ALLOCATION_FAILED, operation, elements * itemsize, 0, 0)
    state[OPEN] = 0  # COM-43
    if error_class == state[ERR_COMM]:
        return fail(detail, INVALID_COMMUNICATOR, operation, 0, 0, 0)
    return fail(detail, COLLECTIVE_FAILED, operation, code, -1, 0)


@inner_kernel
def mpi_barrier(state: Any, scratch: Any, detail: Any) -> Any:
    """Wait for all ranks."""
    if state[OPEN] == 0:
        return _closed(detail, BARRIER)
    code = _call_barrier(state[F_BARRIER], state[COMM])
    if code != 0:
        return _failure(state, scratch, detail, BARRIER, code, 0, 0, 0)
    return OK


@inner_kernel
def mpi_broadcast(state: Any, scratch: Any, detail: Any, buf: Any, root: Any) -> Any:
    """Copy the root's buffer to all ranks, as many elements at once as MPI can count."""
    if state[OPEN] == 0:
        return _closed(detail, BROADCAST)
    fault = check_root(root, state[SIZE], detail)
    if fault != OK:
        return fault
    start = np.int64(0)
    while start < len(buf):
        count = min(len(buf) - start, state[LIMIT])
        code = _call_bcast(
            state[F_BCAST],
            address_of(buf, start),
            np.int32(count),
            _datatype(state, buf),
            np.int32(root),
            state[COMM],
        )
        if code != 0:
            return _failure(state, scratch, detail, BROADCAST, code, count, buf.itemsize, root)
        start += count
    return OK


@inner_kernel
def _gather_parts(
    state: Any, scratch: Any, detail: Any, operation: Any, send: Any, recv: Any, counts: Any, displs: Any
) -> Any:
    size, limit = state[SIZE], state[LIMIT]
    for r in range(size):
        largest = max(counts[r], displs[r])
        if largest > limit:
            return fail(detail, INVALID_BUFFER_SIZE, operation, limit, largest, COUNT_LIMIT)
        _store_int32(scratch, state[CORNER] + 4 * r, np.int32(counts[r]))
        _store_int32(scratch, state[CORNER] + 4 * (size + r), np.int32(displs[r]))
    datatype = _datatype(state, send)
    code = _call_allgatherv(
        state[F_ALLGATHERV],
        address_of(send, 0),
        np.int32(len(send)),
        datatype,
        address_of(recv, 0),
        address_of(scratch, state[CORNER]),
        address_of(scratch, state[CORNER] + 4 * size),
        datatype,
        state[COMM],
    )
    if code != 0:
        return _failure(state, scratch, detail, operation, code, len(send), send.itemsize, 0)
    return OK


@inner_kernel
def mpi_allgatherv(
    state: Any, scratch: Any, detail: Any, send: Any, recv: Any, counts: Any, displs: Any
) -> Any:
    """Gather every rank's elements on every rank."""
    if state[OPEN] == 0:
        return _closed(detail, ALLGATHERV)
    fault = check_allgatherv(state[RANK], state[SIZE], send, recv, counts, displs, detail)
    if fault != OK:
        return fault
    return _gather_parts(state, scratch, detail, ALLGATHERV, send, recv, counts, displs)


@inner_kernel
def _is_shared(state: Any, recv: Any) -> Any:
    """Whether an array lies in a region that all ranks share."""
    start = address_of(recv, 0)
    stop = start + recv.size * recv.itemsize
    for i in range(state[REGIONS]):
        first = state[REGION_TABLE + 2 * i]
        if start >= first and stop <= first + state[REGION_TABLE + 2 * i + 1]:
            return True
    return False


@inner_kernel
def mpi_gather_shared(
    state: Any, scratch: Any, detail: Any, send: Any, recv: Any, counts: Any, displs: Any
) -> Any:
    """Gather into a region: where all ranks share it, each writes its part and waits for the others."""
    if state[OPEN] == 0:
        return _closed(detail, GATHER_SHARED)
    fault = check_allgatherv(state[RANK], state[SIZE], send, recv, counts, displs, detail)
    if fault != OK:
        detail[0] = GATHER_SHARED
        return fault
    if not _is_shared(state, recv):
        return _gather_parts(state, scratch, detail, GATHER_SHARED, send, recv, counts, displs)
    copy_bytes(recv, displs[state[RANK]] * recv.itemsize, send, 0, len(send) * send.itemsize)
    _memory_fence()
    code = _call_barrier(state[F_BARRIER], state[COMM])
    if code != 0:
        return _failure(state, scratch, detail, GATHER_SHARED, code, len(send), send.itemsize, 0)
    _memory_fence()
    return OK


@inner_kernel
def _exchange(state: Any, scratch: Any, send: Any, start: Any, count: Any) -> Any:
    """Copy a piece of every rank into the slots of one half; return MPI's code, and the place of the slots.

    The slots are full when all ranks have passed the barrier. A half is written again two pieces later, after
    a barrier that no rank enters before it has read the half.
    """
    place = address_of(scratch, state[CORNER] + 8 * state[SIZE])
    half = load_int32(place) & 1
    _store_int32(scratch, state[CORNER] + 8 * state[SIZE], np.int32(half ^ 1))
    first = half * state[SIZE] * state[STRIDE]
    slot = first + state[RANK] * state[STRIDE]
    copy_bytes(scratch, slot, send, start * send.itemsize, count * send.itemsize)
    _memory_fence()
    code = _call_barrier(state[F_BARRIER], state[COMM])
    _memory_fence()
    return code, first, state[STRIDE]


@inner_kernel
def _gather_pieces(state: Any, scratch: Any, send: Any, start: Any, count: Any) -> Any:
    """Gather a piece of every rank into this process's slots; return MPI's code, and their place."""
    datatype = _datatype(state, send)
    code = _call_allgather(
        state[F_ALLGATHER],
        address_of(send, start),
        np.int32(count),
        datatype,
        address_of(scratch, 0),
        np.int32(count),
        datatype,
        state[COMM],
    )
    return code, np.int64(0), np.int64(count * send.itemsize)


@inner_kernel
def _reduce_in_order(state: Any, scratch: Any, detail: Any, send: Any, recv: Any, op: Any) -> Any:
    """Fold the ranks' elements, piece by piece, in the order of ranks (COM-21)."""
    start = np.int64(0)
    while start < len(send):
        count = min(len(send) - start, state[SLOT_BYTES] // send.itemsize)
        if state[IS_SHARED] != 0:
            code, first, stride = _exchange(state, scratch, send, start, count)
        else:
            code, first, stride = _gather_pieces(state, scratch, send, start, count)
        if code != 0:
            return _failure(state, scratch, detail, ALLREDUCE, code, count, send.itemsize, 0)
        copy_bytes(recv, start * recv.itemsize, scratch, first, count * recv.itemsize)
        for r in range(1, state[SIZE]):
            fold_elements(recv, start, count, scratch, first + r * stride, op)
        start += count
    return OK


@inner_kernel
def mpi_allreduce(state: Any, scratch: Any, detail: Any, send: Any, recv: Any, op: Any) -> Any:
    """Fold the ranks' elements.

    Integers, and large sums of floats, are left to MPI. Other floats are folded here in the order of ranks:
    then a sum has the bits that the other backends give, and minimum and maximum do not lose NaN.
    """
    if state[OPEN] == 0:
        return _closed(detail, ALLREDUCE)
    fault = check_allreduce(send, recv, op, detail)
    if fault != OK:
        return fault
    if not has_integers(send) and (op != _SUM or len(send) * send.itemsize <= FOLD_BYTES):
        return _reduce_in_order(state, scratch, detail, send, recv, op)
    start = np.int64(0)
    while start < len(send):
        count = min(len(send) - start, state[LIMIT])
        code = _call_allreduce(
            state[F_ALLREDUCE],
            address_of(send, start),
            address_of(recv, start),
            np.int32(count),
            _datatype(state, send),
            state[OPERATIONS + op],
            state[COMM],
        )
        if code != 0:
            return _failure(state, scratch, detail, ALLREDUCE, code, count, send.itemsize, 0)
        start += count
    return OK
