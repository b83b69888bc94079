"""What is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

KB: Final = 1 << 10
MB: Final = 1 << 20


@dataclass(frozen=True)
class Operation:
    """One row of the table.

    Attributes
    ----------
    name
        The row's name.
    kind
        ``"barrier"``, ``"allreduce"``, ``"broadcast"``, ``"allgatherv"`` or ``"gather_shared"``.
    count
        Elements (float64) of one rank.
    calls
        Calls in one repetition; fewer where they take long.
    """

    name: str
    kind: str
    count: int
    calls: int

    @property
    def bytes_per_rank(self) -> int:
        """Bytes that one rank puts in."""
        return 8 * self.count

    def received_bytes(self, ranks: int) -> int:
        """Return the bytes that one rank has at the end."""
        return self.bytes_per_rank * (ranks if self.kind in ("allgatherv", "gather_shared") else 1)


OPERATIONS: Final = (
    Operation("barrier", "barrier", 0, 2000),
    Operation("allreduce 8 f64", "allreduce", 8, 2000),
    Operation("broadcast 1 MB", "broadcast", MB // 8, 100),
    Operation("allgatherv 8 B", "allgatherv", 1, 2000),
    Operation("allgatherv 64 KB", "allgatherv", 64 * KB // 8, 400),
    Operation("allgatherv 1 MB", "allgatherv", MB // 8, 60),
    Operation("allgatherv 16 MB", "allgatherv", 16 * MB // 8, 8),
    Operation("gather_shared 8 B", "gather_shared", 1, 2000),
    Operation("gather_shared 64 KB", "gather_shared", 64 * KB // 8, 400),
    Operation("gather_shared 1 MB", "gather_shared", MB // 8, 60),
    Operation("gather_shared 16 MB", "gather_shared", 16 * MB // 8, 8),
)
"""The rows of the table; sizes are those of one rank."""


@dataclass(frozen=True)
class Result:
    """One figure.

    Attributes
    ----------
    column
        What was measured: a backend, ``"mpich mpi4py"`` and so on, or ``"memcpy"``.
    ranks
        Number of ranks.
    operation
        Name of the row.
    median_us
        Median over repetitions of the median time of a call, in microseconds.
    best_us
        Smallest median of a repetition.
    """

    column: str
    ranks: int
    operation: str
    median_us: float
    best_us: float


def summary(column: str, ranks: int, operation: Operation, times_ns: list[NDArray[np.int64]]) -> Result:
    """Return the figure for the times of all calls, one array for each repetition."""
    medians = [float(np.median(times)) / 1e3 for times in times_ns]
    return Result(column, ranks, operation.name, float(np.median(medians)), min(medians))
