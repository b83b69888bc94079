"""Weights of outcomes under a risk measure, in nopython.

The measure ``(1 - weight) E[Z] + weight CVaR_tail[Z]`` of outcomes Z_j with probabilities p_j is
``sum_j mu_j Z_j`` with ``mu_j = (1 - weight) p_j + weight nu_j``, where nu gives the worst outcomes as much
as it may: going through them by decreasing value, each gets ``min(p_j / tail, what is left of 1)``.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.native import inner_kernel


@inner_kernel
def outcome_weights(values, probability, count, risk_weight, risk_tail, order, weights):
    """Write the weights of the first ``count`` outcomes.

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
    for j in range(count):
        place = j
        while place > 0 and values[order[place - 1]] < values[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    left = 1.0
    for place in range(count):
        j = order[place]
        share = min(probability[j] / risk_tail, left)
        left -= share
        weights[j] = (1.0 - risk_weight) * probability[j] + risk_weight * share
