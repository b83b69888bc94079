"""Files and directories that are either complete or not there, also after a crash."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from cobre.errors import OutputError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_SYNCING = 8  # the disk works on their syncs at the same time
_NO_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM})


def atomic_write(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file so that its name never refers to a partial file, even after a crash.

    The content goes to a temporary name in the same directory, is synced to disk and renamed. Whatever goes
    wrong, the temporary file is removed and an older file under the name stays as it was.

    Parameters
    ----------
    write
        Writes the content to the binary file that it is given.

    Raises
    ------
    OutputError
        When the file cannot be written.
    """
    with output_errors(path):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def atomic_write_all(files: Iterable[tuple[Path, Callable[[BinaryIO], None]]]) -> None:
    """Write several files, each as :func:`atomic_write` does, and sync them to disk at the same time.

    None of them has its name before all are written: when one fails, none is there (or the older ones are).
    Their directories must exist. Contents are written by other threads, in no order.

    Raises
    ------
    OutputError
        When a file cannot be written.
    """
    moves: list[tuple[Path, Path]] = []
    with ThreadPoolExecutor(_SYNCING) as pool:
        try:
            jobs = []
            for path, write in files:
                temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
                moves.append((temporary, path))
                jobs.append(pool.submit(_write_synced, temporary, path, write))
            for job in jobs:
                job.result()
            for temporary, path in moves:
                with output_errors(path):
                    temporary.replace(path)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            for temporary, _ in moves:
                temporary.unlink(missing_ok=True)
            raise
        list(pool.map(_sync_named, sorted({path.parent for _, path in moves})))


def _write_synced(temporary: Path, path: Path, write: Callable[[BinaryIO], None]) -> None:
    with output_errors(path), temporary.open("xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _sync_named(directory: Path) -> None:
    with output_errors(directory):
        sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an :class:`OutputError` that names the path."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            "OutputNotWritable",
            f"{path} cannot be written: {error.strerror or error}",
            {"file": str(path)},
            "check the free space and the permissions of the directory, or choose another one",
        ) from error


def put_directory(staging: Path, target: Path) -> None:
    """Give a complete directory its name, in place of another one that may have it.

    Both must be siblings, and the files in ``staging`` synced. Where the system can exchange two names at
    once (Linux, most file systems) there is a complete directory under ``target`` at every moment;
    elsewhere the old one is under another name, ``<staging>.previous``, for a moment. The old one is
    removed.
    """
    sync_directory(staging)
    if not os.path.lexists(target):
        staging.rename(target)
        sync_directory(target.parent)
        return
    if _exchange(staging, target):
        sync_directory(target.parent)
        shutil.rmtree(staging)
        return
    previous = staging.with_name(f"{staging.name}.previous")
    target.rename(previous)
    try:
        staging.rename(target)
    except BaseException:
        previous.rename(target)
        raise
    sync_directory(target.parent)
    shutil.rmtree(previous)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; whether the system could."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    paths = [os.fsencode(path.absolute()) for path in (one, other)]
    if function(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))
