"""One table of a run: read when it is asked for, and only the columns and rows that are asked for."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from cobre.display import to_pandas, to_polars
from cobre.results.reading.files import Names, Variable, Variables, reading
from cobre.results.reading.filters import (
    Entities,
    Ids,
    closest,
    condition,
    entity_keys,
    fault,
    listed,
    require_columns,
)

if TYPE_CHECKING:
    from cobre.results.reading.cube import Cube

_SHOWN_ROWS: Final = 5
_SHOWN_COLUMNS: Final = 8


class Table:
    """A table of a run, in a Parquet file or a directory of them.

    ::

        hydros = cobre.results.load("output").simulation["hydros"]
        hydros.to_pandas(["scenario_id", "storage_final_hm3"], entity="Furnas", stage=0)

    Nothing is read before a method asks for it, and then only the columns and rows that it is asked for.

    Attributes
    ----------
    name
        Its name.
    path
        Its file or directory.
    """

    def __init__(self, name: str, path: Path, variables: Variables, names: Names | None = None) -> None:
        self.name = name
        self.path = path
        self._variables = variables
        self._names = names or {}

    @cached_property
    def dataset(self) -> ds.Dataset:
        """It as a ``pyarrow.dataset.Dataset``."""
        with reading(self.path):
            return ds.dataset(self.path, format="parquet", partitioning=None)

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns; each field's metadata holds ``unit`` and ``description`` where they are known."""
        known = self._known
        return pa.schema(
            [
                field.with_metadata(
                    {"unit": known[field.name].unit, "description": known[field.name].description}
                )
                if field.name in known
                else field
                for field in self.dataset.schema
            ]
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(self.dataset.schema.names)

    def unit(self, column: str) -> str:
        """Return the unit of a column; empty where it has none or it is not known."""
        require_columns([column], self.dataset.schema, self.name)
        known = self._known.get(column)
        return "" if known is None else known.unit

    def describe(self) -> pa.Table:
        """Return a row for each column: ``column``, ``type``, ``unit``, ``description``, ``nullable``."""
        rows = []
        for field in self.dataset.schema:
            known = self._known.get(field.name, Variable("", "", ""))
            rows.append(
                {
                    "column": field.name,
                    "type": known.type or str(field.type),
                    "unit": known.unit,
                    "description": known.description,
                    "nullable": field.nullable,
                }
            )
        types = {name: pa.string() for name in ("column", "type", "unit", "description")}
        return pa.Table.from_pylist(rows, schema=pa.schema({**types, "nullable": pa.bool_()}))

    @cached_property
    def _known(self) -> dict[str, Variable]:
        return dict(self._variables.get(self.name, {}))

    def __len__(self) -> int:
        with reading(self.path):
            return int(self.dataset.count_rows())

    def __bool__(self) -> bool:
        return True

    # -- rows and columns

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        scenario: Ids = None,
        stage: Ids = None,
        block: Ids = None,
        entity: Entities = None,
        where: str | ds.Expression | None = None,
    ) -> pa.Table:
        """Return rows and columns as an Arrow table, in the order in which they are stored.

        Parameters
        ----------
        columns
            All unless given; in the order given.
        scenario, stage, block
            Ids of the rows wanted, one or several.
        entity
            Names or ids, one or several, of the rows wanted.
        where
            A condition such as ``"deficit_mw > 0 and bus_name = 'North'"``, or an expression of
            ``pyarrow.dataset``.

        Raises
        ------
        ValidationError
            When a column or an entity is not there, or a condition cannot be read.
        OutputError
            When files cannot be read.
        """
        chosen = self._columns(columns)
        rows = self.filter(scenario=scenario, stage=stage, block=block, entity=entity, where=where)
        with reading(self.path):
            return self.dataset.to_table(columns=chosen, filter=rows)

    def head(self, count: int, columns: Sequence[str] | None = None, **rows: Any) -> pa.Table:
        """Return the first rows; further arguments as for :meth:`to_arrow`."""
        chosen, filtered = self._columns(columns), self.filter(**rows)
        with reading(self.path):
            return self.dataset.head(count, columns=chosen, filter=filtered)

    def count(self, **rows: Any) -> int:
        """Return how many rows there are; arguments as for :meth:`to_arrow`."""
        filtered = self.filter(**rows)
        with reading(self.path):
            return int(self.dataset.count_rows(filter=filtered))

    def batches(self, columns: Sequence[str] | None = None, **rows: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows in pieces, so that not all are in memory; arguments as for :meth:`to_arrow`."""
        chosen, filtered = self._columns(columns), self.filter(**rows)
        with reading(self.path):
            yield from self.dataset.to_batches(columns=chosen, filter=filtered, batch_readahead=1)

    def to_pandas(self, columns: Sequence[str] | None = None, **rows: Any) -> Any:
        """Return a ``pandas.DataFrame``; arguments as for :meth:`to_arrow`.

        Raises
        ------
        CobreError
            Kind ``ExtraMissing`` when pandas is not installed.
        """
        return to_pandas(self.to_arrow(columns, **rows))

    def to_polars(self, columns: Sequence[str] | None = None, **rows: Any) -> Any:
        """Return a ``polars.DataFrame``; arguments as for :meth:`to_arrow`.

        Raises
        ------
        CobreError
            Kind ``ExtraMissing`` when polars is not installed.
        """
        return to_polars(self.to_arrow(columns, **rows))

    def cube(self, columns: Sequence[str] | str | None = None, **rows: Any) -> Cube:
        """Return columns as dense arrays by scenario, stage, block and entity.

        Parameters
        ----------
        columns
            All numbers unless given.
        **rows
            As for :meth:`to_arrow`.
        """
        from cobre.results.reading.cube import cube_of

        names = [columns] if isinstance(columns, str) else columns
        if names is not None:
            require_columns(names, self.dataset.schema, self.name)
        return cube_of(self, names, rows)

    def to_xarray(self, columns: Sequence[str] | str | None = None, **rows: Any) -> Any:
        """Return an ``xarray.Dataset`` with a variable for each column of numbers.

        Its dimensions are those of ``scenario``, ``stage``, ``block`` and ``entity`` that the table has, and
        where a row is not identified by them also ``bus``, ``lag_index``, ``lag`` or ``delivery_date``.
        Stages have a coordinate ``start_date``, entities are named, with their ids as another coordinate.
        What is in no row is NaN. Arguments as for :meth:`cube`.

        Raises
        ------
        CobreError
            Kind ``ExtraMissing`` when xarray is not installed.
        """
        from cobre.results.reading.labelled import to_xarray

        return to_xarray(self, self.cube(columns, **rows))

    def filter(
        self,
        *,
        scenario: Ids = None,
        stage: Ids = None,
        block: Ids = None,
        entity: Entities = None,
        where: str | ds.Expression | None = None,
    ) -> ds.Expression | None:
        """Return the expression that selects rows; ``None`` = all. Arguments as for :meth:`to_arrow`."""
        parts = []
        for name, wanted in (("scenario", scenario), ("stage", stage), ("block", block)):
            if wanted is not None:
                column = f"{name}_id"
                if column not in self.columns:
                    advice = f"its columns: {', '.join(self.columns[:12])}"
                    raise fault("UnknownColumn", f"table {self.name} has no {name}s", name, wanted, advice)
                parts.append(ds.field(column).isin(pa.array(listed(wanted), pa.int32())))
        if entity is not None:
            parts.append(self._of_entities(listed(entity)))
        if isinstance(where, str):
            parts.append(condition(where, self.dataset.schema, self.name))
        elif where is not None:
            parts.append(where)
        found = None
        for part in parts:
            found = part if found is None else found & part
        return found

    @property
    def entity_key(self) -> str | None:
        """The column of ids whose row it is, such as ``hydro_id``; ``None`` in a table without entities."""
        return next(iter(entity_keys(self.columns)), None)

    @cached_property
    def entities(self) -> dict[int, str]:
        """Names of its entities by id, ascending; ids as texts where names are not known."""
        key = self.entity_key
        if key is None:
            return {}
        name = f"{key.removesuffix('_id')}_name"
        named = name in self.columns
        known = self._names.get(key, {})
        found: dict[int, str] = {}
        for batch in self.batches([key, name] if named else [key]):
            distinct = pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([])
            for row in distinct.to_pylist():
                number = int(row[key])
                found.setdefault(number, str(row[name]) if named else known.get(number, str(number)))
        return dict(sorted(found.items()))

    def _of_entities(self, wanted: list[str | int]) -> ds.Expression:
        key = self.entity_key
        if key is None:
            raise fault(
                "UnknownColumn", f"table {self.name} has no entities", "entity", wanted, "leave it out"
            )
        ids = []
        for item in wanted:
            matches = [
                number for number, name in self.entities.items() if item in (number, name, str(number))
            ]
            exact = [number for number in matches if self.entities[number] == item]
            if not matches:
                kind = key.removesuffix("_id").replace("_", " ")
                advice = closest(str(item), self.entities.values(), "there are")
                raise fault(
                    "UnknownEntity", f"table {self.name} has no {kind} {item!r}", "entity", item, advice
                )
            ids += exact or matches
        return ds.field(key).isin(pa.array(ids, pa.int32()))

    def _columns(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None:
            return None
        chosen = [columns] if isinstance(columns, str) else list(columns)
        require_columns(chosen, self.dataset.schema, self.name)
        return chosen

    # -- how it shows itself

    def __repr__(self) -> str:
        return f"Table({self.name!r}: {len(self):,} rows, {len(self.columns)} columns)"

    def _repr_html_(self) -> str:
        first = self.head(_SHOWN_ROWS)
        shown = list(self.columns[:_SHOWN_COLUMNS])
        head = "".join(f"<th>{html.escape(self._heading(name))}</th>" for name in shown)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in shown) + "</tr>"
            for row in first.select(shown).to_pylist()
        )
        more = len(self.columns) - len(shown)
        note = f", the first {len(shown)} columns of {len(self.columns)}" if more > 0 else ""
        caption = f"{self.name}: the first {len(first)} rows of {len(self):,}{note}"
        return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{rows}</table>"

    def _heading(self, column: str) -> str:
        unit = self.unit(column)
        return f"{column} ({unit})" if unit else column


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
