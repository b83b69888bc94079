"""SDDP: forward and backward passes, cuts, bounds, and the training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cobre import _distribution  # noqa: F401 (refuses files of another package cobre)
from cobre._lazy import lazy_names

if TYPE_CHECKING:
    from cobre.policy import Policy
    from cobre.sddp.plan import TrainingPlan
    from cobre.sddp.progress import IterationRecord, TrainingResult
    from cobre.sddp.ranks.pool import WorkerPool
    from cobre.sddp.simulation.result import SimulationProgress, SimulationResult
    from cobre.sddp.study import RunResult, Study, simulate, train

__all__ = [
    "IterationRecord",
    "Policy",
    "RunResult",
    "SimulationProgress",
    "SimulationResult",
    "Study",
    "TrainingPlan",
    "TrainingResult",
    "WorkerPool",
    "simulate",
    "train",
]

# Lazy, because ``python -m cobre.sddp`` imports this before the command line sets the number of threads of
# Numba, and to show its help without loading the compiler.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "IterationRecord": "cobre.sddp.progress:IterationRecord",
        "Policy": "cobre.policy:Policy",
        "RunResult": "cobre.sddp.study:RunResult",
        "SimulationProgress": "cobre.sddp.simulation.result:SimulationProgress",
        "SimulationResult": "cobre.sddp.simulation.result:SimulationResult",
        "Study": "cobre.sddp.study:Study",
        "TrainingPlan": "cobre.sddp.plan:TrainingPlan",
        "TrainingResult": "cobre.sddp.progress:TrainingResult",
        "WorkerPool": "cobre.sddp.ranks.pool:WorkerPool",
        "simulate": "cobre.sddp.study:simulate",
        "train": "cobre.sddp.study:train",
    },
)
