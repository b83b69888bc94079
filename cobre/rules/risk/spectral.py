"""Spectral measure: L falling weights state how much each L-th of the probability counts, from the worst.

The penalty is 0.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import itertools
import math
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from cobre.fields import NonNegative
from cobre.rules.contracts import RiskMeasure, RiskRule

_WEIGHT_SLACK = 1e-6
"""How far the weights may be from a sum of 1."""


def _check_weights(value: list[float]) -> list[float]:
    if any(after > before for before, after in itertools.pairwise(value)):
        raise PydanticCustomError(
            "risk_weights", "must not rise from the worst outcome to the best, or the measure is not coherent"
        )
    if abs(math.fsum(value) - 1.0) > _WEIGHT_SLACK:
        raise PydanticCustomError("risk_weights", "must have the sum 1")
    return value


def _measure(weights: list[float]) -> RiskMeasure:
    total = math.fsum(weights)
    return RiskMeasure(kind="spectral", spectrum=tuple(weight / total for weight in weights))


def spectral_weights(values, probability, count, spectrum, order, weights):
    """Write the weights of the measure with this spectrum, float64[L]: falling, with the sum 1."""
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
    return 0.0


MEASURE = RiskRule(
    key="weights",
    content=Annotated[
        list[NonNegative],
        Field(
            min_length=1,
            description="How much each equal part of the probability counts, from the worst outcomes on; "
            "never rising, with the sum 1.",
        ),
        AfterValidator(_check_weights),
    ],
    measure=_measure,
    weigh=spectral_weights,
    parameters=lambda measure: measure.spectrum,
    needs_order=True,
)
