"""What a run of training has shown: how good its bounds are, how sure its cost is, and what to do next.

Everything follows from the records of the iterations, so that a resumed run, and any number of ranks and
threads, reach the same verdict. A gap is one of two proven bounds of the optimum (:mod:`cobre.rules.bounds`).
What the policy itself costs is another number: its cuts lie below the value of the optimum, and where they
are loose the policy can cost more than the upper bound. It is known exactly where passes are all paths,
and with confidence from a sample. Under a risk measure the cost of passes is a mean, which cannot be compared
with the risk-adjusted bounds.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from cobre.rules.bounds import (
    Position,
    SampleCost,
    exact_policy_gap_percent,
    gap_percent,
    likely_gap_percent,
    sample_cost,
)

if TYPE_CHECKING:
    from cobre.policy import LowerBoundKind
    from cobre.sddp.progress import TrainingResult

Conclusion = Literal["optimal", "near_optimal", "settled", "unsettled"]
NextStep = Literal["simulate", "train_on", "check_case"]

OPTIMAL_GAP_PERCENT = 1e-3
"""Gap up to which a run is called optimal."""
NEAR_GAP_PERCENT = 1.0
"""Gap up to which it is called nearly optimal."""
STILL_PERCENT = 0.1
"""Move of the lower bound over the latest iterations up to which it counts as settled."""
LEAST_LIMIT = 20
"""Least limit of iterations that is advised."""
LATEST_ITERATIONS = 10
"""Iterations over which the move is taken, or a tenth of all where that is more."""


@dataclass(frozen=True)
class Verdict:
    """What a run has shown; costs in $.

    Attributes
    ----------
    conclusion
        ``optimal`` and ``near_optimal`` by the gap (0.001 % and 1 %), unless the latest passes are known to
        cost more than 1 % above the lower bound; else ``settled`` where the lower bound has hardly moved
        lately (0.1 %), or ``unsettled``.
    cost_kind
        What the bounds bound: the ``expected`` cost, or the ``risk-adjusted`` one.
    lower_bound, lower_bound_kind
        Of the last iteration; an ``estimate`` bounds nothing.
    upper_bound
        The least that is proven; ``None`` without one.
    upper_bound_note
        Why there is no deterministic upper bound; ``None`` if there is.
    upper_bound_assumes
        What the upper bound rests on beside the study.
    gap_percent
        Of the two bounds; the optimum over the opening tree lies between them, the cost of the policy need
        not.
    policy_gap_percent
        Distance of the exact expected cost of the last passes from the lower bound: their policy costs no
        more than this above the optimum; ``None`` unless they were all paths, without a risk measure.
    sample
        Cost of forward passes since the lower bound settled; ``None`` where passes are enumerated or equal.
    bound_position
        Where the lower bound lies relative to the 95 % confidence interval of the sample cost; ``None`` from
        fewer than 30 passes, under a risk measure, of an estimate, and of passes drawn outside of the tree.
    likely_gap_percent
        Distance of the upper end of that interval from the lower bound: with 95 % confidence the policy costs
        no more than this above the optimum; ``None`` where the lower bound lies above the interval.
    bound_move_percent, bound_move_iterations
        How much the lower bound has moved over so many latest iterations; ``None`` of a single one.
    violation_share
        Of what forward passes paid for; ``None`` if unknown.
    next_step, next_iterations
        What to do: look at the case, train on up to so many iterations, or simulate.
    """

    conclusion: Conclusion
    cost_kind: Literal["expected", "risk-adjusted"]
    lower_bound: float
    lower_bound_kind: LowerBoundKind
    upper_bound: float | None
    upper_bound_note: str | None
    upper_bound_assumes: tuple[str, ...]
    gap_percent: float | None
    policy_gap_percent: float | None
    sample: SampleCost | None
    bound_position: Position | None
    likely_gap_percent: float | None
    bound_move_percent: float | None
    bound_move_iterations: int
    violation_share: float | None
    next_step: NextStep
    next_iterations: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it; the sample with the half width of its interval."""
        document = asdict(self)
        if self.sample is not None:
            document["sample"]["ci_95"] = self.sample.half_width
            if self.sample.passes < 2:
                document["sample"]["std"] = None
        return document


