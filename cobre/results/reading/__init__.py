"""Results read back: :func:`load` is the one way, for notebooks, reports and commands alike."""

from cobre.results.reading.cube import Cube
from cobre.results.reading.run import (
    Models,
    Results,
    Simulation,
    Tables,
    Training,
    load,
    output_of,
    read_convergence,
    read_metadata,
)
from cobre.results.reading.table import Table

__all__ = [
    "Cube",
    "Models",
    "Results",
    "Simulation",
    "Table",
    "Tables",
    "Training",
    "load",
    "output_of",
    "read_convergence",
    "read_metadata",
]
