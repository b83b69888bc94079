"""A deterministic upper bound by inner approximation of the future cost over visited states."""

from cobre.sddp.upper_bound.evaluation import (
    RiskValue,
    UpperBoundResult,
    not_convex,
    study_risk,
    upper_bound,
)
from cobre.sddp.upper_bound.evaluator import UpperBoundEvaluator
from cobre.sddp.upper_bound.known_values import KnownValues
from cobre.sddp.upper_bound.prices import StatePrices, state_prices
from cobre.sddp.upper_bound.vertices import MOST_VERTICES

__all__ = [
    "MOST_VERTICES",
    "KnownValues",
    "RiskValue",
    "StatePrices",
    "UpperBoundEvaluator",
    "UpperBoundResult",
    "not_convex",
    "state_prices",
    "study_risk",
    "upper_bound",
]
