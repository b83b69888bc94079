"""Payloads in nopython code of several backends: reductions, and codes of element types.

A reduction is a left fold over ranks, the same on every rank and in every run (COM-21):

    recv[i] = op(... op(op(x_0[i], x_1[i]), x_2[i]) ..., x_{R-1}[i])

where the elements ``x_r`` of rank r lie somewhere in a byte array, at any alignment.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from cobre.comm.contract import SUPPORTED_DTYPES, ReduceOp
from cobre.native import inner_kernel
from cobre.native.memory import load_element

_SUM = int(ReduceOp.SUM)
_MIN = int(ReduceOp.MIN)
_MAX = int(ReduceOp.MAX)


def dtype_number(array: Any) -> int:
    """Return the place of an array's dtype in ``SUPPORTED_DTYPES``; a constant in compiled code."""
    return SUPPORTED_DTYPES.index(array.dtype)


@overload(dtype_number)
def _dtype_number_overload(array: Any) -> Callable[[Any], int]:
    number = SUPPORTED_DTYPES.index(as_dtype(array.dtype))

    def tell(array: Any) -> int:
        return number

    return tell


def _either_bit(a: Any, b: Any) -> Any:
    """Return the bitwise or of two integers; for floats, which the checks refuse, the first."""
    return a | b if isinstance(a, np.integer) else a


@overload(_either_bit)
def _either_bit_overload(a: Any, b: Any) -> Callable[[Any, Any], Any]:
    def either(a: Any, b: Any) -> Any:
        return a | b

    def first(a: Any, b: Any) -> Any:
        return a

    return either if isinstance(a, types.Integer) else first


@inner_kernel
def fold_elements(recv: Any, start: Any, count: Any, data: Any, offset: Any, op: Any) -> Any:
    """Fold the elements at a byte offset of ``data`` into ``recv[start : start + count]``.

    The left operand is ``recv``. MIN and MAX keep a NaN of either side (COM-22).
    """
    width = recv.itemsize
    part = recv[start : start + count]  # indices from 0 on, which need no check for negative ones: SIMD
    if op == _SUM:
        for i in range(count):
            part[i] += load_element(data, offset + i * width, recv)
    elif op == _MIN:
        for i in range(count):
            a, b = part[i], load_element(data, offset + i * width, recv)
            part[i] = a if a < b or a != a else b
    elif op == _MAX:
        for i in range(count):
            a, b = part[i], load_element(data, offset + i * width, recv)
            part[i] = a if a > b or a != a else b
    else:
        for i in range(count):
            part[i] = _either_bit(part[i], load_element(data, offset + i * width, recv))
