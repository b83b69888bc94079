"""Files in ``scenarios/``: checked separately, and combined into the model's uncertainty."""

from cobre.case.scenarios.loading import load_scenarios

__all__ = ["load_scenarios"]
