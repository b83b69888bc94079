"""Mix of mean and tail, ``(1 - weight) E[Z] + weight CVaR_tail[Z]``.

``mu_j = (1 - weight) p_j + weight nu_j``, where nu gives the worst outcomes as much as it may: going through
them by decreasing value, each gets ``min(p_j / tail, what is left of 1)``. The penalty is 0.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cobre.fields import FormatModel
from cobre.rules.contracts import RiskMeasure, RiskRule


class CvarParameters(FormatModel):
    """``(1 - lambda) * expectation + lambda * CVaR`` of the worst share ``alpha``."""

    alpha: Annotated[float, Field(gt=0, le=1)]
    """Share of the worst outcomes."""
    weight: Annotated[float, Field(alias="lambda", ge=0, le=1)]
    """Weight of the CVaR."""


def cvar_weights(values, probability, count, parameters, order, weights):
    """Write the weights; weight 0 or tail 1 is the expectation."""
    risk_weight, risk_tail = parameters[0], parameters[1]
    if risk_weight == 0.0 or risk_tail >= 1.0:
        for j in range(count):
            weights[j] = probability[j]
        return 0.0
    left = 1.0
    for place in range(count):
        j = order[place]
        share = min(probability[j] / risk_tail, left)
        left -= share
        weights[j] = (1.0 - risk_weight) * probability[j] + risk_weight * share
    return 0.0


MEASURE = RiskRule(
    key="cvar",
    content=CvarParameters,
    measure=lambda content: RiskMeasure(weight=content.weight, tail=content.alpha),
    weigh=cvar_weights,
    parameters=lambda measure: (measure.weight, measure.tail),
    needs_order=True,
)
