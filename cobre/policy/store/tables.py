"""Arrays to tables of Parquet files and back, bit for bit.

Floating-point columns are written plainly: a dictionary would merge numbers that compare equal, such as 0 and
-0. A file is read only if it has the columns, types and rows that it must have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cobre.parquet_size import excessive_size
from cobre.policy.bases import FirstBases, StartingBases
from cobre.policy.model import NodeCuts
from cobre.policy.store.failures import damaged
from cobre.policy.visited import VisitedRows

_ACTIVITY: Final = "activity_"
_ARROW: Final = {
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.float64): pa.float64(),
    np.dtype(np.bool_): pa.bool_(),
}
_ROW_GROUP_BYTES: Final = 4 * 2**20
"""Of a Parquet file; a group is held in memory while it is written."""


def write_table(table: pa.Table, file: BinaryIO, compress: bool) -> None:
    """Write a Parquet file that gives back every bit."""
    rows = max(1, _ROW_GROUP_BYTES * max(1, table.num_rows) // max(1, table.nbytes))
    pq.write_table(
        table,
        file,
        compression="zstd" if compress else "none",
        use_dictionary=False,
        write_statistics=False,
        row_group_size=rows,
    )


def read_table(path: Path, content: bytes | memoryview, schema: pa.Schema, rows: int) -> pa.Table:
    """Return a table that has this schema, so many rows, and no nulls where it allows none.

    Raises
    ------
    ValidationError
        When it has not, or cannot be read.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        found = file.schema_arrow
        if not found.equals(schema):
            raise damaged(path, f"has the columns {_described(found)}; expected {_described(schema)}")
        if file.metadata.num_rows != rows:
            raise damaged(path, f"has {file.metadata.num_rows} rows; its manifest states {rows}")
        if reason := excessive_size(file.metadata, len(content)):
            raise damaged(path, f"is not read: {reason}")
        table = file.read().combine_chunks()
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise damaged(path, f"cannot be read as Parquet: {error}") from error
    for name in table.column_names:
        if table.column(name).null_count and not schema.field(name).nullable:
            raise damaged(path, f"has nulls in column {name}")
    return table


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


# Cuts


def cuts_schema(states: int, activity: Mapping[str, np.dtype[Any]]) -> pa.Schema:
    """Return the columns of ``cuts.parquet``; without states there are no slopes."""
    whole = [(name, pa.int64()) for name in ("node", "slot", "iteration", "forward_pass")]
    columns = [*whole, ("intercept", pa.float64()), *_vector("slopes", states), ("active", pa.bool_())]
    columns += [(_ACTIVITY + name, _ARROW[dtype]) for name, dtype in activity.items()]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def cuts_table(cuts: Sequence[NodeCuts], node_ids: Sequence[int], states: int) -> pa.Table:
    """Return the cuts of all nodes, one after the other."""
    counts = [len(part) for part in cuts]
    activity = {name: column.dtype for name, column in cuts[0].activity.items()}
    columns = [pa.array(np.repeat(np.array(node_ids, np.int64), counts))]
    columns += [_joined(cuts, name) for name in ("slot", "iteration", "forward_pass", "intercept")]
    if states:
        columns.append(pa.chunked_array([_vectors(part.slopes)[0] for part in cuts]))
    columns.append(_joined(cuts, "active"))
    columns += [pa.array(np.concatenate([part.activity[name] for part in cuts])) for name in activity]
    return pa.table(columns, schema=cuts_schema(states, activity))


def cuts_of(
    path: Path, table: pa.Table, node_ids: Sequence[int], counts: Sequence[int], states: int
) -> tuple[NodeCuts, ...]:
    """Return the cuts of each node.

    Raises
    ------
    ValidationError
        When nodes are not in this order with so many cuts, or cuts contradict each other.
    """
    if not np.array_equal(_numbers(table, "node"), np.repeat(np.array(node_ids, np.int64), counts)):
        raise damaged(path, "has other nodes, or numbers of cuts, than its manifest")
    ends = np.cumsum(counts)
    slopes = _matrix(table, "slopes", states)
    names = [name for name in table.column_names if name.startswith(_ACTIVITY)]
    columns = {name: _numbers(table, name) for name in table.column_names if name not in ("node", "slopes")}
    found = []
    for count, end, node_id in zip(counts, ends, node_ids, strict=True):
        rows = slice(end - count, end)
        try:
            found.append(
                NodeCuts(
                    slot=columns["slot"][rows],
                    iteration=columns["iteration"][rows],
                    forward_pass=columns["forward_pass"][rows],
                    intercept=columns["intercept"][rows],
                    slopes=slopes[rows],
                    active=columns["active"][rows],
                    activity={name.removeprefix(_ACTIVITY): columns[name][rows] for name in names},
                )
            )
        except ValueError as error:
            raise damaged(path, f"is wrong at node {node_id}: {error}") from error
    return tuple(found)


def activity_names(schema_names: Mapping[str, str]) -> dict[str, np.dtype[Any]]:
    """Return the types of activity columns by their names in the manifest.

    Raises
    ------
    ValueError
        For another type.
    """
    known = {str(dtype): dtype for dtype in _ARROW}
    for name, dtype in schema_names.items():
        if dtype not in known:
            raise ValueError(f"activity column {name} has the unknown type {dtype!r}")
    return {name: known[dtype] for name, dtype in schema_names.items()}


# Starting bases: statuses as bytes

BASES_SCHEMA: Final = pa.schema(
    [
        pa.field("forward_pass", pa.int64(), nullable=False),
        pa.field("node", pa.int64(), nullable=False),
        pa.field("col_status", pa.large_binary(), nullable=False),
        pa.field("row_status", pa.large_binary(), nullable=False),
    ]
)


