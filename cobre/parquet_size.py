"""How much a Parquet file makes of its bytes: a few kilobytes may claim billions of rows."""

from __future__ import annotations

from typing import Any, Final

ALWAYS_READ_BYTES: Final = 2**30
"""Decoded size up to which every file is read."""
LARGEST_EXPANSION: Final = 200
"""Decoded bytes for one of a larger file; tables of random numbers have 1 to 3, sparse ones some tens."""
_VALUE_BYTES: Final = 8


def excessive_size(metadata: Any, file_bytes: int) -> str | None:
    """Return why a file should not be decoded, ``None`` where its size is plausible.

    Parameters
    ----------
    metadata
        A ``pyarrow.parquet.FileMetaData``. It is trusted: a forged one may state fewer values than the pages
        hold, and these are then not read.
    file_bytes
        Size of the file.
    """
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    stated = 0
    for group in groups:
        for number in range(metadata.num_columns):
            column = group.column(number)
            stated += max(_VALUE_BYTES * column.num_values, column.total_uncompressed_size)
    if stated <= max(ALWAYS_READ_BYTES, LARGEST_EXPANSION * file_bytes):
        return None
    return f"its {file_bytes:,} bytes would become {stated:,} in memory, more than tables of such files do"
