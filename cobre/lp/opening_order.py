"""In which order the openings of a stage are solved: along a minimum spanning tree.

LPs of openings close to each other share most of their optimal bases. From whatever opening a trial point
starts with, the others follow along the edges of the tree; at a branching the solver's state is kept and
taken up again for each further branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_ROOTS = 64
"""Openings up to which any of them can be the first: with more, one start among them makes no difference."""


class OpeningOrder(NamedTuple):
    """Orders of the openings, int32 by (root, position); of many openings from the first one only.

    Attributes
    ----------
    order
        The opening at each position; the root comes first.
    parent
        Place of storage whose state an opening starts from; -1 for the state as the last opening left it.
    keep
        Place of storage that the state after an opening is kept at; -1 for none.
    num_kept
        Number of places of storage.
    """

    order: NDArray[np.int32]
    parent: NDArray[np.int32]
    keep: NDArray[np.int32]
    num_kept: int


def opening_order(values: NDArray[np.float64]) -> OpeningOrder:
    """Return the orders for openings with these values, float64 (opening, entity).

    Distances are Euclidean over the values as given: scale them so that they compare. Ties go to the lower
    index. From an opening the smaller branches come first, so that few states are kept at a time.
    """
    count = len(values)
    roots = count if count <= MOST_ROOTS else 1
    neighbours = _spanning_tree(values)
    order = np.zeros((roots, count), np.int32)
    parent = np.full((roots, count), -1, np.int32)
    keep = np.full((roots, count), -1, np.int32)
    num_kept = 0
    for root in range(roots):
        num_kept = max(num_kept, _walk(neighbours, root, order[root], parent[root], keep[root]))
    return OpeningOrder(order, parent, keep, num_kept)


def tree_walk(
    neighbours: list[list[int]], root: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], int]:
    """Return order, parent, keep and num_kept (see :class:`OpeningOrder`) of a tree walked from one root."""
    count = len(neighbours)
    order, parent, keep = np.zeros(count, np.int32), np.zeros(count, np.int32), np.full(count, -1, np.int32)
    return order, parent, keep, _walk(neighbours, root, order, parent, keep)


def _spanning_tree(values: NDArray[np.float64]) -> list[list[int]]:
    """Return the neighbours of every opening in the tree that grows from the first one."""
    count = len(values)
    neighbours: list[list[int]] = [[] for _ in range(count)]
    distance = np.full(count, np.inf)
    nearest = np.zeros(count, np.int64)
    outside = np.ones(count, np.bool_)
    newest = 0
    for _ in range(count - 1):
        outside[newest] = False
        to_newest = np.square(values - values[newest]).sum(axis=1)
        closer = to_newest < distance
        distance[closer] = to_newest[closer]
        nearest[closer] = newest
        newest = int(np.argmin(np.where(outside, distance, np.inf)))
        if not outside[newest]:  # all distances that are left are infinite
            newest = int(np.argmax(outside))
        neighbours[newest].append(int(nearest[newest]))
        neighbours[int(nearest[newest])].append(newest)
    return neighbours


def _walk(
    neighbours: list[list[int]],
    root: int,
    order: NDArray[np.int32],
    parent: NDArray[np.int32],
    keep: NDArray[np.int32],
) -> int:
    """Fill in the order from one root; return the number of places of storage it needs."""
    above = _parents(neighbours, root)
    size = dict.fromkeys(above, 1)
    for opening in reversed(above):
        if above[opening] >= 0:
            size[above[opening]] += size[opening]
    free: list[int] = []
    num_kept = 0
    pending = [(root, -1, False)]  # opening, place of storage, whether no other opening needs that place
    position = 0
    while pending:
        opening, place, gives_back = pending.pop()
        order[position] = opening
        parent[position] = place
        if gives_back:
            free.append(place)
        branches = [other for other in neighbours[opening] if other != above[opening]]
        branches.sort(key=lambda other: (size[other], other))
        if len(branches) > 1:
            if not free:
                free.append(num_kept)
                num_kept += 1
            keep[position] = free.pop()
            last = len(branches) - 1
            for rank in range(last, 0, -1):
                pending.append((branches[rank], int(keep[position]), rank == last))
        if branches:
            pending.append((branches[0], -1, False))
        position += 1
    return num_kept


def _parents(neighbours: list[list[int]], root: int) -> dict[int, int]:
    """Return the opening above each one in the tree seen from a root, parents before children."""
    above = {root: -1}
    pending = [root]
    for opening in pending:
        for other in neighbours[opening]:
            if other != above[opening]:
                above[other] = opening
                pending.append(other)
    return above
