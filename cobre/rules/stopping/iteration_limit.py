"""Stop after a number of iterations. Every study has such a limit, which caps whatever the mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cobre.fields import PositiveCount
from cobre.rules.contracts import Iteration, StoppingRule


class IterationLimit(StoppingRule):
    """Stop after so many iterations."""

    type: Literal["iteration_limit"]
    """Names this rule."""
    limit: PositiveCount
    """Iterations."""

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:  # noqa: D102
        return history[-1].iteration >= self.limit
