"""Where released water is after its travel time, in shares of the release.

Water released evenly over an interval of time arrives evenly over that interval shifted by the travel time.
Time runs along the hours of the stages' blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Sums of hours round: an overlap of this share is none.
_NEGLIGIBLE = 1e-12


def overlap(begin: FloatArray, end: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the share of each interval ``[begin, end]`` (n,) in each cell of ``edges`` (m + 1,): (n, m)."""
    low = np.maximum(begin[:, None], edges[None, :-1])
    high = np.minimum(end[:, None], edges[None, 1:])
    shares: FloatArray = np.maximum(high - low, 0.0) / (end - begin)[:, None]
    shares[shares < _NEGLIGIBLE] = 0.0
    return shares


def arrival_shares(
    begin: FloatArray,
    end: FloatArray,
    period_edges: FloatArray,
    later_hours: Sequence[float],
    travel_time: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the shares of releases that arrive in each period of the stage, and in each later stage.

    Parameters
    ----------
    begin, end
        Hours (from the start of the stage) between which each release is made evenly, (n,).
    period_edges
        Hours between the periods of the stage in which arrivals are distinguished, (p + 1,).
    later_hours
        Hours of the stages after this one, to the end of the study; what arrives later is not counted.

    Returns
    -------
    (ndarray, ndarray)
        (n, p) and (n, len(later_hours)).
    """
    later_edges = period_edges[-1] + np.concatenate([[0.0], np.cumsum(later_hours)])
    arrives, ends = begin + travel_time, end + travel_time
    return overlap(arrives, ends, period_edges), overlap(arrives, ends, later_edges)


def longest_offset(hours: Sequence[float], travel_time: float) -> int:
    """Return the most stages that any release of the study is under way without leaving the study."""
    if travel_time <= 0.0:
        return 0
    longest = 0
    for stage, length in enumerate(hours):
        whole = np.array([0.0, length])
        _, later = arrival_shares(whole[:1], whole[1:], whole, hours[stage + 1 :], travel_time)
        longest = max(longest, int(np.max(np.flatnonzero(later[0]) + 1, initial=0)))
    return longest
