"""Stop when the lower bound and the mean costs of the stages in forward passes are stable."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from cobre.fields import NonNegative, PositiveCount, SampleCount
from cobre.rules.contracts import Iteration, StoppingRule
from cobre.rules.stopping.bound_stalling import is_stalling


class SimulationStopping(StoppingRule):
    """Stop when the lower bound and the mean costs of the stages in forward passes are stable."""

    type: Literal["simulation"]
    """Names this rule."""
    replications: SampleCount
    """Passes of one evaluation: those of as many of the latest iterations as it takes."""
    period: PositiveCount
    """Iterations between two evaluations."""
    bound_window: PositiveCount
    """Iterations over which the lower bound must be stable, as in ``bound_stalling``."""
    distance_tol: NonNegative
    """Largest distance between two evaluations: root of the summed squares of relative moves by stage."""
    bound_tol: NonNegative
    """Largest relative move of the lower bound over the window."""

    converges: ClassVar[bool] = True
    needs_stage_costs: ClassVar[bool] = True

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:
        """Compare the latest evaluation of mean stage costs with that of one period earlier."""
        done = len(history)
        passes = itertools.accumulate(record.forward_passes for record in reversed(history))
        taken = next((k for k, made in enumerate(passes, 1) if made >= self.replications), done)
        if done % self.period or done < self.period + taken:
            return False
        if not is_stalling(self.bound_window, self.bound_tol, history):
            return False
        new = _mean_stage_costs(history[done - taken :])
        old = _mean_stage_costs(history[done - self.period - taken : done - self.period])
        distance = math.hypot(*((a - b) / max(1.0, abs(b)) for a, b in zip(new, old, strict=True)))
        return distance <= self.distance_tol


def _mean_stage_costs(records: Sequence[Iteration]) -> list[float]:
    columns = zip(*(record.stage_costs for record in records), strict=True)
    return [math.fsum(costs) / len(records) for costs in columns]
