"""A run of a small study with deficits, as it lies on disk."""

from builders.report_runs import small_run

__all__ = ["small_run"]
