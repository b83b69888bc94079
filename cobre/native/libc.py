"""What nopython code calls in the C library, on Linux; kernels that do stay cacheable.

Addresses are integers (:func:`cobre.native.memory.address_of`). Functions return what C returns; on -1 ask
:func:`errno` at once, before anything else is called.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any, Final

import numpy as np
from numba import types

from cobre.errors import CobreError
from cobre.native.kernels import inner_kernel
from cobre.native.memory import address_of, load_int32
from cobre.native.symbols import bind_library

if not sys.platform.startswith("linux"):
    raise CobreError(
        "MissingSymbol",
        f"nopython code calls the C library of Linux only, not of {sys.platform}",
        {"platform": sys.platform},
        "use the backend local or mpi",
    )

_FUTEX_NUMBERS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
_SYS_FUTEX: Final = np.int64(_FUTEX_NUMBERS.get(platform.machine(), -1))
# without FUTEX_PRIVATE_FLAG: the word lies in memory that processes share
_FUTEX_WAIT: Final = np.int64(0)
_FUTEX_WAKE: Final = np.int64(1)
_EVERYBODY: Final = np.int64(2**31 - 1)
_NANOSECONDS_PER_SECOND: Final = 1_000_000_000

_address, _size, _int = types.intp, types.intp, types.int32
_functions = bind_library(
    ctypes.CDLL(None),
    "",
    {
        "__errno_location": _address(),
        "sched_yield": _int(),
        "poll": _int(_address, _size, _int),
        "sendmsg": _size(_int, _address, _int),
        "readv": _size(_int, _address, _int),
        "madvise": _int(_address, _size, _int),
        "process_vm_readv": _size(_int, _address, _size, _address, _size, _size),
        # the form of futex: number, word, operation, value, timeout, second word, third value
        "syscall": _size(_size, _address, _size, _size, _address, _address, _size),
    },
)

_errno_location: Any = getattr(_functions, "__errno_location")
_syscall: Any = _functions.syscall
sched_yield: Any = _functions.sched_yield
"""``sched_yield()``: let other threads have the processor."""
poll: Any = _functions.poll
"""``poll(address of struct pollfd[], number of them, milliseconds)``."""
madvise: Any = _functions.madvise
"""``madvise(address, bytes, advice)``."""
sendmsg: Any = _functions.sendmsg
"""``sendmsg(descriptor, address of struct msghdr, flags)``."""
readv: Any = _functions.readv
"""``readv(descriptor, address of struct iovec[], number of them)``."""

process_vm_readv: Any = _functions.process_vm_readv
"""``process_vm_readv(process id, address of struct iovec[], number, address of theirs, number, flags)``."""


@inner_kernel
def errno():  # type: ignore[no-untyped-def]
    """Return the error code of the last C function that failed in this thread, as int32."""
    return load_int32(_errno_location())


@inner_kernel
def futex_wait(words, index, expected, timeout_ns, timespec, at):  # type: ignore[no-untyped-def]
    """Sleep while the 32-bit word holds what is expected, until woken or for the given time.

    Parameters
    ----------
    words, index
        The word: an element of an int32 array, or the low half of one of an int64 array (little-endian).
    expected
        Value, of which the low 32 bits count.
    timeout_ns
        How long to sleep at most.
    timespec, at
        An int64 array of which two elements, from ``at`` on, may be overwritten.

    Returns
    -------
    int32
        0 when woken (or for no reason), else EAGAIN (the word holds something else), ETIMEDOUT or EINTR.
    """
    timespec[at] = timeout_ns // _NANOSECONDS_PER_SECOND
    timespec[at + 1] = timeout_ns % _NANOSECONDS_PER_SECOND
    outcome = _syscall(
        _SYS_FUTEX, address_of(words, index), _FUTEX_WAIT, expected, address_of(timespec, at), 0, 0
    )
    return np.int32(0) if outcome == 0 else errno()  # type: ignore[no-untyped-call]


@inner_kernel
def futex_wake(words, index):  # type: ignore[no-untyped-def]
    """Wake all who sleep on the word; return how many there were."""
    return _syscall(_SYS_FUTEX, address_of(words, index), _FUTEX_WAKE, _EVERYBODY, 0, 0, 0)
