"""What a simulation reports: how far it is, and at its end the distribution of costs over scenarios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cobre.distribution import DEFICIT_MWH, Distribution
from cobre.errors import Problem
from cobre.policy import LpEngines
from cobre.sddp.costs import CostBreakdown
from cobre.sddp.kernel import counts

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SimulationProgress:
    """How far a simulation is.

    Attributes
    ----------
    scenarios_done, scenarios
        So far, those of an interrupted run included, and in all.
    scenarios_resumed
        Of an interrupted run.
    mean_cost
        Of those done so far: a sample in its first part, $.
    wall_time_ms
        Since the simulation began.
    """

    scenarios_done: int
    scenarios: int
    scenarios_resumed: int
    mean_cost: float
    wall_time_ms: float


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Outcome of a simulation; costs in $, discounted to the beginning of the study.

    Attributes
    ----------
    scenarios, scenarios_planned
        That were simulated, and that were asked for; fewer only where the run was stopped.
    kind
        ``exact`` where all scenarios were enumerated, else ``sample``.
    cost
        Cost of the stages by scenario: ``cost.mean`` is the expected cost.
    scenario_cost
        It itself, float64[scenarios].
    probability
        Of each scenario, float64[scenarios]; ``None`` for a sample, in which all count the same.
    scenario_deficit_mwh
        Energy not served, float64[scenarios].
    terminal_value
        Mean value that a boundary policy gives to the final state, not part of the cost.
    costs
        Mean cost by stage, component and entity, with the terminal value as component ``future``.
    lp_counts
        How much work LPs were, int64[stages, columns of :mod:`cobre.sddp.kernel.counts`].
    policy_sha256, seed
        What was simulated, and by which seed scenarios draw openings.
    output
        Where the results are; ``None`` when they were not written.
    """

    scenarios: int
    scenarios_planned: int
    kind: Literal["sample", "exact"]
    cost: Distribution
    scenario_cost: FloatArray
    probability: FloatArray | None
    scenario_deficit_mwh: FloatArray
    terminal_value: float
    costs: CostBreakdown
    lp_counts: NDArray[np.int64]
    lp_engine: LpEngines
    policy_sha256: str
    seed: int
    backend: str
    ranks: int
    threads: int
    total_time_ms: float
    compile_time_ms: float
    scenarios_resumed: int = 0
    output: Path | None = None
    warnings: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        sample = "" if self.kind == "exact" else f" ± {self.cost.ci_95:.6g}"
        partial = "" if self.status == "complete" else f" of {self.scenarios_planned}, stopped"
        return (
            f"SimulationResult({self.scenarios} scenarios{partial}, mean_cost={self.mean_cost!r}{sample}, "
            f"std={self.cost.std:.6g}, cvar_95={self.cost.cvar_95:.6g}, "
            f"deficit_probability={self.deficit_probability:.4g}, output={str(self.output)!r})"
        )

    @property
    def status(self) -> Literal["complete", "partial"]:
        """``"partial"`` for a simulation that was stopped from outside."""
        return "complete" if self.scenarios == self.scenarios_planned else "partial"

    @property
    def mean_cost(self) -> float:
        """Expected cost, $."""
        return self.cost.mean

    @property
    def deficit_probability(self) -> float:
        """Probability that some load is not served."""
        return self._expected((self.scenario_deficit_mwh > DEFICIT_MWH).astype(np.float64))

    @property
    def expected_deficit_mwh(self) -> float:
        """Expected energy not served over the study."""
        return self._expected(self.scenario_deficit_mwh)

    @property
    def lp_solves(self) -> int:
        """LPs solved, those of an interrupted run included."""
        return int(self.lp_counts[:, counts.LP_SOLVES].sum())

    @property
    def lp_fall_backs(self) -> int:
        """LPs that the own engine gave up and HiGHS solved."""
        return int(self.lp_counts[:, counts.FALL_BACKS].sum())

    def _expected(self, value: FloatArray) -> float:
        if self.probability is None:
            return math.fsum(value) / len(value)
        return math.fsum(self.probability * value)

    def as_dict(self) -> dict[str, Any]:
        """Return what a simulation found, for JSON."""
        return {
            "status": self.status,
            "scenarios": self.scenarios,
            "scenarios_planned": self.scenarios_planned,
            "kind": self.kind,
            "mean_cost": self.cost.mean,
            "std_cost": self.cost.std,
            "ci_95": self.cost.ci_95,
            "cvar_95": self.cost.cvar_95,
            "least_cost": self.cost.least,
            "most_cost": self.cost.most,
            "terminal_value": self.terminal_value,
            "deficit_probability": self.deficit_probability,
            "expected_deficit_mwh": self.expected_deficit_mwh,
            "violation_share": self.costs.violation_share,
            "components": self.costs.components,
            "lp_solves": self.lp_solves,
            "lp_fall_backs": self.lp_fall_backs,
            "policy_sha256": self.policy_sha256,
            "seed": self.seed,
        }
