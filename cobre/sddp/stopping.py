"""When training stops: rules over what the iterations so far told.

Every rule is a function of the records and of the time that is passed in, so that all ranks come to the
same answer from the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cobre.case.model import (
    BoundStallingRule,
    GapRule,
    SimulationRule,
    StoppingRule,
    TimeLimitRule,
    TrainingOptions,
)
from cobre.sddp.progress import IterationRecord

ITERATION_LIMIT = "iteration_limit"
CONVERGED = frozenset({"bound_stalling", "gap", "simulation"})
"""Reasons that mean convergence; the others only end training."""


class StoppingRules:
    """The stopping rules of a study.

    Parameters
    ----------
    options
        Options of training: rules, mode and iteration limit.
    """

    def __init__(self, options: TrainingOptions) -> None:
        self.rules = options.stopping_rules
        self.needs_all = options.stopping_mode == "all"
        self.iteration_limit = options.iteration_limit

    def check(self, history: Sequence[IterationRecord], elapsed_s: float) -> str | None:
        """Return why training stops after the last of ``history``, or ``None``.

        With the mode ``any`` the reason is the first rule met, in the order of the case; with ``all``, where
        all of them are, the first that tells of convergence. The iteration limit caps in both modes.

        Parameters
        ----------
        elapsed_s
            Seconds since training began; the same on every rank.
        """
        met = [rule for rule in self.rules if is_met(rule, history, elapsed_s)]
        if met and (len(met) == len(self.rules) or not self.needs_all):
            if self.needs_all:
                met.sort(key=lambda rule: rule.name not in CONVERGED)
            return met[0].name
        return ITERATION_LIMIT if history[-1].iteration >= self.iteration_limit else None


def is_met(rule: StoppingRule, history: Sequence[IterationRecord], elapsed_s: float) -> bool:
    """Return whether one rule is met after the last iteration of ``history``."""
    if isinstance(rule, TimeLimitRule):
        return elapsed_s >= rule.seconds
    if isinstance(rule, BoundStallingRule):
        return _is_stalling(rule.iterations, rule.tolerance, history)
    if isinstance(rule, SimulationRule):
        return _is_settled(rule, history)
    return _is_closed(rule, history[-1])


def _is_stalling(iterations: int, tolerance: float, history: Sequence[IterationRecord]) -> bool:
    """Compare the first and the last lower bound of the window; one bound alone says nothing."""
    window = max(iterations, 2)
    if len(history) < window:
        return False
    first, last = history[-window].lower_bound, history[-1].lower_bound
    return abs(last - first) <= tolerance * max(1.0, abs(last))


def _is_settled(rule: SimulationRule, history: Sequence[IterationRecord]) -> bool:
    """Compare the latest evaluation of mean stage costs with that of one period earlier."""
    done = len(history)
    taken = math.ceil(rule.replications / history[-1].forward_passes)
    if done % rule.period or done < rule.period + taken:
        return False
    if not _is_stalling(rule.bound_window, rule.bound_tolerance, history):
        return False
    new = _mean_stage_costs(history[done - taken :])
    old = _mean_stage_costs(history[done - rule.period - taken : done - rule.period])
    distance = math.hypot(*((a - b) / max(1.0, abs(b)) for a, b in zip(new, old, strict=True)))
    return distance <= rule.distance_tolerance


def _mean_stage_costs(records: Sequence[IterationRecord]) -> list[float]:
    columns = zip(*(record.stage_costs for record in records), strict=True)
    return [math.fsum(costs) / len(records) for costs in columns]


def _is_closed(rule: GapRule, record: IterationRecord) -> bool:
    """Compare the bounds: upper end of the confidence interval where the upper bound is a sample.

    Where the lower one is an estimate there is no gap.
    """
    if record.lower_bound_kind == "estimate":
        return False
    upper = record.upper_bound
    if rule.bound == "deterministic" and record.deterministic_upper_bound is not None:
        upper = record.deterministic_upper_bound
    elif record.upper_bound_kind != "exact":
        if rule.bound != "statistical" or record.forward_passes < 2:
            return False
        upper += record.ci_95
    gap = upper - record.lower_bound
    absolute, relative = rule.tolerance, rule.relative_tolerance_percent
    return (absolute is not None and gap <= absolute) or (
        relative is not None and 100.0 * gap <= relative * max(1.0, abs(upper))
    )
