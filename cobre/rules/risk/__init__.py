"""Weights of outcomes under a risk measure: one module for each measure, with the constant ``MEASURE``.

Every measure is the largest of ``sum_j mu_j Z_j - penalty(mu)`` over probabilities mu. So for the mu that
attains it at one point the difference is a lower bound at every other: a cut made with these weights, minus
the penalty, is valid. Outcomes Z_j have probabilities p_j.
"""

from __future__ import annotations

from cobre.members import members_of
from cobre.rules.contracts import RiskRule

MEASURES: dict[str, RiskRule] = {
    module.__name__.rpartition(".")[2]: module.MEASURE for module in members_of("cobre.rules.risk")
}
"""All measures by kind, which is the name of their module."""
