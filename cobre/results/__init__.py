"""Results on disk: what training writes (Parquet and JSON), and reading it back."""

from cobre.results.reading import read_convergence, read_metadata
from cobre.results.training import write_training

__all__ = ["read_convergence", "read_metadata", "write_training"]
