"""A case directory, validated and turned into the immutable model of a study.

:func:`load` gives a :class:`Case` or raises one error with every problem found; :func:`check` gives the
problems as a list.
"""

from cobre.case.loader import check, load
from cobre.case.model import (
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    InflowMethod,
    Line,
    Stage,
    Thermal,
    TrainingOptions,
    UnitGroup,
)

__all__ = [
    "Block",
    "Bus",
    "Case",
    "DeficitSegment",
    "Hydro",
    "InflowMethod",
    "Line",
    "Stage",
    "Thermal",
    "TrainingOptions",
    "UnitGroup",
    "check",
    "load",
]
