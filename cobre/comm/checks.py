"""Argument checks of the collectives: in nopython code for kernels, in Python for owners.

The nopython checks return a status and fill the detail record (:mod:`cobre.comm.status`). They run before any
data moves, in the order of COM-14 and COM-20, because nopython code has no bounds checks of its own. What is
wrong with an array's dtype, layout or number of dimensions is a typing error there, at no cost when it runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from cobre import native  # noqa: F401  # kernels below are cached by the package's rules
from cobre.comm.contract import SUPPORTED_DTYPES, ReduceOp
from cobre.comm.status import (
    ALIASED_BUFFERS,
    ALLGATHERV,
    ALLREDUCE,
    BITWISE_ON_FLOATS,
    BROADCAST,
    COUNTS_LENGTH,
    DISPLS_LENGTH,
    EMPTY_BUFFER,
    INVALID_BUFFER_SIZE,
    INVALID_REDUCE_OP,
    INVALID_ROOT,
    LENGTHS_DIFFER,
    NEGATIVE_COUNT,
    NEGATIVE_DISPLACEMENT,
    OK,
    OVERLAPPING_REGIONS,
    RECEIVE_EXTENT,
    SEND_LENGTH,
    UNKNOWN_REDUCE_OP,
)
from cobre.errors import Problem, ValidationError

_BITWISE_OR = int(ReduceOp.BITWISE_OR)
_LARGEST = int(np.iinfo(np.int64).max)


def require_payload(array: Any) -> None:
    """Refuse, when compiling, what is no buffer of a collective (COM-03); costs nothing when it runs."""
    check_buffer(array, "buffer", "a collective", writable=False)


@overload(require_payload)  # type: ignore[untyped-decorator]
def _require_payload_overload(array: Any) -> Callable[[Any], None]:
    if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C" or not array.aligned:
        raise TypingError(f"a collective moves 1-D C-contiguous arrays, not {array}")
    if as_dtype(array.dtype) not in SUPPORTED_DTYPES:
        raise TypingError(f"a collective does not move elements of type {array.dtype}")

    def accept(array: Any) -> None:
        pass

    return accept


def require_same_dtype(send: Any, recv: Any) -> None:
    """Refuse, when compiling, buffers of different dtypes."""
    _require_equal_dtypes(send, recv, "a collective")


@overload(require_same_dtype)  # type: ignore[untyped-decorator]
def _require_same_dtype_overload(send: Any, recv: Any) -> Callable[[Any, Any], None]:
    if send.dtype != recv.dtype:
        raise TypingError(f"send and recv have different dtypes: {send.dtype} and {recv.dtype}")

    def accept(send: Any, recv: Any) -> None:
        pass

    return accept


def has_integers(array: Any) -> bool:
    """Whether an array's elements are integers; a constant in compiled code."""
    return bool(np.issubdtype(array.dtype, np.integer))


@overload(has_integers)  # type: ignore[untyped-decorator]
def _has_integers_overload(array: Any) -> Callable[[Any], bool]:
    answer = isinstance(array.dtype, types.Integer)

    def tell(array: Any) -> bool:
        return answer

    return tell


@njit(cache=True)
def fail(detail, status, operation, first, second, reason):  # type: ignore[no-untyped-def]
    """Fill the detail record and return the status."""
    detail[0] = operation
    detail[1] = first
    detail[2] = second
    detail[3] = reason
    return status


@njit(cache=True)
def shared_bytes(a, b):  # type: ignore[no-untyped-def]
    """Return how many bytes of memory two arrays have in common."""
    start = max(a.ctypes.data, b.ctypes.data)
    stop = min(a.ctypes.data + a.size * a.itemsize, b.ctypes.data + b.size * b.itemsize)
    return max(np.int64(stop) - np.int64(start), np.int64(0))


@njit(cache=True)
def check_allgatherv(rank, size, send, recv, counts, displs, detail):  # type: ignore[no-untyped-def]
    """Check COM-10 in the order of COM-14: counts, displs, send, extent in recv; then overlaps."""
    if len(counts) != size:
        return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, size, len(counts), COUNTS_LENGTH)
    if len(displs) != size:
        return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, size, len(displs), DISPLS_LENGTH)
    if len(send) != counts[rank]:
        return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, counts[rank], len(send), SEND_LENGTH)
    extent = np.int64(0)
    ordered = True
    for r in range(size):
        if counts[r] < 0:
            return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, 0, counts[r], NEGATIVE_COUNT)
        if displs[r] < 0:
            return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, 0, displs[r], NEGATIVE_DISPLACEMENT)
        if displs[r] < extent:
            ordered = False
        # a sum beyond int64 would wrap round to a negative number and pass
        end = displs[r] + counts[r] if counts[r] <= _LARGEST - displs[r] else _LARGEST
        extent = max(extent, end)
    if extent > len(recv):
        return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, extent, len(recv), RECEIVE_EXTENT)
    if not ordered:
        for r in range(size):
            for other in range(r):
                start = max(displs[r], displs[other])
                common = min(displs[r] + counts[r], displs[other] + counts[other]) - start
                if common > 0:
                    return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, 0, common, OVERLAPPING_REGIONS)
    common = shared_bytes(send, recv)
    if common > 0:
        return fail(detail, INVALID_BUFFER_SIZE, ALLGATHERV, 0, common, ALIASED_BUFFERS)
    return OK


