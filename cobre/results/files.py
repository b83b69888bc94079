"""JSON and Parquet files that are either complete or not there."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.durable import atomic_write, output_errors, sync_directory

__all__ = ["atomic_write", "output_errors", "sync_directory", "write_json", "write_parquet"]

_PARTS_AT_A_TIME = 10_000
"""Of a JSON text: brackets, keys and values."""


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON object atomically, part by part; numbers must be finite."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False)

    def write(file: BinaryIO) -> None:
        parts = encoder.iterencode(document)
        while text := "".join(islice(parts, _PARTS_AT_A_TIME)):
            file.write(text.encode("utf-8", "backslashreplace"))
        file.write(b"\n")

    atomic_write(path, write)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table atomically, with zstd."""
    atomic_write(path, lambda file: pq.write_table(table, file, compression="zstd"))
