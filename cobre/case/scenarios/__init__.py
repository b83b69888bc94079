"""Files in ``scenarios/``: checked one by one, and put together into the model's uncertainty."""

from cobre.case.scenarios.loading import load_scenarios

__all__ = ["load_scenarios"]
