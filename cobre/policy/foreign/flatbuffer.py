"""Reading FlatBuffers that nobody vouches for: every offset and length is checked before it is followed.

The reader of the ``flatbuffers`` package trusts its input: a negative offset wraps around and a length may be
anything. Here whatever points outside the buffer raises :class:`MalformedError`.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE_IDENTIFIER = b"CBVF"
_OFFSET_BYTES = 4
_VTABLE_HEADER_BYTES = 4
_SMALLEST_TABLE_BYTES = 4
_SCALARS = {code: struct.Struct(f"<{code}") for code in "BHIiQd"}


class MalformedError(ValueError):
    """The bytes do not follow the format; the message states where."""


class TableView:
    """A table inside a buffer; fields are asked for by their id in the schema."""

    __slots__ = ("_buffer", "_position", "_table_bytes", "_vtable", "_vtable_bytes")

    def __init__(self, buffer: bytes, position: int) -> None:
        self._buffer = buffer
        self._position = position
        self._vtable = position - self._read("i", position)
        self._vtable_bytes = self._read("H", self._vtable)
        self._table_bytes = self._read("H", self._vtable + 2)
        if self._vtable_bytes < _VTABLE_HEADER_BYTES or self._vtable_bytes % 2:
            raise MalformedError(f"the table at byte {position} has a field index of impossible size")
        self._require(self._vtable, self._vtable_bytes)
        self._require(position, max(self._table_bytes, _OFFSET_BYTES))

    def scalar(self, field: int, code: str, default: Any = 0) -> Any:
        """Return a number (``code`` as in :mod:`struct`), or ``default`` where it is not stored."""
        place = self._place(field, _SCALARS[code].size)
        return default if place is None else self._read(code, place)

    def flag(self, field: int) -> bool:
        """Return a truth value; false where it is not stored."""
        return bool(self.scalar(field, "B"))

    def numbers(self, field: int, dtype: str) -> NDArray[Any]:
        """Return a copy of a vector of numbers of the NumPy ``dtype``; empty where it is not stored."""
        kind = np.dtype(dtype)
        start, count = self._vector(field, kind.itemsize)
        items: NDArray[Any] = np.frombuffer(self._buffer, kind, count, start).copy()
        return items

    def text(self, field: int) -> str | None:
        """Return a string, or ``None`` where it is not stored."""
        if self._place(field, _OFFSET_BYTES) is None:
            return None
        return self._decoded(*self._vector(field, 1))

    def texts(self, field: int) -> list[str]:
        """Return the strings of a vector; empty where it is not stored."""
        start, count = self._vector(field, _OFFSET_BYTES)
        found, total = [], 0
        for place in range(start, start + _OFFSET_BYTES * count, _OFFSET_BYTES):
            first, size = self._items(place, 1)
            total += size
            if total > len(self._buffer):
                raise MalformedError("the texts of a list are longer than the file")
            found.append(self._decoded(first, size))
        return found

    def table(self, field: int) -> TableView | None:
        """Return a table, or ``None`` where it is not stored."""
        place = self._place(field, _OFFSET_BYTES)
        return None if place is None else TableView(self._buffer, place + self._read("I", place))

    def count(self, field: int) -> int:
        """Return the length of a vector of tables, or of numbers of 4 bytes."""
        return self._vector(field, _OFFSET_BYTES)[1]

    def must_hold(self, item_bytes: int, count: int, what: str) -> None:
        """Refuse what is more than the file can hold unless tables share their parts."""
        if item_bytes * count > len(self._buffer):
            raise MalformedError(f"{count} {what} do not fit into the file")

    def tables(self, field: int) -> list[TableView]:
        """Return the tables of a vector; empty where it is not stored."""
        start, count = self._vector(field, _OFFSET_BYTES)
        self.must_hold(_OFFSET_BYTES + _SMALLEST_TABLE_BYTES, count, "tables")
        places = range(start, start + _OFFSET_BYTES * count, _OFFSET_BYTES)
        return [TableView(self._buffer, place + self._read("I", place)) for place in places]

    def _place(self, field: int, size: int) -> int | None:
        entry = _VTABLE_HEADER_BYTES + 2 * field
        if entry + 2 > self._vtable_bytes:
            return None
        offset = self._read("H", self._vtable + entry)
        if offset == 0:
            return None
        if offset < _OFFSET_BYTES or offset + size > self._table_bytes:
            raise MalformedError(f"field {field} of the table at byte {self._position} lies outside of it")
        return int(self._position + offset)

    def _vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        """Return where the items start and how many there are."""
        place = self._place(field, _OFFSET_BYTES)
        return (0, 0) if place is None else self._items(place, item_bytes)

    def _items(self, place: int, item_bytes: int) -> tuple[int, int]:
        head = place + self._read("I", place)
        count = self._read("I", head)
        self._require(head + _OFFSET_BYTES, item_bytes * count)
        return head + _OFFSET_BYTES, count

    def _decoded(self, start: int, count: int) -> str:
        try:
            return self._buffer[start : start + count].decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedError(f"the text at byte {start} is not UTF-8") from None

    def _read(self, code: str, position: int) -> Any:
        scalar = _SCALARS[code]
        self._require(position, scalar.size)
        return scalar.unpack_from(self._buffer, position)[0]

    def _require(self, position: int, size: int) -> None:
        if position < 0 or position + size > len(self._buffer):
            raise MalformedError(
                f"bytes {position} to {position + size} are referred to, but the file has {len(self._buffer)}"
            )


def root_table(buffer: bytes) -> TableView:
    """Return the root table of a file of the policy format."""
    if len(buffer) < 2 * _OFFSET_BYTES:
        raise MalformedError(f"the file has only {len(buffer)} bytes")
    identifier = buffer[_OFFSET_BYTES : 2 * _OFFSET_BYTES]
    if identifier != FILE_IDENTIFIER:
        raise MalformedError(
            f"the file identifier is {identifier!r}, not {FILE_IDENTIFIER!r}: this is no file of a policy"
        )
    return TableView(buffer, _SCALARS["I"].unpack_from(buffer, 0)[0])
