"""The types of entities: one row for each, from which readers, checks, tables and results are derived.

Types that cobre-rs has too have fields of their own in :class:`cobre.case.format.sources.Sources`,
:class:`cobre.case.model.Case` and :class:`cobre.case.model.StageData`. The others are *extensions*: what is
read of their file is also what the study holds (``case.entities(Battery)``), their limits are
``stage_data.extensions[field]``, and nothing about them is listed anywhere but here and in their module of
:mod:`cobre.lp.entities`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cobre.case.format.schema.batteries import BatteriesFile, Battery
from cobre.case.format.schema.system import (
    BusEntry,
    BusesFile,
    ContractEntry,
    ContractsFile,
    Entity,
    HydroEntry,
    HydrosFile,
    LineEntry,
    LinesFile,
    NonControllableEntry,
    NonControllablesFile,
    PumpingStationEntry,
    PumpingStationsFile,
    ThermalEntry,
    ThermalsFile,
)
from cobre.fields import RootModel


class _Identified(Protocol):
    @property
    def id(self) -> int: ...


_Item = TypeVar("_Item", bound=_Identified)


@dataclass(frozen=True)
class Limit:
    """A limit of an extension that may change by stage and block; at least 0, and 0 out of service.

    Attributes
    ----------
    field
        Name of its array, (entity, block), in ``stage_data.extensions`` and in tables.
    key
        Key of the entity that declares it, and column of the file of bounds.
    unit
        Of both.
    """

    field: str
    key: str
    unit: str
    description: str


@dataclass(frozen=True)
class EntityType:
    """A type of entities.

    Attributes
    ----------
    name
        Short name, in labels of LPs and in names of tables.
    word
        What an entity is called in problems.
    attribute
        Name of the collection in sources and study.
    path, key
        The file, and the key of the list in it.
    file, entry
        Models of the file and of an entry.
    references
        Keys that hold the id of a bus or a hydro plant.
    orders
        Keys of which the first must not exceed the second.
    limits, bounds
        What may change by stage, and the file that does it (extensions).
    extension
        Whether the type is no part of the format of cobre-rs.
    """

    name: str
    word: str
    attribute: str
    path: str
    key: str
    file: type[RootModel]
    entry: type[Entity]
    references: tuple[tuple[str, str], ...] = ()
    orders: tuple[tuple[str, str], ...] = ()
    limits: tuple[Limit, ...] = ()
    bounds: str | None = None
    extension: bool = False

    @property
    def id_column(self) -> str:
        """Column of tables that holds the id."""
        return f"{self.word.replace(' ', '_')}_id"

    @property
    def has_service(self) -> bool:
        """Whether entities have a service window."""
        return "entry_stage_id" in self.entry.model_fields


_BUS = ("bus_id", "bus")

ENTITY_TYPES = (
    EntityType("bus", "bus", "buses", "system/buses.json", "buses", BusesFile, BusEntry),
    EntityType(
        *("line", "line", "lines", "system/lines.json", "lines", LinesFile, LineEntry),
        references=(("source_bus_id", "bus"), ("target_bus_id", "bus")),
    ),
    EntityType(
        *("thermal", "thermal", "thermals", "system/thermals.json", "thermals", ThermalsFile, ThermalEntry),
        references=(_BUS,),
    ),
    EntityType(
        *("hydro", "hydro", "hydros", "system/hydros.json", "hydros", HydrosFile, HydroEntry),
        references=(("downstream_id", "hydro"),),
    ),
    EntityType(
        *("ncs", "non-controllable source", "non_controllables", "system/non_controllable_sources.json"),
        *("non_controllable_sources", NonControllablesFile, NonControllableEntry),
        references=(_BUS,),
    ),
    EntityType(
        *("pump", "pumping station", "pumping_stations", "system/pumping_stations.json"),
        *("pumping_stations", PumpingStationsFile, PumpingStationEntry),
        references=(_BUS, ("source_hydro_id", "hydro"), ("destination_hydro_id", "hydro")),
    ),
    EntityType(
        *("contract", "contract", "contracts", "system/energy_contracts.json"),
        *("contracts", ContractsFile, ContractEntry),
        references=(_BUS,),
    ),
    EntityType(
        name="battery",
        word="battery",
        attribute="batteries",
        path="system/batteries.json",
        key="batteries",
        file=BatteriesFile,
        entry=Battery,
        references=(_BUS,),
        orders=(
            ("min_energy_mwh", "max_energy_mwh"),
            ("min_energy_mwh", "initial_energy_mwh"),
            ("initial_energy_mwh", "max_energy_mwh"),
        ),
        limits=(
            Limit("battery_charge_max_mw", "max_charge_mw", "MW", "Most power taken from the bus."),
            Limit("battery_discharge_max_mw", "max_discharge_mw", "MW", "Most power fed into the bus."),
        ),
        bounds="constraints/battery_bounds.parquet",
        extension=True,
    ),
)
"""All types, in the order of their files."""

EXTENSIONS = tuple(kind for kind in ENTITY_TYPES if kind.extension)


def type_of(entry: type[Entity]) -> EntityType:
    """Return the type whose entries are of this model."""
    return next(kind for kind in ENTITY_TYPES if kind.entry is entry)


def singular(words: str) -> str:
    """Return the name of one entity of a collection: ``battery`` of ``batteries``, ``bus`` of ``buses``."""
    of_type = {kind.attribute.replace("_", " "): kind.word for kind in ENTITY_TYPES}
    return of_type.get(words.replace("_", " "), words.removesuffix("s"))


def by_id(items: Iterable[_Item]) -> list[_Item]:
    """Return entities in ascending id."""
    return sorted(items, key=lambda item: item.id)
