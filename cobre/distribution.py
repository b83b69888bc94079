"""Distributions over scenarios: mean, quantiles, tail; sampled scenarios, or all of them with probabilities.

With probabilities (all that can happen was enumerated) the numbers are those of the distribution itself and
there is no uncertainty; without, scenarios are a sample in which all count the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DEFICIT_MWH: Final = 1.0e-6
"""Energy from which load counts as not served: less is rounding."""

NORMAL_QUANTILE_95: Final = 1.96
TAIL: Final = 0.05

_ROUNDING = 1.0e-12
_CELLS = 1 << 21


@dataclass(frozen=True)
class Distribution:
    """A cost over scenarios, $.

    Attributes
    ----------
    mean, std, least, most
        Standard deviation with n - 1; with probabilities that of the distribution itself.
    ci_95
        Half width of the 95 % confidence interval of the mean; 0 where all scenarios were enumerated.
    cvar_95
        Mean of the dearest 5 %.
    """

    mean: float
    std: float
    ci_95: float
    cvar_95: float
    least: float
    most: float


def distribution_of(cost: FloatArray, probability: FloatArray | None = None) -> Distribution:
    """Return the distribution of a cost by scenario, added up in the order of scenarios.

    Parameters
    ----------
    probability
        Of each scenario; equal ones, of a sample, unless given.

    >>> distribution_of(np.array([1.0, 3.0])).mean
    2.0
    >>> distribution_of(np.array([1.0, 3.0]), np.array([0.75, 0.25])).mean
    1.5
    """
    least, most = float(cost.min()), float(cost.max())
    tail = cvar(cost, probability)
    if probability is not None:
        mean = math.fsum(probability * cost)
        std = math.sqrt(max(math.fsum(probability * (cost - mean) ** 2), 0.0))
        return Distribution(mean, std, 0.0, tail, least, most)
    mean = squares = 0.0
    for number, value in enumerate(cost.tolist(), start=1):
        delta = value - mean
        mean += delta / number
        squares += delta * (value - mean)
    count = len(cost)
    std = math.sqrt(squares / (count - 1)) if count > 1 else 0.0
    return Distribution(mean, std, NORMAL_QUANTILE_95 * std / math.sqrt(count), tail, least, most)


def cvar(cost: FloatArray, probability: FloatArray | None = None, level: float = 1.0 - TAIL) -> float:
    """Return the mean of the dearest scenarios.

    Of a sample they are the share ``1 - level``, rounded up to whole scenarios; with probabilities exactly
    that much probability.

    >>> cvar(np.arange(1.0, 101.0), level=0.95)
    98.0
    """
    if probability is None:
        tail = np.sort(cost)[min(math.floor(level * len(cost)), len(cost) - 1) :]
        return math.fsum(tail) / len(tail)
    order = np.argsort(-cost, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(probability[order])[:-1]])
    share = np.clip((1.0 - level) - before, 0.0, probability[order])
    return math.fsum(share * cost[order]) / math.fsum(share)


def expectation(values: FloatArray, probability: FloatArray | None = None) -> FloatArray:
    """Return means along the first axis, of scenarios.

    Parameters
    ----------
    values
        float64[scenarios, ...]; NaN, what a scenario does not have, does not count.
    """
    known = ~np.isnan(values)
    weights = np.ones(len(values)) if probability is None else probability
    weights = weights.reshape(-1, *[1] * (values.ndim - 1))
    with np.errstate(invalid="ignore"):
        found: FloatArray = np.sum(np.where(known, values * weights, 0.0), axis=0) / np.sum(
            known * weights, axis=0
        )
    return found


def quantiles(
    values: FloatArray, levels: Sequence[float], probability: FloatArray | None = None
) -> FloatArray:
    """Return quantiles along the first axis, of scenarios, as float64[levels, ...].

    Those of a sample are interpolated between neighbours (as :func:`numpy.quantile` does); with
    probabilities a quantile is the least value that is not exceeded with at least that probability.

    Parameters
    ----------
    values
        float64[scenarios, ...]; NaN, what a scenario does not have, does not count.

    >>> quantiles(np.array([10.0, 20.0, 30.0]), [0.25], np.array([0.2, 0.2, 0.6])).tolist()
    [20.0]
    """
    flat = values.reshape(len(values), -1)
    found = np.empty((len(levels), flat.shape[1]))
    step = max(1, _CELLS // max(1, len(flat)))  # columns at a time, so that copies stay small
    for first in range(0, flat.shape[1], step):
        part = flat[:, first : first + step]
        if probability is None:
            of_sample = np.nanquantile if bool(np.isnan(part).any()) else np.quantile
            found[:, first : first + step] = of_sample(part, levels, axis=0)
        else:
            found[:, first : first + step] = _weighted_quantiles(part, levels, probability)
    return found.reshape(len(levels), *values.shape[1:])


def _weighted_quantiles(values: FloatArray, levels: Sequence[float], probability: FloatArray) -> FloatArray:
    order = np.argsort(values, axis=0, kind="stable")  # NaN last
    ordered = np.take_along_axis(values, order, axis=0)
    weights = np.where(np.isnan(ordered), 0.0, probability[order])
    below = np.cumsum(weights, axis=0)
    total = below[-1]
    found = np.empty((len(levels), values.shape[1]))
    for place, level in enumerate(levels):
        first = np.argmax(below >= level * total - _ROUNDING, axis=0)
        found[place] = np.take_along_axis(ordered, first[None], axis=0)[0]
    return found
