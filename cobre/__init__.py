"""Hydrothermal power-system planning by SDDP, compiled by Numba, over pluggable communicators.

>>> import cobre
>>> case = cobre.load_case("examples/random-inflow")
>>> case
Case('random-inflow': 4 stages, 1 buses, 0 lines, 3 thermals, 2 hydros)
>>> result = cobre.train(case, iterations=20)  # doctest: +SKIP

Importing the package is light: what needs Numba, pyarrow or pydantic is imported at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cobre import _distribution  # noqa: F401 (refuses files of another package cobre)
from cobre._lazy import lazy_names
from cobre._version import __version__

if TYPE_CHECKING:
    from cobre import results as results
    from cobre.case import load as load_case
    from cobre.errors import CobreError, OutputError, Problem, SolverError, ValidationError, WorkerError
    from cobre.policy.loading import load_policy
    from cobre.sddp import SimulationResult, Study, TrainingResult, WorkerPool, simulate, train

__all__ = [
    "CobreError",
    "OutputError",
    "Problem",
    "SimulationResult",
    "SolverError",
    "Study",
    "TrainingResult",
    "ValidationError",
    "WorkerError",
    "WorkerPool",
    "__version__",
    "load_case",
    "load_policy",
    "results",
    "simulate",
    "train",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CobreError": "cobre.errors:CobreError",
        "OutputError": "cobre.errors:OutputError",
        "Problem": "cobre.errors:Problem",
        "SimulationResult": "cobre.sddp.simulation.result:SimulationResult",
        "SolverError": "cobre.errors:SolverError",
        "Study": "cobre.sddp.study:Study",
        "TrainingResult": "cobre.sddp.progress:TrainingResult",
        "ValidationError": "cobre.errors:ValidationError",
        "WorkerError": "cobre.errors:WorkerError",
        "WorkerPool": "cobre.sddp.ranks.pool:WorkerPool",
        "load_case": "cobre.case:load",
        "load_policy": "cobre.policy.loading:load_policy",
        "results": "cobre.results",
        "simulate": "cobre.sddp.study:simulate",
        "train": "cobre.sddp.study:train",
    },
)
