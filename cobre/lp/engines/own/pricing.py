"""Which basic variable leaves, values and prices from the basis, and devex weights.

The variable with the largest d^2 / w leaves, d the distance from its segment and w a weight that stands for
the squared norm of its row of the basis inverse. All weights are 1 at a start; with the column a of the
entering variable q in the basis and the pivot a_p,

    w_i  <-  max(w_i, (a_i / a_p)^2 w_p),    w_q  <-  max(w_p / a_p^2, 1).

Exact norms need another solve with the basis for every exchange, and save no iterations on stage LPs.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.engines.own.core import (
    AWAKE,
    COLUMN_ENTRIES,
    FEASIBILITY,
    INFINITY,
    KERNEL,
    OUTSIDE,
    SLACK_ENTRIES,
    SLOTS,
    put_at_kink,
)
from cobre.lp.engines.own.kernel_inverse import kernel_inverse_times, times_kernel_inverse
from cobre.native import engine_kernel

_ROUNDED = 1.0e-13
"""A distance smaller than this times the value is rounding."""

_EXACT = 1.0e-13
"""Prices of basic variables this close to their slopes, relative to what they are summed from, stay."""

_ROUNDED_PRICE = 1.0e-10
"""By how much, relative to 1 and what it is summed from, a price may lie outside its kink."""


@engine_kernel
def choose_leaving(core, work):
    """Return the basic variable that leaves, -1 when all lie in their segments."""
    outside = work.outside
    value = work.value
    weight = work.weight
    chosen = -1
    best_gap = 0.0
    best_weight = 1.0
    count = 0
    for entry in range(work.sizes[OUTSIDE]):
        var = outside[entry]
        distance = max(work.low[var] - value[var], value[var] - work.high[var])
        if distance > FEASIBILITY and distance > _ROUNDED * abs(value[var]):
            outside[count] = var
            count += 1
            square = distance * distance
            if square * best_weight > best_gap * weight[var]:
                chosen = var
                best_gap = square
                best_weight = weight[var]
        else:
            work.is_outside[var] = 0
    work.sizes[OUTSIDE] = count
    return chosen


@engine_kernel
def list_if_outside(work, var):
    """Have a variable considered by ``choose_leaving`` if it lies outside its segment."""
    if work.is_outside[var] == 0:
        value = work.value[var]
        if value < work.low[var] - FEASIBILITY or value > work.high[var] + FEASIBILITY:
            work.is_outside[var] = 1
            work.outside[work.sizes[OUTSIDE]] = var
            work.sizes[OUTSIDE] += 1


@engine_kernel
def list_all_outside(core, work):
    """Consider all variables anew."""
    for entry in range(work.sizes[OUTSIDE]):
        work.is_outside[work.outside[entry]] = 0
    count = 0
    for var in range(core.num_cols + core.num_rows + work.sizes[SLOTS]):
        value = work.value[var]
        far = value < work.low[var] - FEASIBILITY or value > work.high[var] + FEASIBILITY
        work.is_outside[var] = far
        work.outside[count] = var
        count += far
    work.sizes[OUTSIDE] = count


@engine_kernel
def refresh_values(core, work):
    """Solve A x + s = b for the basic variables, from the values of the nonbasic ones, by one refinement."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    size = work.sizes[KERNEL]
    value = work.value
    residual = work.kernel_residual
    largest = 0.0
    for r in range(size):
        row = work.kernel_row[r]
        total = work.rhs[row] - value[num_cols + row]
        if row < num_rows:
            for entry in range(core.row_start[row], core.row_start[row + 1]):
                total -= core.row_value[entry] * value[core.row_col[entry]]
        else:
            for col in range(num_cols):
                total -= work.cut_row[row - num_rows, col] * value[col]
        residual[r] = total
        largest = max(largest, abs(total))
    if largest > 0.0:
        times_kernel_inverse(core, work, residual, work.kernel_step)
        for c in range(size):
            value[work.kernel_col[c]] += work.kernel_step[c]
    for row in range(num_rows):
        if work.kernel_of_row[row] < 0:
            total = work.rhs[row]
            for entry in range(core.row_start[row], core.row_start[row + 1]):
                total -= core.row_value[entry] * value[core.row_col[entry]]
            value[num_cols + row] = total
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        if work.kernel_of_row[num_rows + slot] < 0:
            total = work.rhs[num_rows + slot]
            for col in range(num_cols):
                total -= work.cut_row[slot, col] * value[col]
            value[num_cols + num_rows + slot] = total
    list_all_outside(core, work)