def bases_table(bases: StartingBases) -> pa.Table:
    """Return the bases, one in each row; nodes by position."""
    columns = [
        pa.array(bases.forward_pass),
        pa.array(bases.node),
        _binary(bases.col_end, bases.col_status),
        _binary(bases.row_end, bases.row_status),
    ]
    return pa.table(columns, schema=BASES_SCHEMA)


def bases_of(table: pa.Table) -> StartingBases:
    """Return the bases; :meth:`StartingBases.check` is left to who knows the study."""
    ends, statuses = zip(*(_bytes(table, name) for name in ("col_status", "row_status")), strict=True)
    return StartingBases(_numbers(table, "forward_pass"), _numbers(table, "node"), *ends, *statuses)


FIRST_BASES_SCHEMA: Final = pa.schema(
    [
        pa.field("node", pa.int64(), nullable=False),
        pa.field("code", pa.list_(pa.field("item", pa.uint32(), nullable=False)), nullable=False),
        pa.field("cut", pa.list_(pa.field("item", pa.int32(), nullable=False)), nullable=False),
    ]
)


def first_bases_table(bases: FirstBases) -> pa.Table:
    """Return the bases that simulations start from, one in each row; nodes by position."""
    columns = [pa.array(bases.node)]
    for name, count, values in (("code", bases.num_codes, bases.code), ("cut", bases.num_cuts, bases.cut)):
        ends = pa.array(np.cumsum([0, *count]), pa.int32())
        kind = FIRST_BASES_SCHEMA.field(name).type
        columns.append(pa.ListArray.from_arrays(ends, pa.array(values), type=kind))
    return pa.table(columns, schema=FIRST_BASES_SCHEMA)


def first_bases_of(table: pa.Table) -> FirstBases:
    """Return the bases; :meth:`FirstBases.check` is left to who knows the study."""
    codes, cuts = (table.column(name).combine_chunks() for name in ("code", "cut"))
    return FirstBases(
        node=_numbers(table, "node"),
        num_codes=_lengths(codes),
        num_cuts=_lengths(cuts),
        code=codes.flatten().to_numpy(zero_copy_only=False),
        cut=cuts.flatten().to_numpy(zero_copy_only=False),
    )


def _lengths(lists: pa.ListArray) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _binary(end: NDArray[np.int64], status: NDArray[np.int8]) -> pa.Array:
    offsets = np.concatenate([[0], end]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(status))]
    return pa.Array.from_buffers(pa.large_binary(), len(end), buffers)


def _bytes(table: pa.Table, name: str) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    chunks = table.column(name).chunks
    parts: list[NDArray[np.int8]] = [np.zeros(0, np.int8)]
    lengths: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for chunk in chunks:
        _, offset_buffer, data = chunk.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        lengths.append(np.diff(offsets))
        if data is not None and len(offsets):
            parts.append(np.frombuffer(data, np.int8)[offsets[0] : offsets[-1]])
    return np.cumsum(np.concatenate(lengths), dtype=np.int64), np.concatenate(parts)


# Visited states


def states_schema(states: int) -> pa.Schema:
    """Return the columns of ``states.parquet``."""
    whole = [(name, pa.int64()) for name in ("iteration", "stage", "forward_pass")]
    columns = [*whole, *_vector("state", states)]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def states_table(states: VisitedRows) -> pa.Table:
    """Return the states, one in each row; stages by position."""
    columns = [pa.array(states.iteration), pa.array(states.stage), pa.array(states.forward_pass)]
    return pa.table(columns + _vectors(states.values), schema=states_schema(states.values.shape[1]))


def states_of(table: pa.Table, states: int) -> VisitedRows:
    """Return the states."""
    iteration, stage, forward_pass = (
        _numbers(table, name) for name in ("iteration", "stage", "forward_pass")
    )
    return VisitedRows(iteration, stage, forward_pass, _matrix(table, "state", states))


# Named arrays


def array_schema(dtype: np.dtype[Any]) -> pa.Schema:
    """Return the one column of a named array's file."""
    return pa.schema([pa.field("value", pa.from_numpy_dtype(dtype), nullable=False)])


def array_table(array: NDArray[np.generic]) -> pa.Table:
    """Return the values in C order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return pa.table([pa.array(flat)], schema=array_schema(array.dtype))


def array_of(table: pa.Table, dtype: np.dtype[Any], shape: Sequence[int]) -> NDArray[np.generic]:
    """Return the array."""
    values: NDArray[np.generic] = _numbers(table, "value").astype(dtype, copy=False).reshape(shape)
    return values


# Columns


def _joined(cuts: Sequence[NodeCuts], name: str) -> pa.Array:
    return pa.array(np.concatenate([getattr(part, name) for part in cuts]))


def _numbers(table: pa.Table, name: str) -> Any:
    return table.column(name).to_numpy()


def _vector(name: str, length: int) -> list[tuple[str, pa.DataType]]:
    kind = pa.list_(pa.field("element", pa.float64(), nullable=False), length)
    return [(name, kind)] if length else []


def _vectors(values: NDArray[np.float64]) -> list[pa.Array]:
    length = values.shape[1]
    if not length:
        return []
    flat = pa.array(np.ascontiguousarray(values, np.float64).reshape(-1))
    return [pa.FixedSizeListArray.from_arrays(flat, type=_vector("", length)[0][1])]


def _matrix(table: pa.Table, name: str, length: int) -> NDArray[np.float64]:
    if not length:
        return np.zeros((table.num_rows, 0))
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in table.column(name).chunks]
    values: NDArray[np.float64] = np.concatenate([np.zeros(0), *parts]).reshape(-1, length)
    return values
