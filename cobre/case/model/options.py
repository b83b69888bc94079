"""What ``config.json`` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

InflowMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]


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
