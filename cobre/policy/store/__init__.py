"""Policy directories and checkpoints of cobre on disk: Parquet and JSON, see ``docs/policy-format.md``."""
