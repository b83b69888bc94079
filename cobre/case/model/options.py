"""What ``config.json`` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

InflowMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]
PolicyMode = Literal["fresh", "warm_start", "resume"]


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
class CheckpointOptions:
    """When training writes checkpoints, and what is in them."""

    interval_iterations: int
    initial_iteration: int = 0
    """First iteration with a checkpoint; 0 = the interval."""
    store_basis: bool = True
    """Whether starting bases are stored; without them a resume is not bit for bit."""
    compress: bool = True

    def due(self, iteration: int) -> bool:
        """Whether a checkpoint follows ``iteration`` (from 1)."""
        after = iteration - self.initial_iteration
        return after >= 0 and after % self.interval_iterations == 0


@dataclass(frozen=True)
class PolicyOptions:
    """Where the policy is kept, and where cuts come from besides training."""

    boundary_path: Path | None = None
    """Policy directory whose cuts value the final state; ``None`` = the end is worth nothing."""
    boundary_strict: bool = False
    path: str = "policy"
    """Folder of the policy inside the output directory, with ``/`` and without ``.`` or ``..``."""
    mode: PolicyMode = "fresh"
    """What training starts from: nothing, the cuts of the stored policy, or the last checkpoint."""
    checkpointing: CheckpointOptions | None = None
    """``None`` = no checkpoints."""
