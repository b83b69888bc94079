"""A case directory, validated and turned into the immutable model of a study.

:func:`load` gives a :class:`Case` or raises one error with every problem found; :func:`check` gives the
problems as a list. A case can be built from documents in memory (:func:`build`), edited (:meth:`Case.edit`)
and saved (:meth:`Case.save`).
"""

from cobre import _distribution  # noqa: F401 (refuses files of another package cobre)
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.editing import CaseEditor
from cobre.case.loader import build, check, load
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
    "CaseDocuments",
    "CaseEditor",
    "DeficitSegment",
    "Hydro",
    "InflowMethod",
    "Line",
    "Stage",
    "Thermal",
    "TrainingOptions",
    "UnitGroup",
    "build",
    "check",
    "load",
]
