"""Stop when the lower bound hardly moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from cobre.fields import NonNegative, PositiveCount
from cobre.rules.contracts import Iteration, StoppingRule


class BoundStalling(StoppingRule):
    """Stop when the lower bound hardly moves."""

    type: Literal["bound_stalling"]
    """Names this rule."""
    iterations: PositiveCount
    """Length of the window, in iterations: its first and last bound are compared; 1 counts as 2."""
    tolerance: NonNegative
    """Relative improvement of the lower bound over the window below which training stops."""

    converges: ClassVar[bool] = True

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:  # noqa: D102
        return is_stalling(self.iterations, self.tolerance, history)


def is_stalling(iterations: int, tolerance: float, history: Sequence[Iteration]) -> bool:
    """Compare the first and the last lower bound of the window; with one bound alone nothing stalls."""
    window = max(iterations, 2)
    if len(history) < window:
        return False
    first, last = history[-window].lower_bound, history[-1].lower_bound
    return abs(last - first) <= tolerance * max(1.0, abs(last))
