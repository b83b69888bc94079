"""Records of iterations as columns, and back; a record is any flat dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HistoryColumn = (
    NDArray[np.int64]
    | NDArray[np.float64]
    | NDArray[np.bool_]
    | tuple[str, ...]
    | tuple[float | None, ...]
    | tuple[tuple[float, ...], ...]
)
"""A value for each iteration: numbers, truth values, texts, numbers that may be missing, lists of numbers."""

_Record = TypeVar("_Record")

_OPTIONAL: Final = "optional"
_TYPES: Final = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    _OPTIONAL: pa.float64(),
    "list": pa.list_(pa.field("element", pa.float64(), nullable=False)),
}


def history_columns(records: Sequence[Any]) -> dict[str, HistoryColumn]:
    """Return one column for each field of ``records``, dataclasses of one type.

    Fields with the metadata ``{"stored": False}`` are left out.

    Raises
    ------
    TypeError
        For a field that is no number, truth value, text, ``None`` or tuple of numbers.
    """
    if not records:
        return {}
    fields = dataclasses.fields(records[0])
    names = [field.name for field in fields if field.metadata.get("stored", True)]
    return {name: _column(name, [getattr(record, name) for record in records]) for name in names}


def history_records(record: type[_Record], columns: Mapping[str, HistoryColumn]) -> tuple[_Record, ...]:
    """Return the records that :func:`history_columns` made columns of.

    Fields that are not among the columns take their defaults: an older version wrote them.
    """
    values = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
    return tuple(record(**dict(zip(columns, row, strict=True))) for row in zip(*values, strict=True))


def _column(name: str, values: list[Any]) -> HistoryColumn:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return np.array(values, np.bool_)
    if kinds == {int}:
        return np.array(values, np.int64)
    if kinds <= {int, float}:
        return np.array(values, np.float64)
    if kinds in ({str}, {tuple}):
        return tuple(values)
    if kinds <= {int, float, type(None)}:
        return tuple(None if value is None else float(value) for value in values)
    raise TypeError(f"field {name} of an iteration's record cannot be stored: {kinds}")


def column_type(column: HistoryColumn) -> str:
    """Return the name of a column's type, as the manifest gives it.

    Raises
    ------
    ValueError
        For anything that is no :data:`HistoryColumn`.
    """
    if isinstance(column, np.ndarray):
        found = str(column.dtype)
    elif all(isinstance(value, str) for value in column):
        found = "string"
    elif all(value is None or isinstance(value, float) for value in column):
        found = _OPTIONAL
    elif all(isinstance(value, tuple) and all(isinstance(x, float) for x in value) for value in column):
        found = "list"
    else:
        found = "mixed"
    if found not in _TYPES:
        raise ValueError(f"a history column has the unknown type {found}")
    return found


def history_schema(types: Mapping[str, str]) -> pa.Schema:
    """Return the columns of ``history.parquet``.

    Raises
    ------
    ValueError
        For an unknown type.
    """
    for name, kind in types.items():
        if kind not in _TYPES:
            raise ValueError(f"history column {name} has the unknown type {kind!r}")
    return pa.schema(
        [pa.field(name, _TYPES[kind], nullable=kind == _OPTIONAL) for name, kind in types.items()]
    )


def history_table(history: Mapping[str, HistoryColumn]) -> pa.Table:
    """Return one row for each iteration."""
    schema = history_schema({name: column_type(column) for name, column in history.items()})
    return pa.table(
        [
            pa.array(column if isinstance(column, np.ndarray) else list(column), schema.field(name).type)
            for name, column in history.items()
        ],
        schema=schema,
    )


def history_of(table: pa.Table) -> dict[str, HistoryColumn]:
    """Return the columns of a table with the right schema."""
    found: dict[str, HistoryColumn] = {}
    for name in table.column_names:
        column, field = table.column(name), table.schema.field(name)
        if pa.types.is_list(field.type):
            found[name] = tuple(tuple(values) for values in column.to_pylist())
        elif field.nullable or field.type == pa.string():
            found[name] = tuple(column.to_pylist())
        else:
            found[name] = column.to_numpy()
    return found
