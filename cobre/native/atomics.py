"""Atomic operations on elements of NumPy arrays, for nopython code.

Arrays are one-dimensional, C-contiguous, of int32 or int64; anything else is a typing error. Indices are not
checked. An element that several threads or processes change must be read by :func:`atomic_load` wherever one
waits for it: a plain read in a loop may be moved out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def atomic_fetch_add(array: NDArray[np.int64], index: int, value: int) -> int:
    """Add to an element in one indivisible step; return what it held before.

    Threads of a ``prange`` share work with it: each takes the next index until none is left. The operation
    is sequentially consistent. Called from Python (or with ``NUMBA_DISABLE_JIT``) it is a plain addition.

    Parameters
    ----------
    array
        One-dimensional C-contiguous int32 or int64 array; in nopython code anything else is a typing error.
    index
        Position, 0 <= index < len(array); not checked in nopython code.
    value
        What to add; wraps around at the limits of the type.
    """
    old = int(array[index])
    array[index] += value
    return old


def _element_type(array: Any, operation: str, *, writes: bool) -> Any:
    """Return the dtype of an array that the operation accepts; a typing error for any other."""
    if (
        not isinstance(array, types.Array)
        or array.ndim != 1
        or array.layout != "C"
        or array.dtype not in (types.int32, types.int64)
        or (writes and not array.mutable)
    ):
        wanted = "writable 1-D" if writes else "1-D"
        raise TypingError(f"{operation} needs a {wanted} C-contiguous int32 or int64 array, not {array}")
    return array.dtype


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]], inbounds=True)


@intrinsic  # type: ignore[untyped-decorator]
def _fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = _pointer(context, builder, signature, arguments)
        return builder.atomic_rmw("add", element, arguments[2], ordering="seq_cst")

    return array.dtype(array, types.intp, array.dtype), generate


@overload(atomic_fetch_add)  # type: ignore[untyped-decorator]
def _atomic_fetch_add_overload(array: Any, index: Any, value: Any) -> Callable[..., int] | None:
    if not isinstance(array, types.Array):
        return None
    _element_type(array, "atomic_fetch_add", writes=True)

    def fetch_add(array: Any, index: Any, value: Any) -> int:
        return _fetch_add(array, index, value)  # type: ignore[no-any-return]

    return fetch_add


def _load(array: Any, operation: str, ordering: str) -> Any:
    element_type = _element_type(array, operation, writes=False)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = _pointer(context, builder, signature, arguments)
        return builder.load_atomic(element, ordering=ordering, align=element_type.bitwidth // 8)

    return element_type(array, types.intp), generate


def _store(array: Any, operation: str, ordering: str) -> Any:
    element_type = _element_type(array, operation, writes=True)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = _pointer(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], element, ordering=ordering, align=element_type.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, element_type), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_load(typing_context: Any, array: Any, index: Any) -> Any:
    """Return an element; what its writer did before a release store is visible afterwards (acquire)."""
    return _load(array, "atomic_load", "acquire")


@intrinsic  # type: ignore[untyped-decorator]
def atomic_load_ordered(typing_context: Any, array: Any, index: Any) -> Any:
    """Return an element, in one order with all other sequentially consistent operations."""
    return _load(array, "atomic_load_ordered", "seq_cst")


@intrinsic  # type: ignore[untyped-decorator]
def atomic_store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Set an element; earlier writes are visible to any thread that loads it (release)."""
    return _store(array, "atomic_store", "release")


@intrinsic  # type: ignore[untyped-decorator]
def atomic_store_ordered(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Set an element, in one order with all other sequentially consistent operations."""
    return _store(array, "atomic_store_ordered", "seq_cst")


@intrinsic  # type: ignore[untyped-decorator]
def atomic_compare_exchange(typing_context: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Set an element if it holds what is expected; return what it held (sequentially consistent)."""
    element_type = _element_type(array, "atomic_compare_exchange", writes=True)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = _pointer(context, builder, signature, arguments)
        outcome = builder.cmpxchg(
            element, arguments[2], arguments[3], ordering="seq_cst", failordering="seq_cst"
        )
        return builder.extract_value(outcome, 0)

    return element_type(array, types.intp, element_type, element_type), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_fence(typing_context: Any) -> Any:
    """Let nothing after it begin before all stores ahead of it are visible (sequentially consistent)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch_to_write(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the cache line of an element that this thread will soon set; a hint, without effect."""
    _element_type(array, "prefetch_to_write", writes=True)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing, int32, byte = ir.VoidType(), ir.IntType(32), ir.IntType(8).as_pointer()
        hint = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(nothing, [byte, int32, int32, int32]), "llvm.prefetch.p0"
        )
        element = builder.bitcast(_pointer(context, builder, signature, arguments), byte)
        builder.call(hint, [element, int32(1), int32(3), int32(1)])  # write, keep it in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def cpu_pause(typing_context: Any) -> Any:
    """Give the processor the hint that this thread waits in a loop; no operation where there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # target intrinsics, not inline assembly: Numba sets up no assembly parser and LLVM would abort
        nothing, int32 = ir.VoidType(), ir.IntType(32)
        triple = builder.module.triple
        if triple.startswith(("x86_64", "i686", "amd64")):
            hint = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(nothing, []), "llvm.x86.sse2.pause"
            )
            builder.call(hint, [])
        elif triple.startswith(("aarch64", "arm64")):
            hint = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(nothing, [int32]), "llvm.aarch64.hint"
            )
            builder.call(hint, [int32(1)])
        return context.get_dummy_value()

    return types.void(), generate
