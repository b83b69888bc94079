"""The inverse of the kernel: from the basis anew, products with it, and its four rank-1 updates.

It is computed from sparse factors of the basis (:mod:`sparse_factor`). Large LPs keep those instead; what is
called from outside covers both.

With N = K^-1 and ``inverse[r, c] = N[c, r]``, the rows of the basis inverse are (N[c, :], 0) for basic
structural c and (-a_iC N, e_i) for the slack of inactive row i.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.engines.own.core import (
    AWAKE,
    COLUMN_ENTRIES,
    KERNEL,
    REFACTORISATIONS,
    UPDATES,
    has_sparse_factors,
)
from cobre.lp.engines.own.sparse_factor import (
    exchange_in_factor,
    factor_times,
    factor_transposed_times,
    factorise,
    row_by_factor,
)
from cobre.native import engine_kernel

_DROPPED = 1.0e-13
"""Smaller entries of the inverse are set to 0."""

_NEGLIGIBLE = 1.0e-12
"""Smaller entries of a column are set to 0."""

_SPARSE = 6
"""A vector is sparse when less than one in this many entries is not 0."""


@engine_kernel
def times_kernel_inverse(core, work, vector, result):
    """Set ``result`` (by structural of the kernel) to N times a vector by active row."""
    if has_sparse_factors(core, work):
        factor_times(core, work, vector, result)
        return
    size = work.sizes[KERNEL]
    inverse = work.inverse
    for c in range(size):
        result[c] = 0.0
    for r in range(size):
        factor = vector[r]
        if factor != 0.0:
            for c in range(size):
                result[c] += factor * inverse[r, c]


@engine_kernel
def kernel_inverse_times(core, work, vector, result):
    """Add N'v to ``result`` (by active row) for a vector v by structural of the kernel."""
    if has_sparse_factors(core, work):
        factor_transposed_times(core, work, vector, result)
        return
    size = work.sizes[KERNEL]
    inverse = work.inverse
    r = 0
    while r + 4 <= size:
        sum0 = 0.0
        sum1 = 0.0
        sum2 = 0.0
        sum3 = 0.0
        for c in range(size):
            factor = vector[c]
            sum0 += factor * inverse[r, c]
            sum1 += factor * inverse[r + 1, c]
            sum2 += factor * inverse[r + 2, c]
            sum3 += factor * inverse[r + 3, c]
        result[r] += sum0
        result[r + 1] += sum1
        result[r + 2] += sum2
        result[r + 3] += sum3
        r += 4
    while r < size:
        total = 0.0
        for c in range(size):
            total += vector[c] * inverse[r, c]
        result[r] += total
        r += 1


