"""A deterministic upper bound by inner approximation of the future cost over visited states."""

from cobre.sddp.upper_bound.evaluation import (
    MOST_VERTICES,
    RiskValue,
    UpperBoundResult,
    not_convex,
    study_risk,
    upper_bound,
)
from cobre.sddp.upper_bound.evaluator import UpperBoundEvaluator
from cobre.sddp.upper_bound.prices import StatePrices, state_prices

__all__ = [
    "MOST_VERTICES",
    "RiskValue",
    "StatePrices",
    "UpperBoundEvaluator",
    "UpperBoundResult",
    "not_convex",
    "state_prices",
    "study_risk",
    "upper_bound",
]
