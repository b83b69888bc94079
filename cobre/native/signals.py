"""Python's signal handlers, run from nopython code that waits.

A signal interrupts a system call (EINTR), but Python runs its handler only between byte codes: a kernel that
simply waited on would not see Ctrl-C until it returned. A kernel that waits therefore asks for the handlers
to be run. One that only sets a flag lets the kernel wait on; one that raises (as that of Ctrl-C does) ends
the wait, and its exception is kept for the caller to raise.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numpy.typing import NDArray

PENDING_SIZE = 3
"""Elements of an int64 array that keep an exception."""

_restore = ctypes.pythonapi.PyErr_Restore
_restore.argtypes = [ctypes.c_void_p] * PENDING_SIZE
_restore.restype = None


@intrinsic  # type: ignore[untyped-decorator]
def signal_handler_raised(typing_context: Any, pending: Any, at: Any) -> Any:
    """Run the handlers of pending signals; return whether one of them raised.

    Handlers run in the main thread only; in another thread the result is false. May be called with or
    without the GIL.

    Parameters
    ----------
    pending
        A writable int64 array; its elements from ``at`` to ``at + PENDING_SIZE`` get the exception.
    at
        First of these elements.
    """
    if not isinstance(pending, types.Array) or pending.dtype != types.int64 or pending.layout != "C":
        raise TypingError(f"signal_handler_raised keeps the exception in an int64 array, not in {pending}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing, int32, pointer = ir.VoidType(), ir.IntType(32), ir.IntType(8).as_pointer()

        def call(name: str, result: Any, parameters: list[Any], values: list[Any]) -> Any:
            function_type = ir.FunctionType(result, parameters)
            function = cgutils.get_or_insert_function(builder.module, function_type, name)
            return builder.call(function, values)

        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        slots = [
            builder.bitcast(
                builder.gep(data, [builder.add(arguments[1], arguments[1].type(i))]), pointer.as_pointer()
            )
            for i in range(PENDING_SIZE)
        ]
        gil = call("PyGILState_Ensure", int32, [], [])
        failure = builder.icmp_signed("!=", call("PyErr_CheckSignals", int32, [], []), int32(0))
        with builder.if_then(failure):
            call("PyErr_Fetch", nothing, [slot.type for slot in slots], slots)
        call("PyGILState_Release", nothing, [int32], [gil])
        return failure

    return types.boolean(pending, types.intp), generate


def take_pending(pending: NDArray[np.int64]) -> BaseException | None:
    """Return the exception that a kernel has kept, or ``None``; the array is empty afterwards.

    Parameters
    ----------
    pending
        The ``PENDING_SIZE`` elements that were given to :func:`signal_handler_raised`; fewer hold nothing.
    """
    if len(pending) < PENDING_SIZE or pending[0] == 0:
        return None
    kind, value, traceback = (int(word) or None for word in pending)
    pending[:] = 0
    try:
        _restore(kind, value, traceback)  # takes over the references; ctypes then raises the exception
    except BaseException as exception:
        return exception
    raise AssertionError("a kept exception was not restored")
