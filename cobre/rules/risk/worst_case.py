"""Worst case: mu is 1 at the worst outcome that is possible. The penalty is 0."""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from cobre.rules.contracts import RiskMeasure, RiskRule


def worst_case_weights(values, probability, count, parameters, order, weights):
    """Give all weight to the worst outcome that is possible, the first of equal ones."""
    worst = -1
    for j in range(count):
        weights[j] = 0.0
        if probability[j] > 0.0 and (worst < 0 or values[j] > values[worst]):
            worst = j
    weights[worst] = 1.0
    return 0.0


MEASURE = RiskRule(
    key="worst_case",
    content=None,
    measure=lambda content: RiskMeasure(kind="worst_case"),
    weigh=worst_case_weights,
)
