"""What iterations prove of the optimum: when the bound settled, the cost of passes since, and the gap.

There is one gap, and it is taken against a proven upper bound alone: a deterministic one, or the exact
expected cost of enumerated passes where no stage has a risk measure. The mean of sampled passes is a sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cobre.rules.contracts import Iteration

LEAST_SAMPLE = 30
"""Passes below which a sample gives no confidence interval."""

SETTLED_SHARE = 0.01
"""The lower bound has settled since the first iteration from which on it differs by no more than this share
from the last one."""

ROUNDING_SHARE = 1e-6
"""Share of the lower bound by which an upper limit may fall short of it by rounding."""

_NORMAL_QUANTILE_95 = 1.96

Position = Literal["within", "above", "below"]


@dataclass(frozen=True)
class SampleCost:
    """Cost of sampled forward passes, $, pooled over the iterations since the lower bound settled.

    Attributes
    ----------
    mean, std
        Of all passes; the deviation is 0 for a single one.
    passes, first_iteration
        How many they are, and the iteration (from 1) that they begin with.
    """

    mean: float
    std: float
    passes: int
    first_iteration: int

    @property
    def half_width(self) -> float | None:
        """Half width of the 95 % confidence interval of the mean; ``None`` below :data:`LEAST_SAMPLE`."""
        return None if self.passes < LEAST_SAMPLE else confidence_95(self.std, self.passes)

    def position_of(self, lower_bound: float) -> Position | None:
        """Return where a lower bound lies: within, above or below the interval; ``None`` without one."""
        if self.half_width is None:
            return None
        slack = ROUNDING_SHARE * max(1.0, abs(lower_bound))
        if lower_bound > self.mean + self.half_width + slack:
            return "above"
        return "below" if lower_bound < self.mean - self.half_width - slack else "within"


def confidence_95(std: float, count: int) -> float:
    """Return the half width of the 95 % confidence interval of the mean of ``count`` values."""
    return _NORMAL_QUANTILE_95 * std / math.sqrt(count)


def gap_percent(lower_bound: float, upper_bound: float) -> float:
    """Return ``100 (upper - lower) / max(1, |lower|)``; below 0 by rounding alone if both are bounds."""
    return 100.0 * (upper_bound - lower_bound) / max(1.0, abs(lower_bound))


def settled_since(history: Sequence[Iteration]) -> int:
    """Return the position of the iteration since which the lower bound has settled."""
    last = history[-1].lower_bound
    limit = SETTLED_SHARE * max(1.0, abs(last))
    position = len(history) - 1
    while position > 0 and abs(history[position - 1].lower_bound - last) <= limit:
        position -= 1
    return position


def sample_cost(history: Sequence[Iteration]) -> SampleCost | None:
    """Return the cost of the passes since the lower bound settled; ``None`` where passes are enumerated.

    Sums run in the order of iterations. The passes of an iteration follow the cuts of those before it.
    """
    if history[-1].upper_bound_kind == "exact":
        return None
    first = settled_since(history)
    records = history[first:]
    passes = sum(record.forward_passes for record in records)
    mean = math.fsum(record.forward_passes * record.upper_bound for record in records) / passes
    squares = math.fsum(
        (record.forward_passes - 1) * record.upper_bound_std**2
        + record.forward_passes * (record.upper_bound - mean) ** 2
        for record in records
    )
    std = math.sqrt(squares / (passes - 1)) if passes > 1 else 0.0
    return SampleCost(mean, std, passes, history[first].iteration)


def likely_gap_percent(
    sample: SampleCost | None, position: Position | None, lower_bound: float
) -> float | None:
    """Return what a policy costs above the optimum at most, with 95 % confidence, in percent.

    ``None`` without an interval, or where the lower bound lies above it: the sample has missed dear outcomes.
    """
    if sample is None or sample.half_width is None or position in (None, "above"):
        return None
    return gap_percent(lower_bound, sample.mean + sample.half_width)


def simulated_gap_percent(lower_bound: float, cost: SampleCost, *, exact: bool) -> float | None:
    """Return what a policy that was simulated costs above the optimum at most, in percent.

    With 95 % confidence, or for certain where its scenarios are all paths. The bound and the scenarios must
    be of one opening tree, without a risk measure, and nothing may be left to value as the study ends.
    """
    if exact:
        return gap_percent(lower_bound, cost.mean)
    return likely_gap_percent(cost, cost.position_of(lower_bound), lower_bound)


def exact_policy_gap_percent(record: Iteration) -> float | None:
    """Return what the policy costs above the lower bound, in percent, where its passes were all paths.

    ``None`` of sampled passes, under a risk measure, and where the lower bound is an estimate.
    """
    if record.upper_bound_kind != "exact" or record.risk_averse or record.lower_bound_kind == "estimate":
        return None
    return gap_percent(record.lower_bound, record.upper_bound)


def proven_upper_bound(record: Iteration) -> float | None:
    """Return the upper bound that an iteration proves, $; ``None`` where it proves none."""
    found = []
    if record.deterministic_upper_bound is not None and math.isfinite(record.deterministic_upper_bound):
        found.append(record.deterministic_upper_bound)
    if record.upper_bound_kind == "exact" and not record.risk_averse:
        found.append(record.upper_bound)
    return min(found, default=None)


def proven_gap_percent(record: Iteration) -> float | None:
    """Return the gap of an iteration; ``None`` where one of the bounds is none."""
    upper = proven_upper_bound(record)
    if upper is None or record.lower_bound_kind == "estimate":
        return None
    return gap_percent(record.lower_bound, upper)
