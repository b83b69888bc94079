"""Memory of a rank: how much it takes, giving back what is no longer used, and files for what hardly is.

The code of libraries, some 140 MB of LLVM, Arrow and others, counts towards a process as soon as it has run
once. Training needs almost none of it, so its pages are unmapped between phases. They stay in the system's
cache of files, and come back one by one where code runs again.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

_ROLLUP = Path("/proc/self/smaps_rollup")
_STATUS = Path("/proc/self/status")
_KIB = 1024

_PT_LOAD = 1
_PF_W = 2


class _ProgramHeader(ctypes.Structure):
    """``Elf64_Phdr``."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("physical", ctypes.c_uint64),
        ("file_size", ctypes.c_uint64),
        ("memory_size", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    )


class _LoadedObject(ctypes.Structure):
    """The first fields of ``struct dl_phdr_info``."""

    _fields_ = (
        ("base", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.POINTER(_ProgramHeader)),
        ("num_headers", ctypes.c_uint16),
    )


_OnObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_LoadedObject), ctypes.c_size_t, ctypes.c_void_p)


def memory_bytes() -> tuple[int, int]:
    """Return the memory of this process, and its share if shared pages are divided among processes; in bytes.

    What the system does not report is 0.
    """
    try:
        lines = _ROLLUP.read_text().splitlines()
    except OSError:
        try:
            lines = _STATUS.read_text().splitlines()
        except OSError:
            return 0, 0
    sizes = {
        name: int(rest.split()[0]) * _KIB
        for name, colon, rest in (line.partition(":") for line in lines)
        if colon and name in ("Rss", "VmRSS", "Pss")
    }
    return sizes.get("Rss", sizes.get("VmRSS", 0)), sizes.get("Pss", 0)


def return_unused_memory() -> None:
    """Give back memory that was freed, that of tables included, and unmap the code of libraries."""
    pyarrow.default_memory_pool().release_unused()
    # Keeps Python's lock: a thread that waited for it, and for the loader's lock, would never go on.
    libc: Any = ctypes.PyDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    if hasattr(libc, "dl_iterate_phdr") and ctypes.sizeof(ctypes.c_void_p) == ctypes.sizeof(ctypes.c_uint64):
        _unmap_code(libc)


def _unmap_code(libc: Any) -> None:
    """Unmap pages of segments that are never written, which have the content of their file.

    The loader's lock is held meanwhile, so that no library is half loaded. Advice that the system does not
    take changes nothing.
    """
    page, dont_need = mmap.PAGESIZE, mmap.MADV_DONTNEED

    def unmap(loaded: Any, _size: int, _data: int | None) -> int:
        part = loaded.contents
        # The program itself and the kernel's page have no name, and next to nothing to give.
        if part.name:
            for header in part.headers[: part.num_headers]:
                if header.type == _PT_LOAD and not header.flags & _PF_W:
                    first = -(-(part.base + header.address) // page) * page
                    end = (part.base + header.address + header.file_size) // page * page
                    if end > first:
                        libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), dont_need)
        return 0

    libc.dl_iterate_phdr(_OnObject(unmap), None)


class FileMemory:
    """Arrays in files without a name, from which they come back page by page where they are read."""

    def __init__(self) -> None:
        self._mapped: list[mmap.mmap] = []

    def keep(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy in a file; the array itself where there is no room for one."""
        if not array.nbytes:
            return array
        try:
            with tempfile.TemporaryFile() as file:
                os.posix_fallocate(file.fileno(), 0, array.nbytes)
                mapped = mmap.mmap(file.fileno(), array.nbytes)
        except OSError:
            return array
        copy = np.frombuffer(mapped, array.dtype).reshape(array.shape)
        copy[...] = array
        self._mapped.append(mapped)
        self.unmap()
        return copy

    def unmap(self) -> None:
        """Have the pages that are in memory count no longer."""
        for mapped in self._mapped:
            mapped.madvise(mmap.MADV_DONTNEED)
