"""Weights of outcomes under a risk measure, in nopython.

Every measure here is the largest of ``sum_j mu_j Z_j - penalty(mu)`` over probabilities mu. So for the mu
that attains it at one point the difference is a lower bound at every other: a cut made with these weights,
minus the penalty, is valid. Outcomes Z_j have probabilities p_j.

- mix of mean and tail, ``(1 - weight) E[Z] + weight CVaR_tail[Z]``:
  ``mu_j = (1 - weight) p_j + weight nu_j``, where nu gives the worst outcomes as much as it may: going
  through them by decreasing value, each gets ``min(p_j / tail, what is left of 1)``;
- worst case: ``mu`` is 1 at the worst outcome;
- entropic, ``log(E[exp(gamma Z)]) / gamma``: ``mu_j`` is proportional to ``p_j exp(gamma Z_j)``, and the
  penalty is ``sum_j mu_j log(mu_j / p_j) / gamma``;
- spectral: a spectrum of L falling weights says how much each L-th of the probability counts, from the worst.

The penalty of all but the entropic measure is 0.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.native import inner_kernel

# Values of GraphArrays.risk_kind.
TAIL_MIX = 0
WORST_CASE = 1
ENTROPIC = 2
SPECTRAL = 3

_LEAST_EXPONENT = 1.0e-15
"""Of the entropic measure, over the range of outcomes: below it the measure is the expectation."""
_LOG1P_FROM = -0.5
"""Below it ``1 + x`` loses nothing that the sum of exponentials does not have."""


@inner_kernel
def _sort_from_worst(values, count, order):
    """Write the positions of outcomes by falling value; equal ones keep their order."""
    for j in range(count):
        place = j
        while place > 0 and values[order[place - 1]] < values[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j


@inner_kernel
def outcome_weights(values, probability, count, risk_weight, risk_tail, order, weights):
    """Write the weights of the first ``count`` outcomes under a mix of mean and tail.

    Parameters
    ----------
    values, probability
        float64: outcome (a cost) and probability of each.
    risk_weight, risk_tail
        The measure; weight 0 or tail 1 is the expectation.
    order
        Scratch, int64.
    weights
        Out, float64. Equal outcomes keep their order, so the result is a function of the arguments alone.
    """
    if risk_weight == 0.0 or risk_tail >= 1.0:
        for j in range(count):
            weights[j] = probability[j]
        return
    _sort_from_worst(values, count, order)
    left = 1.0
    for place in range(count):
        j = order[place]
        share = min(probability[j] / risk_tail, left)
        left -= share
        weights[j] = (1.0 - risk_weight) * probability[j] + risk_weight * share


@inner_kernel
def worst_case_weights(values, probability, count, weights):
    """Give all weight to the worst outcome that is possible, the first of equal ones."""
    worst = -1
    for j in range(count):
        weights[j] = 0.0
        if probability[j] > 0.0 and (worst < 0 or values[j] > values[worst]):
            worst = j
    weights[worst] = 1.0


@inner_kernel
def entropic_weights(values, probability, count, gamma, weights):
    """Write the weights of the entropic measure and return its penalty, $.

    ``log(E[exp(gamma (Z - worst))])`` is the log1p of a mean of expm1: without them all digits cancel where
    gamma is small. Below ``_LEAST_EXPONENT`` the measure differs from the expectation, which is never above
    it, by less than rounding.
    """
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


@inner_kernel
def spectral_weights(values, probability, count, spectrum, order, weights):
    """Write the weights of the measure with this spectrum, float64[L]: falling, with the sum 1."""
    _sort_from_worst(values, count, order)
    steps = len(spectrum)
    step = 0
    passed = 0.0  # of the probability
    left = 1.0  # of the weight
    for place in range(count):
        j = order[place]
        if place == count - 1:
            weights[j] = left
            continue
        end = passed + probability[j]
        share = 0.0
        while step < steps and (step + 1) / steps <= end:
            share += spectrum[step] * ((step + 1) - passed * steps)
            passed = (step + 1) / steps
            step += 1
        if step < steps and end > passed:
            share += spectrum[step] * (end - passed) * steps
        passed = end
        share = min(share, left)
        weights[j] = share
        left -= share


@inner_kernel
def weigh_outcomes(graph, stage, values, probability, count, order, weights):
    """Write the weights of the first ``count`` outcomes under the measure of ``stage``; return its penalty.

    The measure's value is ``sum(weights * values) - penalty``.

    Parameters
    ----------
    graph
        :class:`cobre.sddp.kernel.graph.GraphArrays`.
    values, probability, order, weights
        As in :func:`outcome_weights`.
    """
    kind = graph.risk_kind[stage]
    if kind == WORST_CASE:
        worst_case_weights(values, probability, count, weights)
    elif kind == ENTROPIC:
        return entropic_weights(values, probability, count, graph.risk_gamma[stage], weights)
    elif kind == SPECTRAL:
        first, last = graph.spectrum_start[stage], graph.spectrum_start[stage + 1]
        spectral_weights(values, probability, count, graph.spectrum[first:last], order, weights)
    else:
        risk_weight, risk_tail = graph.risk_weight[stage], graph.risk_tail[stage]
        outcome_weights(values, probability, count, risk_weight, risk_tail, order, weights)
    return 0.0
