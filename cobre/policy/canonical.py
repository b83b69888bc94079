"""One sequence of bytes for one value, whatever made it.

Dataclasses count by the names of their fields, so a field that is added to one counts at once, in whatever
order it is declared. Arrays count by type, shape and bits.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

Write = Callable[[bytes], object]


def write_canonical(value: Any, write: Write, skipped: Collection[str] = ()) -> None:
    """Write the bytes that represent ``value``.

    Parameters
    ----------
    write
        Takes the bytes, such as the ``update`` of a digest.
    skipped
        Names of dataclass fields that do not count.

    Raises
    ------
    TypeError
        For a value that has no such form, among them paths, which do not state the content behind them.
    """
    if isinstance(value, np.ndarray):
        _write_array(value, write)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = sorted(field.name for field in counted_fields(value) if field.name not in skipped)
        write(b"D" + struct.pack("<q", len(names)))
        for name in names:
            _write_bytes(b"s", name.encode(), write)
            write_canonical(getattr(value, name), write, skipped)
    elif isinstance(value, (tuple, list, range)):
        write(b"T" + struct.pack("<q", len(value)))
        for item in value:
            write_canonical(item, write, skipped)
    elif isinstance(value, Mapping):
        write(b"M" + struct.pack("<q", len(value)))
        for key, item in sorted((canonical_bytes(key, skipped), item) for key, item in value.items()):
            _write_bytes(b"k", key, write)
            write_canonical(item, write, skipped)
    elif isinstance(value, (set, frozenset)):
        write(b"S" + struct.pack("<q", len(value)))
        for item in sorted(canonical_bytes(item, skipped) for item in value):
            _write_bytes(b"k", item, write)
    else:
        _write_scalar(value, write)


def counted_fields(value: Any) -> Iterator[dataclasses.Field[Any]]:
    """Yield the fields of a dataclass that count: extensions of the model only where they are used.

    An extension (``metadata={"extension": True}``) came after the first stored policies, whose fingerprints
    know nothing of it; it is used where its value is neither its default nor empty.
    """
    for field in dataclasses.fields(value):
        if "extension" not in field.metadata or _is_used(getattr(value, field.name), field.default):
            yield field


def _is_used(value: Any, default: Any) -> bool:
    return bool(value) if isinstance(value, Mapping) else value != default


def canonical_bytes(value: Any, skipped: Collection[str] = ()) -> bytes:
    """Return the bytes that :func:`write_canonical` writes."""
    content = bytearray()
    write_canonical(value, content.extend, skipped)
    return bytes(content)


def _write_array(array: np.ndarray[Any, Any], write: Write) -> None:
    if array.dtype.kind not in "biufmM":
        raise TypeError(f"an array of type {array.dtype} has no canonical form")
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    _write_bytes(b"A", little.dtype.str.encode(), write)
    write(struct.pack(f"<{array.ndim + 1}q", array.ndim, *array.shape))
    write(little.tobytes())


def _write_scalar(value: Any, write: Write) -> None:
    if value is None:
        write(b"N")
    elif isinstance(value, (bool, np.bool_)):
        write(b"B1" if value else b"B0")
    elif isinstance(value, enum.Enum) and not isinstance(value, int):
        _write_bytes(b"e", value.name.encode(), write)
    elif isinstance(value, (np.datetime64, np.timedelta64)):
        _write_array(np.asarray(value), write)
    elif isinstance(value, (int, np.integer)):
        _write_bytes(b"i", str(int(value)).encode(), write)
    elif isinstance(value, (float, np.floating)):
        write(b"f" + struct.pack("<d", value))
    elif isinstance(value, str):
        _write_bytes(b"s", value.encode("utf-8", "surrogatepass"), write)
    elif isinstance(value, bytes):
        _write_bytes(b"y", value, write)
    elif isinstance(value, (datetime.date, datetime.time)):
        _write_bytes(b"d", value.isoformat().encode(), write)
    else:
        raise TypeError(f"a value of type {type(value).__name__} has no canonical form")


def _write_bytes(tag: bytes, content: bytes, write: Write) -> None:
    write(tag + struct.pack("<q", len(content)))
    write(content)