@engine_kernel
def price_structurals(core, work, prices, result, scale):
    """Set ``result`` to A'y by structural, and ``scale`` to the sum of magnitudes that it was made from.

    y is the part of ``prices`` (by variable) of the slacks.
    """
    num_cols = core.num_cols
    num_rows = core.num_rows
    for col in range(num_cols):
        result[col] = 0.0
        scale[col] = 0.0
    for row in range(num_rows):
        price = prices[num_cols + row]
        if price != 0.0:
            for entry in range(core.row_start[row], core.row_start[row + 1]):
                col = core.row_col[entry]
                term = price * core.row_value[entry]
                result[col] += term
                scale[col] += abs(term)
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        price = prices[num_cols + num_rows + slot]
        if price != 0.0:
            for col in range(num_cols):
                term = price * work.cut_row[slot, col]
                result[col] += term
                scale[col] += abs(term)


@engine_kernel
def refresh_prices(core, work):
    """Solve A_C'y = slopes for the prices of active rows by one refinement, and price all structurals."""
    num_cols = core.num_cols
    size = work.sizes[KERNEL]
    priced = work.col_scratch
    scale = work.col_scale
    price_structurals(core, work, work.price, priced, scale)
    inexact = False
    for c in range(size):
        col = work.kernel_col[c]
        error = core.slope[work.place[col]] - priced[col]
        work.kernel_step[c] = error
        inexact |= abs(error) > _EXACT * scale[col]
    if inexact:
        residual = work.kernel_residual
        for r in range(size):
            residual[r] = work.price[num_cols + work.kernel_row[r]]
        kernel_inverse_times(core, work, work.kernel_step, residual)
        for r in range(size):
            work.price[num_cols + work.kernel_row[r]] = residual[r]
        price_structurals(core, work, work.price, priced, scale)
    for col in range(num_cols):
        if work.kernel_of_col[col] < 0:
            work.price[col] = priced[col]


@engine_kernel
def suit_kinks_to_prices(core, work):
    """Move nonbasic variables to kinks that suit their prices; prices of slacks outside by rounding move.

    ``col_scale`` is that of the prices. The price of a variable that has no such kink stays outside.
    """
    num_cols = core.num_cols
    variables = core.num_cols + core.num_rows + work.sizes[SLOTS]
    price = work.price
    moved = False
    for var in range(variables):
        if price[var] >= work.price_low[var] and price[var] <= work.price_high[var]:
            continue
        tolerance = _price_tolerance(core, work, var)
        while price[var] < work.price_low[var] - tolerance and core.kink[work.place[var] - 1] > -INFINITY:
            put_at_kink(core, work, var, work.place[var] - 1)
        while price[var] > work.price_high[var] + tolerance and _has_kink_above(core, work.place[var]):
            put_at_kink(core, work, var, work.place[var] + 1)
        if var >= num_cols:
            inside = min(max(price[var], work.price_low[var]), work.price_high[var])
            if inside != price[var] and abs(inside - price[var]) <= tolerance:
                price[var] = inside
                moved = True
    if moved:
        price_structurals(core, work, price, work.col_scratch, work.col_scale)
        for col in range(num_cols):
            if work.kernel_of_col[col] < 0:
                price[col] = work.col_scratch[col]


@engine_kernel
def _has_kink_above(core, place):
    return core.kink[place] < INFINITY and core.kink[place + 1] < INFINITY


@engine_kernel
def _price_tolerance(core, work, var):
    return _ROUNDED_PRICE * (1.0 + (work.col_scale[var] if var < core.num_cols else abs(work.price[var])))


@engine_kernel
def price_outside(core, work):
    """Return the nonbasic variable whose price is the farthest outside its kink, -1 when there is none.

    ``col_scale`` is that of the prices.
    """
    chosen = -1
    largest = 0.0
    for var in range(core.num_cols + core.num_rows + work.sizes[SLOTS]):
        price = work.price[var]
        outside = max(work.price_low[var] - price, price - work.price_high[var])
        if outside > largest and outside > _price_tolerance(core, work, var):
            largest = outside
            chosen = var
    return chosen


@engine_kernel
def update_weights(core, work, leaving, entering, pivot):
    """Update the weights for an exchange from ``column`` and ``slack_column``."""
    num_cols = core.num_cols
    weight = work.weight
    scale = weight[leaving] / (pivot * pivot)
    for entry in range(work.sizes[COLUMN_ENTRIES]):
        c = work.column_place[entry]
        var = work.kernel_col[c]
        weight[var] = max(weight[var], work.column[c] * work.column[c] * scale)
    for entry in range(work.sizes[SLACK_ENTRIES]):
        row = work.slack_row[entry]
        share = work.slack_column[row] * work.slack_column[row] * scale
        weight[num_cols + row] = max(weight[num_cols + row], share)
    weight[entering] = max(scale, 1.0)
