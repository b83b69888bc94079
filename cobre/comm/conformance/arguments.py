"""Checks of wrong arguments, and of a communicator that is closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cobre.comm.conformance.catalogue import expect, face_check, offsets, same
from cobre.comm.contract import ReduceOp
from cobre.comm.errors import CommError, InvalidBufferSize, InvalidCommunicator, InvalidRoot
from cobre.comm.faces import Face
from cobre.errors import ValidationError


@face_check("COM-20", "ERR-01")
def _allreduce_buffer_mismatch(face: Face) -> None:
    expect(
        InvalidBufferSize,
        lambda: face.allreduce(np.zeros(4), np.zeros(3), ReduceOp.SUM),
        operation="allreduce",
        expected=4,
        actual=3,
    )
    expect(
        InvalidBufferSize,
        lambda: face.allreduce(np.zeros(0), np.zeros(0), ReduceOp.SUM),
        operation="allreduce",
        expected=1,
        actual=0,
    )
    face.barrier()  # a refused argument leaves the communicator usable (COM-43)


@face_check("COM-04", "COM-20")
def _allreduce_invalid_operation(face: Face) -> None:
    expect(
        ValidationError,
        lambda: face.allreduce(np.zeros(1), np.zeros(1), ReduceOp.BITWISE_OR),
        kind="TypeMismatch",
    )
    unknown: Any = 4
    expect(ValidationError, lambda: face.allreduce(np.zeros(1), np.zeros(1), unknown), kind="InvalidEnum")


@face_check("COM-10", "COM-14", "LOC-02")
def _allgatherv_recv_too_small(face: Face) -> None:
    counts = [2] * face.size
    expect(
        InvalidBufferSize,
        lambda: face.allgatherv(np.zeros(2), np.zeros(2 * face.size - 1), counts, offsets(counts)),
        operation="allgatherv",
        expected=2 * face.size,
        actual=2 * face.size - 1,
    )


@face_check("COM-14")
def _allgatherv_check_order(face: Face) -> None:
    size = face.size

    def refused(send: int, counts: Sequence[int], displs: Sequence[int], expected: int, actual: int) -> None:
        expect(
            InvalidBufferSize,
            lambda: face.allgatherv(np.zeros(send), np.zeros(0), counts, displs),
            operation="allgatherv",
            expected=expected,
            actual=actual,
        )

    # every call has all the later faults too
    refused(5, [9] * (size + 1), [0] * (size + 2), size, size + 1)
    refused(5, [9] * size, [0] * (size + 2), size, size + 2)
    refused(5, [9] * size, [9 * r for r in range(size)], 9, 5)
    refused(9, [9] * size, [9 * r for r in range(size)], 9 * size, 0)


@face_check("COM-10")
def _allgatherv_negative(face: Face) -> None:
    counts = [1] * face.size
    displs = [r - 1 for r in range(face.size)]
    expect(InvalidBufferSize, lambda: face.allgatherv(np.zeros(1), np.zeros(face.size), counts, displs))
    counts[0] = -1
    send = np.zeros(0 if face.rank == 0 else 1)
    expect(
        InvalidBufferSize,
        lambda: face.allgatherv(send, np.zeros(face.size), counts, offsets([1] * face.size)),
    )


@face_check("COM-10", smallest=2)
def _allgatherv_overlapping_regions(face: Face) -> None:
    counts = [2] * face.size
    displs = [2 * (face.size - 1 - r) for r in range(face.size)]
    displs[0] -= 1
    expect(
        InvalidBufferSize,
        lambda: face.allgatherv(np.zeros(2), np.zeros(2 * face.size), counts, displs),
        actual=1,
    )


@face_check("COM-10")
def _allgatherv_aliased(face: Face) -> None:
    buffer = np.zeros(2 * face.size)
    counts = [2] * face.size
    send = buffer[2 * face.rank : 2 * face.rank + 2]
    expect(InvalidBufferSize, lambda: face.allgatherv(send, buffer, counts, offsets(counts)))


@face_check("COM-30", "ERR-01")
def _broadcast_invalid_root(face: Face) -> None:
    root = max(5, face.size)
    buf = np.array([1.0, 2.0])
    expect(InvalidRoot, lambda: face.broadcast(buf, root), root=root, size=face.size)
    expect(InvalidRoot, lambda: face.broadcast(buf, -1), root=-1, size=face.size)
    same(buf, [1.0, 2.0])


@face_check("COM-32", "ERR-01")
def _closed_communicator(face: Face) -> None:
    rank, size = face.rank, face.size
    face.close()
    expect(InvalidCommunicator, face.barrier)
    expect(InvalidCommunicator, lambda: face.broadcast(np.zeros(1), 0))
    expect(CommError, lambda: face.allreduce(np.zeros(1), np.zeros(1), ReduceOp.SUM))
    expect(CommError, lambda: face.allgatherv(np.zeros(1), np.zeros(size), [1] * size, offsets([1] * size)))
    assert (face.rank, face.size) == (rank, size)
    face.close()
