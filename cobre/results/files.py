"""JSON and Parquet files that are either complete or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.durable import atomic_write, output_errors, sync_directory

__all__ = ["atomic_write", "output_errors", "sync_directory", "write_json", "write_parquet"]


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON object atomically; numbers must be finite."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    atomic_write(path, lambda file: _write_all(file, text.encode("utf-8", "backslashreplace")))


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table atomically, with zstd."""
    atomic_write(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _write_all(file: BinaryIO, content: bytes) -> None:
    file.write(content)
