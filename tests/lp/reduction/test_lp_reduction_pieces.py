"""Costs of sums of bounded quantities: against the dual of the problem that defines them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.lp.reduction.pieces import Members, end_slopes, merge

limits = st.sampled_from([-np.inf, -3.0, -1.5, 0.0, 0.25, 2.0, 7.0, np.inf])
prices = st.sampled_from([-4.0, -1.0, 0.0, 0.5, 1.0, 1.0 / 3.0, 10.0])
member = st.tuples(limits, limits, prices).map(lambda m: (min(m[:2]), max(m[:2]), m[2]))
members = st.lists(member.filter(lambda m: m[0] < np.inf and m[1] > -np.inf), min_size=1, max_size=7)


def grouped(groups):
    flat = [(place, *entry) for place, group in enumerate(groups) for entry in group]
    group, lower, upper, price = zip(*flat, strict=True)
    return Members(np.array(group), np.array(lower), np.array(upper), np.array(price))


def least_cost(group, total):
    """Return the least cost of a total by duality: the best of all prices of the sum."""
    best = -np.inf
    for multiplier in {price for _, _, price in group}:
        value = multiplier * total
        for lower, upper, price in group:
            margin = price - multiplier
            value += margin * (lower if margin > 0.0 else upper) if margin != 0.0 else 0.0
        best = max(best, value)
    return best


def cost_at(pieces, group, total):
    begin, end = pieces.start[group], pieces.start[group + 1] - 1
    if end - begin == 1:
        return pieces.slope[begin] * total
    entry = int(np.searchsorted(pieces.kink[begin + 1 : end], total)) + begin
    anchor = max(entry, begin + 1)
    away = total - pieces.kink[anchor]
    return pieces.cost[anchor] + (pieces.slope[entry] * away if away != 0.0 else 0.0)


@settings(max_examples=150, deadline=None)
@given(st.lists(members, min_size=1, max_size=4), st.floats(0.0, 1.0))
def test_cost_and_split_of_every_sum(groups, share):
    together = grouped(groups)
    first, last = end_slopes(together, len(groups))
    bounded = [group for group, low, high in zip(groups, first, last, strict=True) if low <= high]
    if not bounded:
        return
    together = grouped(bounded)
    pieces, split = merge(together, len(bounded))
    totals = []
    for place, group in enumerate(bounded):
        least, most = sum(lower for lower, _, _ in group), sum(upper for _, upper, _ in group)
        begin, end = pieces.start[place], pieces.start[place + 1]
        assert np.isneginf(least) == np.isfinite(pieces.slope[begin])
        assert np.isposinf(most) == np.isfinite(pieces.slope[end - 2])
        low, high = max(least, min(most, 0.0) - 20.0), min(most, max(least, 0.0) + 20.0)
        total = low + share * (high - low)
        for at in (total, *pieces.kink[begin + 1 : end - 1]):
            np.testing.assert_allclose(
                cost_at(pieces, place, at), least_cost(group, at), rtol=1e-12, atol=1e-12
            )
        totals.append(total)
    moved = np.clip(np.array(totals)[together.group] - split.origin, split.least, split.most) + split.offset
    assert (moved >= together.lower - 1e-12).all()
    assert (moved <= together.upper + 1e-12).all()
    np.testing.assert_allclose(np.bincount(together.group, weights=moved), totals, atol=1e-12)
    paid = np.bincount(together.group, weights=moved * together.price)
    expected = [cost_at(pieces, place, total) for place, total in enumerate(totals)]
    np.testing.assert_allclose(paid, expected, rtol=1e-12, atol=1e-12)


def test_layout_of_a_merit_order():
    # Two plants of the same price are one segment; the row's own slack rests at 0.
    supply = grouped(
        [[(0.0, 0.0, 0.0), (1.0, 3.0, 10.0), (0.0, 4.0, 10.0), (0.0, np.inf, 50.0), (0.0, 5.0, 2.0)]]
    )
    pieces, split = merge(supply, 1)
    np.testing.assert_array_equal(pieces.start, [0, 5])
    np.testing.assert_array_equal(pieces.kink, [-np.inf, 1.0, 6.0, 12.0, np.inf])
    np.testing.assert_array_equal(pieces.slope, [-np.inf, 2.0, 10.0, 50.0, np.nan])
    np.testing.assert_array_equal(pieces.cost, [np.nan, 10.0, 20.0, 80.0, np.nan])
    for total, amounts in (
        (1.0, [0.0, 1.0, 0.0, 0.0, 0.0]),
        (7.5, [0.0, 2.5, 0.0, 0.0, 5.0]),
        (9.0, [0.0, 3.0, 1.0, 0.0, 5.0]),
        (20.0, [0.0, 3.0, 4.0, 8.0, 5.0]),
    ):
        moved = np.clip(total - split.origin, split.least, split.most) + split.offset
        np.testing.assert_array_equal(moved, amounts)


def test_what_has_no_limits_has_no_kink_unless_it_costs_something_at_0():
    free = (-np.inf, np.inf, 3.0)
    pieces, split = merge(grouped([[free], [free, (2.0, 2.0, 5.0)]]), 2)
    np.testing.assert_array_equal(pieces.start, [0, 2, 5])
    np.testing.assert_array_equal(pieces.kink, [-np.inf, np.inf, -np.inf, 2.0, np.inf])
    np.testing.assert_array_equal(pieces.slope, [3.0, np.nan, 3.0, 3.0, np.nan])
    assert pieces.cost[3] == 10.0
    np.testing.assert_array_equal(
        np.clip(9.0 - split.origin[1:], split.least[1:], split.most[1:]) + split.offset[1:], [7.0, 2.0]
    )


def test_single_limits_are_kept_to_the_last_digit():
    pieces, _ = merge(grouped([[(0.1, 0.7000000000000001, 1.0)], [(-1e16, 1.0, 1.0)]]), 2)
    np.testing.assert_array_equal(pieces.kink[[1, 2]], [0.1, 0.7000000000000001])
    np.testing.assert_array_equal(pieces.kink[[5, 6]], [-1e16, 1.0])
