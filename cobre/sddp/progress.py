"""What training reports: a record for each iteration, and the result at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cobre.case.model import PolicyMode
from cobre.display import html_table, to_pandas, to_polars
from cobre.errors import Problem
from cobre.lp.scaling import ScalingReport
from cobre.policy import LowerBoundKind, LpEngines, Policy
from cobre.rules.bounds import confidence_95, gap_percent, proven_gap_percent, proven_upper_bound
from cobre.sddp.costs import CostBreakdown
from cobre.sddp.kernel import counts
from cobre.sddp.lp_statistics import IterationLps
from cobre.sddp.rules.selection import SelectionRecord
from cobre.sddp.timing import RankTiming, WorkerInfo

if TYPE_CHECKING:
    import pyarrow

    from cobre.sddp.upper_bound import UpperBoundResult
    from cobre.sddp.verdict import Verdict

_SHOWN = 10
"""Iterations that a notebook shows."""


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
        unless its kind is ``exact`` (all paths of the tree were taken). An expected cost in any case.
    cuts_added, cuts_removed, cuts_active
        Made in this iteration, dropped after it, and left then.
    lp_solves, lp_retries, simplex_iterations
        As in :class:`cobre.sddp.lp_statistics.LpStatistics`.
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
    risk_averse
        A stage has a risk measure: the lower bound is risk-adjusted, and passes bound nothing.
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
    risk_averse: bool = False
    costs: CostBreakdown | None = field(default=None, metadata={"stored": False})

    def __repr__(self) -> str:
        return (
            f"IterationRecord(iteration={self.iteration}, lower_bound={self.lower_bound!r}, "
            f"upper_bound={self.upper_bound!r}, forward_passes={self.forward_passes}, "
            f"cuts_active={self.cuts_active}, lp_solves={self.lp_solves})"
        )

    @property
    def sample_std(self) -> float | None:
        """Standard deviation of the passes; ``None`` of a single one that was drawn."""
        alone = self.forward_passes < 2 and self.upper_bound_kind == "statistical"
        return None if alone else self.upper_bound_std

    @property
    def ci_95(self) -> float | None:
        """Half width of the 95 % confidence interval of the mean of this iteration's passes, if it has one.

        Of fewer than 30 passes it is a rough figure; :func:`cobre.rules.bounds.sample_cost` pools iterations.
        """
        return None if self.sample_std is None else confidence_95(self.sample_std, self.forward_passes)

    @property
    def gap_percent(self) -> float | None:
        """``100 (upper - lower) / max(1, |lower|)`` of two proven bounds; ``None`` where one is missing."""
        return proven_gap_percent(self)


class History(tuple[IterationRecord, ...]):
    """The records of all iterations: a tuple, and a table.

    >>> history = History()
    >>> len(history), history
    (0, History(0 iterations))
    """

    __slots__ = ()

    def to_arrow(self) -> pyarrow.Table:
        """Return one row for each iteration, a column for each number of a record, and its gap.

        ``costs``, which only the first iteration of a run has, is left out; ``stage_costs`` is a list.
        """
        import pyarrow

        from cobre.policy.history import history_columns, history_table

        table = history_table(history_columns(self))
        gaps = pyarrow.array([record.gap_percent for record in self], pyarrow.float64())
        return table.append_column("gap_percent", gaps)

    def to_pandas(self) -> Any:
        """Return :meth:`to_arrow` as a ``pandas.DataFrame``, iterations as its index.

        Raises
        ------
        CobreError
            Kind ``ExtraMissing`` when pandas is not installed.
        """
        frame = to_pandas(self.to_arrow())
        return frame.set_index("iteration") if len(self) else frame

    def to_polars(self) -> Any:
        """Return :meth:`to_arrow` as a ``polars.DataFrame``.

        Raises
        ------
        CobreError
            Kind ``ExtraMissing`` when polars is not installed.
        """
        return to_polars(self.to_arrow())

    def __repr__(self) -> str:
        if not self:
            return "History(0 iterations)"
        last = self[-1]
        return (
            f"History({len(self)} iterations, the last: lower_bound={last.lower_bound!r}, "
            f"upper_bound={last.upper_bound!r}, cuts_active={last.cuts_active})"
        )

    def _repr_html_(self) -> str:
        shown = self if len(self) <= _SHOWN else (*self[: _SHOWN // 2], *self[-_SHOWN // 2 :])
        rows = {
            str(
                record.iteration
            ): f"lower bound {record.lower_bound:,.6g} $ ({record.lower_bound_kind}), sample "
            f"cost {record.upper_bound:,.6g} $, cuts {record.cuts_active:,}"
            for record in shown
        }
        return html_table(f"{len(self)} iterations", rows)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Outcome of training.

    ``upper_bound`` and ``upper_bound_std`` are mean and deviation of the last iteration's forward passes: see
    :class:`IterationRecord` for what they are, and :attr:`verdict` for what the run has shown.
    """

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
    history: History
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
    """The least deterministic upper bound evaluated, if any was."""
    upper_bound_note: str | None = None
    """Why there is no deterministic upper bound."""
    out_of_sample: bool = False
    """Forward passes draw other noise than that of the opening tree, which the bounds are of."""
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
    lp_engine: LpEngines | None = None
    """What solved the LPs."""
    lp_statistics: tuple[IterationLps, ...] = ()
    """How much work the LPs of this run were, by iteration."""

    def __repr__(self) -> str:
        estimate = " (estimate)" if self.lower_bound_kind == "estimate" else ""
        upper = self.proven_upper_bound
        shown = f"mean_cost={self.upper_bound!r}" if upper is None else f"upper_bound={upper!r}"
        return (
            f"TrainingResult(iterations={self.iterations}, lower_bound={self.lower_bound!r}{estimate}, "
            f"{shown}, termination_reason={self.termination_reason!r}, "
            f"ranks={self.ranks}, threads={self.threads}, policy_sha256={self.policy_sha256!r})"
        )

    def _repr_html_(self) -> str:
        gap = self.gap_percent
        rows = {
            "lower bound": f"{self.lower_bound:,.6g} $ ({self.lower_bound_kind})",
            "sample cost": f"{self.upper_bound:,.6g} $, mean of the forward passes of the last iteration",
            **({} if gap is None else {"gap": f"{gap:.4g} %"}),
            "iterations": f"{self.iterations}, ended by {self.termination_reason}",
            "work": f"{self.lp_solves:,} LPs in {self.total_time_ms / 1e3:,.1f} s, ranks: {self.ranks}, "
            f"threads: {self.threads}",
            "policy": self.policy_sha256,
            **({} if not self.warnings else {"warnings": str(len(self.warnings))}),
        }
        return html_table("Training", rows)

    @property
    def status(self) -> Literal["complete", "partial"]:
        """``"partial"`` for training that was stopped from outside."""
        return "partial" if self.termination_reason == "graceful_shutdown" else "complete"

    @property
    def lp_fall_backs(self) -> int:
        """LPs of this run that the own engine gave up and HiGHS solved."""
        return sum(lps.total(counts.FALL_BACKS) for lps in self.lp_statistics)

    @property
    def cost_breakdowns(self) -> tuple[CostBreakdown, ...]:
        """What the first and the last iteration of this run were paid for, once if they are the same."""
        found = {costs.iteration: costs for record in self.history if (costs := record.costs) is not None}
        if self.costs is not None:
            found[self.costs.iteration] = self.costs
        return tuple(found.values())

    @property
    def proven_upper_bound(self) -> float | None:
        """The least upper bound of the optimal cost that the run has proved; ``None`` if it has none."""
        found = [bound for record in self.history if (bound := proven_upper_bound(record)) is not None]
        if self.deterministic_bound is not None and math.isfinite(self.deterministic_bound.value):
            found.append(self.deterministic_bound.value)
        return min(found, default=None)

    @property
    def gap_percent(self) -> float | None:
        """``100 (upper - lower) / max(1, |lower|)`` of two proven bounds; ``None`` where one is missing.

        The optimal cost over the opening tree lies between the two.
        """
        upper = self.proven_upper_bound
        if upper is None or self.lower_bound_kind == "estimate":
            return None
        return gap_percent(self.lower_bound, upper)

    @property
    def verdict(self) -> Verdict:
        """What the run has shown of its policy, and what to do next."""
        from cobre.sddp.verdict import verdict_of

        return verdict_of(self)
