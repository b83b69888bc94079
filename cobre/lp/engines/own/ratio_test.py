"""The ratio test of the dual simplex: how far prices move, which variable enters, which kinks are passed.

When the leaving variable p lies outside its segment by d, the prices move by t times the row of the tableau,
and the dual function rises at rate d. At the step where the price of a nonbasic variable reaches the end of
its kink, the variable can go to its next kink instead of entering: the rate falls by |alpha| times the way
there. The same holds for p's own next segments. The step ends where the rate would become negative.

Steps within a tolerance of each other are one group, of which the largest |alpha| enters. The tolerance is
close to rounding, since costs are never shifted.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.engines.own.core import COLUMN_ENTRIES, FEASIBILITY, INFINITY, ROW_ENTRIES, SLACK_ENTRIES
from cobre.lp.engines.own.kernel_inverse import row_of_inverse
from cobre.native import engine_kernel

_HARRIS = 1.0e-12
"""What a price may be moved outside its kink by."""

_LEAST_PIVOT = 1.0e-7
"""Entries of the tableau's row below this never enter."""

NO_ENTERING = -1


@engine_kernel
def price_row(core, work, leaving):
    """Compute a basic variable's row of the tableau, ``tableau_row``, 0 for basic structurals."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    result = work.tableau_row
    row_var = work.row_var
    for entry in range(work.sizes[ROW_ENTRIES]):
        result[row_var[entry]] = 0.0
    slacks = row_of_inverse(core, work, leaving)
    count = _price_rows(core, work, slacks)
    with_cuts = False
    for place in range(slacks):
        slot = row_var[place] - num_cols - num_rows
        if slot >= 0:
            factor = result[row_var[place]]
            entries = work.cut_row[slot]
            for col in range(num_cols):
                result[col] += factor * entries[col]
            with_cuts = True
    kernel_of_col = work.kernel_of_col
    kept = slacks
    if with_cuts:
        for col in range(num_cols):
            value = result[col]
            value = value if kernel_of_col[col] < 0 else 0.0
            result[col] = value
            row_var[kept] = col
            kept += value != 0.0
    else:
        for entry in range(slacks, count):
            col = row_var[entry]
            nonbasic = kernel_of_col[col] < 0
            value = result[col]
            result[col] = value if nonbasic else 0.0
            row_var[kept] = col
            kept += nonbasic
    work.sizes[ROW_ENTRIES] = kept


@engine_kernel
def _price_rows(core, work, slacks):
    """Add what the rows of the core among the listed slacks give structurals; list those; return how many."""
    num_cols = core.num_cols
    result = work.tableau_row
    row_var = work.row_var
    listed = work.listed
    row_start = core.row_start
    row_col = core.row_col
    row_value = core.row_value
    count = slacks
    for place in range(slacks):
        row = row_var[place] - num_cols
        if row < core.num_rows:
            factor = result[num_cols + row]
            for entry in range(row_start[row], row_start[row + 1]):
                col = row_col[entry]
                result[col] += factor * row_value[entry]
                row_var[count] = col
                count += 1 - listed[col]
                listed[col] = 1
    for entry in range(slacks, count):
        listed[row_var[entry]] = 0
    return count


@engine_kernel
def _way_to_next_kink(core, place, up):
    here = core.kink[place]
    if abs(here) == INFINITY:
        return INFINITY
    return core.kink[place + 1] - here if up else here - core.kink[place - 1]


@engine_kernel
def ratio_test(core, work, leaving, below, distance):
    """Find the entering variable; nothing is moved yet.

    Parameters
    ----------
    leaving, below, distance
        The leaving variable, whether it lies below its segment (else above), and by how much.

    Returns
    -------
    entering, step, kink, rate, count
        The entering variable (the leaving one when it goes on to another of its own segments, ``NO_ENTERING``
        when prices can move for ever); how far prices move along the signed row; the kink that the leaving
        variable ends at, or starts its new segment from; what is left of the distance; and the number of
        entries of ``candidate``, whose ``candidate_place`` differs from their place where kinks were passed.
    """
    sign = -1.0 if below else 1.0
    row = work.tableau_row
    price = work.price
    price_low = work.price_low
    price_high = work.price_high
    candidate = work.candidate
    steps = work.candidate_step
    places = work.candidate_place
    place_of = work.place
    row_var = work.row_var
    kink = work.place[leaving]
    if not below and work.low[leaving] != work.high[leaving]:
        kink += 1
    own = price[leaving] - core.slope[kink - 1] if below else core.slope[kink] - price[leaving]
    candidate[0] = leaving
    steps[0] = own
    places[0] = kink
    count = 1
    way = core.kink[kink] - core.kink[kink - 1] if below else core.kink[kink + 1] - core.kink[kink]
    longest = own + _HARRIS if way >= distance else INFINITY
    for place in range(work.sizes[ROW_ENTRIES]):
        var = row_var[place]
        rise = sign * row[var]
        rising = price_high[var] - price[var]
        falling = price[var] - price_low[var]
        room = rising if rise > 0.0 else falling
        size = abs(rise)
        if size > _LEAST_PIVOT and room < longest * size:
            step = max(room / size, 0.0)
            candidate[count] = var
            steps[count] = step
            places[count] = place_of[var]
            count += 1
            if step + _HARRIS / size < longest:
                way = _way_to_next_kink(core, place_of[var], rise > 0.0)
                if size * way >= distance:
                    longest = step + _HARRIS / size
    rate = distance
    while True:
        shortest = INFINITY
        for entry in range(count):
            var = candidate[entry]
            size = 1.0 if entry == 0 else abs(row[var])
            shortest = min(shortest, steps[entry] + _HARRIS / size)
        if shortest == INFINITY:
            return NO_ENTERING, 0.0, kink, rate, count
        largest = 0.0
        chosen = -1
        fall = 0.0
        for entry in range(count):
            if steps[entry] <= shortest:
                var = candidate[entry]
                if entry == 0:
                    size = 1.0
                    up = not below
                else:
                    size = abs(row[var])
                    up = sign * row[var] > 0.0
                fall += size * _way_to_next_kink(core, places[entry], up)
                if size > largest:
                    largest = size
                    chosen = entry
        if rate - fall <= FEASIBILITY + 1.0e-11 * distance:
            return candidate[chosen], steps[chosen], places[0], rate, count
        rate -= fall
        for entry in range(count):
            if steps[entry] <= shortest:
                var = candidate[entry]
                if entry == 0:
                    places[0] += -1 if below else 1
                    place = places[0]
                    own = (
                        price[leaving] - core.slope[place - 1]
                        if below
                        else core.slope[place] - price[leaving]
                    )
                    steps[0] = own
                elif sign * row[var] > 0.0:
                    places[entry] += 1
                    steps[entry] = (core.slope[places[entry]] - price[var]) / abs(row[var])
                else:
                    places[entry] -= 1
                    steps[entry] = (price[var] - core.slope[places[entry] - 1]) / abs(row[var])


@engine_kernel
def primal_ratio_test(core, work, up):
    """Find the basic variable that ends a step of the nonbasic one whose column was computed last.

    Of those that end it within the tolerance of values, the one with the largest entry is taken.

    Parameters
    ----------
    up
        Whether the nonbasic variable rises.

    Returns
    -------
    leaving, step, up
        The variable, -1 when there is none; how far the nonbasic one moves; whether the leaving one rises.
    """
    structurals = work.sizes[COLUMN_ENTRIES]
    entries = structurals + work.sizes[SLACK_ENTRIES]
    longest = INFINITY
    leaving = -1
    step = 0.0
    largest = 0.0
    rises = False
    for turn in range(2):
        for entry in range(entries):
            if entry < structurals:
                var = np.int64(work.kernel_col[work.column_place[entry]])
                rate = work.column[work.column_place[entry]]
            else:
                row = np.int64(work.slack_row[entry - structurals])
                var = core.num_cols + row
                rate = work.slack_column[row]
            size = abs(rate)
            if size > _LEAST_PIVOT:
                var_rises = (rate < 0.0) == up
                room = work.high[var] - work.value[var] if var_rises else work.value[var] - work.low[var]
                if turn == 0:
                    longest = min(longest, (max(room, 0.0) + FEASIBILITY) / size)
                elif size > largest and max(room, 0.0) <= longest * size:
                    largest = size
                    leaving = var
                    step = max(room, 0.0) / size
                    rises = var_rises
    if longest == INFINITY:
        leaving = -1
    return leaving, step, rises
