"""In which order the LPs of many states are solved: along trees of near states, of at most a block each.

The blocks are what ranks and threads share. They follow from the states alone, so that no result depends on
who solves them: every block starts from the same basis, and each LP of it from that of a near state.
"""

# numba's decorator hides the kernel's type from mypy.
# mypy: disallow-untyped-decorators=False, disallow-untyped-calls=False
from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.lp.opening_order import tree_walk
from cobre.native import compile_for

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

BLOCK = 64
"""States of a block; a start costs about as much as three more states."""


class StateOrder(NamedTuple):
    """The order of the states by position; block b has positions ``start[b]`` to ``start[b + 1]``.

    ``order``, ``parent``, ``keep`` and ``num_kept`` are as in :class:`cobre.lp.opening_order.OpeningOrder`.
    """

    start: IntArray
    order: IntArray
    parent: IntArray
    keep: IntArray
    num_kept: int


def state_order(values: FloatArray, block: int = BLOCK) -> StateOrder:
    """Return the order of states, float64[V, n], in units that compare."""
    compile_for(_spanning_tree, "upper-bound-order", values)
    count = len(values)
    whole, _, _, _ = tree_walk(_neighbours(values), _central(values))
    start = np.minimum(np.arange(0, count + block, block), count).astype(np.int32)
    order, parent, keep = (np.zeros(count, np.int32) for _ in range(3))
    num_kept = 0
    for first, last in pairwise(start):
        here, members = slice(first, last), whole[first:last]
        walk, parent[here], keep[here], kept = tree_walk(_neighbours(values[members]), 0)
        order[here] = members[walk]
        num_kept = max(num_kept, kept)
    return StateOrder(start, order, parent, keep, num_kept)


def _central(values: FloatArray) -> int:
    return int(np.argmin(np.square(values - values.mean(axis=0)).sum(axis=1)))


def _neighbours(values: FloatArray) -> list[list[int]]:
    neighbours: list[list[int]] = [[] for _ in values]
    for place, other in _spanning_tree(values).tolist():
        neighbours[place].append(other)
        neighbours[other].append(place)
    return neighbours


@njit(cache=True, nogil=True)
def _spanning_tree(values):  # type: ignore[no-untyped-def]
    """Return the edges of a minimum spanning tree, int64[V - 1, 2]: what joined, and to which."""
    count = len(values)
    edges = np.zeros((max(count - 1, 0), 2), np.int64)
    distance = np.full(count, np.inf)
    nearest = np.zeros(count, np.int64)
    outside = np.ones(count, np.bool_)
    newest = 0
    for edge in range(count - 1):
        outside[newest] = False
        following = -1
        for place in range(count):
            if outside[place]:
                total = 0.0
                for row in range(values.shape[1]):
                    difference = values[place, row] - values[newest, row]
                    total += difference * difference
                if total < distance[place]:
                    distance[place] = total
                    nearest[place] = newest
                if following < 0 or distance[place] < distance[following]:
                    following = place
        newest = following
        edges[edge, 0] = newest
        edges[edge, 1] = nearest[newest]
    return edges
