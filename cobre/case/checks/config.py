"""``config.json`` beyond single fields."""

from __future__ import annotations

from cobre.case import layout
from cobre.case.problems import Reporter
from cobre.case.schema.config import IterationLimit
from cobre.case.sources import Sources

_FILE = layout.CONFIG


def check_config(sources: Sources, reporter: Reporter) -> None:
    """Check the stopping rules, and say that simulation is a command of its own."""
    config = sources.config.root
    if config is None:
        return
    rules = config.training.stopping_rules
    if not any(isinstance(rule, IterationLimit) for rule in rules):
        reporter.error(
            "BusinessRuleViolation",
            f"{_FILE}: training.stopping_rules has no rule of type iteration_limit.",
            file=_FILE,
            field="training.stopping_rules",
            value=[rule.type for rule in rules],
            suggestion='Add {"type": "iteration_limit", "limit": N}.',
        )
    if config.simulation is not None and config.simulation.enabled:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: simulation.enabled is true, but a run is training only; simulation is a separate "
            "command that is not available yet.",
            file=_FILE,
            field="simulation.enabled",
            value=True,
            suggestion="Set simulation.enabled to false to silence this.",
        )
