"""Unmapping the code of libraries, which counts towards a process as soon as it has run once.

The loader calls a function for every library while it holds its lock. That function is compiled and needs
nothing of Python: one of Python could hand over its lock to a thread that waits for the loader's.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any

import numpy as np
from numba import cfunc, types

from cobre.native.guard import compile_guard
from cobre.native.libc import madvise
from cobre.native.memory import load_int8, load_int32, load_int64

_PT_LOAD = 1
_PF_W = 2
_MADV_DONTNEED = np.int32(4)
_HEADER_BYTES = 56
"""Of an ``Elf64_Phdr``: type, flags, then words: offset, address, physical address, size in the file."""
_COUNT_BITS = 0xFFFF

_SIGNATURE = types.int32(types.intp, types.intp, types.intp)


def _unmap_segments(library, _size, page):
    """Unmap the segments of a ``struct dl_phdr_info`` that are never written: they are as in their file."""
    base, name, headers = load_int64(library), load_int64(library + 8), load_int64(library + 16)
    # The program itself and the kernel's page have no name, and next to nothing to give.
    if name == 0 or load_int8(name) == 0:
        return np.int32(0)
    for place in range(load_int32(library + 24) & _COUNT_BITS):
        header = headers + place * _HEADER_BYTES
        if load_int32(header) == _PT_LOAD and load_int32(header + 4) & _PF_W == 0:
            start = base + load_int64(header + 16)
            first = (start + page - 1) // page * page
            end = (start + load_int64(header + 32)) // page * page
            if end > first:
                madvise(first, end - first, _MADV_DONTNEED)  # not taken, it changes nothing
    return np.int32(0)


@functools.cache
def _compiled() -> Any:
    with compile_guard("unmapping"):
        return cfunc(_SIGNATURE, cache=True)(_unmap_segments)


def unmap_code() -> None:
    """Unmap what libraries have mapped from their files and never write; it comes back where it is read."""
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "dl_iterate_phdr") and ctypes.sizeof(ctypes.c_void_p) == ctypes.sizeof(ctypes.c_uint64):
        libc.dl_iterate_phdr(ctypes.c_void_p(_compiled().address), ctypes.c_void_p(mmap.PAGESIZE))
