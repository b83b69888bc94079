"""Results on disk: what training writes (Parquet, JSON, a policy directory), reading it back; uncertainty."""

from cobre.results.reading import read_convergence, read_metadata
from cobre.results.stochastic import write_stochastic
from cobre.results.training import write_training

__all__ = ["read_convergence", "read_metadata", "write_stochastic", "write_training"]
