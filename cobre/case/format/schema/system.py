"""``system/*.json``: buses, lines, plants, sources, pumping stations, contracts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from cobre.case.format.schema.penalties import DeficitSegmentEntry, HydroPenaltyOverrides
from cobre.fields import (
    FormatModel,
    Id,
    IsoDate,
    NonNegative,
    Positive,
    PositiveCount,
    RootModel,
)


class Entity(FormatModel):
    """What every entity has."""

    id: Id
    """Unique among the entities of the file."""
    name: str
    """Shown in problems and results."""
    operational_start_date: IsoDate
    """When the entity came into being; no effect on dispatch."""


class Served(Entity):
    """An entity with a service window; outside it, all its limits are 0."""

    entry_stage_id: Id | None = None
    """First stage in service; null = from the start."""
    exit_stage_id: Id | None = None
    """First stage out of service again; null = never."""


class BusEntry(Entity):
    """A bus."""

    deficit_segments: list[DeficitSegmentEntry] | None = None
    """Slices of unserved load by increasing cost; null takes those of penalties.json."""


class BusesFile(RootModel):
    """``system/buses.json``: the buses of the system."""

    buses: Annotated[list[BusEntry], Field(min_length=1)]
    """All buses."""


class LineCapacity(FormatModel):
    """Limits of a line, MW."""

    direct_mw: NonNegative
    """Most that can leave the source bus, MW."""
    reverse_mw: NonNegative
    """Most that can leave the target bus, MW."""


class LineEntry(Served):
    """A line."""

    source_bus_id: Id
    """Where the direct flow starts."""
    target_bus_id: Id
    """Where the direct flow ends."""
    capacity: LineCapacity
    """Limits of flow."""
    losses_percent: Annotated[float, Field(ge=0, le=100)] | None = None
    """Share of a flow that is lost on the way, %; null = 0."""
    exchange_cost: NonNegative | None = None
    """Cost of a flow in either direction, $/MWh; null takes that of penalties.json."""


class LinesFile(RootModel):
    """``system/lines.json``: the lines of the system."""

    lines: list[LineEntry]
    """All lines; may be empty."""


class ThermalGeneration(FormatModel):
    """Limits of a thermal plant, MW."""

    min_mw: NonNegative
    """Least generation, MW."""
    max_mw: NonNegative
    """Most generation, MW."""


class AnticipatedConfig(FormatModel):
    """How long before delivery a plant is committed: exactly one of the two keys."""

    lead_stages: PositiveCount | None = None
    """Stages between decision and delivery."""
    lead_time_hours: Positive | None = None
    """Hours between decision and the start of the delivery stage."""

    @model_validator(mode="after")
    def _check_one(self) -> AnticipatedConfig:
        if (self.lead_stages is None) == (self.lead_time_hours is None):
            raise PydanticCustomError(
                "one_of", "must be an object with exactly one of lead_stages and lead_time_hours"
            )
        return self


class ThermalEntry(Served):
    """A thermal plant."""

    bus_id: Id
    """Where it feeds in."""
    cost_per_mwh: NonNegative
    """Cost of generation, $/MWh."""
    generation: ThermalGeneration
    """Limits of generation."""
    anticipated_config: AnticipatedConfig | None = None
    """Given for a plant that is committed ahead of time."""


class ThermalsFile(RootModel):
    """``system/thermals.json``: the thermal plants of the system."""

    thermals: list[ThermalEntry]
    """All thermal plants; may be empty."""


class Reservoir(FormatModel):
    """Limits of storage, hm3; equal limits make a run-of-river plant."""

    min_storage_hm3: NonNegative
    """Dead volume, hm3."""
    max_storage_hm3: NonNegative
    """Full volume, hm3."""


class Outflow(FormatModel):
    """Limits of outflow (turbined and spilt), m3/s."""

    min_outflow_m3s: NonNegative
    """Least outflow, m3/s."""
    max_outflow_m3s: NonNegative | None = None
    """Most outflow, m3/s; null = unbounded."""


class HydroGeneration(FormatModel):
    """Production model and limits of the whole plant."""

    model: Literal["constant_productivity", "linearized_head", "fpha"]
    """How water becomes energy; the numbers are in the files of production models."""
    min_turbined_m3s: NonNegative
    """Least turbined flow, m3/s."""
    max_turbined_m3s: NonNegative
    """Most turbined flow, m3/s."""
    min_generation_mw: NonNegative
    """Least generation, MW."""
    max_generation_mw: NonNegative
    """Most generation, MW."""


class UnitGroupEntry(FormatModel):
    """Units of a plant on one bus; their limits bind on top of the plant's."""

    id: Id
    """Unique in the plant."""
    name: str
    """Shown in problems and results."""
    bus_id: Id
    """Where the units feed in."""
    min_generation_mw: NonNegative
    """Least generation, MW."""
    max_generation_mw: NonNegative
    """Most generation, MW."""
    min_turbined_m3s: NonNegative
    """Least turbined flow, m3/s."""
    max_turbined_m3s: NonNegative
    """Most turbined flow, m3/s."""


class PolynomialTailrace(FormatModel):
    """Tailrace level as a polynomial of outflow."""

    type: Literal["polynomial"]
    """Names this form."""
    coefficients: Annotated[list[float], Field(min_length=1)]
    """Ascending: level (m) = c0 + c1 * outflow (m3/s) + c2 * outflow^2 + ..."""


class TailracePoint(FormatModel):
    """A point of a tailrace curve."""

    outflow_m3s: NonNegative
    """Turbined and spilt flow, m3/s."""
    height_m: float
    """Tailrace level, m."""


class PiecewiseTailrace(FormatModel):
    """Tailrace level by linear interpolation between points."""

    type: Literal["piecewise"]
    """Names this form."""
    points: Annotated[list[TailracePoint], Field(min_length=1)]
    """By strictly increasing outflow."""


