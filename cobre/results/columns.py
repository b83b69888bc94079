"""What a table of outputs is: its columns with type, unit and meaning, each declared once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

_TYPES: Final = {
    "i8": pa.int8(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "date32": pa.date32(),
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    type
        ``i8``, ``i32``, ``i64``, ``f64``, ``bool``, ``string`` or ``date32``.
    unit
        Empty where it has none.
    nullable
        Whether a value may be missing; the description states what that means.
    """

    name: str
    type: str
    unit: str
    description: str
    nullable: bool = False


@dataclass(frozen=True)
class TableSpec:
    """A table: its name, which is that of its directory or file, what a row is, and its columns."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema(
            [pa.field(part.name, _TYPES[part.type], nullable=part.nullable) for part in self.columns]
        )


def number(name: str, unit: str, description: str, *, nullable: bool = False) -> Column:
    """Return a column of numbers."""
    return Column(name, "f64", unit, description, nullable)


def identifier(name: str, description: str, *, nullable: bool = False) -> Column:
    """Return a column of ids."""
    return Column(name, "i32", "", description, nullable)


def code(name: str, description: str) -> Column:
    """Return a column of codes, whose meanings are in ``codes.json``."""
    return Column(name, "i8", "", description)


def text(name: str, description: str) -> Column:
    """Return a column of names."""
    return Column(name, "string", "", description)


def date(name: str, description: str) -> Column:
    """Return a column of dates."""
    return Column(name, "date32", "", description)


def table(name: str, row: str, *parts: Column | Iterable[Column]) -> TableSpec:
    """Return a table of columns and groups of columns."""
    columns: list[Column] = []
    for part in parts:
        columns += [part] if isinstance(part, Column) else list(part)
    return TableSpec(name, row, tuple(columns))
