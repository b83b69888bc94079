"""Files that are either complete or not there."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.errors import OutputError


def atomic_write(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file so that its name never stands for half of it, even after a crash.

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


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON object atomically; numbers must be finite."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    atomic_write(path, lambda file: _write_all(file, text.encode("utf-8", "backslashreplace")))


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table atomically, with zstd."""
    atomic_write(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _write_all(file: BinaryIO, content: bytes) -> None:
    file.write(content)
