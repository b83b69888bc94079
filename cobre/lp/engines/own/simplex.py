"""The bounded dual simplex over piecewise linear costs, and what happens when it fails.

An attempt starts from a dual feasible basis: a basic variable outside its segment leaves, the ratio test
finds what enters, until all lie inside; then values and prices are computed anew, the pool of cuts is
scanned, and the result is checked (:mod:`check`). The ratio test passes over small entries of the tableau,
and a long step then leaves a price outside a kink that has none behind it: such a variable enters by a step
of the primal simplex before the check. Whatever goes wrong ends the attempt with a reason. The
next attempt starts from the same basis with a new inverse, the last one from the slack basis; after that
the solve has given up, and another solver is wanted. No status but ``GAVE_UP`` comes without a check or a
proof.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.engines.own.check import artificial_at_optimum, check, proves_infeasible, proves_unbounded
from cobre.lp.engines.own.core import (
    AWAKE,
    CLEAN_UPS,
    COLUMN_ENTRIES,
    DUAL_VALUE,
    FAILING_PIVOTS,
    GAVE_UP,
    GIVEN_UP,
    INFEASIBLE,
    INFINITY,
    ITERATIONS,
    KERNEL,
    MOST_ITERATIONS,
    MOST_REFACTORISATIONS,
    NO_PROOF,
    OPTIMAL,
    PASSED_KINKS,
    PIVOT_DISAGREES,
    PIVOT_LIMIT,
    PIVOTS,
    PRICES_OUTSIDE,
    PRIMAL_VALUE,
    REASON,
    ROW_ENTRIES,
    SINGULAR,
    SLACK_ENTRIES,
    SOLVES,
    STALLED,
    UNBOUNDED,
    UPDATES,
    WORKING_SET_FULL,
    has_sparse_factors,
    put_at_kink,
    put_in_segment,
)
from cobre.lp.engines.own.cuts import add_violated_cuts, is_switched_off, keep_active_cuts_awake
from cobre.lp.engines.own.kernel_inverse import exchange, kernel_column, refactor, times_kernel_inverse
from cobre.lp.engines.own.pricing import (
    choose_leaving,
    list_if_outside,
    price_outside,
    refresh_prices,
    refresh_values,
    suit_kinks_to_prices,
    update_weights,
)
from cobre.lp.engines.own.ratio_test import NO_ENTERING, price_row, primal_ratio_test, ratio_test
from cobre.lp.engines.own.restart import repair, start_cold
from cobre.lp.engines.own.sparse_factor import column_by_factor
from cobre.native import engine_kernel

_SMALL_PIVOT = 1.0e-5
"""A smaller one is taken from a new inverse only."""

_PIVOT_AGREEMENT = 1.0e-6
"""Between the pivot from the row and from the column of the tableau, relative."""

_WEIGHT_OF_FAILURE = 1.0e6
"""Multiplies the weight of a variable that could not leave: the next attempt begins with another one."""

_MOST_REFRESHES = 25
_MOST_CLEAN_UPS = 100
_MOVED = 0


@engine_kernel
def solve(core, work, pool):
    """Solve the LP of ``work.rhs`` and ``work.cut_constant`` from the present basis.

    Returns the status. The value is left in ``work.result`` (infinite unless the LP is optimal), the prices
    of rows in ``work.price``, the reason of the last failure, or 0, in ``work.sizes[REASON]``.
    """
    work.counters[SOLVES] += 1
    work.sizes[REASON] = 0
    outcome = _attempt(core, work, pool)
    refactorisations = 0
    while outcome > GAVE_UP and refactorisations < work.limits[MOST_REFACTORISATIONS]:
        work.sizes[REASON] = outcome
        if outcome in (WORKING_SET_FULL, PIVOT_LIMIT):
            break
        refactorisations += 1
        outcome = repair(core, work)
        if outcome == 0:
            outcome = _attempt(core, work, pool)
    if outcome > GAVE_UP:
        work.sizes[REASON] = outcome
        start_cold(core, work)
        outcome = _attempt(core, work, pool)
    if outcome > GAVE_UP:
        work.sizes[REASON] = outcome
        work.counters[GIVEN_UP] += 1
        start_cold(core, work)
        outcome = GAVE_UP
    if outcome != OPTIMAL:
        work.result[DUAL_VALUE] = INFINITY if outcome == INFEASIBLE else -INFINITY
        work.result[PRIMAL_VALUE] = INFINITY if outcome == INFEASIBLE else -INFINITY
    return outcome


@engine_kernel
def _attempt(core, work, pool):
    """Iterate from the present basis; return a status, or a reason (larger than ``GAVE_UP``)."""
    keep_active_cuts_awake(core, work, pool)
    refresh_values(core, work)
    if work.sizes[UPDATES] == 0:
        refresh_values(core, work)
    fresh = False
    exact = True
    refreshes = 0
    iterations = 0
    clean_ups = 0
    while True:
        leaving = choose_leaving(core, work)
        if leaving >= 0:
            if iterations >= work.limits[MOST_ITERATIONS]:
                return PIVOT_LIMIT
            iterations += 1
            work.counters[ITERATIONS] += 1
            outcome = _iterate(core, work, leaving)
            if outcome == NO_PROOF and not exact:
                refresh_values(core, work)
                exact = True
                continue
            if outcome != _MOVED:
                return outcome
            fresh = False
            exact = False
        elif not fresh:
            if refreshes == _MOST_REFRESHES:
                return STALLED
            refreshes += 1
            refresh_prices(core, work)
            suit_kinks_to_prices(core, work)
            refresh_values(core, work)
            fresh = True
            exact = True
        else:
            added = add_violated_cuts(core, work, pool)
            if added < 0:
                return WORKING_SET_FULL
            if added == 0:
                entering = price_outside(core, work)
                if entering < 0:
                    return _conclude(core, work)
                if clean_ups == _MOST_CLEAN_UPS:
                    return PRICES_OUTSIDE
                clean_ups += 1
                refreshes = 0
                outcome = _enter(core, work, entering)
                if outcome != _MOVED:
                    return outcome
                fresh = False
                exact = False


@engine_kernel
def _conclude(core, work):
    waiting = artificial_at_optimum(core, work)
    if waiting >= 0:
        compute_column(core, work, waiting)
        return UNBOUNDED if proves_unbounded(core, work, waiting) else NO_PROOF
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        if work.kernel_of_row[core.num_rows + slot] >= 0 and is_switched_off(work, slot):
            return NO_PROOF
    outcome = check(core, work)
    return OPTIMAL if outcome == 0 else outcome


@engine_kernel
def compute_column(core, work, entering):
    """Compute a nonbasic variable's column: ``column`` by place in the kernel, ``slack_column`` by row."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    column = work.column
    column_place = work.column_place
    slacks = work.slack_column
    slack_row = work.slack_row
    for entry in range(work.sizes[COLUMN_ENTRIES]):
        column[column_place[entry]] = 0.0
    for entry in range(work.sizes[SLACK_ENTRIES]):
        slacks[slack_row[entry]] = 0.0
    if has_sparse_factors(core, work):
        column_by_factor(core, work, entering)
    else:
        kernel_column(core, work, entering)
        _slack_column(core, work, entering)
    count = work.sizes[SLACK_ENTRIES]
    for place in range(work.sizes[AWAKE]):
        slot = work.awake[place]
        if work.kernel_of_row[num_rows + slot] < 0:
            total = work.cut_row[slot, entering] if entering < num_cols else 0.0
            for entry in range(work.sizes[COLUMN_ENTRIES]):
                c = work.column_place[entry]
                total -= work.cut_row[slot, work.kernel_col[c]] * column[c]
            slacks[num_rows + slot] = total
            work.slack_row[count] = num_rows + slot
            count += 1
    work.sizes[SLACK_ENTRIES] = count


