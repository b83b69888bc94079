"""The contract of communicators as checks that any backend can be put to.

Each check is one function, called on all ranks with one *face* of a communicator: the Python owner itself, or
its kernel called from nopython code (:mod:`cobre.comm.faces`). It fails by ``AssertionError``. A check is
written for any number of ranks within its bounds.

:func:`run_conformance` starts the ranks once, runs all checks that fit in them and reports each, rank by
rank. An installed backend is given by its name (:func:`targets_named`), any other as a function that makes a
communicator for one rank::

    def make(seat):                     # in module "fast_ring"
        return RingCommunicator(seat.rank, seat.size, key=seat.session, timeout_s=seat.timeout_s)

    report = run_conformance("fast_ring:make", ranks=3, traits=Traits(detects_silence=True))
    for line in report.lines(only_faults=True):
        print(line)

From the command line: ``python -m cobre.comm conformance --backend shm -n 3``.
"""

from cobre.comm.conformance import (  # noqa: F401
    arguments,
    failures,
    gathers,
    misuse,
    others,
    reductions,
    sharing,
)
from cobre.comm.conformance.catalogue import ALL_TRAITS, CHECKS, Case, Check, checks_for
from cobre.comm.conformance.job import ConformanceJob, RankOutcome
from cobre.comm.conformance.report import Report, Row, run_conformance
from cobre.comm.conformance.targets import Target, available_targets, target_of, targets_named
from cobre.comm.faces import Face, KernelFace, faces
from cobre.comm.registry import Seat, Traits

__all__ = [
    "ALL_TRAITS",
    "CHECKS",
    "Case",
    "Check",
    "ConformanceJob",
    "Face",
    "KernelFace",
    "RankOutcome",
    "Report",
    "Row",
    "Seat",
    "Target",
    "Traits",
    "available_targets",
    "checks_for",
    "faces",
    "run_conformance",
    "target_of",
    "targets_named",
]
