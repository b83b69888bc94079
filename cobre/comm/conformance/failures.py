"""Checks of what happens when ranks disagree, keep silent, or die."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from cobre.comm.conformance.catalogue import CHECKS, Case, Check, case_check, expect, offsets
from cobre.comm.contract import ReduceOp
from cobre.comm.errors import CollectiveFailed, CommError, InvalidBufferSize, InvalidCommunicator
from cobre.comm.faces import Face

_TIMEOUT_SECONDS: Final = 2.0
_NOTICE_SECONDS: Final = 5.0
_SLACK_SECONDS: Final = 5.0  # a busy machine
_JOIN_SECONDS: Final = 1.0  # more than enough to reach the wait for the other ranks


def _reduce(face: Face, dtype: str = "float64", count: int = 4, op: ReduceOp = ReduceOp.SUM) -> None:
    face.allreduce(np.zeros(count, dtype), np.zeros(count, dtype), op)


def _gather(face: Face, counts: list[int]) -> None:
    face.allgatherv(np.zeros(counts[face.rank]), np.zeros(sum(counts)), counts, offsets(counts))


# For each name what rank 0 calls, and what all others call.
_DIVERGENCES: Final[dict[str, tuple[Callable[[Face], None], Callable[[Face], None]]]] = {
    "operation": (lambda face: face.barrier(), _reduce),
    "dtype": (_reduce, lambda face: _reduce(face, "float32", 8)),
    "count": (_reduce, lambda face: _reduce(face, count=5)),
    "reduce_op": (_reduce, lambda face: _reduce(face, op=ReduceOp.MAX)),
    "root": (
        lambda face: face.broadcast(np.zeros(3), 0),
        lambda face: face.broadcast(np.zeros(3), face.size - 1),
    ),
    "length": (lambda face: face.broadcast(np.zeros(3), 0), lambda face: face.broadcast(np.zeros(4), 0)),
    "counts": (
        lambda face: _gather(face, [2] * face.size),
        lambda face: _gather(face, [1] + [2] * (face.size - 2) + [3]),
    ),
}


def _register_divergence(name: str, first: Callable[[Face], None], rest: Callable[[Face], None]) -> None:
    def run(case: Case) -> None:
        face = case.face
        expect(CollectiveFailed, lambda: (first if face.rank == 0 else rest)(face))
        _require_poisoned(face)
        case.meet()

    needs = ("detects_divergence",)
    CHECKS.append(Check(f"divergence_{name}", ("COM-42", "COM-43", "TST-60"), run, 2, needs=needs))


for _name, (_first, _rest) in _DIVERGENCES.items():
    _register_divergence(_name, _first, _rest)


def _require_poisoned(face: Face) -> None:
    rank, size = face.rank, face.size
    expect(InvalidCommunicator, face.barrier)
    expect(InvalidCommunicator, lambda: face.broadcast(np.zeros(1), 0))
    expect(InvalidCommunicator, lambda: _reduce(face))
    expect(InvalidCommunicator, lambda: _gather(face, [1] * size))
    assert (face.rank, face.size) == (rank, size)


@case_check("COM-42", "COM-43", smallest=2, needs=("detects_divergence",), both_faces=False)
def _divergence_skipped_operation(case: Case) -> None:
    """One rank skips a gather; the next collective detects it, or closing is harmless."""
    owner = case.owner

    def go_on() -> None:
        if owner.rank != owner.size - 1:
            _gather(owner, [1] * owner.size)
        owner.barrier()

    expect(CommError, go_on)
    case.meet()


@case_check("COM-43", smallest=2)
def _refused_argument_on_one_rank(case: Case) -> None:
    face = case.face
    if face.rank == 0:
        expect(InvalidBufferSize, lambda: face.allreduce(np.zeros(2), np.zeros(3), ReduceOp.SUM))
    _gather(face, [1] * face.size)  # nothing was sent, so the ranks are still in step


@case_check(
    "ERR-05", "ERR-06", "SHM-03", "TCP-11", smallest=2, needs=("detects_silence",), timeout_s=_TIMEOUT_SECONDS
)
def _barrier_timeout(case: Case) -> None:
    face = case.face
    case.meet()
    start = time.monotonic()
    if face.rank != face.size - 1:
        expect(CollectiveFailed, face.barrier, mpi_error_code=0)
        elapsed = time.monotonic() - start
        assert elapsed >= 0.75 * _TIMEOUT_SECONDS, f"failed after {elapsed} s"
        assert elapsed <= _TIMEOUT_SECONDS + _SLACK_SECONDS, f"failed only after {elapsed} s"
        _require_poisoned(face)
    case.meet()  # the silent rank is alive all the time
    if face.rank == face.size - 1:
        expect(CollectiveFailed, face.barrier)  # it learns that the others have given up


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dies_before_a_collective(case: Case, victim: int) -> None:
    case.owner.barrier()
    case.meet()  # the victim must not die while the others are still leaving the barrier
    if case.owner.rank == victim:
        _die()
    start = time.monotonic()
    error = expect(CollectiveFailed, case.owner.barrier)
    _require_named(error, victim, time.monotonic() - start)


def _dies_inside_a_collective(case: Case, victim: int) -> None:
    delay = 0.3
    _reduce(case.face)
    if case.owner.rank == victim:
        threading.Timer(delay, _die).start()

    def reduce_for_ever() -> None:
        while True:
            _reduce(case.face)

    start = time.monotonic()
    error = expect(CollectiveFailed, reduce_for_ever)
    _require_named(error, victim, time.monotonic() - start - delay)


def _dies_at_close(case: Case, victim: int) -> None:
    case.owner.barrier()
    case.meet()  # the victim must not die while the others are still leaving the barrier
    if case.owner.rank == victim:
        _die()
    start = time.monotonic()
    error = expect(CollectiveFailed, case.owner.close)
    _require_named(error, victim, time.monotonic() - start)
    expect(InvalidCommunicator, case.owner.barrier)
    case.owner.close()  # again, which is harmless


def _dies_inside_close(case: Case, victim: int) -> None:
    case.owner.barrier()
    if case.owner.rank == victim:
        threading.Timer(_JOIN_SECONDS, _die).start()
        case.owner.close()  # waits for the others, which do not arrive before it is dead
    case.meet()
    start = time.monotonic()
    error = expect(CollectiveFailed, case.owner.close)
    _require_named(error, victim, time.monotonic() - start)


def _dies_at_start(case: Case, victim: int) -> None:
    """One rank keeps the others waiting, so that the victim dies after it has joined and before all have."""
    rank, last = case.owner.rank, case.owner.size - 1
    case.owner.barrier()
    case.owner.close()  # its place is taken by another, whose start finds everything compiled
    if rank == (last if victim != last else last - 1):
        case.stay_away()
    else:
        if rank == victim:
            threading.Timer(_JOIN_SECONDS, _die).start()
        start = time.monotonic()
        error = expect(CollectiveFailed, case.make)
        _require_named(error, victim, time.monotonic() - start - _JOIN_SECONDS)
    case.meet()


def _require_named(error: Exception, victim: int, elapsed: float) -> None:
    assert elapsed <= _NOTICE_SECONDS, f"noticed only after {elapsed} s"
    assert f"rank {victim}" in str(error), f"{error} does not name rank {victim}"


def _register_death(function: Callable[[Case, int], None], victim: int, size: int) -> None:
    def run(case: Case) -> None:
        function(case, victim)

    name = f"rank_{victim}{function.__name__}"
    requirements = ("COM-43", "SHM-03", "TCP-11", "TST-60")
    needs = ("detects_death",)
    CHECKS.append(
        Check(
            name, requirements, run, size, size, needs=needs, victim=victim, timeout_s=60.0, both_faces=False
        )
    )


for _victim in range(3):
    for _death in (_dies_before_a_collective, _dies_inside_a_collective, _dies_at_close, _dies_inside_close):
        _register_death(_death, _victim, 3)
for _victim in range(4):  # one of them keeps the start from its end, so that two are left to notice
    _register_death(_dies_at_start, _victim, 4)
