"""Files and directories that are either complete or not there, also after a crash."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
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


@contextlib.contextmanager
def atomic_files(paths: Sequence[Path]) -> Iterator[list[BinaryIO]]:
    """Give several files to write, which get their names at the end of the block, all or none.

    When it ends, they are synced to disk at the same time and renamed; when it raises, none is there (or the
    older ones are). Their directories must exist.

    Raises
    ------
    OutputError
        When a file cannot be created, synced or renamed.
    """
    temporaries = [path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp") for path in paths]
    try:
        with contextlib.ExitStack() as opened:
            files: list[BinaryIO] = []
            for temporary, path in zip(temporaries, paths, strict=True):
                opened.enter_context(output_errors(path))  # closing writes what is buffered
                files.append(opened.enter_context(temporary.open("xb")))
            yield files
            with ThreadPoolExecutor(_SYNCING) as pool:
                list(pool.map(_sync_file, files, paths))
        for temporary, path in zip(temporaries, paths, strict=True):
            with output_errors(path):
                temporary.replace(path)
    except BaseException:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)
        raise
    for directory in sorted({path.parent for path in paths}):
        with output_errors(directory):
            sync_directory(directory)


def _sync_file(file: BinaryIO, path: Path) -> None:
    with output_errors(path):
        file.flush()
        os.fsync(file.fileno())


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
