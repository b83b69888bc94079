"""Addresses and raw bytes of arrays, for nopython code that talks to C or to other processes.

Nothing here is checked. Numba frees an array after its last *use*, and an address is no use: take addresses
only of arrays that are arguments of the function or fields of a jitclass, so that somebody else keeps them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic


def _require_contiguous(array: Any, operation: str, *, writes: bool = False) -> None:
    if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
        raise TypingError(f"{operation} needs a 1-D C-contiguous array, not {array}")
    if writes and not array.mutable:
        raise TypingError(f"{operation} needs a writable array, not {array}")


def _bytes_of(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [offset])


@intrinsic  # type: ignore[untyped-decorator]
def address_of(typing_context: Any, array: Any, index: Any) -> Any:
    """Return the address of an element as an integer."""
    _require_contiguous(array, "address_of")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(builder.gep(data, [arguments[1]]), cgutils.intp_t)

    return types.intp(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing_context: Any, array: Any) -> Any:
    """Return the same array without a share in its memory; anything else as it is.

    Each function that is handed an array counts itself among its owners and later out again, two atomic
    operations that together cost more than a short wait for another process. A borrowed array is not
    counted. It must not outlive the array that it was made from: pass it on, do not keep or return it.
    """
    if not isinstance(array, types.Array):

        def pass_on(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

        return array(array), pass_on

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(array)(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


@intrinsic  # type: ignore[untyped-decorator]
def copy_bytes(
    typing_context: Any, target: Any, target_offset: Any, source: Any, source_offset: Any, count: Any
) -> Any:
    """Copy bytes from one array to another that does not overlap it; offsets and count are in bytes."""
    _require_contiguous(target, "copy_bytes", writes=True)
    _require_contiguous(source, "copy_bytes")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = _bytes_of(context, builder, signature.args[0], arguments[0], arguments[1])
        start = _bytes_of(context, builder, signature.args[2], arguments[2], arguments[3])
        cgutils.raw_memcpy(builder, to, start, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def copy_at(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy bytes from one address to another; the two places do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, start = (builder.inttoptr(address, byte) for address in arguments[:2])
        cgutils.raw_memcpy(builder, to, start, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def load_element(typing_context: Any, source: Any, offset: Any, like: Any) -> Any:
    """Return the element at a byte offset of an array, read as the dtype of the array ``like``."""
    _require_contiguous(source, "load_element")
    _require_contiguous(like, "load_element")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _bytes_of(context, builder, signature.args[0], arguments[0], arguments[1])
        value_type = context.get_data_type(like.dtype)
        return builder.load(builder.bitcast(place, value_type.as_pointer()), align=1)

    return like.dtype(source, types.intp, like), generate


def _load_at(element_type: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer_type = ir.IntType(element_type.bitwidth).as_pointer()
        return builder.load(builder.inttoptr(arguments[0], pointer_type), align=1)

    return element_type(types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def load_int8(typing_context: Any, address: Any) -> Any:
    """Return the int8 at an address."""
    return _load_at(types.int8)


@intrinsic  # type: ignore[untyped-decorator]
def load_int32(typing_context: Any, address: Any) -> Any:
    """Return the int32 at an address."""
    return _load_at(types.int32)


@intrinsic  # type: ignore[untyped-decorator]
def load_int64(typing_context: Any, address: Any) -> Any:
    """Return the int64 at an address."""
    return _load_at(types.int64)
