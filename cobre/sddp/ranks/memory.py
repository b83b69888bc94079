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

from cobre.native.unmapping import unmap_code

_ROLLUP = Path("/proc/self/smaps_rollup")
_STATUS = Path("/proc/self/status")
_KIB = 1024


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
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    unmap_code()


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
