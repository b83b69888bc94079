"""What ``config.json`` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

InflowMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]
ClassName = Literal["inflow", "load", "ncs"]
"""What noise is about: inflow of hydros, load of buses, availability of non-controllable sources."""
Scheme = Literal["in_sample", "out_of_sample", "external", "historical"]


@dataclass(frozen=True)
class ScenarioSource:
    """Where the noise of forward passes comes from, by class; and, in training, the openings."""

    inflow: Scheme = "in_sample"
    load: Scheme = "in_sample"
    ncs: Scheme = "in_sample"
    seed: int | None = None
    """Of fresh noise; the opening tree has a seed of its own."""
    historical_years: Sequence[int] | None = None
    """Years whose inflows are replayed; ``None`` = all that the history covers."""
    openings: Literal["generated", "file"] = "generated"

    def scheme(self, name: ClassName) -> Scheme:
        """Return the scheme of a class."""
        schemes: dict[ClassName, Scheme] = {"inflow": self.inflow, "load": self.load, "ncs": self.ncs}
        return schemes[name]


@dataclass(frozen=True)
class TrainingOptions:
    """Options of training."""

    tree_seed: int
    forward_passes: int
    """Of one iteration; 0 with ``enumerated``."""
    iteration_limit: int
    inflow_method: InflowMethod
    cost_scale_factor: float | None
    """$ per unit of objective in the LPs; ``None`` lets the LP builder choose."""
    enumerated: bool = False
    """Every path through the tree is a forward pass, weighted by its probability."""
    source: ScenarioSource = field(default_factory=ScenarioSource)


@dataclass(frozen=True)
class SimulationOptions:
    """Options of simulation."""

    num_scenarios: int = 2000
    """0 with ``enumerated``."""
    enumerated: bool = False
    source: ScenarioSource = field(default_factory=ScenarioSource)


@dataclass(frozen=True)
class PolicyOptions:
    """Where cuts come from besides training."""

    boundary_path: Path | None = None
    """Policy directory whose cuts value the final state; ``None`` = the end is worth nothing."""
    boundary_strict: bool = False


@dataclass(frozen=True)
class EstimationOptions:
    """How inflow models are estimated from history."""

    max_order: int = 6
    """Largest autoregressive order."""
    order_selection: Literal["pacf", "pacf_annual"] = "pacf"
    """By partial autocorrelations; ``pacf_annual`` adds the annual component."""
    min_observations_per_season: int = 30
    """Observations of a season below which its estimates are doubtful."""
    max_coefficient_magnitude: float | None = None
    """Largest coefficient that is kept; ``None`` = any."""
