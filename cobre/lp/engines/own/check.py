"""The check after every LP, the value that is returned, and proofs of infeasible and unbounded LPs.

Nothing here uses the inverse: values, prices and the data of the LP stand for themselves.

For any row prices y, with mu_v = A_v'y for structurals and mu_v = y_i for slacks, weak duality gives

    b'y + sum_v min_x (phi_v(x) - mu_v x)  <=  optimal value.

The sum is taken at the kinks that minimise it for exactly these prices. Where a price lies outside the last
slope of an unbounded variable by rounding, the end of its reach stands for that of its range, so that the sum
is a bound at any right-hand side.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.engines.own.core import (
    ARTIFICIAL_VALUE,
    AWAKE,
    CHECK_FAILED,
    CHECKS_FAILED,
    DUAL_VALUE,
    FAILING_CHECKS,
    FEASIBILITY,
    FUTURE_REACH,
    INFINITY,
    KERNEL,
    MAGNITUDE,
    PRIMAL_VALUE,
    SLOTS,
)
from cobre.lp.engines.own.pricing import price_structurals
from cobre.native import engine_kernel

_RESIDUAL = 1.0e-9
"""Of a row and of a price, relative to 1 and what they are summed from."""

_DUALITY_GAP = 1.0e-9
"""Between primal and dual value, relative to 1 and the value."""

_SUMMATION = 1.0e-14
"""Of a value, relative to the sum of magnitudes behind it."""

_IRRELEVANT = 1.0e-11
"""Entries of a ray, relative to the largest, that may act on an unbounded variable."""


@engine_kernel
def _least(core, work, var, price):
    """Return the minimum of phi_v(x) - price x, searched from the variable's place."""
    first = core.piece_start[var]
    last = core.piece_start[var + 1] - 1
    if last == first + 1:
        excess = core.slope[first] - price
        return excess * _farthest(core, work, var, excess < 0.0) if excess != 0.0 else 0.0
    place = min(max(work.place[var], first + 1), last - 1)
    while place < last - 1 and price > core.slope[place]:
        place += 1
    while place > first + 1 and price < core.slope[place - 1]:
        place -= 1
    kink = core.kink[place]
    least = core.cost_at_kink[place] - price * kink
    if price > core.slope[place]:
        return least + min((core.slope[place] - price) * (_farthest(core, work, var, True) - kink), 0.0)
    if price < core.slope[place - 1]:
        return least + min((core.slope[place - 1] - price) * (_farthest(core, work, var, False) - kink), 0.0)
    return least


@engine_kernel
def _farthest(core, work, var, up):
    """Return how far a variable without a limit goes; its present value where that is not known."""
    if var == 0 and up:
        end = work.result[FUTURE_REACH]
    else:
        end = core.reach_high[var] if up else core.reach_low[var]
    return end if end == end else work.value[var]


@engine_kernel
def _cost(core, work, var):
    """Return phi_v at the present value, on the line of the present place."""
    first = core.piece_start[var]
    last = core.piece_start[var + 1] - 1
    place = work.place[var]
    if last == first + 1:
        return core.slope[first] * work.value[var]
    if work.low[var] == -INFINITY and work.high[var] == INFINITY:
        return core.cost_at_kink[place]  # nonbasic
    if work.low[var] == work.high[var]:
        return core.cost_at_kink[place]
    end = place if place > first else place + 1
    return core.cost_at_kink[end] + core.slope[place] * (work.value[var] - core.kink[end])


@engine_kernel
def check(core, work):
    """Check the present point and prices; return 0 and leave both values in ``result``, or ``CHECK_FAILED``.

    The points of failure: a residual of a row, a value outside its segment, a price outside its kink or off
    its slope, primal and dual value that differ.
    """
    sound = _rows_hold(core, work) and _values_inside(core, work) and _values_agree(core, work)
    if work.limits[FAILING_CHECKS] > 0:
        work.limits[FAILING_CHECKS] -= 1
        sound = False
    if sound:
        return 0
    work.counters[CHECKS_FAILED] += 1
    return CHECK_FAILED


@engine_kernel
def _rows_hold(core, work):
    num_cols = core.num_cols
    num_rows = core.num_rows
    for row in range(num_rows):
        residual = work.value[num_cols + row] - work.rhs[row]
        scale = 1.0 + abs(work.rhs[row])
        for entry in range(core.row_start[row], core.row_start[row + 1]):
            term = core.row_value[entry] * work.value[core.row_col[entry]]
            residual += term
            scale += abs(term)
        if not abs(residual) <= _RESIDUAL * scale:
            return False
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        residual = work.value[num_cols + num_rows + slot] - work.rhs[num_rows + slot]
        scale = 1.0 + abs(work.rhs[num_rows + slot])
        for col in range(num_cols):
            term = work.cut_row[slot, col] * work.value[col]
            residual += term
            scale += abs(term)
        if not abs(residual) <= _RESIDUAL * scale:
            return False
    return True


@engine_kernel
def _values_inside(core, work):
    for var in range(core.num_cols + core.num_rows + work.sizes[SLOTS]):
        value = work.value[var]
        allowed = 2.0 * FEASIBILITY + 1.0e-12 * abs(value)
        if not (value >= work.low[var] - allowed and value <= work.high[var] + allowed):
            return False
    return True


