"""Entropic measure, ``log(E[exp(gamma Z)]) / gamma``.

``mu_j`` is proportional to ``p_j exp(gamma Z_j)``, and the penalty is ``sum_j mu_j log(mu_j / p_j) / gamma``.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numpy as np

from cobre.fields import FormatModel, Positive
from cobre.rules.contracts import RiskMeasure, RiskRule

_LEAST_EXPONENT = 1.0e-15
"""Over the range of outcomes: below it the measure is the expectation."""
_LOG1P_FROM = -0.5
"""Below it ``1 + x`` loses nothing that the sum of exponentials does not have."""


class EntropicParameters(FormatModel):
    """``log(E[exp(gamma Z)]) / gamma``."""

    gamma: Positive
    """Aversion to risk, 1/$."""


def entropic_weights(values, probability, count, parameters, order, weights):
    """Write the weights and return the penalty, $.

    ``log(E[exp(gamma (Z - worst))])`` is the log1p of a mean of expm1: without them all digits cancel where
    gamma is small. Below ``_LEAST_EXPONENT`` the measure differs from the expectation, which is never above
    it, by less than rounding.
    """
    gamma = parameters[0]
    worst, best = -np.inf, np.inf
    for j in range(count):
        if probability[j] > 0.0:
            worst = max(worst, values[j])
            best = min(best, values[j])
    if gamma * (worst - best) < _LEAST_EXPONENT:
        for j in range(count):
            weights[j] = probability[j]
        return 0.0
    total = 0.0
    grown = 0.0
    for j in range(count):
        weights[j] = 0.0
        if probability[j] > 0.0:
            exponent = gamma * (values[j] - worst)
            weights[j] = probability[j] * np.exp(exponent)
            total += weights[j]
            grown += probability[j] * np.expm1(exponent)
    log_total = np.log1p(grown) if grown > _LOG1P_FROM else np.log(total)
    penalty = 0.0
    for j in range(count):
        if weights[j] > 0.0:
            weights[j] /= total
            penalty += weights[j] * ((values[j] - worst) - log_total / gamma)
    return penalty


MEASURE = RiskRule(
    key="entropic",
    content=EntropicParameters,
    measure=lambda content: RiskMeasure(kind="entropic", gamma=content.gamma),
    weigh=entropic_weights,
    parameters=lambda measure: (measure.gamma,),
)
