"""What columns, ids and codes mean: ``variables.csv``, ``entities.csv`` and ``codes.json``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from cobre.case.catalogue import EXTENSIONS
from cobre.case.model import Case
from cobre.durable import atomic_write, output_errors
from cobre.results.columns import TableSpec
from cobre.results.files import write_json

_FIRST_EXTENSION: Final = 100

CODES: Final[dict[str, dict[str, str]]] = {
    "bound_type": {
        "0": "storage_min",
        "1": "storage_max",
        "2": "turbined_min",
        "3": "turbined_max",
        "4": "outflow_min",
        "5": "outflow_max",
        "6": "generation_min",
        "7": "generation_max",
        "8": "flow_min",
        "9": "flow_max",
    },
    "contract_type": {"0": "import", "1": "export"},
    "entity_type": {
        "0": "hydro",
        "1": "thermal",
        "2": "bus",
        "3": "line",
        "4": "pumping_station",
        "5": "contract",
        "7": "non_controllable",
        "8": "hydro_unit_group",
        **{str(_FIRST_EXTENSION + place): kind.word for place, kind in enumerate(EXTENSIONS)},
    },
    "operative_state": {"0": "deactivated", "1": "maintenance", "2": "operating", "3": "saturated"},
    "storage_binding": {"0": "none", "1": "below_minimum", "2": "above_maximum", "3": "both"},
}
"""Meanings of codes, with the words of cobre-rs."""

ENTITY_CODES: Final = {name: int(number) for number, name in CODES["entity_type"].items()}

NO_BUS: Final = -1
"""Bus of entities that are not at one bus."""


def write_dictionaries(
    directory: Path,
    case: Case,
    tables: Sequence[TableSpec],
    further: Sequence[tuple[str, ...]] = (),
) -> None:
    """Write the three dictionaries.

    Parameters
    ----------
    further
        Rows of ``variables.csv`` besides those of the tables; they come first.

    Raises
    ------
    OutputError
        When a file cannot be written.
    """
    with output_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    write_csv(directory / "variables.csv", VARIABLE_COLUMNS, [*further, *variable_rows(tables)])
    write_csv(directory / "entities.csv", ENTITY_COLUMNS, entity_rows(case))
    write_json(directory / "codes.json", {"version": "1.0", **CODES})


VARIABLE_COLUMNS: Final = ("file", "column", "type", "unit", "description", "nullable")
ENTITY_COLUMNS: Final = ("entity_type_code", "entity_id", "name", "bus_id", "system_id")


def variable_rows(tables: Iterable[TableSpec]) -> list[tuple[str, ...]]:
    """Return a row for each column of the tables."""
    return [
        (
            spec.name,
            column.name,
            column.type,
            column.unit,
            column.description,
            "true" if column.nullable else "false",
        )
        for spec in tables
        for column in spec.columns
    ]


def entity_rows(case: Case) -> list[tuple[Any, ...]]:
    """Return a row for each entity, unit groups named by plant and group."""
    at_buses = (
        ("thermal", case.thermals),
        ("pumping_station", case.pumping_stations),
        ("contract", case.contracts),
        ("non_controllable", case.non_controllables),
        *((kind.word, case.extensions.get(kind.attribute, ())) for kind in EXTENSIONS),
    )
    found: list[tuple[str, int, str, int]] = [("hydro", item.id, item.name, NO_BUS) for item in case.hydros]
    found += [("bus", bus.id, bus.name, bus.id) for bus in case.buses]
    found += [("line", line.id, line.name, NO_BUS) for line in case.lines]
    found += [(kind, item.id, item.name, item.bus_id) for kind, items in at_buses for item in items]
    found += [
        ("hydro_unit_group", group.id, f"{plant.id}/{group.name}", group.bus_id)
        for plant in case.hydros
        for group in plant.unit_groups
    ]
    rows = [(ENTITY_CODES[kind], number, name, bus, 0) for kind, number, name, bus in found]
    return sorted(rows, key=lambda row: row[0])


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV (UTF-8, line ends of Unix) atomically."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    content = text.getvalue().encode("utf-8", "backslashreplace")
    atomic_write(path, lambda file: _write_all(file, content))


def _write_all(file: Any, content: bytes) -> None:
    file.write(content)
