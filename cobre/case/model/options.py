"""What ``config.json`` asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

InflowMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]


@dataclass(frozen=True)
class UpperBoundOptions:
    """The deterministic upper bound: whether and when it is evaluated, and with which prices."""

    enabled: bool = False
    """At the end of training; and on the way there if there is an interval."""
    initial_iteration: int = 1
    """First iteration after which it is evaluated on the way."""
    interval_iterations: int | None = None
    """Iterations from one evaluation to the next; ``None`` = only at the end."""
    fallback_price: float | None = None
    """$ per unit of a state component where no valid price is found; ``None`` = no such moves."""
    price_factor: float = 1.0
    """Margin on the prices that are found, 1 or more."""


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
    upper_bound: UpperBoundOptions = field(default_factory=UpperBoundOptions)


@dataclass(frozen=True)
class PolicyOptions:
    """Where cuts come from besides training."""

    boundary_path: Path | None = None
    """Policy directory whose cuts value the final state; ``None`` = the end is worth nothing."""
    boundary_strict: bool = False
