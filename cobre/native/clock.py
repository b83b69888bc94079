"""The monotonic clock, for nopython code and for Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_NANOSECONDS_PER_SECOND = 1_000_000_000


def monotonic_ns() -> int:
    """Return the monotonic clock in nanoseconds, as int64 in nopython code.

    The same clock on both sides (``CLOCK_MONOTONIC``), so that a time taken in a kernel and one taken in
    Python may be compared. Kernels that call it stay cacheable; it allocates nothing.
    """
    return time.monotonic_ns()


@intrinsic  # type: ignore[untyped-decorator]
def _clock_gettime_ns(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, int32 = ir.IntType(64), ir.IntType(32)
        # struct timespec of 64-bit Linux: seconds, nanoseconds
        timespec = cgutils.alloca_once(builder, ir.ArrayType(word, 2))
        clock_gettime = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(int32, [int32, timespec.type]), "clock_gettime"
        )
        builder.call(clock_gettime, [int32(time.CLOCK_MONOTONIC), timespec])
        seconds = builder.load(cgutils.gep_inbounds(builder, timespec, 0, 0))
        nanoseconds = builder.load(cgutils.gep_inbounds(builder, timespec, 0, 1))
        return builder.add(builder.mul(seconds, word(_NANOSECONDS_PER_SECOND)), nanoseconds)

    return types.int64(), generate


@overload(monotonic_ns)  # type: ignore[untyped-decorator]
def _monotonic_ns_overload() -> Callable[[], int]:
    def read() -> int:
        return _clock_gettime_ns()  # type: ignore[no-any-return]

    return read