@engine_kernel
def kernel_column(core, work, entering):
    """Set ``work.column``, which is 0, to N times the active rows' entries of a nonbasic variable."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    size = work.sizes[KERNEL]
    inverse = work.inverse
    column = work.column
    if entering < num_cols:
        for entry in range(core.col_start[entering], core.col_start[entering + 1]):
            r = work.kernel_of_row[core.col_row[entry]]
            if r >= 0:
                factor = core.col_value[entry]
                for c in range(size):
                    column[c] += factor * inverse[r, c]
        for entry in range(work.sizes[AWAKE]):
            slot = work.awake[entry]
            factor = work.cut_row[slot, entering]
            r = work.kernel_of_row[num_rows + slot]
            if r >= 0 and factor != 0.0:
                for c in range(size):
                    column[c] += factor * inverse[r, c]
    else:
        r = work.kernel_of_row[entering - num_cols]
        for c in range(size):
            column[c] = inverse[r, c]
    count = 0
    for c in range(size):
        entry = column[c]
        kept = abs(entry) > _NEGLIGIBLE
        column[c] = entry if kept else 0.0
        work.column_place[count] = c
        count += kept
    work.sizes[COLUMN_ENTRIES] = count


@engine_kernel
def row_of_inverse(core, work, var):
    """Set the slacks' part of ``tableau_row``, which is 0, to a basic variable's row of the basis inverse.

    Returns the number of entries that ``row_var`` lists of it.
    """
    num_cols = core.num_cols
    size = work.sizes[KERNEL]
    inverse = work.inverse
    tableau_row = work.tableau_row
    row_var = work.row_var
    if var < num_cols + core.num_rows and has_sparse_factors(core, work):
        count = row_by_factor(core, work, var)
    else:
        result = work.kernel_residual
        if var < num_cols:
            c = work.kernel_of_col[var]
            for r in range(size):
                result[r] = inverse[r, c]
        else:
            _row_of_slack(core, work, var - num_cols, result)
        kernel_row = work.kernel_row
        count = 0
        for r in range(size):
            factor = result[r]
            slack = num_cols + kernel_row[r]
            tableau_row[slack] = factor
            row_var[count] = slack
            count += factor != 0.0
    if var >= num_cols:
        tableau_row[var] = 1.0
        row_var[count] = var
        count += 1
    return count


@engine_kernel
def _row_of_slack(core, work, row, result):
    """Set ``result`` to -a_iC N by active row for a slack that is basic."""
    size = work.sizes[KERNEL]
    inverse = work.inverse
    for r in range(size):
        result[r] = 0.0
    if row < core.num_rows:
        for entry in range(core.row_start[row], core.row_start[row + 1]):
            c = work.kernel_of_col[core.row_col[entry]]
            if c >= 0:
                factor = core.row_value[entry]
                for r in range(size):
                    result[r] -= factor * inverse[r, c]
    else:
        for c in range(size):
            work.kernel_step[c] = -work.cut_row[row - core.num_rows, work.kernel_col[c]]
        kernel_inverse_times(core, work, work.kernel_step, result)


@engine_kernel
def refactor(core, work):
    """Compute the inverse or the factors from the basis; return whether the kernel is regular."""
    work.counters[REFACTORISATIONS] += 1
    work.sizes[UPDATES] = 0
    if not factorise(core, work):
        return False
    if not has_sparse_factors(core, work):
        unit = work.kernel_residual
        for r in range(work.sizes[KERNEL]):
            unit[r] = 0.0
        for r in range(work.sizes[KERNEL]):
            unit[r] = 1.0
            factor_times(core, work, unit, work.inverse[r])
            unit[r] = 0.0
    return True


@engine_kernel
def _subtract_product(work, rows, skipped_row):
    """Subtract ``rows`` (by active row) times ``work.column`` from the inverse; small entries become 0."""
    size = work.sizes[KERNEL]
    inverse = work.inverse
    column = work.column
    count = work.sizes[COLUMN_ENTRIES]
    if count == 0:
        return
    if count * _SPARSE < size:
        for r in range(size):
            factor = rows[r]
            if factor != 0.0 and r != skipped_row:
                for entry in range(count):
                    c = work.column_place[entry]
                    changed = inverse[r, c] - factor * column[c]
                    inverse[r, c] = changed if abs(changed) > _DROPPED else 0.0
        return
    for r in range(size):
        factor = rows[r]
        if factor != 0.0 and r != skipped_row:
            for c in range(size):
                changed = inverse[r, c] - factor * column[c]
                inverse[r, c] = changed if abs(changed) > _DROPPED else 0.0


@engine_kernel
def exchange(core, work, leaving, entering, pivot):
    """Update the inverse when ``entering`` replaces ``leaving``; return whether that was possible.

    Otherwise the basis has been exchanged, and the inverse has to be computed anew.

    The slacks' part of ``work.tableau_row`` is the leaving variable's row of the basis inverse;
    ``work.column`` (N a_q by structural of the kernel, destroyed) the column of the entering one; ``pivot``
    where both meet.
    The kernel has room for one more row.
    """
    num_cols = core.num_cols
    size = work.sizes[KERNEL]
    work.sizes[UPDATES] += 1
    if has_sparse_factors(core, work):
        updated = exchange_in_factor(core, work, leaving, entering)
        _exchange_places(core, work, leaving, entering)
        return updated
    inverse = work.inverse
    column = work.column
    rows = work.kernel_residual
    inverted = 1.0 / pivot
    for r in range(size):
        rows[r] = work.tableau_row[num_cols + work.kernel_row[r]] * inverted
    gone = work.kernel_of_row[entering - num_cols] if entering >= num_cols else -1
    place = work.kernel_of_col[leaving] if leaving < num_cols else size
    if leaving < num_cols:
        column[place] = 0.0
    _subtract_product(work, rows, gone)
    last = size - 1
    if leaving >= num_cols:  # the row of the leaving slack, in the place of the one that goes or behind all
        new_row = gone if gone >= 0 else size
        for c in range(size):
            inverse[new_row, c] = -column[c] * inverted
        if gone < 0:
            inverse[size, size] = inverted
    if entering < num_cols:
        for r in range(size):
            inverse[r, place] = rows[r]
    elif leaving < num_cols:  # one row and column less; the last ones take their places
        for r in range(size):
            inverse[r, place] = inverse[r, last]
        for c in range(size):
            inverse[gone, c] = inverse[last, c]
    _exchange_places(core, work, leaving, entering)
    return True


@engine_kernel
def _exchange_places(core, work, leaving, entering):
    """Give the entering variable's column, the leaving one's row, or the last ones, the places left empty."""
    num_cols = core.num_cols
    if leaving < num_cols:
        place = work.kernel_of_col[leaving]
        work.kernel_of_col[leaving] = -1
    else:
        place = work.sizes[KERNEL]
    if entering >= num_cols:
        gone = work.kernel_of_row[entering - num_cols]
        work.kernel_of_row[entering - num_cols] = -1
    else:
        gone = work.sizes[KERNEL]
    col = entering
    row = leaving - num_cols
    if leaving < num_cols and entering >= num_cols:
        last = work.sizes[KERNEL] - 1
        work.sizes[KERNEL] = last
        col = work.kernel_col[last]
        row = work.kernel_row[last]
        if place < last:
            work.kernel_col[place] = col
            work.kernel_of_col[col] = place
        if gone < last:
            work.kernel_row[gone] = row
            work.kernel_of_row[row] = gone
        return
    if entering < num_cols:
        work.kernel_col[place] = col
        work.kernel_of_col[col] = place
    if leaving >= num_cols:
        work.kernel_row[gone] = row
        work.kernel_of_row[row] = gone
    if leaving >= num_cols and entering < num_cols:
        work.sizes[KERNEL] += 1
