"""When training stops: the rules of a study together."""

from __future__ import annotations

from collections.abc import Sequence

from cobre.case.model import TrainingOptions
from cobre.rules.contracts import Iteration
from cobre.rules.stopping import CONVERGED

ITERATION_LIMIT = "iteration_limit"


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

    def check(self, history: Sequence[Iteration], elapsed_s: float) -> str | None:
        """Return why training stops after the last of ``history``, or ``None``.

        With the mode ``any`` the reason is the first rule that is met, in the order of the case; with
        ``all``, where all of them are, the first that means convergence. The iteration limit caps in both
        modes.

        Parameters
        ----------
        elapsed_s
            Seconds since training began; the same on every rank.
        """
        met = [rule for rule in self.rules if rule.is_met(history, elapsed_s)]
        if met and (len(met) == len(self.rules) or not self.needs_all):
            if self.needs_all:
                met.sort(key=lambda rule: rule.type not in CONVERGED)
            return met[0].type
        return ITERATION_LIMIT if history[-1].iteration >= self.iteration_limit else None
