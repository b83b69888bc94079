"""Checks of ``allreduce``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cobre.comm.conformance.catalogue import dtype_check, face_check, same
from cobre.comm.contract import ReduceOp
from cobre.comm.faces import Face


@face_check("COM-21")
def _allreduce_sum(face: Face) -> None:
    recv = np.zeros(4)
    face.allreduce(np.array([1.0, 2.0, 3.0, 4.0]), recv, ReduceOp.SUM)
    same(recv, face.size * np.array([1.0, 2.0, 3.0, 4.0]))


@face_check("COM-21")
def _allreduce_min(face: Face) -> None:
    recv = np.full(2, -1.0)
    face.allreduce(np.array([float(face.rank), float(face.size - face.rank)]), recv, ReduceOp.MIN)
    same(recv, [0.0, 1.0])


@face_check("COM-21")
def _allreduce_max(face: Face) -> None:
    recv = np.full(2, -1.0)
    face.allreduce(np.array([float(face.rank), face.size - 1.0 - face.rank]), recv, ReduceOp.MAX)
    same(recv, [face.size - 1.0] * 2)


@face_check("COM-04", "COM-21")
def _allreduce_bitwise_or(face: Face) -> None:
    recv = np.zeros(2, np.uint64)
    face.allreduce(np.array([1 << face.rank, 1 << 63], np.uint64), recv, ReduceOp.BITWISE_OR)
    same(recv, np.array([(1 << face.size) - 1, 1 << 63], np.uint64))


@face_check("COM-22")
def _allreduce_nan(face: Face) -> None:
    for op in (ReduceOp.MIN, ReduceOp.MAX):
        for holder in range(face.size):
            recv = np.zeros(2)
            face.allreduce(np.array([np.nan if face.rank == holder else 1.0, 2.0]), recv, op)
            assert np.isnan(recv[0]), f"{op.name} lost the NaN of rank {holder}"
            assert recv[1] == 2.0


@face_check("COM-21", "LOC-01", largest=1)
def _allreduce_identity_size1(face: Face) -> None:
    for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX):
        recv = np.zeros(2)
        face.allreduce(np.array([42.0, 99.0]), recv, op)
        same(recv, [42.0, 99.0])


@face_check("COM-21")
def _allreduce_single_element(face: Face) -> None:
    recv = np.full(1, -1, np.int64)
    face.allreduce(np.array([face.rank], np.int64), recv, ReduceOp.SUM)
    same(recv, [face.size * (face.size - 1) // 2])


@dtype_check("COM-03", "COM-21")
def _allreduce_dtype(face: Face, dtype: Any) -> None:
    recv = np.zeros(2, dtype)
    face.allreduce(np.array([face.rank, 3], dtype), recv, ReduceOp.MAX)
    same(recv, [face.size - 1, 3])
    face.allreduce(np.array([face.rank, 3], dtype), recv, ReduceOp.MIN)
    same(recv, [0, 3])
    face.allreduce(np.array([face.rank, 3], dtype), recv, ReduceOp.SUM)
    same(recv, [face.size * (face.size - 1) // 2, 3 * face.size])


@face_check("COM-21", needs=("folds_in_rank_order",))
def _allreduce_sum_in_rank_order(face: Face) -> None:
    parts = [np.random.default_rng(rank).normal(size=1000) for rank in range(face.size)]
    folded = parts[0].copy()
    for part in parts[1:]:
        folded += part
    recv = np.zeros(1000)
    face.allreduce(parts[face.rank], recv, ReduceOp.SUM)
    same(recv, folded)


@face_check("COM-21")
def _allreduce_large_payload(face: Face) -> None:
    # whole numbers, whose sum does not depend on the order
    count = 300_000
    recv = np.zeros(count)
    face.allreduce(np.arange(count) + float(face.rank), recv, ReduceOp.SUM)
    same(recv, face.size * np.arange(count) + face.size * (face.size - 1) / 2)
