"""Files in ``/dev/shm`` that ranks share: made, found, checked, mapped, and cleaned up after a crash.

They are opened as files rather than by :mod:`multiprocessing.shared_memory`, whose resource tracker removes a
segment as soon as the first process that attached to it ends. Space is reserved when a file is made, so that
a full ``/dev/shm`` is an error then and not a SIGBUS later.

The creator of a named segment holds a lock on it until the name is gone: a segment that can be locked was
left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hmac
import mmap
import os
import stat
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cobre.comm.config import NONCE_BYTES, ShmConfig
from cobre.comm.errors import AllocationFailed, InitializationFailed, RankLost
from cobre.comm.launch.processes import is_running, start_time
from cobre.comm.shm.layout import (
    H_CREATOR_PID,
    H_CREATOR_START,
    H_NONCE,
    H_SIZE,
    H_SLOT_BYTES,
    H_STAMP,
    H_TOTAL_BYTES,
    H_VERSION,
    HEADER_WORDS,
    LAYOUT_VERSION,
    MAGIC,
    WORD_BYTES,
    slot_bytes,
    total_bytes,
)
from cobre.native import package_stamp

DIRECTORY: Final = Path("/dev/shm")
NAME_PREFIX: Final = "cobre_"
"""How the names begin that the launcher gives."""

_PRIVATE_MODE: Final = 0o600
_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_STAMP_BYTES: Final = 16
_LOOK_AGAIN_S: Final = 0.002


@dataclass
class Segment:
    """A mapped control segment.

    Attributes
    ----------
    path
        Its name, as long as it has one.
    descriptor
        The open file; holds the locks.
    words, data
        The whole segment, as 64-bit words and as bytes.
    slot_bytes
        Size of one rank's slot in one half.
    """

    path: Path
    descriptor: int
    words: NDArray[np.int64]
    data: NDArray[np.uint8]
    slot_bytes: int

    def unlink(self) -> None:
        """Remove the name, if it still is that of this segment."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self.path.lstat(), os.fstat(self.descriptor)):
                self.path.unlink()

    def close(self) -> None:
        """Close the file, which gives up the locks; the memory stays mapped while arrays refer to it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _path(config: ShmConfig) -> Path:
    """Return where the segment is opened: by its name, or through the launcher that has made the file."""
    return DIRECTORY / config.name.removeprefix("/") if config.segment is None else Path(config.segment)


def _refuse(text: str) -> InitializationFailed:
    return InitializationFailed("shm", text)


def reserve(descriptor: int, size: int, what: str) -> None:
    """Give a new file its size and its memory.

    Raises
    ------
    AllocationFailed
        When there is not as much.
    """
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "more than can be addressed"
        raise AllocationFailed(
            size, f"{what}: {size} bytes of {DIRECTORY} cannot be had ({reason})"
        ) from error


def map_shared(descriptor: int, size: int) -> mmap.mmap:
    """Map a file of known size, with all its pages: none is to be looked up during a collective."""
    return mmap.mmap(descriptor, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))


def create_segment(config: ShmConfig) -> Segment:
    """Make the control segment; what is in it appears at once, complete (SHM-04).

    Raises
    ------
    InitializationFailed
        When the name is taken, or the launcher's file is another rank 0's.
    AllocationFailed
        When there is no room for it.
    """
    path = _path(config)
    descriptor = _create_locked(path) if config.segment is None else _open_launched(path)
    try:
        if _header(descriptor):
            raise _refuse("another process is rank 0 already")
        slot = slot_bytes(config.capacity_bytes, config.size)
        total = total_bytes(slot, config.size)
        reserve(descriptor, total, "the control segment")
        segment = _mapped(path, descriptor, total, slot)
        header = np.zeros(HEADER_WORDS, np.int64)
        header[H_VERSION], header[H_SIZE] = LAYOUT_VERSION, config.size
        header[H_TOTAL_BYTES], header[H_SLOT_BYTES] = total, slot
        header[H_CREATOR_PID], header[H_CREATOR_START] = os.getpid(), start_time(os.getpid()) or 0
        header[H_NONCE : H_NONCE + 2] = _words(config.nonce or bytes(NONCE_BYTES))
        header[H_STAMP : H_STAMP + 2] = _words(_stamp())
        os.pwrite(descriptor, header.tobytes(), 0)
        os.pwrite(descriptor, struct.pack("<q", MAGIC), 0)
    except BaseException:
        if config.segment is None:
            path.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return segment


def _open_launched(path: Path) -> int:
    """Open the file that the launcher has made; the path is a link of the system to it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise _refuse("the launcher has ended") from error
    except OSError as error:
        raise _refuse(f"the launcher's segment cannot be opened ({error.strerror})") from error
    try:
        _check_private(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _create_locked(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        try:
            descriptor = os.open(path, flags, _PRIVATE_MODE)
        except FileExistsError as error:  # SHM-05: never removed silently
            raise _refuse(
                f"a segment {path.name!r} exists already; give every job a name of its own, "
                "or remove what a crashed job left behind with 'cobre clean-shm'"
            ) from error
        except OSError as error:
            raise _refuse(f"{path} cannot be made ({error.strerror})") from error
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # taken for left behind and removed before it was locked


def open_segment(config: ShmConfig, deadline: float) -> Segment:
    """Find the segment that rank 0 makes, wait until it is complete, check that it is the right one, map it.

    Raises
    ------
    InitializationFailed
        When it does not appear by the deadline (monotonic clock), others may read it, or it belongs to
        another user or job.
    RankLost
        When rank 0, which made it, is gone.
    """
    path = _path(config)
    patience = f"{config.connect_timeout_s:g} s"
    descriptor = -1 if config.segment is None else _open_launched(path)
    try:
        while descriptor < 0:
            descriptor = _try_open(path)
            if descriptor < 0:
                _pause(deadline, f"rank 0 did not make the segment {path.name!r} within {patience}")
        _check_private(path, os.fstat(descriptor))
        while not (header := _header(descriptor)):
            _pause(deadline, f"rank 0 did not complete the segment {path.name!r} within {patience}")
        total = _check_header(path, header, config, os.fstat(descriptor).st_size)
        return _mapped(path, descriptor, total, int(header[H_SLOT_BYTES]))
    except BaseException:
        if descriptor >= 0:
            os.close(descriptor)
        raise


def _try_open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise _refuse(f"the segment {path.name!r} cannot be opened ({error.strerror})") from error


def _pause(deadline: float, story: str) -> None:
    if time.monotonic() > deadline:
        raise _refuse(story)
    time.sleep(_LOOK_AGAIN_S)


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _refuse(f"{path} is no segment")
    if status.st_uid != os.geteuid():
        raise _refuse(f"the segment {path.name!r} belongs to user id {status.st_uid}")
    if status.st_mode & _FOR_OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise _refuse(f"the segment {path.name!r} is open to other users (mode {mode:04o})")


def _header(descriptor: int) -> tuple[int, ...]:
    """Return the header once its magic is there, else nothing."""
    size = HEADER_WORDS * WORD_BYTES
    for _ in range(2):  # what was read along with the magic may be older than it
        content = os.pread(descriptor, size, 0)
        if len(content) < size or content[:WORD_BYTES] != struct.pack("<q", MAGIC):
            return ()
    return struct.unpack(f"<{HEADER_WORDS}q", content)


def _check_header(path: Path, header: tuple[int, ...], config: ShmConfig, size: int) -> int:
    """Return the bytes of a segment that is this job's."""
    expected = config.nonce or bytes(NONCE_BYTES)
    found = struct.pack("<2q", *header[H_NONCE : H_NONCE + 2])
    if not hmac.compare_digest(found, expected):
        raise _refuse(f"the segment {path.name!r} is another job's (its nonce differs)")
    if not is_running(header[H_CREATOR_PID], header[H_CREATOR_START]):
        raise RankLost(
            "shm",
            0,
            f"made the segment {path.name!r} and has ended, or this process cannot see it; "
            "'cobre clean-shm' removes what a crashed job left behind",
        )
    if header[H_VERSION] != LAYOUT_VERSION:
        raise _refuse(f"the segment {path.name!r} has layout {header[H_VERSION]}, not {LAYOUT_VERSION}")
    if struct.pack("<2q", *header[H_STAMP : H_STAMP + 2]) != _stamp():
        raise _refuse("rank 0 runs another version of cobre")
    if header[H_SIZE] != config.size:
        raise _refuse(f"rank 0 expects {header[H_SIZE]} ranks, this rank {config.size}")
    slot, total = header[H_SLOT_BYTES], header[H_TOTAL_BYTES]
    if slot <= 0 or total != total_bytes(slot, config.size) or size != total:
        raise _refuse(f"the segment {path.name!r} has {size} bytes instead of {total}")
    return total


def _mapped(path: Path, descriptor: int, total: int, slot: int) -> Segment:
    memory = map_shared(descriptor, total)
    return Segment(path, descriptor, np.frombuffer(memory, np.int64), np.frombuffer(memory, np.uint8), slot)


def _stamp() -> bytes:
    return bytes.fromhex(package_stamp())[:_STAMP_BYTES]


def _words(content: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(content) // WORD_BYTES}q", content)


def clean_stale_segments() -> list[str]:
    """Remove the control segments of this user whose creator is gone; return their names (SHM-05).

    Only a crash between the creation of a segment and the moment when all ranks have joined leaves one
    behind. Segments of other users and of running jobs are not touched.
    """
    return sorted(path.name for path in _candidates() if _remove_if_stale(path))


def _candidates() -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        for path in DIRECTORY.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    yield path


def _remove_if_stale(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EACCES, errno.ELOOP):
            return False
        raise
    try:
        header = _header(descriptor)
        if not header and not path.name.startswith(NAME_PREFIX):
            return False
        if header and start_time(header[H_CREATOR_PID]) == header[H_CREATOR_START]:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        path.unlink()
        return True
    except FileNotFoundError:
        return False
    finally:
        os.close(descriptor)
