"""Tables as datasets of xarray, with labels, units and descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cobre.errors import CobreError

if TYPE_CHECKING:
    from cobre.results.reading.cube import Cube
    from cobre.results.reading.table import Table


def to_xarray(table: Table, cube: Cube) -> Any:
    """Return a cube of a table as an ``xarray.Dataset``.

    Raises
    ------
    CobreError
        Kind ``ExtraMissing`` when xarray is not installed.
    """
    try:
        import xarray
    except ImportError as error:
        raise CobreError(
            "ExtraMissing",
            "a dataset of xarray was asked for, but xarray is not installed",
            {"missing": error.name or "xarray"},
            "pip install xarray, or take the arrays as they are (cube)",
        ) from error
    coordinates: dict[str, Any] = {dim: (dim, labels) for dim, labels in cube.labels.items()}
    if "entity" in cube.dims:
        coordinates[table.entity_key or "entity_id"] = ("entity", cube.labels["entity"])
        coordinates["entity"] = ("entity", np.array(cube.names, dtype=object))
    if "stage" in cube.dims and len(cube.dates):
        coordinates["start_date"] = ("stage", cube.dates.astype("datetime64[ns]"))
    schema = table.schema
    variables = {}
    for name, values in cube.values.items():
        field = schema.field(name)
        metadata = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
        attributes = {
            key: text
            for key, text in (("units", metadata.get("unit")), ("long_name", metadata.get("description")))
            if text
        }
        variables[name] = (cube.dims, _typed(values, field.type), attributes)
    return xarray.Dataset(variables, coordinates, {"table": table.name, "source": str(table.path)})


def _typed(values: Any, kind: pa.DataType) -> Any:
    """Return codes and flags in their own type where every cell has a value."""
    if pa.types.is_floating(kind) or bool(np.isnan(values).any()):
        return values
    return values.astype(kind.to_pandas_dtype())
