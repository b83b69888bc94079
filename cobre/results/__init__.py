"""Results on disk: what training writes (Parquet, JSON, a policy directory), and reading it back."""

from cobre.results.policy import write_policy
from cobre.results.reading import read_convergence, read_metadata
from cobre.results.training import write_training

__all__ = ["read_convergence", "read_metadata", "write_policy", "write_training"]
