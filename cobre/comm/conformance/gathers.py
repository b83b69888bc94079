"""Checks of ``allgatherv``."""

from __future__ import annotations

from collections.abc import Sequence
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
from cobre.comm.conformance.loops import gather_with_a_slow_rank
from cobre.comm.contract import SUPPORTED_DTYPES
from cobre.comm.errors import CommError
from cobre.comm.faces import Face


@face_check("COM-11", "COM-12")
def _allgatherv_heterogeneous(face: Face) -> None:
    counts = [3 + 2 * r for r in range(face.size)]
    send = 100.0 * face.rank + np.arange(counts[face.rank])
    recv = gather(face, send, counts)
    same(recv, np.concatenate([100.0 * r + np.arange(counts[r]) for r in range(face.size)]))
    same_everywhere(face, recv)


@face_check("COM-11", "LOC-01", largest=1)
def _allgatherv_identity_size1(face: Face) -> None:
    same(gather(face, np.array([10.0, 20.0, 30.0]), [3]), [10.0, 20.0, 30.0])


@face_check("COM-12")
def _allgatherv_empty_send(face: Face) -> None:
    counts = [0 if r == face.size - 1 else 2 for r in range(face.size)]
    displs = [2 * r for r in range(face.size)]
    recv = np.full(2 * face.size, -1.0)
    face.allgatherv(np.full(counts[face.rank], float(face.rank)), recv, counts, displs)
    expected = np.repeat(np.arange(float(face.size)), 2)
    expected[-2:] = -1.0
    same(recv, expected)


@face_check("COM-11")
def _allgatherv_single_element(face: Face) -> None:
    recv = gather(face, np.array([face.rank], np.int64), [1] * face.size)
    same(recv, np.arange(face.size))


@face_check("COM-11", "COM-13")
def _allgatherv_large_payload(face: Face) -> None:
    count = 100_000
    recv = gather(face, face.rank + np.arange(count) / count, [count] * face.size)
    same(recv, np.concatenate([r + np.arange(count) / count for r in range(face.size)]))


@face_check("COM-10", "COM-11", "COM-12", "TST-60")
def _allgatherv_gaps_and_permuted(face: Face) -> None:
    # regions in the opposite order of ranks, three elements free before and after each
    counts = [r + 1 for r in range(face.size)]
    displs = [3 + sum(counts[r + 1 :]) + 3 * (face.size - 1 - r) for r in range(face.size)]
    recv = np.full(sum(counts) + 3 * (face.size + 1), -7, np.int64)
    face.allgatherv(np.full(counts[face.rank], face.rank, np.int64), recv, counts, displs)
    expected = np.full(recv.size, -7, np.int64)
    for r in range(face.size):
        expected[displs[r] : displs[r] + counts[r]] = r
    same(recv, expected)


@dtype_check("COM-03", "COM-11")
def _allgatherv_dtype(face: Face, dtype: Any) -> None:
    recv = gather(face, np.array([face.rank + 1, 200], dtype), [2] * face.size)
    same(recv, [value for r in range(face.size) for value in (r + 1, 200)])


@face_check("COM-11", "COM-13", "TST-60")
def _allgatherv_back_to_back(face: Face) -> None:
    recv = np.zeros(face.size, np.int64)
    counts, displs = [1] * face.size, list(range(face.size))
    for turn in range(1000):
        face.allgatherv(np.array([turn + face.rank], np.int64), recv, counts, displs)
        same(recv, turn + np.arange(face.size))


@case_check("COM-11", "COM-12", "COM-13", "SHM-09", "TST-60", both_faces=False)
def _allgatherv_slow_rank(case: Case) -> None:
    gather_with_a_slow_rank(case.owner, turns=10_000)


@face_check("COM-10", "COM-11", "COM-12", "TST-60")
def _allgatherv_random(face: Face) -> None:
    generator = np.random.default_rng(20)  # the same on all ranks
    for seed in range(50):
        counts = generator.integers(0, 40, face.size)
        displs = np.zeros(face.size, np.int64)
        end = 0
        for rank in generator.permutation(face.size):
            displs[rank] = end + generator.integers(0, 5)
            end = int(displs[rank] + counts[rank])
        dtype = SUPPORTED_DTYPES[seed % len(SUPPORTED_DTYPES)].name
        gather_example(face, counts.tolist(), displs.tolist(), end + 3, dtype, seed)


def gather_example(
    face: Face, counts: Sequence[int], displs: Sequence[int], extent: int, dtype: str, seed: int
) -> None:
    """Gather random bytes and compare with what NumPy makes of the contract.

    Parameters
    ----------
    face
        The face under test.
    counts, displs
        Arguments of the gather, the same on all ranks.
    extent
        Elements of the receiving array.
    dtype
        Name of the elements' type.
    seed
        Where all ranks begin their random bytes.
    """
    size = np.dtype(dtype).itemsize
    parts = [
        np.random.default_rng((seed, rank)).integers(0, 256, counts[rank] * size, np.uint8).view(dtype)
        for rank in range(face.size)
    ]
    recv = np.full(extent * size, 0xA5, np.uint8).view(dtype)
    expected = recv.copy()
    for rank, part in enumerate(parts):
        expected[displs[rank] : displs[rank] + counts[rank]] = part
    face.allgatherv(parts[face.rank], recv, counts, displs)
    # as bytes: NaNs among them differ from themselves
    assert recv.tobytes() == expected.tobytes(), f"counts {counts}, displs {displs}, {dtype}, seed {seed}"


def gather_too_little(face: Face, counts: Sequence[int], displs: Sequence[int], dtype: str) -> str:
    """Gather into an array that is one element too short; return the error's name."""
    extent = max(d + c for d, c in zip(displs, counts, strict=True))
    try:
        face.allgatherv(np.zeros(counts[face.rank], dtype), np.zeros(extent - 1, dtype), counts, displs)
    except CommError as error:
        return type(error).__name__
    return "no error"
