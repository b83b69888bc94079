"""Status codes and the detail record by which nopython kernels report, and their way to an exception.

A kernel method returns an int32 status: ``OK`` or one of the codes below. On failure it has filled the
detail record, an int64 array of ``DETAIL_SIZE`` elements: operation, two numbers whose meaning depends on the
status, the reason, one more number, and an exception that a signal handler raised while the kernel waited
(:mod:`cobre.native.signals`). The Python owner turns both into an exception.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cobre.comm.errors import (
    AllocationFailed,
    CollectiveFailed,
    CommError,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    communicator_in_use,
)
from cobre.errors import Problem, ValidationError
from cobre.native.signals import PENDING_SIZE, take_pending

OK: Final = np.int32(0)
INVALID_BUFFER_SIZE: Final = np.int32(1)
"""Detail: expected and actual length."""
INVALID_ROOT: Final = np.int32(2)
"""Detail: root and size."""
INVALID_COMMUNICATOR: Final = np.int32(3)
COLLECTIVE_FAILED: Final = np.int32(4)
"""Detail: error code of the transport (0 where it has none), rank of the peer (-1: no particular rank)."""
ALLOCATION_FAILED: Final = np.int32(5)
"""Detail: bytes requested."""
INVALID_REDUCE_OP: Final = np.int32(6)
"""Detail: the operation's code."""
IN_USE: Final = np.int32(7)
"""Another thread is in a collective of the communicator; the detail record is that thread's."""

ALLGATHERV: Final = np.int64(0)
ALLREDUCE: Final = np.int64(1)
BROADCAST: Final = np.int64(2)
BARRIER: Final = np.int64(3)
GATHER_SHARED: Final = np.int64(4)
FENCE: Final = np.int64(5)
CREATE_REGION: Final = np.int64(6)
CLOSE: Final = np.int64(7)
OPERATION_NAMES: Final = (
    "allgatherv",
    "allreduce",
    "broadcast",
    "barrier",
    "gather_shared",
    "fence",
    "create_shared_region",
    "close",
)

COUNTS_LENGTH: Final = np.int64(1)
DISPLS_LENGTH: Final = np.int64(2)
SEND_LENGTH: Final = np.int64(3)
RECEIVE_EXTENT: Final = np.int64(4)
NEGATIVE_COUNT: Final = np.int64(5)
NEGATIVE_DISPLACEMENT: Final = np.int64(6)
OVERLAPPING_REGIONS: Final = np.int64(7)
ALIASED_BUFFERS: Final = np.int64(8)
LENGTHS_DIFFER: Final = np.int64(9)
EMPTY_BUFFER: Final = np.int64(10)
UNKNOWN_REDUCE_OP: Final = np.int64(11)
BITWISE_ON_FLOATS: Final = np.int64(12)
COUNT_LIMIT: Final = np.int64(13)
TRANSPORT_REFUSED: Final = np.int64(14)

PEER_DIED: Final = np.int64(20)
"""The peer's process has ended."""
PEER_FAILED: Final = np.int64(21)
"""The peer gave up, without further detail."""
TIMED_OUT: Final = np.int64(22)
"""The peer did not arrive in time; detail 4: milliseconds waited."""
DIVERGED: Final = np.int64(23)
"""The peer called another operation, or the same one with other arguments; detail 4: its operation."""
INTERRUPTED: Final = np.int64(24)
"""A signal handler raised; the exception is in the detail record."""
PEER_INTERRUPTED: Final = np.int64(25)
"""A signal handler raised on the peer."""
CORRUPTED: Final = np.int64(26)
"""What the peer sent makes no sense."""
PEER_SILENT: Final = np.int64(27)
"""The peer's heartbeats have stopped."""
PEER_CLOSED: Final = np.int64(28)
"""The peer has closed its communicator."""
LINK_BROKEN: Final = np.int64(29)
"""The connection to the peer failed; detail 4: error code of the operating system."""

PENDING: Final = 5
"""Where the detail record keeps an exception of a signal handler."""
DETAIL_SIZE: Final = PENDING + PENDING_SIZE

_LARGEST_ERRNO: Final = 4096