@njit(cache=True)
def check_allreduce(send, recv, op, detail):  # type: ignore[no-untyped-def]
    """Check COM-20: lengths differ, then empty; then the operation, then a shared memory."""
    if len(recv) != len(send):
        return fail(detail, INVALID_BUFFER_SIZE, ALLREDUCE, len(send), len(recv), LENGTHS_DIFFER)
    if len(send) == 0:
        return fail(detail, INVALID_BUFFER_SIZE, ALLREDUCE, 1, 0, EMPTY_BUFFER)
    if op < 0 or op > _BITWISE_OR:
        return fail(detail, INVALID_REDUCE_OP, ALLREDUCE, op, 0, UNKNOWN_REDUCE_OP)
    if op == _BITWISE_OR and not has_integers(send):
        return fail(detail, INVALID_REDUCE_OP, ALLREDUCE, op, 0, BITWISE_ON_FLOATS)
    common = shared_bytes(send, recv)
    if common > 0:
        return fail(detail, INVALID_BUFFER_SIZE, ALLREDUCE, 0, common, ALIASED_BUFFERS)
    return OK


@njit(cache=True)
def check_root(root, size, detail):  # type: ignore[no-untyped-def]
    """Check COM-30: the root is a rank."""
    if root < 0 or root >= size:
        return fail(detail, INVALID_ROOT, BROADCAST, root, size, 0)
    return OK


def check_buffer(array: Any, name: str, operation: str, *, writable: bool) -> None:
    """Check, in Python, that an argument can be a buffer of a collective (COM-03).

    Raises
    ------
    ValidationError
        Kind ``TypeMismatch`` when it is not a 1-D, C-contiguous, aligned array of a supported dtype, or has
        to be written and is read-only.
    """
    if not isinstance(array, np.ndarray):
        fault = f"is a {type(array).__name__}, not a NumPy array"
    elif array.dtype not in SUPPORTED_DTYPES or not array.dtype.isnative:
        fault = f"has dtype {array.dtype}, which is none of {', '.join(str(d) for d in SUPPORTED_DTYPES)}"
    elif array.ndim != 1:
        fault = f"has {array.ndim} dimensions instead of 1"
    elif not array.flags.c_contiguous:
        fault = "is not C-contiguous"
    elif not array.flags.aligned:
        fault = "is not aligned"
    elif writable and not array.flags.writeable:
        fault = "is read-only"
    else:
        return
    raise _type_mismatch(operation, name, fault)


def check_pair(send: Any, recv: Any, operation: str) -> None:
    """Check, in Python, the two buffers of a collective: each for itself, and that their dtypes agree."""
    check_buffer(send, "send", operation, writable=False)
    check_buffer(recv, "recv", operation, writable=True)
    _require_equal_dtypes(send, recv, operation)


def _require_equal_dtypes(send: NDArray[Any], recv: NDArray[Any], operation: str) -> None:
    if send.dtype != recv.dtype:
        raise _type_mismatch(operation, "recv", f"has dtype {recv.dtype} while send has {send.dtype}")


def integers(values: Sequence[int] | NDArray[Any], name: str, operation: str) -> NDArray[np.int64]:
    """Return counts or displacements as a contiguous int64 array.

    Raises
    ------
    ValidationError
        Kind ``TypeMismatch`` when they are not a flat sequence of integers that int64 can hold.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise _type_mismatch(operation, name, f"has {array.ndim} dimensions instead of 1")
    if array.size and array.dtype.kind not in "iu":
        raise _type_mismatch(operation, name, f"has elements of type {array.dtype}, not integers")
    if array.dtype.kind == "u" and array.size and int(array.max()) > _LARGEST:
        raise _type_mismatch(operation, name, "has an element that int64 cannot hold")
    return np.array(array, dtype=np.int64)  # a copy: always writable, so that kernels see one type


def integer(value: Any, name: str, operation: str, *, any_size: bool = False) -> int:
    """Return an argument that has to be an integer, before it reaches code with fixed widths.

    Raises
    ------
    ValidationError
        Kind ``TypeMismatch`` when it is none, or int64 cannot hold it (unless ``any_size``).
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise _type_mismatch(operation, name, f"is {value!r}, not an integer") from None
    if not any_size and not -_LARGEST <= number <= _LARGEST:
        raise _type_mismatch(operation, name, f"is {number}, which int64 cannot hold")
    return number


def _type_mismatch(operation: str, name: str, fault: str) -> ValidationError:
    problem = Problem(
        "TypeMismatch", f"{operation}: {name} {fault}", {"operation": operation, "argument": name}
    )
    return ValidationError([problem], f"the arguments of {operation}")