@engine_kernel
def _values_agree(core, work):
    """Check prices, and compare the primal value with the dual value."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    priced = work.col_scratch
    scale = work.col_scale
    price_structurals(core, work, work.price, priced, scale)
    primal = 0.0
    dual = 0.0
    magnitude = 0.0
    for row in range(num_rows):
        term = work.rhs[row] * work.price[num_cols + row]
        dual += term
        magnitude += abs(term)
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        price = work.price[num_cols + num_rows + slot]
        if price > 0.0:
            return False
        term = work.rhs[num_rows + slot] * price
        dual += term
        magnitude += abs(term)
    for var in range(num_cols + num_rows):
        price = work.price[var]
        allowed = _RESIDUAL * (1.0 + abs(price))
        if var < num_cols:
            nonbasic = work.kernel_of_col[var] < 0
            allowed = _RESIDUAL * (1.0 + scale[var])
            if not (nonbasic or abs(priced[var] - price) <= allowed):
                return False
            price = priced[var]
        else:
            nonbasic = work.kernel_of_row[var - num_cols] >= 0
        if not (price >= work.price_low[var] - allowed and price <= work.price_high[var] + allowed):
            return False
        place = work.place[var]
        inside = price >= work.price_low[var] and price <= work.price_high[var]
        if nonbasic and inside and abs(core.kink[place]) < INFINITY:
            cost = core.cost_at_kink[place]
            term = cost - price * core.kink[place]
        else:
            cost = _cost(core, work, var)
            term = _least(core, work, var, price)
        primal += cost
        dual += term
        magnitude += abs(cost) + abs(term)
    work.result[DUAL_VALUE] = dual
    work.result[PRIMAL_VALUE] = primal
    work.result[MAGNITUDE] = magnitude
    return abs(primal - dual) <= _DUALITY_GAP * (1.0 + abs(dual)) + _SUMMATION * magnitude


@engine_kernel
def _end(core, var, up):
    """Return the end of the range of a variable, possibly infinite."""
    if up:
        last = core.piece_start[var + 1] - 1
        return core.kink[last - 1] if core.slope[last - 1] == INFINITY else INFINITY
    first = core.piece_start[var]
    return core.kink[first + 1] if core.slope[first] == -INFINITY else -INFINITY


@engine_kernel
def proves_infeasible(core, work, below):
    """Return whether the slacks' part of ``tableau_row`` is a ray along which the dual function rises.

    With r = -part when the leaving variable lies below its segment, else the part, this is
    b'r > sum_v max_x r_v x over the range of every variable.
    """
    num_cols = core.num_cols
    num_rows = core.num_rows
    sign = -1.0 if below else 1.0
    rise = 0.0
    magnitude = 0.0
    largest = 0.0
    for row in range(num_rows + work.sizes[SLOTS]):
        factor = work.tableau_row[num_cols + row]
        largest = max(largest, abs(factor))
        if factor != 0.0:
            term = sign * factor * work.rhs[row]
            rise += term
            magnitude += abs(term)
    price_structurals(core, work, work.tableau_row, work.col_scratch, work.col_scale)
    cut_piece = num_cols + num_rows
    for var in range(num_cols + num_rows + work.sizes[SLOTS]):
        rate = sign * (work.col_scratch[var] if var < num_cols else work.tableau_row[var])
        if rate != 0.0:
            end = _end(core, min(var, cut_piece), rate > 0.0)
            if abs(end) == INFINITY:
                if abs(rate) > _IRRELEVANT * largest:
                    return False
            else:
                rise -= rate * end
                magnitude += abs(rate * end)
    return rise > 0.5 * FEASIBILITY and rise > 1.0e-12 * magnitude


@engine_kernel
def artificial_at_optimum(core, work):
    """Return a variable that still waits at its artificial value, -1 when there is none."""
    for col in range(core.num_cols):
        artificial = abs(work.value[col]) == ARTIFICIAL_VALUE and abs(core.kink[work.place[col]]) == INFINITY
        if artificial and work.kernel_of_col[col] < 0:
            return col
    return -1


@engine_kernel
def proves_unbounded(core, work, var):
    """Return whether the cost falls for ever when an artificial variable and, with it, the basic ones move.

    ``column`` and ``slack_column`` are those of the variable.
    """
    direction = 1.0 if work.value[var] > 0.0 else -1.0
    rate = _last_slope(core, var, direction) * direction
    scale = abs(rate)
    for c in range(work.sizes[KERNEL]):
        move = -work.column[c] * direction
        if abs(move) > _IRRELEVANT:
            slope = _last_slope(core, work.kernel_col[c], move)
            rate += slope * move
            scale += abs(slope * move)
    for row in range(core.num_rows):
        move = -work.slack_column[row] * direction
        if abs(move) > _IRRELEVANT:
            slope = _last_slope(core, core.num_cols + row, move)
            rate += slope * move
            scale += abs(slope * move)
    for entry in range(work.sizes[AWAKE]):
        if -work.slack_column[core.num_rows + work.awake[entry]] * direction < -_IRRELEVANT:
            return False
    return scale < INFINITY and rate < -_RESIDUAL * scale


@engine_kernel
def _last_slope(core, var, direction):
    return core.slope[core.piece_start[var + 1] - 2] if direction > 0.0 else core.slope[core.piece_start[var]]
