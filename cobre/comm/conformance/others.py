"""Checks of ``broadcast``, ``barrier``, ``rank``, ``size``, and of operations in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from cobre.comm.conformance.catalogue import (
    Case,
    case_check,
    dtype_check,
    face_check,
    gather,
    same,
    same_everywhere,
)
from cobre.comm.conformance.loops import run_the_same_function
from cobre.comm.contract import ReduceOp
from cobre.comm.faces import Face, faces


@face_check("COM-30")
def _broadcast_root0(face: Face) -> None:
    buf = np.array([3.14, 2.72, 1.41]) if face.rank == 0 else np.zeros(3)
    face.broadcast(buf, 0)
    same(buf, [3.14, 2.72, 1.41])


@face_check("COM-30")
def _broadcast_root_last(face: Face) -> None:
    root = face.size - 1
    buf = np.array([100.0, 200.0]) if face.rank == root else np.zeros(2)
    face.broadcast(buf, root)
    same(buf, [100.0, 200.0])


@face_check("COM-30")
def _broadcast_data_integrity(face: Face) -> None:
    pattern = np.sin(np.arange(10_000.0))
    buf = pattern.copy() if face.rank == 0 else np.zeros(10_000)
    face.broadcast(buf, 0)
    same(buf, pattern)


@dtype_check("COM-03", "COM-30")
def _broadcast_dtype(face: Face, dtype: Any) -> None:
    for root in range(face.size):
        buf = np.array([7 + root, 200], dtype) if face.rank == root else np.zeros(2, dtype)
        face.broadcast(buf, root)
        same(buf, [7 + root, 200])


@face_check("COM-30")
def _broadcast_empty(face: Face) -> None:
    face.broadcast(np.zeros(0), 0)
    face.barrier()


@case_check("COM-31")
def _barrier_write_before_read_after(case: Case) -> None:
    face, directory = case.face, case.directory
    assert directory is not None, "this check needs a directory"
    for turn in range(3):
        (directory / f"{turn}-{face.rank}").write_text(str(face.rank))
        face.barrier()
        for rank in range(face.size):
            assert (directory / f"{turn}-{rank}").read_text() == str(rank)


@face_check("COM-31")
def _barrier_repeated(face: Face) -> None:
    for _ in range(3):
        face.barrier()


@face_check("COM-32")
def _rank_in_range(face: Face) -> None:
    assert 0 <= face.rank < face.size


@face_check("COM-32")
def _size_consistent(face: Face) -> None:
    same_everywhere(face, np.array([face.size], np.int64))


@face_check("COM-32")
def _rank_unique(face: Face) -> None:
    ranks = gather(face, np.array([face.rank], np.int64), [1] * face.size)
    same(np.sort(ranks), np.arange(face.size))


@face_check("COM-11", "COM-21", "COM-31", "COM-42")
def _collective_sequence(face: Face) -> None:
    size, rank = face.size, face.rank
    same(gather(face, np.array([float(rank)]), [1] * size), np.arange(float(size)))
    total = np.zeros(1)
    face.allreduce(np.array([1.0]), total, ReduceOp.SUM)
    same(total, [float(size)])
    face.barrier()
    same(gather(face, np.array([10.0 + rank]), [1] * size), 10.0 + np.arange(float(size)))


@case_check("COM-32", both_faces=False)
def _faces_agree(case: Case) -> None:
    owner, kernel = faces(case.owner)
    assert (owner.rank, owner.size) == (kernel.rank, kernel.size)


@case_check("COM-45", both_faces=False)
def _topology(case: Case) -> None:
    topology = case.owner.topology()
    assert topology.backend == case.owner.backend
    assert topology.world_size == case.owner.size
    ranks = [rank for host in topology.hosts for rank in host.ranks]
    assert sorted(ranks) == list(range(case.owner.size)), f"hosts hold ranks {ranks}"
    assert all(list(host.ranks) == sorted(host.ranks) for host in topology.hosts)
    assert topology.leader_hostname != "unknown"


@case_check("COM-11", "COM-12", "COM-21", "TST-20", both_faces=False)
def _same_function(case: Case) -> None:
    """Run one nopython function on the kernel; its bytes are the same on all backends."""
    run_the_same_function(case.owner, case.traits.folds_in_rank_order)
