"""SDDP: forward and backward passes, cuts, bounds, and the training loop."""

from cobre.sddp.policy import Policy
from cobre.sddp.progress import IterationRecord, TrainingResult
from cobre.sddp.training import train

__all__ = ["IterationRecord", "Policy", "TrainingResult", "train"]
