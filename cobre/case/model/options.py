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
