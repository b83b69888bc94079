"""What training reports: a record for each iteration, and the result at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cobre.case.model import PolicyMode
from cobre.errors import Problem
from cobre.lp.scaling import ScalingReport
from cobre.policy import LowerBoundKind, Policy
from cobre.sddp.costs import CostBreakdown
from cobre.sddp.rules.selection import SelectionRecord
from cobre.sddp.timing import RankTiming, WorkerInfo

if TYPE_CHECKING:
    from cobre.sddp.upper_bound import UpperBoundResult

_NORMAL_QUANTILE_95 = 1.96


@dataclass(frozen=True)
class IterationRecord:
    """One iteration; costs in $, times in ms.

    Attributes
    ----------
    iteration
        From 1.
    lower_bound, lower_bound_kind
        Value of the first stage with its cuts: a ``bound`` of the optimum, or an ``estimate`` where cuts may
        lie above the future cost (tangent cuts of truncated inflow, or cuts that were made elsewhere).
    upper_bound, upper_bound_std
        Mean and standard deviation of the costs of this iteration's forward passes: a sample, not a bound,
        unless its kind is ``exact`` (all paths of the tree were taken).
    cuts_added, cuts_removed, cuts_active
        Made in this iteration, dropped after it, and left then.
    stage_costs
        Mean cost of each stage over the passes, not discounted; empty unless a stopping rule needs it.
    wall_time_ms
        Since training began.
    iteration_time_ms
        Of this iteration alone.
    forward_time_ms, backward_time_ms, communication_time_ms
        Of the rank that took longest; communication includes waiting for other ranks.
    deterministic_upper_bound
        Least deterministic bound so far, if it was evaluated after this iteration; ``inf`` if there is none.
    costs
        What the forward passes were paid for; in the first iteration of a run. Not kept in checkpoints.
    """

    iteration: int
    lower_bound: float
    upper_bound: float
    upper_bound_std: float
    upper_bound_kind: Literal["statistical", "exact"]
    forward_passes: int
    cuts_added: int
    cuts_active: int
    lp_solves: int
    lp_retries: int
    simplex_iterations: int
    forward_time_ms: float
    backward_time_ms: float
    communication_time_ms: float
    iteration_time_ms: float
    wall_time_ms: float
    cuts_removed: int = 0
    stage_costs: tuple[float, ...] = ()
    deterministic_upper_bound: float | None = None
    lower_bound_kind: LowerBoundKind = "bound"
    costs: CostBreakdown | None = field(default=None, metadata={"stored": False})

    @property
    def ci_95(self) -> float:
        """Half width of the 95 % confidence interval of the upper bound."""
        return _NORMAL_QUANTILE_95 * self.upper_bound_std / math.sqrt(self.forward_passes)

    @property
    def gap_percent(self) -> float | None:
        """Gap of this iteration in percent of the lower bound; ``None`` where that is an estimate."""
        if self.lower_bound_kind == "estimate":
            return None
        return gap_percent(self.lower_bound, self.upper_bound)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Outcome of training; bounds are those of the last iteration."""

    iterations: int
    lower_bound: float
    upper_bound: float
    upper_bound_std: float
    termination_reason: str
    total_time_ms: float
    compile_time_ms: float
    lp_solves: int
    backend: str
    ranks: int
    threads: int
    seed: int
    policy: Policy
    policy_sha256: str
    history: tuple[IterationRecord, ...]
    scaling: ScalingReport | None = None
    """Sizes of the stage LPs, and the ranges of their coefficients before and after scaling."""
    selection: tuple[SelectionRecord, ...] = ()
    """What cut selection did, by iteration and stage."""
    warnings: tuple[Problem, ...] = ()
    """Warnings, such as states that the boundary policy does not contain."""
    timings: tuple[RankTiming, ...] = ()
    """Where the time went, by iteration and rank."""
    workers: tuple[WorkerInfo, ...] = ()
    """What each rank did in the whole run, by rank."""
    deterministic_bound: UpperBoundResult | None = None
    """The least deterministic upper bound evaluated, if any was asked for."""
    costs: CostBreakdown | None = None
    """What the forward passes of the last iteration were paid for; ``None`` if this run made none."""
    policy_mode: PolicyMode = "fresh"
    """What training started from."""
    output: Path | None = None
    """Where the results are; ``None`` when they were not written."""
    lower_bound_kind: LowerBoundKind = "bound"
    """Whether the lower bound is one, or an estimate; see :class:`IterationRecord`."""
    lower_bound_note: str | None = None
    """Why it is an estimate."""

    def __repr__(self) -> str:
        estimate = " (estimate)" if self.lower_bound_kind == "estimate" else ""
        return (
            f"TrainingResult(iterations={self.iterations}, lower_bound={self.lower_bound!r}{estimate}, "
            f"upper_bound={self.upper_bound!r}, termination_reason={self.termination_reason!r}, "
            f"ranks={self.ranks}, threads={self.threads}, policy_sha256={self.policy_sha256!r})"
        )

    @property
    def status(self) -> Literal["complete", "partial"]:
        """``"partial"`` for training that was stopped from outside."""
        return "partial" if self.termination_reason == "graceful_shutdown" else "complete"

    @property
    def cost_breakdowns(self) -> tuple[CostBreakdown, ...]:
        """What the first and the last iteration of this run were paid for, once if they are the same."""
        found = {costs.iteration: costs for record in self.history if (costs := record.costs) is not None}
        if self.costs is not None:
            found[self.costs.iteration] = self.costs
        return tuple(found.values())

    @property
    def gap_percent(self) -> float | None:
        """Gap of the last iteration in percent of the lower bound; ``None`` where that is an estimate."""
        if self.lower_bound_kind == "estimate":
            return None
        return gap_percent(self.lower_bound, self.upper_bound)

    @property
    def true_gap_percent(self) -> float | None:
        """Distance of the deterministic upper bound from the lower bound in percent of the latter.

        ``None`` without such a bound. The optimum over the opening tree lies between the two.
        """
        bound = self.deterministic_bound
        if bound is None or math.isinf(bound.value) or self.lower_bound_kind == "estimate":
            return None
        return gap_percent(self.lower_bound, bound.value)


def gap_percent(lower_bound: float, upper_bound: float) -> float:
    """Return 100 (upper - lower) / max(1, |lower|); may be negative, as the upper bound is a sample."""
    return 100.0 * (upper_bound - lower_bound) / max(1.0, abs(lower_bound))