@engine_kernel
def _slack_column(core, work, entering):
    """Set ``slack_column``, which is 0, for the rows of the core from ``column``."""
    column = work.column
    slacks = work.slack_column
    slack_row = work.slack_row
    listed = work.listed
    kernel_of_row = work.kernel_of_row
    col_row = core.col_row
    col_value = core.col_value
    count = 0
    if entering < core.num_cols:
        for place in range(core.col_start[entering], core.col_start[entering + 1]):
            row = col_row[place]
            if kernel_of_row[row] < 0:
                slacks[row] = col_value[place]
                slack_row[count] = row
                listed[row] = 1
                count += 1
    for entry in range(work.sizes[COLUMN_ENTRIES]):
        c = work.column_place[entry]
        factor = column[c]
        col = work.kernel_col[c]
        for place in range(core.col_start[col], core.col_start[col + 1]):
            row = col_row[place]
            if kernel_of_row[row] < 0:
                slacks[row] -= factor * col_value[place]
                slack_row[count] = row
                count += 1 - listed[row]
                listed[row] = 1
    for entry in range(count):
        listed[slack_row[entry]] = 0
    work.sizes[SLACK_ENTRIES] = count


@engine_kernel
def _iterate(core, work, leaving):
    """Let one variable leave; return ``_MOVED``, ``INFEASIBLE`` or a reason, with which nothing has moved."""
    below = work.value[leaving] < work.low[leaving]
    distance = work.low[leaving] - work.value[leaving] if below else work.value[leaving] - work.high[leaving]
    price_row(core, work, leaving)
    entering, step, kink, rate, count = ratio_test(core, work, leaving, below, distance)
    if entering == NO_ENTERING:
        return INFEASIBLE if proves_infeasible(core, work, below) else NO_PROOF
    signed_step = -step if below else step
    if entering == leaving:
        passed = _pass_kinks(core, work, count)
        _move_prices(core, work, leaving, signed_step)
        put_in_segment(core, work, leaving, kink - 1 if below else kink)
        list_if_outside(work, leaving)
        if passed > 0:
            _move_basic(core, work)
        return _MOVED
    pivot = work.tableau_row[entering]
    if work.limits[FAILING_PIVOTS] > 0:
        work.limits[FAILING_PIVOTS] -= 1
        return PIVOT_DISAGREES
    if abs(pivot) < _SMALL_PIVOT and work.sizes[UPDATES] > 0:
        if not refactor(core, work):
            return SINGULAR
        refresh_values(core, work)
        return _MOVED
    compute_column(core, work, entering)
    if not _pivot_agrees(core, work, leaving, entering):
        work.weight[leaving] *= _WEIGHT_OF_FAILURE
        return PIVOT_DISAGREES
    segment = _entered_segment(core, work, entering, (pivot > 0.0) != below, count)
    if _pass_kinks(core, work, count) > 0:
        _move_basic(core, work)
    value_step = (-rate if below else rate) / pivot
    return _exchange(core, work, (leaving, kink), (entering, segment), signed_step, value_step)


