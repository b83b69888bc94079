"""``system/*.json``: buses, lines, thermal and hydro plants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cobre.case.schema.base import FormatModel, Id, IsoDate, JsonObject, NonNegative, RootModel, unsupported
from cobre.case.schema.penalties import DeficitSegmentEntry, HydroPenaltyOverrides

_SERVICE_WINDOW = "a service window (entry and exit stages)"
ServiceStage = Annotated[Id | None, unsupported(_SERVICE_WINDOW)]


class Entity(FormatModel):
    """What every entity has; the start date has no effect on dispatch."""

    id: Id
    name: str
    operational_start_date: IsoDate


class BusEntry(Entity):
    """A bus."""

    deficit_segments: list[DeficitSegmentEntry] | None = None


class BusesFile(RootModel):
    """``system/buses.json``."""

    buses: Annotated[list[BusEntry], Field(min_length=1)]


class LineCapacity(FormatModel):
    """Limits of a line, MW."""

    direct_mw: NonNegative
    reverse_mw: NonNegative


class LineEntry(Entity):
    """A line."""

    source_bus_id: Id
    target_bus_id: Id
    capacity: LineCapacity
    losses_percent: Annotated[NonNegative | None, unsupported("line losses", 0.0)] = None
    exchange_cost: NonNegative | None = None
    entry_stage_id: ServiceStage = None
    exit_stage_id: ServiceStage = None


class LinesFile(RootModel):
    """``system/lines.json``."""

    lines: list[LineEntry]


class ThermalGeneration(FormatModel):
    """Limits of a thermal plant, MW."""

    min_mw: NonNegative
    max_mw: NonNegative


class ThermalEntry(Entity):
    """A thermal plant."""

    bus_id: Id
    cost_per_mwh: NonNegative
    generation: ThermalGeneration
    entry_stage_id: ServiceStage = None
    exit_stage_id: ServiceStage = None
    anticipated_config: Annotated[JsonObject | None, unsupported("anticipated thermal plants")] = None


class ThermalsFile(RootModel):
    """``system/thermals.json``."""

    thermals: list[ThermalEntry]


class Reservoir(FormatModel):
    """Limits of storage, hm3."""

    min_storage_hm3: NonNegative
    max_storage_hm3: NonNegative


class Outflow(FormatModel):
    """Limits of outflow, m3/s; no maximum means unbounded."""

    min_outflow_m3s: NonNegative
    max_outflow_m3s: NonNegative | None = None


class HydroGeneration(FormatModel):
    """Production model and plant limits."""

    model: Annotated[
        Literal["constant_productivity", "linearized_head", "fpha"],
        unsupported("a production model other than 'constant_productivity'", "constant_productivity"),
    ]
    min_turbined_m3s: NonNegative
    max_turbined_m3s: NonNegative
    min_generation_mw: NonNegative
    max_generation_mw: NonNegative


class UnitGroupEntry(FormatModel):
    """Units of a plant on one bus."""

    id: Id
    name: str
    bus_id: Id
    min_generation_mw: NonNegative
    max_generation_mw: NonNegative
    min_turbined_m3s: NonNegative
    max_turbined_m3s: NonNegative


class HydroEntry(Entity):
    """A hydro plant."""

    downstream_id: Id | None = None
    travel_time_hours: Annotated[NonNegative | None, unsupported("water travel time", 0.0)] = None
    reservoir: Reservoir
    outflow: Outflow
    generation: HydroGeneration
    unit_groups: Annotated[list[UnitGroupEntry], Field(min_length=1)]
    penalties: HydroPenaltyOverrides | None = None
    entry_stage_id: ServiceStage = None
    exit_stage_id: ServiceStage = None
    tailrace: Annotated[JsonObject | None, unsupported("tailrace curves")] = None
    hydraulic_losses: Annotated[JsonObject | None, unsupported("hydraulic losses")] = None
    efficiency: Annotated[JsonObject | None, unsupported("turbine efficiency")] = None
    evaporation: Annotated[JsonObject | None, unsupported("evaporation")] = None
    diversion: Annotated[JsonObject | None, unsupported("diversion channels")] = None
    filling: Annotated[JsonObject | None, unsupported("filling of reservoirs")] = None
    specific_productivity_mw_per_m3s_per_m: Annotated[
        float | None, unsupported("head-dependent productivity")
    ] = None


class HydrosFile(RootModel):
    """``system/hydros.json``."""

    hydros: list[HydroEntry]
