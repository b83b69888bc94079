"""How the memory of past inflows moves on from stage to stage, at every resolution of the season map.

At one resolution the memory before stage ``t``, whose home is period ``h``, holds

* ``lag l``: the mean inflow of period ``h - l``, complete;
* ``so far j``: what the stages before ``t`` (and observations before the study) contribute to the mean of
  period ``h + j``; ``j = 0`` is the running period, ``j > 0`` those that a stage already reached into.

A stage contributes its inflow times its days in a period over all counted days of that period, so the
weights of a period add up to 1. When the next stage's home is ``s`` periods later, the ``s`` periods passed
become lags: ``lag l' = so far (s - l)`` for ``l <= s``, else ``lag (l - s)``.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.periods import StudyCalendar, Timeline
from cobre.stochastic.par.contract import LagDynamics

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Memory:
    """All components at all resolutions, before those that nothing reads are left out.

    Attributes
    ----------
    first_lag
        For each resolution the position of its ``lag 1``.
    seeded
        bool ``(K,)``: whether a component may differ from 0 before the first stage.
    so_far
        For each resolution the position of ``so far 0``; observed share of the running period.
    """

    names: tuple[str, ...]
    carry: FloatArray
    gain: FloatArray
    seeded: NDArray[np.bool_]
    first_lag: tuple[int, ...]
    so_far: tuple[int, ...]
    observed_share: tuple[float, ...]


def observed_days(timeline: Timeline, start: datetime.date) -> int:
    """Return how many days of the running period lie before the study."""
    return max((start - timeline.periods[0].start).days, 0)


def make_memory(
    calendar: StudyCalendar, lags: tuple[int, ...], start: datetime.date, observed: tuple[bool, ...]
) -> Memory:
    """Return how the memory of ``lags`` periods at each resolution moves on.

    Parameters
    ----------
    lags
        For each resolution how many lags models read.
    start
        First day of the study.
    observed
        For each resolution whether observations cover the running period before the study. If not, its
        mean is that of the study's own days.
    """
    parts = [
        _one_resolution(
            timeline, count, observed_days(timeline, start) if seen else 0, len(calendar.timelines)
        )
        for timeline, count, seen in zip(calendar.timelines, lags, observed, strict=True)
    ]
    size = sum(len(part.names) for part in parts)
    stages = len(calendar.of_stage)
    carry, gain = np.zeros((stages, size, size)), np.zeros((stages, size))
    first = 0
    first_lag, so_far = [], []
    for part in parts:
        end = first + len(part.names)
        carry[:, first:end, first:end] = part.carry
        gain[:, first:end] = part.gain
        first_lag.append(first)
        so_far.append(first + part.so_far[0])
        first = end
    return Memory(
        tuple(name for part in parts for name in part.names),
        carry,
        gain,
        np.concatenate([part.seeded for part in parts]) if parts else np.zeros(0, np.bool_),
        tuple(first_lag),
        tuple(so_far),
        tuple(part.observed_share[0] for part in parts),
    )


def _one_resolution(timeline: Timeline, lags: int, before: int, resolutions: int) -> Memory:
    stages = len(timeline.home) - 1
    total = timeline.days.sum(axis=0)
    total[0] += before
    share = np.divide(timeline.days, total, out=np.zeros_like(timeline.days), where=total > 0.0)
    home = np.array(timeline.home, np.int64)
    ahead = [int(np.flatnonzero(row).max(initial=home[stage])) for stage, row in enumerate(share)]
    most = max(reach - int(home[stage]) for stage, reach in enumerate(ahead))
    # Lags are only as good as the means they come from; without any lag nothing is remembered.
    kept = most + 1 if lags else 0
    size = lags + kept
    carry, gain = np.zeros((stages, size, size)), np.zeros((stages, size))
    for stage in range(stages):
        step = int(home[stage + 1] - home[stage])
        reached = {j: share[stage, home[stage] + j] for j in range(kept) if home[stage] + j < share.shape[1]}
        for lag in range(1, lags + 1):
            if lag > step:
                carry[stage, lag - 1, lag - 1 - step] = 1.0
            elif step - lag < kept:
                carry[stage, lag - 1, lags + step - lag] = 1.0
                gain[stage, lag - 1] = reached.get(step - lag, 0.0)
        for j in range(kept - step):
            carry[stage, lags + j, lags + j + step] = 1.0
            gain[stage, lags + j] = reached.get(j + step, 0.0)
    word = timeline.resolution.name
    of = "" if resolutions == 1 else f" ({word})"
    later = [f"{word} so far" if j == 0 else f"{word} + {j} so far" for j in range(kept)]
    seeded = np.zeros(size, np.bool_)
    seeded[:lags] = True
    if kept:
        seeded[lags] = before > 0
    names = (*(f"lag {lag}{of}" for lag in range(1, lags + 1)), *later)
    part = before / float(total[0]) if total[0] > 0.0 else 0.0
    return Memory(names, carry, gain, seeded, (0,), (lags,), (part,))


def readers(memory: Memory, psi: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which components matter.

    Parameters
    ----------
    psi
        float64 ``(T, H, K)``: what the inflow of each stage takes from the memory.

    Returns
    -------
    needed, at_start
        bool ``(H, K)``: components that a plant must carry at any time, and those whose value before the
        first stage matters.
    """
    stages, hydros, size = psi.shape
    alive = np.zeros((stages, size), np.bool_)
    now = memory.seeded.copy()
    for stage in range(stages):
        alive[stage] = now
        now = (memory.carry[stage] @ now > 0.0) | (memory.gain[stage] > 0.0)
    useful = np.zeros((hydros, size), np.bool_)
    needed = np.zeros((hydros, size), np.bool_)
    for stage in range(stages - 1, -1, -1):
        useful = (useful @ (memory.carry[stage] != 0.0)) | (psi[stage] != 0.0)
        needed |= useful & alive[stage]
    return needed, useful & memory.seeded


def keep_needed(
    memory: Memory, psi: FloatArray, initial: FloatArray, needed: NDArray[np.bool_]
) -> tuple[LagDynamics, FloatArray]:
    """Return the dynamics and coefficients of the components that any plant needs."""
    kept = np.flatnonzero(needed.any(axis=0))
    dynamics = LagDynamics(
        names=tuple(memory.names[at] for at in kept.tolist()),
        carry=np.ascontiguousarray(memory.carry[:, kept][:, :, kept]),
        gain=np.ascontiguousarray(memory.gain[:, kept]),
        initial=np.ascontiguousarray(np.where(needed, initial, 0.0)[:, kept]),
        needed=np.ascontiguousarray(needed[:, kept]),
    )
    return dynamics, np.ascontiguousarray(psi[:, :, kept])