@engine_kernel
def _exchange(core, work, leaves, enters, price_step, value_step):
    """Move prices and values, and exchange two variables; return ``_MOVED`` or a reason.

    Parameters
    ----------
    leaves, enters
        The leaving variable and its kink, the entering one and its segment.
    price_step, value_step
        How far prices move along ``tableau_row``, and the entering variable.
    """
    leaving, kink = leaves
    entering, segment = enters
    pivot = work.tableau_row[entering]
    _move_prices(core, work, leaving, price_step)
    _step_values(core, work, entering, value_step)
    update_weights(core, work, leaving, entering, pivot)
    updated = exchange(core, work, leaving, entering, pivot)
    put_in_segment(core, work, entering, segment)
    list_if_outside(work, entering)
    price = work.price[leaving]
    put_at_kink(core, work, leaving, kink)
    work.price[leaving] = price
    work.counters[PIVOTS] += 1
    return _MOVED if updated or refactor(core, work) else SINGULAR


@engine_kernel
def _pivot_agrees(core, work, leaving, entering):
    """Return whether the pivot of the row of the tableau is that of the column."""
    pivot = work.tableau_row[entering]
    if leaving < core.num_cols:
        other = work.column[work.kernel_of_col[leaving]]
    else:
        other = work.slack_column[leaving - core.num_cols]
    return abs(other - pivot) <= _PIVOT_AGREEMENT * abs(pivot)


@engine_kernel
def _enter(core, work, entering):
    """Let a variable enter whose price suits no kink: a step of the primal simplex; ``_MOVED`` or a reason.

    The first basic variable that reaches the end of its segment leaves, and all values stay inside.
    """
    work.counters[ITERATIONS] += 1
    work.counters[CLEAN_UPS] += 1
    up = work.price[entering] > work.price_high[entering]
    compute_column(core, work, entering)
    leaving, step, up_leaves = primal_ratio_test(core, work, up)
    if leaving < 0:
        return PRICES_OUTSIDE
    price_row(core, work, leaving)
    if not _pivot_agrees(core, work, leaving, entering):
        return PIVOT_DISAGREES
    kink = work.place[leaving]
    if up_leaves and work.low[leaving] < work.high[leaving]:
        kink += 1
    end = work.price_high[entering] if up else work.price_low[entering]
    price_step = (end - work.price[entering]) / work.tableau_row[entering]
    segment = _entered_segment(core, work, entering, up, 0)
    return _exchange(core, work, (leaving, kink), (entering, segment), price_step, step if up else -step)


