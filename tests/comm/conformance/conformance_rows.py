"""The rows of the conformance suite as parameters of tests, and the ranks that they run on.

Rows of one backend and number of ranks form a group (``--dist loadgroup``), so that one process of a parallel
run has them all and starts their ranks once. All element types run on one number of ranks, the others on
float64 alone, and MPI on up to three ranks (on all with ``--sweep``).
"""

from __future__ import annotations

import pytest

from cobre.comm.conformance import Check, ConformanceJob, RankOutcome, Target, available_targets, checks_for
from cobre.comm.conformance.catalogue import FACE_NAMES


def targets(*names: str) -> list[Target]:
    """Return the targets that are there; a name stands for a backend, or for one MPI implementation."""
    return [t for t in available_targets() if t.name in names or t.name.partition("-")[0] in names]


def rows(*names: str) -> list[object]:
    """Return one parameter set (target, size, check, face) for every row of the suite, with a telling id."""
    return [
        pytest.param(
            target,
            size,
            check,
            face,
            id=f"{target.name}-{size}-{check.id}-{FACE_NAMES[face]}",
            marks=_marks(target, size, check),
        )
        for target in targets(*names)
        for size in target.sizes
        for check in checks_for(size, target.traits)
        for face in check.faces
    ]


def _marks(target: Target, size: int, check: Check) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.xdist_group(f"conformance-{target.name}-{size}")]
    sizes = target.sizes
    other_type = "_dtype_" in check.name and not check.name.endswith("_float64")
    # Ranks of MPI wait by asking again and again: four of them on two processors mostly wait for each other.
    waits_long = target.name.startswith("mpi") and size > 3
    if waits_long or (other_type and size != (3 if 3 in sizes else sizes[-1])):
        marks.append(pytest.mark.sweep)
    return marks


class Jobs:
    """Keeps the ranks that were asked for last, for tests in a row that ask for the same."""

    def __init__(self) -> None:
        self._job: ConformanceJob | None = None

    def get(self, target: Target, size: int) -> ConformanceJob:
        """Return a job of this target with so many ranks; ends another one first."""
        if self._job is None or (self._job.target.name, self._job.size) != (target.name, size):
            self.close()
            self._job = ConformanceJob(target, size)
        return self._job

    def close(self) -> None:
        """End the ranks."""
        if self._job is not None:
            self._job.close()
            self._job = None


def require_passed(outcomes: list[RankOutcome]) -> None:
    """Fail with what the ranks say if they did not pass."""
    faults = [f"rank {outcome.rank}: {outcome.fault}" for outcome in outcomes if outcome.fault is not None]
    assert not faults, "\n".join(faults)
