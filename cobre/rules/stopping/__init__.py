"""When training stops: one module for each rule, a subclass of :class:`cobre.rules.contracts.StoppingRule`.

Every rule is a function of the records and of the time that is passed in, so that all ranks get the same
answer from the same numbers.
"""

from __future__ import annotations

from typing import get_args

from cobre.members import members_of
from cobre.rules.contracts import StoppingRule

RULES: tuple[type[StoppingRule], ...] = tuple(
    member
    for module in members_of(__name__)
    for member in vars(module).values()
    if isinstance(member, type) and issubclass(member, StoppingRule) and member.__module__ == module.__name__
)
"""All rules, by the names of their modules."""

CONVERGED = frozenset(
    name for rule in RULES if rule.converges for name in get_args(rule.model_fields["type"].annotation)
)
"""Reasons that mean convergence; the others only end training."""
