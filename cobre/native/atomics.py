"""Atomic operations on elements of NumPy arrays, for nopython code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
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
        One-dimensional C-contiguous int64 array; in nopython code anything else is a typing error.
    index
        Position, 0 <= index < len(array); not checked in nopython code.
    value
        What to add; wraps around at the limits of int64.
    """
    old = int(array[index])
    array[index] += value
    return old


@intrinsic  # type: ignore[untyped-decorator]
def _fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        element = builder.gep(data, [arguments[1]], inbounds=True)
        return builder.atomic_rmw("add", element, arguments[2], ordering="seq_cst")

    return types.int64(array, types.intp, types.int64), generate


@overload(atomic_fetch_add)  # type: ignore[untyped-decorator]
def _atomic_fetch_add_overload(array: Any, index: Any, value: Any) -> Callable[..., int] | None:
    if not isinstance(array, types.Array):
        return None
    if array.ndim != 1 or array.layout != "C" or array.dtype != types.int64 or not array.mutable:
        raise TypingError(f"atomic_fetch_add needs a writable 1-D C-contiguous int64 array, not {array}")

    def fetch_add(array: Any, index: Any, value: Any) -> int:
        return _fetch_add(array, index, value)  # type: ignore[no-any-return]

    return fetch_add
