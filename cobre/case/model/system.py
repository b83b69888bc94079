"""The entities of the system: what they are and where they are, without what varies by stage.

Limits, costs and service that may change from stage to stage or from block to block are in
:class:`cobre.case.model.stage_data.StageData`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DeficitSegment:
    """A slice of unserved load: up to ``depth_mw`` (``None`` = unlimited) at ``cost_per_mwh``."""

    depth_mw: float | None
    cost_per_mwh: float


@dataclass(frozen=True)
class Bus:
    """A node of the network where load is served."""

    id: int
    name: str
    deficit_segments: tuple[DeficitSegment, ...]


@dataclass(frozen=True)
class Line:
    """A link; ``direct`` runs from source to target. Of a flow f the receiving end gets (1 - loss) f."""

    id: int
    name: str
    source_bus_id: int
    target_bus_id: int
    loss: float = 0.0


@dataclass(frozen=True)
class AnticipatedDelivery:
    """One delivery of a plant that is committed ahead of time.

    Attributes
    ----------
    delivery
        Position of the delivery stage; ``len(stages) + p`` for post-study stage p.
    decision
        Position of the stage where it is decided; -1 if it was decided before the study.
    committed_mw
        The commitment of a delivery decided before the study, else ``None``.
    min_mw, max_mw, cost_per_mwh, hours
        Limits, price and duration at delivery; the cost is charged at the decision.
    """

    delivery: int
    decision: int
    committed_mw: float | None
    min_mw: float
    max_mw: float
    cost_per_mwh: float
    hours: float


@dataclass(frozen=True)
class Thermal:
    """A thermal plant with one linear cost."""

    id: int
    name: str
    bus_id: int
    anticipated: tuple[AnticipatedDelivery, ...] = ()
    """All deliveries, ascending, of a plant that is committed ahead of time; else empty."""


@dataclass(frozen=True)
class UnitGroup:
    """Generating units of a hydro plant that feed one bus."""

    id: int
    name: str
    bus_id: int


@dataclass(frozen=True)
class Diversion:
    """A channel to another plant."""

    downstream_id: int


@dataclass(frozen=True)
class Filling:
    """The first filling of a reservoir: from stage ``start`` (position) until the plant enters service."""

    start: int


@dataclass(frozen=True)
class Hydro:
    """A hydro plant."""

    id: int
    name: str
    downstream_id: int | None
    unit_groups: tuple[UnitGroup, ...]
    initial_storage_hm3: float
    travel_time_hours: float = 0.0
    """Time that turbined and spilt water takes to the downstream plant."""
    past_outflow_hm3: tuple[float, ...] = ()
    """Water under way at the start, by the stage (position) in which it arrives downstream."""
    diversion: Diversion | None = None
    filling: Filling | None = None
    specific_productivity_mw_per_m3s_per_m: float | None = None


@dataclass(frozen=True)
class NonControllable:
    """A source whose generation is given by nature (wind, sun)."""

    id: int
    name: str
    bus_id: int
    max_generation_mw: float
    allow_curtailment: bool = True


@dataclass(frozen=True)
class PumpingStation:
    """Lifts water from one reservoir to another, at the expense of power at a bus."""

    id: int
    name: str
    bus_id: int
    source_hydro_id: int
    destination_hydro_id: int
    consumption_mw_per_m3s: float


@dataclass(frozen=True)
class Contract:
    """Energy bought (``import``) or sold (``export``) at a bus."""

    id: int
    name: str
    bus_id: int
    kind: Literal["import", "export"]