class FactorLosses(FormatModel):
    """Hydraulic losses as a share of head."""

    type: Literal["factor"]
    """Names this form."""
    value: Annotated[float, Field(ge=0, lt=1)]
    """Share of the head that is lost, 0-1."""


class ConstantLosses(FormatModel):
    """Hydraulic losses as a constant height."""

    type: Literal["constant"]
    """Names this form."""
    value_m: NonNegative
    """Height that is lost, m."""


class ConstantEfficiency(FormatModel):
    """Efficiency of turbines and generators that does not depend on the operating point."""

    type: Literal["constant"]
    """Names this form."""
    value: Annotated[float, Field(gt=0, le=1)]
    """Share of the hydraulic power that becomes electric, 0-1."""


class EvaporationEntry(FormatModel):
    """Evaporation by calendar month, January first."""

    coefficients_mm: Annotated[list[float], Field(min_length=12, max_length=12)]
    """Height that evaporates in each month, mm; negative where rain exceeds evaporation."""
    reference_volumes_hm3: Annotated[list[NonNegative], Field(min_length=12, max_length=12)] | None = None
    """Storage at which the surface is linearised in each month, hm3; null = half-way between the limits."""


class DiversionEntry(FormatModel):
    """A channel to another plant."""

    downstream_id: Id
    """The plant that receives the water."""
    max_flow_m3s: NonNegative
    """Capacity of the channel, m3/s."""


class FillingEntry(FormatModel):
    """The first filling of a reservoir, until the plant enters service."""

    start_stage_id: Id
    """First stage of filling."""
    filling_min_rate_m3s: NonNegative = 0.0
    """Least flow that must be retained in each stage of filling, m3/s."""


class HydroEntry(Served):
    """A hydro plant."""

    downstream_id: Id | None = None
    """The plant that receives turbined and spilt water; null = it leaves the system."""
    travel_time_hours: NonNegative | None = None
    """Time water takes to the downstream plant, h; null = 0."""
    reservoir: Reservoir
    """Limits of storage."""
    outflow: Outflow
    """Limits of outflow."""
    generation: HydroGeneration
    """Production model and limits of the plant."""
    unit_groups: Annotated[list[UnitGroupEntry], Field(min_length=1)]
    """Units by bus."""
    penalties: HydroPenaltyOverrides | None = None
    """Costs of this plant; null takes those of penalties.json."""
    tailrace: Annotated[PolynomialTailrace | PiecewiseTailrace, Field(discriminator="type")] | None = None
    """Level below the plant by outflow."""
    hydraulic_losses: Annotated[FactorLosses | ConstantLosses, Field(discriminator="type")] | None = None
    """Head lost between reservoir and turbine; null = none."""
    efficiency: ConstantEfficiency | None = None
    """Efficiency of the units; null = 1."""
    evaporation: EvaporationEntry | None = None
    """Evaporation from the reservoir; null = none."""
    diversion: DiversionEntry | None = None
    """A channel to another plant; null = none."""
    filling: FillingEntry | None = None
    """First filling of the reservoir; null = it is in operation when the plant is in service."""
    specific_productivity_mw_per_m3s_per_m: NonNegative | None = None
    """Power for each unit of flow and net head, MW/(m3/s.m)."""


class HydrosFile(RootModel):
    """``system/hydros.json``: the hydro plants of the system."""

    hydros: list[HydroEntry]
    """All hydro plants; may be empty."""


class NonControllableEntry(Served):
    """A source whose generation is given by nature (wind, sun)."""

    bus_id: Id
    """Where it feeds in."""
    max_generation_mw: NonNegative
    """Installed power, MW."""
    allow_curtailment: bool = True
    """Whether less than what is available may be fed in."""
    curtailment_cost: NonNegative | None = None
    """Cost of available energy that is not fed in, $/MWh; null takes that of penalties.json."""


class NonControllablesFile(RootModel):
    """``system/non_controllable_sources.json``: the non-controllable sources of the system."""

    non_controllable_sources: list[NonControllableEntry]
    """All non-controllable sources; may be empty."""


class PumpingFlow(FormatModel):
    """Limits of a pumping station, m3/s."""

    min_m3s: NonNegative
    """Least flow, m3/s."""
    max_m3s: NonNegative
    """Most flow, m3/s."""


class PumpingStationEntry(Served):
    """Lifts water from one reservoir to another at the expense of power."""

    bus_id: Id
    """Where the power is taken from."""
    source_hydro_id: Id
    """The reservoir that gives the water."""
    destination_hydro_id: Id
    """The reservoir that receives the water."""
    consumption_mw_per_m3s: NonNegative
    """Power for each unit of flow, MW/(m3/s)."""
    flow: PumpingFlow
    """Limits of flow."""


class PumpingStationsFile(RootModel):
    """``system/pumping_stations.json``: the pumping stations of the system."""

    pumping_stations: list[PumpingStationEntry]
    """All pumping stations; may be empty."""


class ContractLimits(FormatModel):
    """Limits of a contract, MW."""

    min_mw: NonNegative
    """Least power, MW."""
    max_mw: NonNegative
    """Most power, MW."""


class ContractEntry(Served):
    """Energy bought from or sold to the outside."""

    bus_id: Id
    """Where the energy enters or leaves."""
    type: Literal["import", "export"]
    """Whether the energy comes in or goes out."""
    price_per_mwh: float
    """Cost of each MWh in either direction, $/MWh; negative = revenue."""
    limits: ContractLimits
    """Limits of power."""


class ContractsFile(RootModel):
    """``system/energy_contracts.json``: the energy contracts of the system."""

    contracts: list[ContractEntry]
    """All contracts; may be empty."""
