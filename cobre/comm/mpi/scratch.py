"""Where the mpi backend keeps the elements that it folds itself.

Each rank has a slot. Where all ranks share a host the slots lie in memory that they share: a rank writes its
slot, waits for the others, and reads theirs. There are two halves in turn, so that one barrier is enough:
no rank overwrites a half before all have read it. Elsewhere the slots are this process's own, and MPI gathers
the elements into them.

Layout: the slots of the first half, those of the second, then for every rank its own corner with the int32
counts and displacements of a gather, a counter that selects the half, and room for an error class.
"""

from __future__ import annotations

import mmap
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cobre.comm.mpi.calls import CORNER_WORDS, FOLD_BYTES

_DIRECTORY: Final = "/dev/shm"
_NAME_BYTES: Final = 64
_SMALLEST_SLOT: Final = 4 * 1024
_HALF_BYTES: Final = 4 * 1024 * 1024
_PADDING: Final = 128  # slots at powers of two would share few sets of the cache


@dataclass(frozen=True)
class Scratch:
    """The memory and where things are in it.

    Attributes
    ----------
    data
        All of it.
    is_shared
        Whether all ranks see the same memory.
    slot_bytes, stride
        Usable bytes of a slot, and the distance from one to the next.
    corner
        Where this rank's corner begins.
    """

    data: NDArray[np.uint8]
    is_shared: bool
    slot_bytes: int
    stride: int
    corner: int


def make_scratch(mpi: Any, world: Any, node: Any) -> Scratch:
    """Make the memory; collective over the world.

    Parameters
    ----------
    mpi
        The module ``mpi4py.MPI``.
    world, node
        All ranks, and those that share memory with this one.
    """
    size = world.size
    slot = min(FOLD_BYTES, max(_SMALLEST_SLOT, _HALF_BYTES // size // 64 * 64))
    stride = slot + _PADDING
    corner_bytes = 8 * (size + CORNER_WORDS)
    corners = 2 * size * stride
    total = corners + size * corner_bytes
    memory = _share(mpi, world, node, total) if 1 < size == node.size else None
    if memory is None:
        data = np.zeros(corners // 2 + corner_bytes, np.uint8)
        return Scratch(data, False, slot, stride, corners // 2)
    return Scratch(np.frombuffer(memory, np.uint8), True, slot, stride, corners + world.rank * corner_bytes)


def _share(mpi: Any, world: Any, node: Any, size: int) -> mmap.mmap | None:
    """Map the same memory on all ranks of a host, or on none of them."""
    name = np.zeros(_NAME_BYTES, np.uint8)
    memory = None
    if node.rank == 0:
        path = f"{_DIRECTORY}/cobre_mpi_{secrets.token_hex(10)}"
        memory = _create(path, size)
        if memory is not None:
            name[: len(path)] = np.frombuffer(path.encode(), np.uint8)
    node.Bcast(name, root=0)
    path = name.tobytes().rstrip(b"\0").decode()
    if node.rank != 0 and path:
        memory = _open(path, size)
    mine, everybody = np.array([memory is not None], np.int32), np.zeros(1, np.int32)
    world.Allreduce(mine, everybody, op=mpi.MIN)
    if node.rank == 0 and path:
        Path(path).unlink()  # all have it: from now on no crash can leave it behind
    return memory if everybody[0] else None


def _create(path: str, size: int) -> mmap.mmap | None:
    if not sys.platform.startswith("linux"):
        return None
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return None
    try:
        os.posix_fallocate(descriptor, 0, size)  # no room: an error now instead of a SIGBUS later
        return mmap.mmap(descriptor, size)
    except OSError:
        Path(path).unlink()
        return None
    finally:
        os.close(descriptor)


def _open(path: str, size: int) -> mmap.mmap | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_size != size:
            return None
        return mmap.mmap(descriptor, size)
    except OSError:
        return None
    finally:
        os.close(descriptor)
