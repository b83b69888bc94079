"""The validated, immutable study: what a case directory means once every default is resolved.

Entities are sorted by id; every array below follows that order (``hydro``, ``bus`` axes) and the order
of study stages (``stage`` axis, ascending stage id). Nothing here refers to files any more.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cobre.errors import Problem

InflowMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]


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
    excess_cost_per_mwh: float


@dataclass(frozen=True)
class Line:
    """A lossless link; ``direct`` runs from source to target."""

    id: int
    name: str
    source_bus_id: int
    target_bus_id: int
    direct_mw: float
    reverse_mw: float
    exchange_cost_per_mwh: float


@dataclass(frozen=True)
class Thermal:
    """A thermal plant with one linear cost; ``min_mw`` is a hard minimum."""

    id: int
    name: str
    bus_id: int
    min_mw: float
    max_mw: float
    cost_per_mwh: float


@dataclass(frozen=True)
class UnitGroup:
    """Generating units of a hydro plant that feed one bus."""

    id: int
    name: str
    bus_id: int
    min_generation_mw: float
    max_generation_mw: float
    min_turbined_m3s: float
    max_turbined_m3s: float


@dataclass(frozen=True)
class HydroPenalties:
    """Costs of a hydro plant: flow costs in $/(m3/s.h), storage in $/hm3, generation in $/MWh."""

    spillage: float
    turbined: float
    storage_violation_below: float
    turbined_violation_below: float
    outflow_violation_below: float
    outflow_violation_above: float
    generation_violation_below: float
    inflow_nonnegativity: float


@dataclass(frozen=True)
class Hydro:
    """A hydro plant with constant productivity at each stage."""

    id: int
    name: str
    downstream_id: int | None
    min_storage_hm3: float
    max_storage_hm3: float
    initial_storage_hm3: float
    min_outflow_m3s: float
    max_outflow_m3s: float | None
    min_turbined_m3s: float
    max_turbined_m3s: float
    min_generation_mw: float
    max_generation_mw: float
    unit_groups: tuple[UnitGroup, ...]
    productivity_mw_per_m3s: tuple[float, ...]
    """One value for each study stage."""
    penalties: HydroPenalties


@dataclass(frozen=True)
class Block:
    """A load block of a stage (parallel: no order in time)."""

    id: int
    name: str
    hours: float


@dataclass(frozen=True)
class Stage:
    """One decision period."""

    id: int
    start_date: datetime.date
    end_date: datetime.date
    season_id: int | None
    blocks: tuple[Block, ...]
    num_openings: int
    discount_factor: float
    """One-step factor that multiplies the cost of all later stages (exactly 1 without a rate)."""

    @property
    def hours(self) -> float:
        """Hours of the stage, from its blocks."""
        return sum(block.hours for block in self.blocks)


@dataclass(frozen=True)
class TrainingOptions:
    """What ``config.json`` asks of training."""

    tree_seed: int
    forward_passes: int
    iteration_limit: int
    inflow_method: InflowMethod
    cost_scale_factor: float | None
    """$ per unit of objective in the LPs; ``None`` lets the LP builder choose."""


@dataclass(frozen=True)
class Case:
    """A complete study.

    Attributes
    ----------
    inflow_mean_m3s, inflow_std_m3s
        Incremental inflow by (stage, hydro).
    load_mean_mw, load_std_mw
        Load by (stage, bus), before block factors.
    load_factor
        For each stage an array (bus, block) that multiplies the load.
    warnings
        What looked odd while loading but is not wrong.
    """

    path: Path
    training: TrainingOptions
    stages: tuple[Stage, ...]
    buses: tuple[Bus, ...]
    lines: tuple[Line, ...]
    thermals: tuple[Thermal, ...]
    hydros: tuple[Hydro, ...]
    inflow_mean_m3s: NDArray[np.float64]
    inflow_std_m3s: NDArray[np.float64]
    load_mean_mw: NDArray[np.float64]
    load_std_mw: NDArray[np.float64]
    load_factor: tuple[NDArray[np.float64], ...]
    warnings: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Case({self.path.name!r}: {len(self.stages)} stages, {len(self.buses)} buses, "
            f"{len(self.lines)} lines, {len(self.thermals)} thermals, {len(self.hydros)} hydros)"
        )
