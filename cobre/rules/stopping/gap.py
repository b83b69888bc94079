"""Stop when upper and lower bound are close."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from cobre.fields import NonNegative
from cobre.rules.bounds import gap_percent, proven_upper_bound, sample_cost
from cobre.rules.contracts import Fault, Iteration, StoppingRule


class Gap(StoppingRule):
    """Stop when upper and lower bound are close."""

    type: Literal["gap"]
    """Names this rule."""
    tolerance: NonNegative | None = None
    """Absolute gap, $."""
    relative_tolerance: NonNegative | None = None
    """Gap relative to the lower bound, %; with both tolerances one of them is enough."""
    bound: Literal["deterministic", "statistical"] | None = None
    """``statistical`` takes the upper end of the 95 % confidence interval of sampled passes, pooled since the
    lower bound settled, once they are 30; ``deterministic`` takes a proven upper bound: of
    ``upper_bound_evaluation``, or of enumerated passes; ``deterministic`` unless given."""

    converges: ClassVar[bool] = True
    takes_upper_bound: ClassVar[bool] = True

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:
        """Compare the bounds; where the lower one is an estimate there is no gap."""
        record = history[-1]
        if record.lower_bound_kind == "estimate":
            return False
        upper = proven_upper_bound(record)
        if upper is None and self.bound == "statistical":
            upper = _confidence_limit(history)
        if upper is None:
            return False
        absolute, relative = self.tolerance, self.relative_tolerance
        return (absolute is not None and upper - record.lower_bound <= absolute) or (
            relative is not None and gap_percent(record.lower_bound, upper) <= relative
        )

    def faults(self, config: Any) -> Iterator[Fault]:  # noqa: D102
        if self.tolerance is None and self.relative_tolerance is None:
            yield Fault("has neither tolerance nor relative_tolerance", "Give one of them.")
        evaluation, selection = config.upper_bound_evaluation, config.training.selection
        evaluated = evaluation is not None and bool(evaluation.enabled and evaluation.interval_iterations)
        if selection.method == "enumerated" or (evaluated and self.bound != "statistical"):
            return
        if self.bound != "statistical":
            yield Fault(
                "is a gap rule, which needs a proven upper bound",
                'Use "selection": {"method": "enumerated"}, upper_bound_evaluation with interval_iterations, '
                'or "bound": "statistical".',
                "gap",
            )


def _confidence_limit(history: Sequence[Iteration]) -> float | None:
    """Return the upper end of the confidence interval; ``None`` where it bounds nothing.

    That is so under a risk measure, of fewer than 30 passes, and where the lower bound lies above it: such a
    sample has missed what is dear.
    """
    record, sample = history[-1], sample_cost(history)
    if sample is None or sample.half_width is None or record.risk_averse:
        return None
    if sample.position_of(record.lower_bound) == "above":
        return None
    return sample.mean + sample.half_width