@engine_kernel
def _entered_segment(core, work, entering, up, count):
    """Return the segment that a variable enters, beyond the kinks it was passed to."""
    place = work.place[entering]
    for entry in range(1, count):
        if work.candidate[entry] == entering:
            place = work.candidate_place[entry]
    pieces = min(entering, core.num_cols + core.num_rows)
    segment = place if up else place - 1
    return min(max(segment, core.piece_start[pieces]), core.piece_start[pieces + 1] - 2)


@engine_kernel
def _move_prices(core, work, leaving, signed_step):
    """Move prices along the row of the tableau; those of basic structurals but the leaving one stay."""
    price = work.price
    moved = price[leaving] + signed_step
    for entry in range(work.sizes[ROW_ENTRIES]):
        var = work.row_var[entry]
        price[var] += signed_step * work.tableau_row[var]
    price[leaving] = moved


@engine_kernel
def _pass_kinks(core, work, count):
    """Move candidates to the kinks they were passed to; return how many.

    What that takes from active rows is left in ``kernel_residual``; slacks of inactive rows are moved.
    """
    num_cols = core.num_cols
    num_rows = core.num_rows
    value = work.value
    residual = work.kernel_residual
    passed = 0
    for entry in range(1, count):
        var = work.candidate[entry]
        if work.candidate_place[entry] == work.place[var]:
            continue
        if passed == 0:
            for r in range(work.sizes[KERNEL]):
                residual[r] = 0.0
        passed += 1
        old = value[var]
        put_at_kink(core, work, var, work.candidate_place[entry])
        move = value[var] - old
        if var >= num_cols:
            residual[work.kernel_of_row[var - num_cols]] -= move
            continue
        for place in range(core.col_start[var], core.col_start[var + 1]):
            row = core.col_row[place]
            r = work.kernel_of_row[row]
            if r >= 0:
                residual[r] -= core.col_value[place] * move
            else:
                value[num_cols + row] -= core.col_value[place] * move
                list_if_outside(work, num_cols + row)
        for place in range(work.sizes[AWAKE]):
            slot = work.awake[place]
            r = work.kernel_of_row[num_rows + slot]
            if r >= 0:
                residual[r] -= work.cut_row[slot, var] * move
            else:
                value[num_cols + num_rows + slot] -= work.cut_row[slot, var] * move
                list_if_outside(work, num_cols + num_rows + slot)
    work.counters[PASSED_KINKS] += passed
    return passed


@engine_kernel
def _move_basic(core, work):
    """Move basic variables by what ``kernel_residual`` asks of the active rows."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    size = work.sizes[KERNEL]
    step = work.kernel_step
    value = work.value
    times_kernel_inverse(core, work, work.kernel_residual, step)
    for c in range(size):
        move = step[c]
        if move != 0.0:
            col = work.kernel_col[c]
            value[col] += move
            list_if_outside(work, col)
            for entry in range(core.col_start[col], core.col_start[col + 1]):
                row = core.col_row[entry]
                if work.kernel_of_row[row] < 0:
                    value[num_cols + row] -= move * core.col_value[entry]
                    list_if_outside(work, num_cols + row)
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        if work.kernel_of_row[num_rows + slot] < 0:
            total = 0.0
            for c in range(size):
                total += work.cut_row[slot, work.kernel_col[c]] * step[c]
            value[num_cols + num_rows + slot] -= total
            list_if_outside(work, num_cols + num_rows + slot)


@engine_kernel
def _step_values(core, work, entering, step):
    """Move the entering variable by a step, and the basic ones with it."""
    for entry in range(work.sizes[COLUMN_ENTRIES]):
        c = work.column_place[entry]
        var = work.kernel_col[c]
        work.value[var] -= step * work.column[c]
        list_if_outside(work, var)
    for entry in range(work.sizes[SLACK_ENTRIES]):
        row = work.slack_row[entry]
        work.value[core.num_cols + row] -= step * work.slack_column[row]
        list_if_outside(work, core.num_cols + row)
    work.value[entering] += step
