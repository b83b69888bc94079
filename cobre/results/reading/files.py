"""Files of a run: found, read, and clear errors where they are not there or damaged."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from cobre.errors import OutputError


@dataclass(frozen=True)
class Variable:
    """What a dictionary states about a column."""

    type: str
    unit: str
    description: str


Variables = Mapping[str, Mapping[str, Variable]]
"""By table and column."""


Names = Mapping[str, Mapping[int, str]]
"""Names of entities by column of ids, such as ``hydro_id``, and id."""

_KEYS: Final = {
    "0": "hydro_id",
    "1": "thermal_id",
    "2": "bus_id",
    "3": "line_id",
    "4": "pumping_station_id",
    "5": "contract_id",
    "7": "non_controllable_id",
}


def missing(directory: Path, message: str, suggestion: str) -> OutputError:
    """Return the error of results that are not there."""
    return OutputError("OutputNotFound", message, {"file": str(directory)}, suggestion)


@contextmanager
def reading(path: Path, suggestion: str = "run it again, into another directory") -> Iterator[None]:
    """Turn what goes wrong with a file into an :class:`~cobre.errors.OutputError`."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OutputError(
            "OutputCorrupted", f"{path} cannot be read: {error}", {"file": str(path)}, suggestion
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    Raises
    ------
    OutputError
        Kind ``OutputCorrupted`` when it holds none.
    """
    with reading(path):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise ValueError("it does not hold a JSON object")
    return document


def read_variables(path: Path) -> dict[str, dict[str, Variable]]:
    """Return what ``variables.csv`` states, by table and column; nothing where there is no such file."""
    found: dict[str, dict[str, Variable]] = {}
    if not path.is_file():
        return found
    with reading(path), path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                entry = Variable(row["type"], row["unit"], row["description"])
                found.setdefault(row["file"], {})[row["column"]] = entry
            except KeyError as error:
                raise ValueError(f"it has no column {error}") from error
    return found


def read_names(path: Path) -> dict[str, dict[int, str]]:
    """Return names of entities from ``entities.csv``, for tables of cobre-rs, which hold ids alone."""
    found: dict[str, dict[int, str]] = {}
    if not path.is_file():
        return found
    with reading(path), path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = _KEYS.get(row.get("entity_type_code", ""))
            if key is not None:
                found.setdefault(key, {})[int(row["entity_id"])] = row["name"]
    return found
