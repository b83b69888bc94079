"""What an iteration takes on R ranks: the cost model of ``docs/scaling.md``.

    T(k) = forward + backward + bound + selection + collectives

    forward   = T m l                      m = ceil(M / R) passes of a rank, l seconds of an LP
    backward  = (T - 1) B m l g            B openings, g what the slowest rank does more than the mean one
    bound     = B l                        on rank 0, while the others wait
    selection = (T - 3) n h (2 M S + C M)  on every rank: S visited states, C active cuts of a stage
    gathers   = (T + 1) small + (T - 1) of M records of 8 (n + 3) bytes

    l = a steps + c C                      simplex steps, and cuts that are evaluated

Times are in seconds, sizes in bytes. The coefficients come from measurements (:func:`fit`), those of networks
are assumptions (:data:`ETHERNET`, :data:`INFINIBAND`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LONG_MESSAGE = 512 << 10
"""Bytes from which MPI libraries gather along a ring instead of by doubling."""
_BINS = 400
_WIDEST = 4.0
"""Largest effort of a trial point, in means, that the distribution has a place for."""


@dataclass(frozen=True)
class Network:
    """Between hosts."""

    name: str
    latency_s: float
    bytes_per_s: float


ETHERNET = Network("25 Gbit/s Ethernet", 20e-6, 3.1e9)
INFINIBAND = Network("100 Gbit/s InfiniBand", 2e-6, 12.0e9)


@dataclass(frozen=True)
class Study:
    """Sizes of a study and of a run."""

    stages: int
    openings: int
    states: int
    passes: int
    iterations: int

    @property
    def record_bytes(self) -> int:
        """Bytes of a cut."""
        return 8 * (self.states + 3)


@dataclass(frozen=True)
class Coefficients:
    """What measurements give.

    Attributes
    ----------
    step_s, cut_s
        Of a simplex step; of a cut that one LP has to be compared with.
    steps
        Simplex steps of an LP.
    active
        Active cuts among those made.
    height_s
        Of a component of a cut's value at a state, in cut selection.
    tcp_peer_s, tcp_byte_s
        CPU time of rank 0 for each peer and byte of a gather.
    shm_peer_s, shm_byte_s
        Of a gather through shared memory.
    effort
        Relative efforts of trial points.
    private_bytes
        What a rank holds that is no cut, no state and not shared.
    """

    step_s: float
    cut_s: float
    steps: float
    active: float
    height_s: float
    tcp_peer_s: float
    tcp_byte_s: float
    shm_peer_s: float
    shm_byte_s: float
    effort: tuple[float, ...]
    private_bytes: float

    def lp_s(self, cuts: float) -> float:
        """Return the time of an LP with so many active cuts."""
        return self.step_s * self.steps + self.cut_s * cuts


@dataclass(frozen=True)
class Iteration:
    """Parts of the time of an iteration, s."""

    forward: float
    backward: float
    waiting: float
    bound: float
    selection: float
    gathers: float

    @property
    def total(self) -> float:
        """All of it."""
        return sum((self.forward, self.backward, self.waiting, self.bound, self.selection, self.gathers))


@cache
def slowest_over_mean(effort: tuple[float, ...], trial_points: int, ranks: int) -> float:
    """Return the expected largest work of ``ranks``, each of so many trial points, over the mean work.

    Trial points are independent, with the distribution of ``effort``; that of their sums is found on a grid.
    """
    if ranks == 1:
        return 1.0
    width = _WIDEST / _BINS
    places = np.minimum((np.array(effort) / width).round().astype(int), _BINS)
    one = np.bincount(places, minlength=_BINS + 1) / len(effort)
    size = _BINS * trial_points + 1
    several = np.fft.irfft(np.fft.rfft(one, size) ** trial_points, size)
    at_most = np.clip(np.cumsum(several), 0.0, 1.0)
    largest = float(np.sum(1.0 - at_most**ranks))
    mean = float(np.sum(1.0 - at_most))
    return largest / mean


def tcp_gather_s(found: Coefficients, ranks: int, total_bytes: float, network: Network) -> float:
    """Return the time of a gather through rank 0, which takes everything in and sends it to everybody."""
    if ranks == 1:
        return 0.0
    moved = total_bytes * (ranks - 1) / ranks + total_bytes * (ranks - 1) ** 2 / ranks
    processor = found.tcp_peer_s * (ranks - 1) + found.tcp_byte_s * moved
    return max(processor, moved / network.bytes_per_s) + 2.0 * network.latency_s


def shm_gather_s(found: Coefficients, ranks: int, total_bytes: float) -> float:
    """Return the time of a gather into memory that the ranks of a host share."""
    return 0.0 if ranks == 1 else found.shm_peer_s * (ranks - 1) + found.shm_byte_s * total_bytes


def mpi_gather_s(ranks: int, total_bytes: float, network: Network) -> float:
    """Return the time of ``MPI_Allgatherv`` between hosts: by doubling, or along a ring if it is long."""
    if ranks == 1:
        return 0.0
    rounds = ranks - 1 if total_bytes > LONG_MESSAGE else math.ceil(math.log2(ranks))
    return rounds * network.latency_s + total_bytes / network.bytes_per_s


@dataclass(frozen=True)
class Layout:
    """Ranks, threads of each, and how they exchange.

    Attributes
    ----------
    transport
        ``shm``, ``tcp``, ``mpi``, or ``two-level``: shm within hosts, tcp between one rank of each.
    """

    transport: str
    ranks: int
    threads: int = 1
    ranks_of_a_host: int = 1
    divided_selection: bool = False

    def gather_s(self, found: Coefficients, total_bytes: float) -> float:
        """Return the time of a gather of so many bytes in all."""
        if self.transport == "tcp":
            return tcp_gather_s(found, self.ranks, total_bytes, ETHERNET)
        if self.transport == "mpi":
            return mpi_gather_s(self.ranks, total_bytes, INFINIBAND)
        within = shm_gather_s(found, min(self.ranks_of_a_host, self.ranks), total_bytes)
        if self.transport == "shm":
            return within
        hosts = -(-self.ranks // self.ranks_of_a_host)
        return 2.0 * within + tcp_gather_s(found, hosts, total_bytes, ETHERNET)


def iteration(study: Study, found: Coefficients, layout: Layout, number: int) -> Iteration:
    """Return what iteration ``number`` (from 1) takes."""
    made = study.passes * (number - 1)
    cuts = found.active * made
    lp = found.lp_s(cuts)
    workers = layout.ranks * layout.threads
    own = -(-study.passes // workers)
    busy = min(workers, study.passes)
    backward = (study.stages - 1) * study.openings * own * lp
    slowest = slowest_over_mean(found.effort, own, busy)
    heights = 2.0 * study.passes * (made + study.passes) + cuts * study.passes
    selection = (study.stages - 3) * study.states * found.height_s * heights
    # Threads take a stage each.
    sharers = workers if layout.divided_selection else layout.threads
    pass_bytes = 8.0 * study.passes * (1 + study.stages * (1 + study.states))
    gathers = (
        (study.stages - 1) * layout.gather_s(found, study.passes * study.record_bytes)
        + layout.gather_s(found, pass_bytes)
        + 2.0 * layout.gather_s(found, 64.0 * layout.ranks)
    )
    return Iteration(
        forward=study.stages * own * lp,
        backward=backward,
        waiting=backward * (slowest - 1.0),
        bound=study.openings * lp,
        selection=selection / min(sharers, study.stages - 3),
        gathers=gathers,
    )


def run(study: Study, found: Coefficients, layout: Layout) -> Iteration:
    """Return what all iterations take together."""
    parts = [iteration(study, found, layout, number) for number in range(1, study.iterations + 1)]
    return Iteration(*(sum(values) for values in zip(*(vars(part).values() for part in parts), strict=True)))


def host_bytes(study: Study, found: Coefficients, layout: Layout) -> dict[str, float]:
    """Return what the ranks of a host hold at the end of a run, by what it is."""
    made = study.passes * study.iterations
    here = min(layout.ranks_of_a_host, layout.ranks)
    copies = here if layout.transport == "tcp" else 1
    sharers = layout.ranks if layout.divided_selection else 1
    return {
        "programs": here * found.private_bytes,
        "cuts": copies * 2.0 * study.stages * made * study.record_bytes,
        "states": here * study.stages * made * study.record_bytes / sharers,
    }


def fit(measured: Mapping[str, Any], stages: int, openings: int) -> Coefficients:
    """Fit the coefficients to ``scaling-measurements.json``; the sizes are those of the whole system."""
    step_s, cut_s = fit_lp(measured["engine"]["found"], measured["engine"]["stages"])
    tcp_peer_s, tcp_byte_s = fit_gather(measured["transports"]["found"], "tcp")
    shm_peer_s, shm_byte_s = fit_gather(measured["transports"]["found"], "shm")
    counts = np.array(measured["spread"]["found"], float)[2:]  # the first ones start from scratch
    selection = measured["selection"]["found"]
    last = selection[-1]
    return Coefficients(
        step_s=step_s,
        cut_s=cut_s,
        steps=float(counts.mean()) / openings,
        active=(last["cuts_active_before"] - last["cuts_deactivated"]) / last["cuts_populated"],
        height_s=fit_height(selection, measured["system"]["found"]["state_components"]),
        tcp_peer_s=tcp_peer_s,
        tcp_byte_s=tcp_byte_s,
        shm_peer_s=shm_peer_s,
        shm_byte_s=shm_byte_s,
        effort=tuple(relative_effort(counts).tolist()),
        private_bytes=private_bytes(measured["memory"]["found"]),
    )


def _least_squares(columns: Sequence[FloatArray], values: FloatArray) -> FloatArray:
    """Return coefficients of least relative error; a negative one is left out and the others fitted anew."""
    matrix = np.stack(columns, axis=1) / values[:, None]
    kept = list(range(len(columns)))
    while True:
        found = np.linalg.lstsq(matrix[:, kept], np.ones(len(values)), rcond=None)[0]
        if (found >= 0.0).all() or len(kept) == 1:
            break
        kept.remove(kept[int(found.argmin())])
    whole = np.zeros(len(columns))
    whole[kept] = np.maximum(found, 0.0)
    return whole


def fit_lp(rows: Sequence[Mapping[str, float]], stages: int) -> tuple[float, float]:
    """Return seconds of a simplex step, and of a cut of the stage, from iterations of one thread."""
    lps = np.array([row["lps"] for row in rows])
    steps = np.array([row["simplex_iterations"] for row in rows]) / lps
    cuts = np.array([row["cuts_before"] for row in rows]) / (stages - 1)
    step_s, cut_s = _least_squares([steps, cuts], np.array([row["cpu_s"] for row in rows]) / lps)
    return float(step_s), float(cut_s)


def fit_gather(jobs: Sequence[Mapping[str, Any]], backend: str) -> tuple[float, float]:
    """Return seconds of rank 0 for each peer and byte; calling from Python, as one rank does, is taken off.

    CPU time for tcp, where waiting takes none; the least wall time for shm, where ranks look all the time.
    """
    clock = "cpu_us" if backend == "tcp" else "wall_us"
    (alone,) = (job["by_rank"][0] for job in jobs if job["backend"] == "local")
    calling = {row["bytes"]: row[clock] for row in alone}
    peers, moved, seconds = [], [], []
    for job in jobs:
        if job["backend"] != backend:
            continue
        for row in job["by_rank"][0]:
            others = job["ranks"] - 1
            peers.append(float(others))
            moved.append(float(row["bytes"] * (others + others**2 if backend == "tcp" else others + 1)))
            seconds.append(max(row[clock] - calling[row["bytes"]], 0.1) / 1e6)
    peer_s, byte_s = _least_squares([np.array(peers), np.array(moved)], np.array(seconds))
    return float(peer_s), float(byte_s)


def fit_height(rows: Sequence[Mapping[str, float]], states: int) -> float:
    """Return seconds of a component in cut selection: the least of the iterations with most to compare."""
    found = []
    for before, row in pairwise(rows):
        new = row["visited"] - before["visited"]
        heights = 2.0 * new * row["visited"] + row["cuts_active_before"] * new
        found.append(row["selection_time_ms"] / 1e3 / (heights * states))
    return min(found[len(found) // 2 :])


def relative_effort(counts: FloatArray) -> FloatArray:
    """Return the simplex steps of trial points over what their stage and their iteration are worth."""
    expected = counts.mean(axis=1, keepdims=True) * counts.mean(axis=0, keepdims=True) / counts.mean()
    effort: FloatArray = (counts / expected).reshape(-1)
    return effort


def private_bytes(runs: Sequence[Mapping[str, Any]]) -> float:
    """Return what a rank more adds to a host: the shares of two ranks on shm, less those of one."""
    shares = {
        (run["backend"], run["ranks"], run["threads"]): sum(
            rank["memory_share_bytes"] for rank in run["by_rank"]
        )
        for run in runs
    }
    return float(shares["shm", 2, 1] - shares["local", 1, 1])
