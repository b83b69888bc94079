"""One run of the conformance suite for each backend and number of ranks, shared by the tests of its rows."""

from __future__ import annotations

import functools

import pytest

from cobre.comm.conformance import Check, Report, Target, available_targets, checks_for, run_conformance
from cobre.comm.conformance.catalogue import FACE_NAMES


def targets(*names: str) -> list[Target]:
    """Return the targets that are there; a name stands for a backend, or for one MPI implementation."""
    return [t for t in available_targets() if t.name in names or t.name.partition("-")[0] in names]


def rows(*names: str) -> list[object]:
    """Return one parameter set (target, ranks, check, face) for every row of the suite, with a telling id."""
    return [
        pytest.param(target, ranks, check, face, id=f"{target.name}-{ranks}-{check.id}-{FACE_NAMES[face]}")
        for target in targets(*names)
        for ranks in target.sizes
        for check in checks_for(ranks, target.traits)
        for face in check.faces
    ]


@functools.cache
def _report(name: str, ranks: int) -> Report:
    (target,) = targets(name)
    return run_conformance(target, ranks)


def report(target: Target, ranks: int) -> Report:
    """Return what came of the suite; runs it at the first call."""
    return _report(target.name, ranks)


def require_passed(target: Target, ranks: int, check: Check, face: int) -> None:
    """Fail with what the ranks say if they did not pass."""
    row = report(target, ranks).row(check.name, face)
    assert row.passed, f"{target.name} on {ranks} ranks: {row.fault}"
