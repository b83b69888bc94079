"""Convex piecewise linear costs: what several bounded quantities of linear cost cost as their sum.

A member takes an amount between its limits at a price. The cost of a group as a function of the sum of its
members is convex: of least cost where the cheapest members are taken first (merit order). The amounts of the
members follow from the sum, equal prices in the order of the members.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.lp.reduction.sparse import totals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
PlaceArray = NDArray[np.int64]


class Members(NamedTuple):
    """Quantities by the group they belong to: limits (lower <= upper) and price."""

    group: PlaceArray
    lower: FloatArray
    upper: FloatArray
    price: FloatArray


class Pieces(NamedTuple):
    """Costs of groups: entries ``start[g]`` to ``start[g + 1]`` belong to group g.

    The first entry has kink -inf and the last one +inf; between them are the kinks, ascending. ``slope`` of
    an entry is that from its kink to the next one (NaN for the last), infinite beyond a limit; ``cost`` is
    the cost at the kink (NaN for the first and last).
    """

    start: IntArray
    kink: FloatArray
    slope: FloatArray
    cost: FloatArray


class Split(NamedTuple):
    """Amount of each member: ``clip(sum - origin, least, most) + offset``."""

    origin: FloatArray
    least: FloatArray
    most: FloatArray
    offset: FloatArray


def end_slopes(members: Members, num_groups: int) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of each group towards -inf and +inf; without a minimum the first is larger."""
    first = np.full(num_groups, -np.inf)
    falls = np.isneginf(members.lower)
    np.maximum.at(first, members.group[falls], members.price[falls])
    last = np.full(num_groups, np.inf)
    rises = np.isposinf(members.upper)
    np.minimum.at(last, members.group[rises], members.price[rises])
    return first, last


def merge(members: Members, num_groups: int) -> tuple[Pieces, Split]:
    """Return the costs of groups and how their sums split.

    Every group has a member, and its slope towards -inf is at most the one towards +inf.
    """
    group, lower, upper, price = members
    first, last = end_slopes(members, num_groups)
    size = np.bincount(group, minlength=num_groups)
    # Each member rests at the end from which the others are filled: dear ones empty, cheap ones full.
    full = (price <= first[group]) & np.isfinite(upper)
    rest = np.where(full, upper, np.where(np.isfinite(lower), lower, 0.0))
    origin = totals(group, rest, num_groups)
    origin_cost = totals(group, rest * price, num_groups)
    between = (price > first[group]) & (price < last[group]) & (upper > lower)
    order = np.flatnonzero(between)
    order = order[np.lexsort((price[order], group[order]))]
    inner, width = group[order], upper[order] - lower[order]
    rank, end = _running(inner, width)
    _, end_cost = _running(inner, width * price[order])
    total = np.zeros(num_groups)
    closes = np.ones(len(order), np.bool_)
    closes[:-1] = (inner[1:] != inner[:-1]) | (price[order[1:]] != price[order[:-1]])
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = inner[1:] != inner[:-1]
    total[inner[is_last]] = end[is_last]

    straight = first == last
    has_kink = ~(straight & (origin_cost == np.where(straight, first, 0.0) * origin))
    kinks = has_kink + np.bincount(inner[closes], minlength=num_groups)
    start = np.concatenate([[0], np.cumsum(kinks + 2)])
    kink, slope, cost = np.empty(start[-1]), np.full(start[-1], np.nan), np.full(start[-1], np.nan)
    begin = start[:-1]
    kink[begin], kink[start[1:] - 1] = -np.inf, np.inf
    slope[begin] = first
    slope[begin + kinks] = last
    kink[begin[has_kink] + 1], cost[begin[has_kink] + 1] = origin[has_kink], origin_cost[has_kink]
    closing = inner[closes]
    position = begin[closing] + 2 + _running(closing, np.ones(len(closing)))[0]
    alone = size[closing] == 1
    kink[position] = np.where(alone, upper[order[closes]], origin[closing] + end[closes])
    cost[position] = origin_cost[closing] + end_cost[closes]
    slope[position - 1] = price[order[closes]]

    least, most, filled = np.zeros(len(group)), np.zeros(len(group)), np.zeros(len(group))
    begins = np.where(rank > 0, np.roll(end, 1), 0.0)
    least[order], most[order], filled[order] = begins, end, begins
    taker = _first_of(group, np.isneginf(lower) & (price == first[group]), num_groups)
    least[taker] = -np.inf
    taker = _first_of(group, np.isposinf(upper) & (price == last[group]), num_groups)
    most[taker], filled[taker] = np.inf, total[group[taker]]
    least[taker] = np.where(np.isneginf(least[taker]), -np.inf, filled[taker])
    single = size[group] == 1
    return Pieces(start.astype(np.int32), kink, slope, cost), Split(
        np.where(single, 0.0, origin[group]),
        np.where(single, -np.inf, least),
        np.where(single, np.inf, most),
        np.where(single, 0.0, rest - filled),
    )


def _running(group: PlaceArray, value: FloatArray) -> tuple[PlaceArray, FloatArray]:
    """Return the rank in its group and the running total of each value; ``group`` is sorted.

    Totals of a group are added up in its order, without what other groups would leave of rounding.
    """
    total: FloatArray = value.copy()
    new = np.ones(len(group), np.bool_)
    new[1:] = group[1:] != group[:-1]
    place = np.arange(len(group))
    rank = place - np.maximum.accumulate(np.where(new, place, 0))
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))
    for begin, end in pairwise(ends):
        here = by_rank[begin:end]
        total[here] += total[here - 1]
    return rank, total


def _first_of(group: PlaceArray, chosen: NDArray[np.bool_], num_groups: int) -> PlaceArray:
    """Return the first chosen member of each group that has one."""
    members = np.flatnonzero(chosen)
    found = np.full(num_groups, len(group))
    np.minimum.at(found, group[members], members)
    return found[found < len(group)]
