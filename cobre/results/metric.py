"""A small table of numbers with units: what a metric of a simulation is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from cobre.display import html_table, to_pandas, to_polars


class Metric:
    """A small table of numbers with units, made from a simulation.

    Attributes
    ----------
    name
        What it is.
    """

    def __init__(self, name: str, columns: Mapping[str, tuple[Any, str]]) -> None:
        self.name = name
        self._units = {column: unit for column, (_, unit) in columns.items()}
        arrays = [pa.array(values) for values, _ in columns.values()]
        fields = [
            pa.field(column, array.type, metadata={"unit": unit})
            for (column, (_, unit)), array in zip(columns.items(), arrays, strict=True)
        ]
        self._table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(self._units)

    def unit(self, column: str) -> str:
        """Return the unit of a column; empty where it has none."""
        return self._units[column]

    def __getitem__(self, column: str) -> NDArray[Any]:
        found: NDArray[Any] = self._table[column].to_numpy()
        return found

    def __len__(self) -> int:
        return len(self._table)

    def rows(self) -> list[dict[str, Any]]:
        """Return its rows as dictionaries."""
        found: list[dict[str, Any]] = self._table.to_pylist()
        return found

    def to_arrow(self) -> pa.Table:
        """Return it as an Arrow table; the metadata of fields holds their units."""
        return self._table

    def to_pandas(self) -> Any:
        """Return it as a ``pandas.DataFrame``."""
        return to_pandas(self._table)

    def to_polars(self) -> Any:
        """Return it as a ``polars.DataFrame``."""
        return to_polars(self._table)

    def __repr__(self) -> str:
        return f"Metric({self.name!r}: {len(self)} rows; {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        rows = {
            str(number): ", ".join(f"{name} {_text(value)}" for name, value in row.items())
            for number, row in enumerate(self.rows()[:20])
        }
        return html_table(f"{self.name}: {len(self)} rows", rows)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