def verdict_of(result: TrainingResult) -> Verdict:
    """Return the verdict of a run."""
    last = result.history[-1]
    sample = sample_cost(result.history)
    comparable = result.lower_bound_kind == "bound" and not last.risk_averse and not result.out_of_sample
    position = sample.position_of(result.lower_bound) if sample is not None and comparable else None
    move, iterations = _latest_move(result)
    policy_gap = exact_policy_gap_percent(last)
    least = _least_policy_gap(sample, position, result.lower_bound) if policy_gap is None else policy_gap
    poor = least is not None and least > NEAR_GAP_PERCENT
    conclusion = _conclusion(result.gap_percent, poor, move, iterations)
    share = None if result.costs is None else result.costs.violation_share
    step, limit = _next_step(result, conclusion, share, poor)
    bound = result.deterministic_bound
    return Verdict(
        conclusion=conclusion,
        cost_kind="risk-adjusted" if last.risk_averse else "expected",
        lower_bound=result.lower_bound,
        lower_bound_kind=result.lower_bound_kind,
        upper_bound=result.proven_upper_bound,
        upper_bound_note=result.upper_bound_note,
        upper_bound_assumes=() if bound is None or math.isinf(bound.value) else bound.assumptions,
        gap_percent=result.gap_percent,
        policy_gap_percent=policy_gap,
        sample=sample,
        bound_position=position,
        likely_gap_percent=likely_gap_percent(sample, position, result.lower_bound),
        bound_move_percent=move,
        bound_move_iterations=iterations,
        violation_share=share,
        next_step=step,
        next_iterations=limit,
    )


def _latest_move(result: TrainingResult) -> tuple[float | None, int]:
    """Return the move of the lower bound in percent of it, and the number of iterations it is taken over."""
    count = len(result.history)
    iterations = min(count - 1, max(LATEST_ITERATIONS, math.ceil(count / 10)))
    if iterations < 1:
        return None, 0
    earlier = result.history[-1 - iterations].lower_bound
    rise = result.lower_bound - earlier
    return 100.0 * rise / max(1.0, abs(result.lower_bound)), iterations


def _conclusion(gap: float | None, poor: bool, move: float | None, iterations: int) -> Conclusion:
    """Conclude from the gap, unless passes are known to be poor: to cost more than a nearly optimal policy.

    Less than that contradicts nothing: the passes knew fewer cuts than the policy has.
    """
    # A gap below 0 by more than rounding proves nothing: what the upper bound assumes does not hold.
    if gap is not None and not poor and -OPTIMAL_GAP_PERCENT <= gap <= NEAR_GAP_PERCENT:
        return "optimal" if gap <= OPTIMAL_GAP_PERCENT else "near_optimal"
    if move is None or iterations < LATEST_ITERATIONS or abs(move) > STILL_PERCENT:
        return "unsettled"
    return "settled"


def _least_policy_gap(sample: SampleCost | None, position: Position | None, lower: float) -> float | None:
    """Return what passes cost above the lower bound at least, with 95 % confidence; ``None`` if unknown."""
    if sample is None or sample.half_width is None or position != "below":
        return None
    return gap_percent(lower, sample.mean - sample.half_width)


def _next_step(
    result: TrainingResult, conclusion: Conclusion, violation_share: float | None, poor: bool
) -> tuple[NextStep, int | None]:
    from cobre.sddp.costs import DOMINATING_SHARE

    if poor or conclusion == "unsettled":
        return "train_on", max(2 * result.iterations, LEAST_LIMIT)
    dominated = violation_share is not None and violation_share > DOMINATING_SHARE
    return ("check_case", None) if dominated else ("simulate", None)
