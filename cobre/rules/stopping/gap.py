"""Stop when upper and lower bound are close."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from cobre.fields import NonNegative
from cobre.rules.contracts import Fault, Iteration, StoppingRule


class Gap(StoppingRule):
    """Stop when upper and lower bound are close."""

    type: Literal["gap"]
    """Names this rule."""
    tolerance: NonNegative | None = None
    """Absolute gap, $."""
    relative_tolerance: NonNegative | None = None
    """Gap relative to the upper bound, %; with both tolerances one of them is enough."""
    bound: Literal["deterministic", "statistical"] | None = None
    """``statistical`` takes the upper end of the 95 % confidence interval of sampled passes;
    ``deterministic``, which needs enumerated passes, unless given."""

    converges: ClassVar[bool] = True
    takes_upper_bound: ClassVar[bool] = True

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:
        """Compare the bounds: upper end of the confidence interval where the upper bound is a sample.

        Where the lower one is an estimate there is no gap.
        """
        record = history[-1]
        if record.lower_bound_kind == "estimate":
            return False
        upper = record.upper_bound
        if self.bound != "statistical" and record.deterministic_upper_bound is not None:
            upper = record.deterministic_upper_bound
        elif record.upper_bound_kind != "exact":
            if self.bound != "statistical" or record.forward_passes < 2:
                return False
            upper += record.ci_95
        gap = upper - record.lower_bound
        absolute, relative = self.tolerance, self.relative_tolerance
        return (absolute is not None and gap <= absolute) or (
            relative is not None and 100.0 * gap <= relative * max(1.0, abs(upper))
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
                "is a gap rule, which needs an exact upper bound",
                'Use "selection": {"method": "enumerated"}, upper_bound_evaluation with interval_iterations, '
                'or "bound": "statistical".',
                "gap",
            )
        elif selection.forward_passes < 2:
            yield Fault(
                "takes a confidence interval, which one forward pass does not have",
                "Ask for more forward passes, or remove the rule.",
                "gap",
            )
