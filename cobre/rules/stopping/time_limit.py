"""Stop after a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cobre.fields import Positive
from cobre.rules.contracts import Iteration, StoppingRule


class TimeLimit(StoppingRule):
    """Stop after so many seconds."""

    type: Literal["time_limit"]
    """Names this rule."""
    seconds: Positive
    """Seconds since training started."""

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:  # noqa: D102
        return elapsed_s >= self.seconds