_SIZE_REASONS: Final = {
    int(COUNTS_LENGTH): "counts needs {expected} elements, one for each rank, and has {actual}",
    int(DISPLS_LENGTH): "displs needs {expected} elements, one for each rank, and has {actual}",
    int(SEND_LENGTH): "send needs the {expected} elements that counts promises, and has {actual}",
    int(RECEIVE_EXTENT): "recv needs at least {expected} elements and has {actual}",
    int(NEGATIVE_COUNT): "a count is negative: {actual}",
    int(NEGATIVE_DISPLACEMENT): "a displacement is negative: {actual}",
    int(OVERLAPPING_REGIONS): "the receive regions of two ranks share {actual} elements",
    int(ALIASED_BUFFERS): "send and recv share {actual} bytes of memory",
    int(LENGTHS_DIFFER): "recv needs as many elements as send, {expected}, and has {actual}",
    int(EMPTY_BUFFER): "the buffers are empty",
    int(COUNT_LIMIT): "counts and displacements go up to {expected} here; one is {actual}",
    int(TRANSPORT_REFUSED): "the transport refuses a buffer of {actual} elements",
}


_FAILURE_REASONS: Final = {
    int(PEER_DIED): "the process of {peer} has ended",
    int(PEER_FAILED): "{peer} gave up",
    int(TIMED_OUT): "{peer} did not come within {third} ms",
    int(DIVERGED): "this rank called {operation}, {peer} called {other}",
    int(INTERRUPTED): "interrupted by a signal",
    int(PEER_INTERRUPTED): "{peer} was interrupted by a signal",
    int(CORRUPTED): "{peer} sent what makes no sense",
    int(PEER_SILENT): "{peer} gives no sign of life",
    int(PEER_CLOSED): "{peer} has closed its communicator",
    int(LINK_BROKEN): "the connection to {peer} failed: {cause}",
}


def new_detail() -> NDArray[np.int64]:
    """Return an empty detail record."""
    return np.zeros(DETAIL_SIZE, np.int64)


def error_from_status(status: int, detail: NDArray[np.int64]) -> BaseException:
    """Return the exception for a status other than ``OK``.

    It is a :class:`~cobre.errors.CobreError`, or what a signal handler raised while the kernel waited (such
    as ``KeyboardInterrupt``).

    Parameters
    ----------
    status
        What the kernel's method returned.
    detail
        The detail record that it filled.
    """
    if status == IN_USE:
        return communicator_in_use()
    interruption = take_pending(detail[PENDING:])
    if interruption is not None:
        return interruption
    operation = OPERATION_NAMES[int(detail[0])]
    first, second, reason = int(detail[1]), int(detail[2]), int(detail[3])
    if status == INVALID_REDUCE_OP:
        return _reduce_op_error(first, reason)
    if status == COLLECTIVE_FAILED and reason in _FAILURE_REASONS:
        return _collective_error(operation, first, second, reason, int(detail[4]))
    return _comm_error(int(status), operation, first, second, reason)


def _comm_error(status: int, operation: str, first: int, second: int, reason: int) -> CommError:
    if status == INVALID_BUFFER_SIZE:
        text = _SIZE_REASONS[reason].format(expected=first, actual=second)
        return InvalidBufferSize(operation, first, second, message=f"{operation}: {text}")
    if status == INVALID_ROOT:
        return InvalidRoot(first, second)
    if status == INVALID_COMMUNICATOR:
        return InvalidCommunicator()
    if status == ALLOCATION_FAILED:
        return AllocationFailed(first, f"{operation}: {first} bytes could not be allocated")
    if status == COLLECTIVE_FAILED:
        return CollectiveFailed(operation, first, f"{operation} failed (transport error code {first})")
    raise ValueError(f"{status} is no failure status of a communicator")


def _collective_error(operation: str, code: int, peer: int, reason: int, third: int) -> CollectiveFailed:
    other = OPERATION_NAMES[third] if 0 <= third < len(OPERATION_NAMES) else "another operation"
    text = _FAILURE_REASONS[reason].format(
        peer=f"rank {peer}" if peer >= 0 else "a peer",
        operation=operation,
        other=f"{other} with other arguments" if other == operation else other,
        third=third,
        cause=os.strerror(third) if 0 <= third < _LARGEST_ERRNO else "unknown error",
    )
    return CollectiveFailed(operation, code, f"{operation}: {text}")


def _reduce_op_error(op: int, reason: int) -> ValidationError:
    if reason == BITWISE_ON_FLOATS:
        problem = Problem(
            "TypeMismatch",
            "allreduce: BITWISE_OR is for integers only",
            {"argument": "op", "value": op},
            "use SUM, MIN or MAX, or integer buffers",
        )
    else:
        problem = Problem(
            "InvalidEnum",
            f"allreduce: {op} is no reduce operation",
            {"argument": "op", "value": op},
            "use SUM (0), MIN (1), MAX (2) or BITWISE_OR (3)",
        )
    return ValidationError([problem], "the arguments of allreduce")
