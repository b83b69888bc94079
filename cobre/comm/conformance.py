"""The contract of communicators as checks that any backend can be put to.

Each check is one function, called on all ranks with one *face* of a communicator: the Python owner itself, or
its kernel called from nopython code (:mod:`cobre.comm.faces`). It fails by ``AssertionError``. A check is
written for any number of ranks within its bounds, so that a backend runs the same ones at 1, 2 and 4 ranks::

    for check in checks_for(size=1):
        for which in (0, 1):
            with LocalCommunicator() as communicator:
                check(faces(communicator)[which])

Give every check, and each face, a communicator of its own: some close it, and one that fails may leave it
unusable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm.contract import SUPPORTED_DTYPES, ReduceOp
from cobre.comm.errors import CommError, InvalidBufferSize, InvalidCommunicator, InvalidRoot
from cobre.comm.faces import Face, KernelFace, faces
from cobre.errors import ValidationError

__all__ = ["CHECKS", "Check", "Face", "KernelFace", "checks_for", "faces"]


@dataclass(frozen=True)
class Check:
    """One row of the conformance suite.

    Attributes
    ----------
    name
        The row's name.
    requirements
        Numbers of the requirements that it checks.
    run
        The check; takes a face.
    smallest, largest
        Numbers of ranks it is for.
    """

    name: str
    requirements: tuple[str, ...]
    run: Callable[[Face], None]
    smallest: int
    largest: int

    @property
    def id(self) -> str:
        """Name and requirements, for test reports."""
        return f"{self.name}[{','.join(self.requirements)}]"

    def __call__(self, face: Face) -> None:
        """Run the check on one face of a communicator."""
        self.run(face)


CHECKS: list[Check] = []
"""All checks, in the order in which they are defined."""


def checks_for(size: int) -> list[Check]:
    """Return the checks for a communicator of this many ranks."""
    return [check for check in CHECKS if check.smallest <= size <= check.largest]


def _check(
    *requirements: str, smallest: int = 1, largest: int = sys.maxsize
) -> Callable[[Callable[[Face], None]], Callable[[Face], None]]:
    def register(function: Callable[[Face], None]) -> Callable[[Face], None]:
        name = function.__name__.removeprefix("_")
        CHECKS.append(Check(name, requirements, function, smallest, largest))
        return function

    return register


def _expect(error: type[Exception], call: Callable[[], None], **fields: Any) -> None:
    raised: Exception | None = None
    try:
        call()
    except error as found:
        raised = found
    assert raised is not None, f"no {error.__name__} was raised"
    for name, value in fields.items():
        assert getattr(raised, name) == value, f"{name} is {getattr(raised, name)!r}, not {value!r}"


def _same(actual: NDArray[Any], expected: Any) -> None:
    wanted = np.asarray(expected, dtype=actual.dtype)
    assert actual.tobytes() == wanted.tobytes(), f"{actual!r} instead of {wanted!r}"


def _offsets(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:r]) for r in range(len(counts))]


def _gather(face: Face, send: NDArray[Any], counts: Sequence[int]) -> NDArray[Any]:
    recv = np.full(sum(counts), 77, send.dtype)  # what no check gathers
    face.allgatherv(send, recv, counts, _offsets(counts))
    return recv


def _same_everywhere(face: Face, values: NDArray[Any]) -> None:
    gathered = _gather(face, values, [len(values)] * face.size)
    _same(gathered, np.tile(values, face.size))


@_check("COM-11", "COM-12")
def _allgatherv_heterogeneous(face: Face) -> None:
    counts = [3 + 2 * r for r in range(face.size)]
    send = 100.0 * face.rank + np.arange(counts[face.rank])
    recv = _gather(face, send, counts)
    _same(recv, np.concatenate([100.0 * r + np.arange(counts[r]) for r in range(face.size)]))
    _same_everywhere(face, recv)


@_check("COM-11", "LOC-01", largest=1)
def _allgatherv_identity_size1(face: Face) -> None:
    _same(_gather(face, np.array([10.0, 20.0, 30.0]), [3]), [10.0, 20.0, 30.0])


@_check("COM-12")
def _allgatherv_empty_send(face: Face) -> None:
    counts = [0 if r == face.size - 1 else 2 for r in range(face.size)]
    displs = [2 * r for r in range(face.size)]
    recv = np.full(2 * face.size, -1.0)
    face.allgatherv(np.full(counts[face.rank], float(face.rank)), recv, counts, displs)
    expected = np.repeat(np.arange(float(face.size)), 2)
    expected[-2:] = -1.0
    _same(recv, expected)


@_check("COM-11")
def _allgatherv_single_element(face: Face) -> None:
    recv = _gather(face, np.array([face.rank], np.int64), [1] * face.size)
    _same(recv, np.arange(face.size))


@_check("COM-11", "COM-13")
def _allgatherv_large_payload(face: Face) -> None:
    count = 100_000
    recv = _gather(face, face.rank + np.arange(count) / count, [count] * face.size)
    _same(recv, np.concatenate([r + np.arange(count) / count for r in range(face.size)]))


@_check("COM-10", "COM-11", "COM-12", "TST-60")
def _allgatherv_gaps_and_permuted(face: Face) -> None:
    # regions in the opposite order of ranks, three elements free before and after each
    counts = [r + 1 for r in range(face.size)]
    displs = [3 + sum(counts[r + 1 :]) + 3 * (face.size - 1 - r) for r in range(face.size)]
    recv = np.full(sum(counts) + 3 * (face.size + 1), -7, np.int64)
    face.allgatherv(np.full(counts[face.rank], face.rank, np.int64), recv, counts, displs)
    expected = np.full(recv.size, -7, np.int64)
    for r in range(face.size):
        expected[displs[r] : displs[r] + counts[r]] = r
    _same(recv, expected)


@_check("COM-03", "COM-11")
def _allgatherv_dtypes(face: Face) -> None:
    for dtype in SUPPORTED_DTYPES:
        recv = _gather(face, np.array([face.rank + 1, 200], dtype), [2] * face.size)
        _same(recv, [value for r in range(face.size) for value in (r + 1, 200)])


@_check("COM-11", "COM-13", "TST-60")
def _allgatherv_back_to_back(face: Face) -> None:
    recv = np.zeros(face.size, np.int64)
    counts, displs = [1] * face.size, list(range(face.size))
    for turn in range(1000):
        face.allgatherv(np.array([turn + face.rank], np.int64), recv, counts, displs)
        _same(recv, turn + np.arange(face.size))


@_check("COM-21")
def _allreduce_sum(face: Face) -> None:
    recv = np.zeros(4)
    face.allreduce(np.array([1.0, 2.0, 3.0, 4.0]), recv, ReduceOp.SUM)
    _same(recv, face.size * np.array([1.0, 2.0, 3.0, 4.0]))


@_check("COM-21")
def _allreduce_min(face: Face) -> None:
    recv = np.full(2, -1.0)
    face.allreduce(np.array([float(face.rank), float(face.size - face.rank)]), recv, ReduceOp.MIN)
    _same(recv, [0.0, 1.0])


@_check("COM-21")
def _allreduce_max(face: Face) -> None:
    recv = np.full(2, -1.0)
    face.allreduce(np.array([float(face.rank), face.size - 1.0 - face.rank]), recv, ReduceOp.MAX)
    _same(recv, [face.size - 1.0] * 2)


@_check("COM-04", "COM-21")
def _allreduce_bitwise_or(face: Face) -> None:
    recv = np.zeros(2, np.uint64)
    face.allreduce(np.array([1 << face.rank, 1 << 63], np.uint64), recv, ReduceOp.BITWISE_OR)
    _same(recv, np.array([(1 << face.size) - 1, 1 << 63], np.uint64))


@_check("COM-22")
def _allreduce_nan(face: Face) -> None:
    for op in (ReduceOp.MIN, ReduceOp.MAX):
        for holder in range(face.size):
            recv = np.zeros(2)
            face.allreduce(np.array([np.nan if face.rank == holder else 1.0, 2.0]), recv, op)
            assert np.isnan(recv[0]), f"{op.name} lost the NaN of rank {holder}"
            assert recv[1] == 2.0


@_check("COM-21", "LOC-01", largest=1)
def _allreduce_identity_size1(face: Face) -> None:
    for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX):
        recv = np.zeros(2)
        face.allreduce(np.array([42.0, 99.0]), recv, op)
        _same(recv, [42.0, 99.0])


@_check("COM-21")
def _allreduce_single_element(face: Face) -> None:
    recv = np.full(1, -1, np.int64)
    face.allreduce(np.array([face.rank], np.int64), recv, ReduceOp.SUM)
    _same(recv, [face.size * (face.size - 1) // 2])


@_check("COM-03", "COM-21")
def _allreduce_dtypes(face: Face) -> None:
    for dtype in SUPPORTED_DTYPES:
        recv = np.zeros(2, dtype)
        face.allreduce(np.array([face.rank, 3], dtype), recv, ReduceOp.MAX)
        _same(recv, [face.size - 1, 3])


@_check("COM-30")
def _broadcast_root0(face: Face) -> None:
    buf = np.array([3.14, 2.72, 1.41]) if face.rank == 0 else np.zeros(3)
    face.broadcast(buf, 0)
    _same(buf, [3.14, 2.72, 1.41])


@_check("COM-30")
def _broadcast_root_last(face: Face) -> None:
    root = face.size - 1
    buf = np.array([100.0, 200.0]) if face.rank == root else np.zeros(2)
    face.broadcast(buf, root)
    _same(buf, [100.0, 200.0])


@_check("COM-30")
def _broadcast_data_integrity(face: Face) -> None:
    pattern = np.sin(np.arange(10_000.0))
    buf = pattern.copy() if face.rank == 0 else np.zeros(10_000)
    face.broadcast(buf, 0)
    _same(buf, pattern)


@_check("COM-03", "COM-30")
def _broadcast_dtypes(face: Face) -> None:
    for dtype in SUPPORTED_DTYPES:
        buf = np.array([7, 200], dtype) if face.rank == 0 else np.zeros(2, dtype)
        face.broadcast(buf, 0)
        _same(buf, [7, 200])


@_check("COM-31")
def _barrier_repeated(face: Face) -> None:
    for _ in range(3):
        face.barrier()


@_check("COM-32")
def _rank_in_range(face: Face) -> None:
    assert 0 <= face.rank < face.size


@_check("COM-32")
def _size_consistent(face: Face) -> None:
    _same_everywhere(face, np.array([face.size], np.int64))


@_check("COM-32")
def _rank_unique(face: Face) -> None:
    ranks = _gather(face, np.array([face.rank], np.int64), [1] * face.size)
    _same(np.sort(ranks), np.arange(face.size))


@_check("COM-11", "COM-21", "COM-31", "COM-42")
def _collective_sequence(face: Face) -> None:
    size, rank = face.size, face.rank
    _same(_gather(face, np.array([float(rank)]), [1] * size), np.arange(float(size)))
    total = np.zeros(1)
    face.allreduce(np.array([1.0]), total, ReduceOp.SUM)
    _same(total, [float(size)])
    face.barrier()
    _same(_gather(face, np.array([10.0 + rank]), [1] * size), 10.0 + np.arange(float(size)))


@_check("COM-20", "ERR-01")
def _allreduce_buffer_mismatch(face: Face) -> None:
    _expect(
        InvalidBufferSize,
        lambda: face.allreduce(np.zeros(4), np.zeros(3), ReduceOp.SUM),
        operation="allreduce",
        expected=4,
        actual=3,
    )
    _expect(
        InvalidBufferSize,
        lambda: face.allreduce(np.zeros(0), np.zeros(0), ReduceOp.SUM),
        operation="allreduce",
        expected=1,
        actual=0,
    )
    face.barrier()  # a refused argument leaves the communicator usable (COM-43)


@_check("COM-04", "COM-20")
def _allreduce_invalid_operation(face: Face) -> None:
    _expect(
        ValidationError,
        lambda: face.allreduce(np.zeros(1), np.zeros(1), ReduceOp.BITWISE_OR),
        kind="TypeMismatch",
    )
    unknown: Any = 4
    _expect(ValidationError, lambda: face.allreduce(np.zeros(1), np.zeros(1), unknown), kind="InvalidEnum")


@_check("COM-10", "COM-14", "LOC-02")
def _allgatherv_recv_too_small(face: Face) -> None:
    counts = [2] * face.size
    _expect(
        InvalidBufferSize,
        lambda: face.allgatherv(np.zeros(2), np.zeros(2 * face.size - 1), counts, _offsets(counts)),
        operation="allgatherv",
        expected=2 * face.size,
        actual=2 * face.size - 1,
    )


@_check("COM-14")
def _allgatherv_check_order(face: Face) -> None:
    size = face.size

    def refused(send: int, counts: Sequence[int], displs: Sequence[int], expected: int, actual: int) -> None:
        _expect(
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


@_check("COM-10")
def _allgatherv_negative(face: Face) -> None:
    counts = [1] * face.size
    displs = [r - 1 for r in range(face.size)]
    _expect(InvalidBufferSize, lambda: face.allgatherv(np.zeros(1), np.zeros(face.size), counts, displs))
    counts[0] = -1
    send = np.zeros(0 if face.rank == 0 else 1)
    _expect(
        InvalidBufferSize,
        lambda: face.allgatherv(send, np.zeros(face.size), counts, _offsets([1] * face.size)),
    )


@_check("COM-10", smallest=2)
def _allgatherv_overlapping_regions(face: Face) -> None:
    counts = [2] * face.size
    displs = [2 * (face.size - 1 - r) for r in range(face.size)]
    displs[0] -= 1
    _expect(
        InvalidBufferSize,
        lambda: face.allgatherv(np.zeros(2), np.zeros(2 * face.size), counts, displs),
        actual=1,
    )


@_check("COM-10")
def _allgatherv_aliased(face: Face) -> None:
    buffer = np.zeros(2 * face.size)
    counts = [2] * face.size
    send = buffer[2 * face.rank : 2 * face.rank + 2]
    _expect(InvalidBufferSize, lambda: face.allgatherv(send, buffer, counts, _offsets(counts)))


@_check("COM-30", "ERR-01")
def _broadcast_invalid_root(face: Face) -> None:
    root = max(5, face.size)
    buf = np.array([1.0, 2.0])
    _expect(InvalidRoot, lambda: face.broadcast(buf, root), root=root, size=face.size)
    _expect(InvalidRoot, lambda: face.broadcast(buf, -1), root=-1, size=face.size)
    _same(buf, [1.0, 2.0])


@_check("COM-32", "ERR-01")
def _closed_communicator(face: Face) -> None:
    rank, size = face.rank, face.size
    face.close()
    _expect(InvalidCommunicator, face.barrier)
    _expect(InvalidCommunicator, lambda: face.broadcast(np.zeros(1), 0))
    _expect(CommError, lambda: face.allreduce(np.zeros(1), np.zeros(1), ReduceOp.SUM))
    _expect(CommError, lambda: face.allgatherv(np.zeros(1), np.zeros(size), [1] * size, _offsets([1] * size)))
    assert (face.rank, face.size) == (rank, size)
    face.close()
