"""Sockets in nopython code: the C functions that move bytes, by name, so that kernels stay cacheable.

Addresses are integers (:func:`cobre.native.memory.address_of`). Functions return what C returns; on -1 ask
:func:`cobre.native.libc.errno` at once. Descriptors come from Python, which also closes them.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba import types

from cobre.native.libc import sendmsg  # refuses platforms whose structures differ
from cobre.native.symbols import bind_library

__all__ = [
    "eventfd_read",
    "eventfd_write",
    "exit_process",
    "get_option",
    "receive",
    "recvmsg",
    "send",
    "sendmsg",
    "shutdown",
]

_address, _size, _int = types.intp, types.intp, types.int32
_functions = bind_library(
    ctypes.CDLL(None),
    "",
    {
        "recvmsg": _size(_int, _address, _int),
        "recv": _size(_int, _address, _size, _int),
        "send": _size(_int, _address, _size, _int),
        "shutdown": _int(_int, _int),
        "getsockopt": _int(_int, _int, _int, _address, _address),
        "eventfd_write": _int(_int, types.int64),
        "eventfd_read": _int(_int, _address),
        "_exit": types.void(_int),
    },
)

recvmsg: Any = _functions.recvmsg
"""``recvmsg(descriptor, address of struct msghdr, flags)``."""
receive: Any = _functions.recv
"""``recv(descriptor, address, bytes, flags)``."""
send: Any = _functions.send
"""``send(descriptor, address, bytes, flags)``."""
shutdown: Any = _functions.shutdown
"""``shutdown(descriptor, which side)``."""
get_option: Any = _functions.getsockopt
"""``getsockopt(descriptor, level, option, address of the value, address of its length)``."""
eventfd_write: Any = _functions.eventfd_write
"""``eventfd_write(descriptor, increment)``: make an eventfd readable."""
eventfd_read: Any = _functions.eventfd_read
"""``eventfd_read(descriptor, address of 8 bytes)``: empty an eventfd."""
exit_process: Any = getattr(_functions, "_exit")  # noqa: B009  (a name with an underscore)
"""``_exit(code)``: end the process, all its threads, at once."""
