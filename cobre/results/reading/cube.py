"""Columns of a table as dense arrays by scenario, stage, block and entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cobre.errors import CobreError
from cobre.results.reading.filters import entity_keys, fault

if TYPE_CHECKING:
    from cobre.results.reading.table import Table

FloatArray = NDArray[np.float64]

WHOLE_STAGE: Final = -1
"""Label on the dimension ``block`` of rows of the whole stage, where others are of blocks."""

_FIRST_KEYS: Final = ("iteration", "scenario_id", "stage_id", "block_id")
_LAST_KEYS: Final = ("lag_index", "lag", "delivery_date")
_NO_VALUES: Final = frozenset({"node_id", *_FIRST_KEYS, *_LAST_KEYS})


@dataclass(frozen=True, eq=False)
class Cube:
    """Columns of a table by dimensions.

    Attributes
    ----------
    dims
        Names of the dimensions, such as ``("scenario", "stage", "block", "entity")``.
    labels
        Ids along each dimension, ascending; stages in the order of their dates.
    values
        By column, float64 with one axis for each dimension; NaN where the table has no row or no value.
    names
        Names of entities along ``entity``; empty where there is no such dimension.
    dates
        First day of each stage, datetime64[D]; empty where they are not known.
    """

    dims: tuple[str, ...]
    labels: Mapping[str, NDArray[np.int64]]
    values: Mapping[str, FloatArray]
    names: tuple[str, ...]
    dates: NDArray[np.datetime64]

    def __getitem__(self, column: str) -> FloatArray:
        return self.values[column]

    def axis(self, dim: str) -> int:
        """Return the place of a dimension."""
        return self.dims.index(dim)


def cube_of(table: Table, columns: Sequence[str] | None, rows: Mapping[str, Any]) -> Cube:
    """Return columns of the rows of a table as a cube, read piece by piece.

    Raises
    ------
    ValidationError
        When a column holds no numbers.
    CobreError
        Kind ``RowsNotDistinct`` when ids do not tell rows of the table apart.
    """
    keys = _keys(table)
    names = _numbers(table, columns)
    labels = _labels(table, keys, rows)
    dates = _dates(table, labels)
    if len(dates):
        order = np.lexsort((labels["stage_id"], dates))
        labels["stage_id"], dates = labels["stage_id"][order], dates[order]
    if "block_id" in labels and list(labels["block_id"]) == [WHOLE_STAGE]:
        del labels["block_id"]  # rows of whole stages only
    kept = [key for key in keys if key in labels]
    shape = tuple(len(labels[key]) for key in kept)
    values = {name: np.full(shape, np.nan) for name in names}
    seen = np.zeros(int(np.prod(shape, dtype=np.int64)), bool)
    count = 0
    for batch in _pieces(table, [*kept, *names], rows):
        place = np.zeros(len(batch), np.int64)
        for key, size in zip(kept, shape, strict=True):
            place = place * size + _positions(labels[key], _ids(batch.column(key)))
        seen[place] = True
        count += len(place)
        for name in names:
            values[name].reshape(-1)[place] = _floats(batch.column(name))
    if int(seen.sum()) != count:
        raise CobreError(
            "RowsNotDistinct",
            f"several rows of {table.name} have the same {', '.join(kept)}",
            {"table": table.name},
            "take its rows as they are: to_arrow() or to_pandas()",
        )
    entity = table.entity_key
    return Cube(
        dims=tuple("entity" if key == entity else key.removesuffix("_id") for key in kept),
        labels={
            "entity" if key == entity else key.removesuffix("_id"): labels[key].astype(np.int64)
            for key in kept
        },
        values=values,
        names=() if entity is None else _unique_names(table, labels[entity]),
        dates=dates,
    )


def _keys(table: Table) -> list[str]:
    wanted = (*_FIRST_KEYS, *entity_keys(table.columns), *_LAST_KEYS)
    keys = [name for name in wanted if name in table.columns]
    if keys[:1] == ["iteration"]:
        keys = [name for name in keys if name != "scenario_id"]  # always null in tables of iterations
    if not keys:
        raise CobreError(
            "RowsNotDistinct",
            f"table {table.name} has no ids of scenarios, stages, blocks or entities",
            {"table": table.name},
            "take its rows as they are: to_arrow() or to_pandas()",
        )
    return keys


def _numbers(table: Table, columns: Sequence[str] | None) -> list[str]:
    schema = table.dataset.schema
    numbers = [
        field.name
        for field in schema
        if (
            pa.types.is_floating(field.type)
            or pa.types.is_integer(field.type)
            or pa.types.is_boolean(field.type)
        )
    ]
    if columns is None:
        return [name for name in numbers if name not in {*_NO_VALUES, *entity_keys(table.columns)}]
    for name in columns:
        if name not in numbers:
            advice = "take it by to_arrow() or to_pandas()"
            message = f"column {name} of {table.name} holds no numbers"
            raise fault("InvalidValue", message, "columns", name, advice)
    return list(dict.fromkeys(columns))


def _pieces(table: Table, columns: list[str], rows: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    return table.batches(list(dict.fromkeys(columns)), **rows)


def _ids(column: pa.Array) -> NDArray[np.int64]:
    filled = column if not column.null_count else pc.fill_null(column, WHOLE_STAGE)
    found: NDArray[np.int64] = filled.to_numpy(zero_copy_only=False)
    return found


def _floats(column: pa.Array) -> FloatArray:
    found: FloatArray = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _labels(table: Table, keys: list[str], rows: Mapping[str, Any]) -> dict[str, NDArray[np.int64]]:
    found: dict[str, NDArray[np.int64]] = {key: np.zeros(0, np.int64) for key in keys}
    for batch in _pieces(table, keys, rows):
        for key in keys:
            distinct = _ids(pc.unique(batch.column(key)))
            found[key] = np.union1d(found[key], distinct)
    return found


def _positions(labels: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(labels, kind="stable")
    return order[np.searchsorted(labels, ids, sorter=order)]


def _dates(table: Table, labels: Mapping[str, NDArray[np.int64]]) -> NDArray[np.datetime64]:
    nothing = np.zeros(0, "datetime64[D]")
    if "stage_id" not in labels or "start_date" not in table.columns:
        return nothing
    found: dict[int, Any] = {}
    for batch in table.batches(["stage_id", "start_date"]):
        if all(int(stage) in found for stage in pc.unique(batch.column("stage_id")).to_pylist()):
            continue
        distinct = pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([])
        for row in distinct.to_pylist():
            found.setdefault(row["stage_id"], row["start_date"])
    stages = labels["stage_id"].tolist()
    return np.array([found[stage] for stage in stages], "datetime64[D]") if stages else nothing


def _unique_names(table: Table, ids: NDArray[np.int64]) -> tuple[str, ...]:
    names = [table.entities[int(number)] for number in ids]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({number})"
        for name, number in zip(names, ids.tolist(), strict=True)
    )
