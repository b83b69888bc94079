"""Where the time of each rank went, and how even the work was (OUT-01, HPC-08)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Columns of the row that a rank reports of an iteration.
FORWARD = 0
BACKWARD = 1
LOWER_BOUND = 2
COMMUNICATION = 3
LP_SOLVES = 4
SCENARIOS = 5
LOWER_BOUND_VALUE = 6  # $, of rank 0
RANK_COLUMNS = 7

ROOT = 0
# HPC-08: longest work of a rank over the shortest.
_IMBALANCE_WORDS = ((1.1, "excellent"), (1.2, "fine"), (1.5, "notable"))
_WORST_IMBALANCE = "investigate"
_MOST_COMMUNICATION = 0.1


@dataclass(frozen=True)
class RankTiming:
    """One iteration on one rank; times in ms.

    Attributes
    ----------
    forward_time_ms, backward_time_ms, lower_bound_time_ms
        Solving LPs; the lower bound is computed by rank 0.
    communication_time_ms
        Moving data: the time in collectives of the rank that waited least for others; too long where ranks
        wait for each other in turns.
    idle_time_ms
        Waiting for other ranks: what this rank was longer in collectives, and while rank 0 computed the
        lower bound.
    scenarios_processed
        Its forward passes.
    """

    iteration: int
    rank: int
    forward_time_ms: float
    backward_time_ms: float
    lower_bound_time_ms: float
    communication_time_ms: float
    idle_time_ms: float
    lp_solves: int
    scenarios_processed: int


def iteration_timings(iteration: int, rows: NDArray[np.float64]) -> tuple[RankTiming, ...]:
    """Return the timings of all ranks from their rows, float64[ranks, RANK_COLUMNS], times in ms."""
    communication = float(rows[:, COMMUNICATION].min())
    return tuple(
        RankTiming(
            iteration=iteration,
            rank=rank,
            forward_time_ms=float(row[FORWARD]),
            backward_time_ms=float(row[BACKWARD]),
            lower_bound_time_ms=float(row[LOWER_BOUND]) if rank == ROOT else 0.0,
            communication_time_ms=communication,
            idle_time_ms=float(row[COMMUNICATION])
            - communication
            + (0.0 if rank == ROOT else float(rows[ROOT, LOWER_BOUND])),
            lp_solves=int(row[LP_SOLVES]),
            scenarios_processed=int(row[SCENARIOS]),
        )
        for rank, row in enumerate(rows)
    )


@dataclass(frozen=True)
class WorkerInfo:
    """What one rank did in the whole run; times in ms, memory in bytes.

    Attributes
    ----------
    wall_time_ms
        From the start of training to its end on this rank.
    memory_bytes
        What the process held at the end, counting what it shares with others.
    memory_share_bytes
        The same, with pages shared by several processes divided among them; 0 where the system does not
        report it.
    """

    rank: int
    wall_time_ms: float
    backend: str
    hostname: str
    forward_time_ms: float
    backward_time_ms: float
    lower_bound_time_ms: float
    communication_time_ms: float
    idle_time_ms: float
    lp_solves: int
    scenarios_processed: int
    memory_bytes: int
    memory_share_bytes: int

    def __repr__(self) -> str:
        seconds, memory = self.wall_time_ms / 1e3, self.memory_bytes / 1e6
        return (
            f"WorkerInfo(rank={self.rank}, backend={self.backend!r}, hostname={self.hostname!r:.80}, "
            f"lp_solves={self.lp_solves}, {seconds:.3g} s, {memory:.0f} MB)"
        )

    @property
    def work_time_ms(self) -> float:
        """Time spent in forward and backward passes."""
        return self.forward_time_ms + self.backward_time_ms


def worker_infos(
    timings: Sequence[RankTiming],
    backend: str,
    hostnames: Sequence[str],
    ends: NDArray[np.float64],
) -> tuple[WorkerInfo, ...]:
    """Sum the timings of each rank.

    Parameters
    ----------
    hostnames
        Of each rank.
    ends
        For each rank wall time in ms, memory and share of memory in bytes.
    """
    infos = []
    for rank, hostname in enumerate(hostnames):
        own = [timing for timing in timings if timing.rank == rank]
        infos.append(
            WorkerInfo(
                rank=rank,
                wall_time_ms=float(ends[rank, 0]),
                backend=backend,
                hostname=hostname,
                forward_time_ms=sum(timing.forward_time_ms for timing in own),
                backward_time_ms=sum(timing.backward_time_ms for timing in own),
                lower_bound_time_ms=sum(timing.lower_bound_time_ms for timing in own),
                communication_time_ms=sum(timing.communication_time_ms for timing in own),
                idle_time_ms=sum(timing.idle_time_ms for timing in own),
                lp_solves=sum(timing.lp_solves for timing in own),
                scenarios_processed=sum(timing.scenarios_processed for timing in own),
                memory_bytes=int(ends[rank, 1]),
                memory_share_bytes=int(ends[rank, 2]),
            )
        )
    return tuple(infos)


@dataclass(frozen=True)
class Balance:
    """How even the work of the ranks was.

    Attributes
    ----------
    imbalance
        Longest work of a rank over the shortest among those that had forward passes.
    imbalance_word
        ``excellent``, ``fine``, ``notable`` or ``investigate``.
    communication_fraction
        Communication in all ranks' time.
    too_many_ranks
        Whether communication took more than a tenth of the time.
    """

    imbalance: float
    imbalance_word: str
    communication_fraction: float
    too_many_ranks: bool


def balance_of(workers: Sequence[WorkerInfo]) -> Balance:
    """Judge the work of the ranks."""
    work = [worker.work_time_ms for worker in workers if worker.scenarios_processed > 0]
    # A resumed run that was complete already has no work at all.
    imbalance = max(work) / min(work) if work and min(work) > 0.0 else 1.0
    word = next((word for limit, word in _IMBALANCE_WORDS if imbalance < limit), _WORST_IMBALANCE)
    communication = sum(worker.communication_time_ms for worker in workers)
    total = sum(
        worker.work_time_ms + worker.lower_bound_time_ms + worker.communication_time_ms + worker.idle_time_ms
        for worker in workers
    )
    fraction = communication / total if total > 0.0 else 0.0
    return Balance(imbalance, word, fraction, fraction > _MOST_COMMUNICATION)
