"""Sparse factors of the basis for large kernels: LU of the kernel, and a product of columns behind it.

At a factorisation the basis is B0 = [[K, 0], [T, I]]. Its columns have *positions*: that of a structural is
the step in which it was eliminated, that of the slack of an inactive row is the row, counted from ``_base``
on. From then on an entering variable takes the position p of the leaving one, and with its column alpha in
the basis

    B <- B (I + (alpha - e_p) e_p').

K = L U, both stored by rows and by columns; T by columns (``tail``). Columns of exchanges are read from the
first to the last by solves with B; for solves with B', where an entry changes only in an exchanged position,
``chain`` links the entries of a position from the newest one on.

A solve visits nothing but entries that differ from 0: ``solution_bits`` has a bit for every position of
``solution`` that may, and of a triangular factor the next one is the first bit that is left in its order.

Cuts whose slack is basic when the basis is factorised are not part of it. Such a slack's entries follow from
the cut's row; when it leaves, the basis is factorised anew.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros

from cobre.lp.engines.own.core import (
    COLUMN_ENTRIES,
    EXCHANGES,
    FACTORED,
    KERNEL,
    SLACK_ENTRIES,
    SLOTS,
)
from cobre.native import engine_kernel

_SINGULAR_PIVOT = 1.0e-11
_CANCELLED = 1.0e-14
"""Smaller entries are what cancelling numbers left."""

_NEGLIGIBLE = 1.0e-12
"""Smaller entries of a column are set to 0."""

_STABLE = 0.1
"""A pivot's least share of the largest entry of its row."""

_ROWS_TRIED = 4
_NONE = -1
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@engine_kernel
def factorise(core, work):
    """Factorise the basis; return whether the kernel is regular and the factors have room.

    A pivot is sought in the rows with the fewest entries, where its column has the fewest.
    """
    num_cols = core.num_cols
    num_rows = core.num_rows
    size = work.sizes[KERNEL]
    work.sizes[EXCHANGES] = 0
    work.sizes[FACTORED] = size
    work.exchange_start[0] = 0
    work.lower_start[0] = 0
    work.upper_row_start[0] = 0
    base = _base(work)
    for row in range(num_rows + work.sizes[SLOTS]):
        work.position_of_row[row] = base + row
        work.position_of[num_cols + row] = base + row
        work.basic_at[base + row] = num_cols + row
        work.chain_first[base + row] = _NONE
    for slot in range(work.sizes[SLOTS]):
        work.slot_factored[slot] = 1 if work.kernel_of_row[num_rows + slot] >= 0 else 0
    for col in range(num_cols):
        work.factored_at[col] = _NONE
    if not _load_kernel(core, work):
        return False
    for step in range(size):
        if not _eliminate_next(work, step):
            return False
    for step in range(size):
        col = work.kernel_col[work.pivot_col[step]]
        row = work.kernel_row[work.pivot_row[step]]
        work.part_col_begin[work.pivot_col[step]] = step
        work.part_begin[work.pivot_row[step]] = step
        work.chain_first[step] = _NONE
        work.basic_at[step] = col
        work.position_of[col] = step
        work.factored_at[col] = step
        work.position_of_row[row] = step
        work.row_at[step] = row
    for entry in range(work.lower_start[size]):
        work.lower_at[entry] = work.part_begin[work.lower_at[entry]]
    for entry in range(work.upper_row_start[size]):
        work.upper_row_at[entry] = work.part_col_begin[work.upper_row_at[entry]]
    lower_rows = (work.lower_row_start, work.lower_row_at, work.lower_row_value)
    _transpose(size, work.lower_start, work.lower_at, work.lower_value, lower_rows)
    upper_columns = (work.upper_start, work.upper_at, work.upper_value)
    _transpose(size, work.upper_row_start, work.upper_row_at, work.upper_row_value, upper_columns)
    return _store_tails(core, work)


@engine_kernel
def _base(work):
    """Return the position of the slack of row 0; bits of structurals and of slacks share no word."""
    return (work.sizes[FACTORED] + 63) // 64 * 64


@engine_kernel
def _load_kernel(core, work):
    """Copy the kernel by rows, with the rows of every column, and link rows by their number of entries."""
    num_rows = core.num_rows
    size = work.sizes[KERNEL]
    room = len(work.part_col)
    part_col = work.part_col
    part_value = work.part_value
    part_row = work.part_row
    col_begin = work.part_col_begin
    col_entries = work.part_col_entries
    kernel_of_col = work.kernel_of_col
    row_col = core.row_col
    row_value = core.row_value
    for c in range(size):
        col_entries[c] = 0
        work.part_change[c] = 0.0
    for entries in range(size + 1):
        work.first_with[entries] = _NONE
    end = 0
    for r in range(size):
        row = work.kernel_row[r]
        begin = end
        if end + (np.int64(core.row_start[row + 1] - core.row_start[row]) if row < num_rows else size) > room:
            return False
        if row < num_rows:
            for entry in range(core.row_start[row], core.row_start[row + 1]):
                c = kernel_of_col[row_col[entry]]
                if c >= 0:
                    part_col[end] = c
                    part_value[end] = row_value[entry]
                    col_entries[c] += 1
                    end += 1
        else:
            cut_row = work.cut_row[row - num_rows]
            for c in range(size):
                value = cut_row[work.kernel_col[c]]
                if value != 0.0:
                    part_col[end] = c
                    part_value[end] = value
                    col_entries[c] += 1
                    end += 1
        work.part_begin[r] = begin
        work.part_entries[r] = end - begin
        _link(work.first_with, work.next_alike, work.last_alike, r, end - begin)
    work.part_end[0] = end
    end = 0
    for c in range(size):
        col_begin[c] = end
        end += col_entries[c] + 4
        work.part_col_room[c] = col_entries[c] + 4
        col_entries[c] = 0
    if end > len(work.part_row):
        return False
    work.part_end[1] = end
    for r in range(size):
        for entry in range(work.part_begin[r], work.part_begin[r] + work.part_entries[r]):
            c = part_col[entry]
            part_row[col_begin[c] + col_entries[c]] = r
            col_entries[c] += 1
    return True


@engine_kernel
def _link(first_with, next_alike, last_alike, r, entries):
    first = first_with[entries]
    next_alike[r] = first
    last_alike[r] = _NONE
    if first >= 0:
        last_alike[first] = r
    first_with[entries] = r


@engine_kernel
def _unlink(first_with, next_alike, last_alike, r, entries):
    before = last_alike[r]
    behind = next_alike[r]
    if before >= 0:
        next_alike[before] = behind
    else:
        first_with[entries] = behind
    if behind >= 0:
        last_alike[behind] = before


@engine_kernel
def _find_pivot(work, remaining):
    """Return a row and the place of its entry that is eliminated next; -1 for a singular kernel."""
    first_with = work.first_with
    part_col = work.part_col
    part_value = work.part_value
    col_entries = work.part_col_entries
    best_row = _NONE
    best_place = _NONE
    best = remaining * remaining
    tried = 0
    entries = 1
    if first_with[0] >= 0:
        return best_row, best_place
    while entries <= remaining and tried < _ROWS_TRIED and best > (entries - 1) * (entries - 1):
        r = first_with[entries]
        while r >= 0 and tried < _ROWS_TRIED and best > (entries - 1) * (entries - 1):
            tried += 1
            begin = work.part_begin[r]
            largest = _SINGULAR_PIVOT
            for place in range(begin, begin + entries):
                largest = max(largest, abs(part_value[place]))
            for place in range(begin, begin + entries):
                if abs(part_value[place]) >= _STABLE * largest:
                    fill = (entries - 1) * (col_entries[part_col[place]] - 1)
                    if fill < best or best_row < 0:
                        best = fill
                        best_row = r
                        best_place = place
            r = work.next_alike[r]
        entries += 1
    if best_row >= 0 and not abs(part_value[best_place]) > _SINGULAR_PIVOT:
        best_row = _NONE
    return best_row, best_place


@engine_kernel
def _eliminate_next(work, step):
    """Eliminate one more row and column; return whether the kernel is regular so far and there was room."""
    pivot_row, pivot_place = _find_pivot(work, work.sizes[KERNEL] - step)
    if pivot_row < 0:
        return False
    part_col = work.part_col
    part_value = work.part_value
    part_row = work.part_row
    part_begin = work.part_begin
    part_entries = work.part_entries
    col_begin = work.part_col_begin
    col_entries = work.part_col_entries
    first_with = work.first_with
    next_alike = work.next_alike
    last_alike = work.last_alike
    pivot_col = part_col[pivot_place]
    pivot = part_value[pivot_place]
    work.pivot_row[step] = pivot_row
    work.pivot_col[step] = pivot_col
    work.pivot[step] = pivot
    begin = part_begin[pivot_row]
    entries = part_entries[pivot_row]
    _unlink(first_with, next_alike, last_alike, pivot_row, entries)
    upper_at = work.upper_row_at
    upper_value = work.upper_row_value
    upper = np.int64(work.upper_row_start[step])
    if upper + entries > len(upper_value):
        return False
    for place in range(begin, begin + entries):
        c = part_col[place]
        _take_out(part_row, col_begin, col_entries, c, pivot_row)
        upper_at[upper] = c
        upper_value[upper] = part_value[place]
        upper += c != pivot_col
    work.upper_row_start[step + 1] = upper
    count = col_entries[pivot_col]
    lower_at = work.lower_at
    lower_value = work.lower_value
    lower = np.int64(work.lower_start[step])
    if lower + count > len(lower_value):
        return False
    column = col_begin[pivot_col]
    for entry in range(column, column + count):
        r = part_row[entry]
        place = part_begin[r]
        while part_col[place] != pivot_col:
            place += 1
        multiple = part_value[place] / pivot
        lower_at[lower] = r
        lower_value[lower] = multiple
        lower += 1
        length = part_entries[r]
        _unlink(first_with, next_alike, last_alike, r, length)
        last = part_begin[r] + length - 1
        part_col[place] = part_col[last]
        part_value[place] = part_value[last]
        part_entries[r] = length - 1
        if entries > 1 and not _subtract_row(work, r, pivot_row, pivot_col, multiple):
            return False
        _link(first_with, next_alike, last_alike, r, part_entries[r])
    work.lower_start[step + 1] = lower
    return True


@engine_kernel
def _take_out(part_row, col_begin, col_entries, c, r):
    """Take a row out of the list of a column."""
    place = col_begin[c]
    last = place + col_entries[c] - 1
    while part_row[place] != r:
        place += 1
    part_row[place] = part_row[last]
    col_entries[c] -= 1


@engine_kernel
def _subtract_row(work, r, pivot_row, pivot_col, multiple):
    """Subtract a multiple of the pivot's row without the pivot from a row; return whether there was room."""
    part_col = work.part_col
    part_value = work.part_value
    change = work.part_change
    begin = work.part_begin[pivot_row]
    end = begin + work.part_entries[pivot_row]
    for place in range(begin, end):
        change[part_col[place]] = multiple * part_value[place]
    change[pivot_col] = 0.0
    place = work.part_begin[r]
    while place < work.part_begin[r] + work.part_entries[r]:
        c = part_col[place]
        difference = change[c]
        if difference != 0.0:
            change[c] = 0.0
            part_value[place] -= difference
            if abs(part_value[place]) < _CANCELLED:
                last = work.part_begin[r] + work.part_entries[r] - 1
                part_col[place] = part_col[last]
                part_value[place] = part_value[last]
                work.part_entries[r] -= 1
                _take_out(work.part_row, work.part_col_begin, work.part_col_entries, c, r)
                continue
        place += 1
    filled = 0
    for place in range(begin, end):
        filled += change[part_col[place]] != 0.0
    if filled == 0:
        return True
    length = work.part_entries[r]
    target = work.part_end[0]
    if target + length + filled > len(part_col):
        return False
    work.part_end[0] = target + length + filled
    source = work.part_begin[r]
    for entry in range(length):
        part_col[target + entry] = part_col[source + entry]
        part_value[target + entry] = part_value[source + entry]
    work.part_begin[r] = target
    target += length
    for place in range(begin, end):
        c = part_col[place]
        if change[c] != 0.0:
            part_col[target] = c
            part_value[target] = -change[c]
            change[c] = 0.0
            target += 1
            if not _put_in(work, c, r):
                return False
    work.part_entries[r] = length + filled
    return True


@engine_kernel
def _put_in(work, c, r):
    """Put a row on the list of a column, which moves when it has no room; return whether it had any."""
    count = work.part_col_entries[c]
    if count == work.part_col_room[c]:
        target = work.part_end[1]
        room = 2 * count + 4
        if target + room > len(work.part_row):
            return False
        work.part_end[1] = target + room
        for entry in range(count):
            work.part_row[target + entry] = work.part_row[work.part_col_begin[c] + entry]
        work.part_col_begin[c] = target
        work.part_col_room[c] = room
    work.part_row[work.part_col_begin[c] + count] = r
    work.part_col_entries[c] = count + 1
    return True


@engine_kernel
def _transpose(size, starts, at, values, result):
    """Write a square matrix that is stored by lines by the other ones."""
    new_starts, new_at, new_values = result
    for line in range(size + 1):
        new_starts[line] = 0
    for entry in range(starts[size]):
        new_starts[at[entry]] += 1
    end = 0
    for line in range(size):
        end += new_starts[line]
        new_starts[line] = end
    new_starts[size] = end
    for line in range(size - 1, -1, -1):
        for entry in range(starts[line], starts[line + 1]):
            place = new_starts[at[entry]] - 1
            new_starts[at[entry]] = place
            new_at[place] = line
            new_values[place] = values[entry]


@engine_kernel
def _store_tails(core, work):
    """Write T by columns; return whether there was room."""
    base = _base(work)
    position_of_row = work.position_of_row
    tail_at = work.tail_at
    tail_value = work.tail_value
    col_row = core.col_row
    col_value = core.col_value
    end = 0
    for step in range(work.sizes[FACTORED]):
        work.tail_start[step] = end
        col = work.basic_at[step]
        if end + np.int64(core.col_start[col + 1] - core.col_start[col]) >= len(tail_value):
            return False
        for entry in range(core.col_start[col], core.col_start[col + 1]):
            position = position_of_row[col_row[entry]]
            tail_at[end] = position
            tail_value[end] = col_value[entry]
            end += position >= base
    work.tail_start[work.sizes[FACTORED]] = end
    return True


@engine_kernel
def _mark(bits, position):
    bits[position >> 6] |= _ONE << np.uint64(position & 63)


@engine_kernel
def _put(work, position, value):
    """Set an entry of ``solution``."""
    work.solution[position] = value
    _mark(work.solution_bits, position)


@engine_kernel
def _subtract(solution, bits, factor, at, values, begin, end):
    for entry in range(begin, end):
        position = at[entry]
        solution[position] -= factor * values[entry]
        bits[position >> 6] |= _ONE << np.uint64(position & 63)


@engine_kernel
def _descend(work, diagonal, starts, at, values, tails):
    """Solve a triangular system in place, from the last step to the first."""
    solution = work.solution
    bits = work.solution_bits
    for word in range(_base(work) // 64 - 1, -1, -1):
        left = bits[word]
        while left != 0:
            bit = 63 - leading_zeros(left)
            step = word * 64 + bit
            factor = solution[step]
            if abs(factor) < _CANCELLED:
                solution[step] = 0.0
            else:
                if tails:
                    factor /= diagonal[step]
                    solution[step] = factor
                    begin, end = work.tail_start[step], work.tail_start[step + 1]
                    _subtract(solution, bits, factor, work.tail_at, work.tail_value, begin, end)
                _subtract(solution, bits, factor, at, values, starts[step], starts[step + 1])
            left = bits[word] & ((_ONE << np.uint64(bit)) - _ONE)


@engine_kernel
def _ascend(work, diagonal, starts, at, values, divides):
    """Solve a triangular system in place, from the first step to the last."""
    solution = work.solution
    bits = work.solution_bits
    for word in range(_base(work) // 64):
        left = bits[word]
        while left != 0:
            bit = trailing_zeros(left)
            step = word * 64 + bit
            factor = solution[step]
            if abs(factor) < _CANCELLED:
                solution[step] = 0.0
            else:
                if divides:
                    factor /= diagonal[step]
                    solution[step] = factor
                _subtract(solution, bits, factor, at, values, starts[step], starts[step + 1])
            left = bits[word] & ((_ALL << np.uint64(bit)) << _ONE)


@engine_kernel
def _solve(work):
    """Solve B x = ``solution`` in place."""
    solution = work.solution
    bits = work.solution_bits
    _ascend(work, work.pivot, work.lower_start, work.lower_at, work.lower_value, False)
    _descend(work, work.pivot, work.upper_start, work.upper_at, work.upper_value, True)
    starts = work.exchange_start
    at = work.exchange_at
    values = work.exchange_value
    for step in range(work.sizes[EXCHANGES]):
        position = work.exchanged[step]
        factor = solution[position]
        if factor != 0.0:
            factor /= work.exchange_pivot[step]
            solution[position] = factor
            _subtract(solution, bits, factor, at, values, starts[step], starts[step + 1])


@engine_kernel
def _solve_transposed(core, work):
    """Solve B'y = ``solution`` in place."""
    solution = work.solution
    bits = work.solution_bits
    base = _base(work)
    words = (base + core.num_rows + work.sizes[SLOTS] + 63) // 64
    if work.sizes[EXCHANGES] > 0:
        _solve_transposed_exchanges(work, words)
    factored_at = work.factored_at
    row_start = core.row_start
    row_col = core.row_col
    row_value = core.row_value
    for word in range(base // 64, words):
        left = bits[word]
        while left != 0:
            row = word * 64 + trailing_zeros(left) - base
            left &= left - _ONE
            factor = solution[base + row]
            if factor != 0.0:
                for entry in range(row_start[row], row_start[row + 1]):
                    step = factored_at[row_col[entry]]
                    if step >= 0:
                        solution[step] -= factor * row_value[entry]
                        _mark(bits, step)
    _ascend(work, work.pivot, work.upper_row_start, work.upper_row_at, work.upper_row_value, True)
    _descend(work, work.pivot, work.lower_row_start, work.lower_row_at, work.lower_row_value, False)


@engine_kernel
def _solve_transposed_exchanges(work, words):
    solution = work.solution
    bits = work.solution_bits
    for step in range(work.sizes[EXCHANGES]):
        work.exchange_sum[step] = 0.0
    for word in range(words):
        left = bits[word]
        while left != 0:
            position = word * 64 + trailing_zeros(left)
            left &= left - _ONE
            _follow_chain(work, position, solution[position])
    for step in range(work.sizes[EXCHANGES] - 1, -1, -1):
        position = work.exchanged[step]
        old = solution[position]
        new = (old - work.exchange_sum[step]) / work.exchange_pivot[step]
        if new != old:
            _put(work, position, new)
            _follow_chain(work, position, new - old)


@engine_kernel
def _follow_chain(work, position, change):
    """Add what a change of ``solution`` at a position gives the products with exchanged columns."""
    sums = work.exchange_sum
    entry = work.chain_first[position]
    while entry >= 0:
        sums[work.exchange_of[entry]] += work.exchange_value[entry] * change
        entry = work.chain_next[entry]


@engine_kernel
def _list_solution(core, work):
    """List the positions of ``solution``; return how many. The caller sets them to 0."""
    bits = work.solution_bits
    listed = work.solution_at
    count = 0
    for word in range((_base(work) + core.num_rows + work.sizes[SLOTS] + 63) // 64):
        left = bits[word]
        bits[word] = 0
        while left != 0:
            listed[count] = word * 64 + trailing_zeros(left)
            left &= left - _ONE
            count += 1
    return count


@engine_kernel
def factor_times(core, work, vector, result):
    """Set ``result`` (by structural of the kernel) to N times a vector by active row."""
    size = work.sizes[KERNEL]
    solution = work.solution
    for r in range(size):
        if vector[r] != 0.0:
            _put(work, work.position_of_row[work.kernel_row[r]], vector[r])
    _solve(work)
    for c in range(size):
        result[c] = 0.0
    for place in range(_list_solution(core, work)):
        position = work.solution_at[place]
        var = work.basic_at[position]
        if var < core.num_cols:
            result[work.kernel_of_col[var]] = solution[position]
        solution[position] = 0.0


@engine_kernel
def _add_rows(core, work, result):
    """Add ``solution`` by row to ``result`` by active row, and set it to 0."""
    solution = work.solution
    size = work.sizes[FACTORED]
    base = _base(work)
    for place in range(_list_solution(core, work)):
        position = work.solution_at[place]
        row = work.row_at[position] if position < size else position - base
        r = work.kernel_of_row[row]
        if r >= 0:
            result[r] += solution[position]
        solution[position] = 0.0


@engine_kernel
def factor_transposed_times(core, work, vector, result):
    """Add N'v to ``result`` (by active row) for a vector v by structural of the kernel."""
    for c in range(work.sizes[KERNEL]):
        if vector[c] != 0.0:
            _put(work, work.position_of[work.kernel_col[c]], vector[c])
    _solve_transposed(core, work)
    _add_rows(core, work, result)


@engine_kernel
def row_by_factor(core, work, var):
    """Set the slacks' part of ``tableau_row`` to the row of the inverse of a variable in the basis; list it.

    Returns the number of entries.
    """
    num_cols = core.num_cols
    _put(work, work.position_of[var], 1.0)
    _solve_transposed(core, work)
    solution = work.solution
    listed = work.solution_at
    row_at = work.row_at
    kernel_of_row = work.kernel_of_row
    result = work.tableau_row
    row_var = work.row_var
    size = work.sizes[FACTORED]
    base = _base(work)
    count = 0
    for place in range(_list_solution(core, work)):
        position = listed[place]
        row = row_at[position] if position < size else position - base
        value = solution[position]
        solution[position] = 0.0
        if kernel_of_row[row] >= 0 and value != 0.0:
            result[num_cols + row] = value
            row_var[count] = num_cols + row
            count += 1
    return count


@engine_kernel
def column_by_factor(core, work, entering):
    """Compute a nonbasic variable's column, and keep it for its exchange.

    ``column`` and ``slack_column``, which are 0, are set for the structurals and the rows of the core.
    """
    num_cols = core.num_cols
    num_rows = core.num_rows
    solution = work.solution
    position_of_row = work.position_of_row
    if entering < num_cols:
        for entry in range(core.col_start[entering], core.col_start[entering + 1]):
            _put(work, position_of_row[core.col_row[entry]], core.col_value[entry])
        for slot in range(work.sizes[SLOTS]):
            if work.slot_factored[slot] != 0 and work.cut_row[slot, entering] != 0.0:
                _put(work, position_of_row[num_rows + slot], work.cut_row[slot, entering])
    else:
        _put(work, position_of_row[entering - num_cols], 1.0)
    _solve(work)
    end = work.exchange_start[work.sizes[EXCHANGES]]
    structurals = 0
    slacks = 0
    for place in range(_list_solution(core, work)):
        position = work.solution_at[place]
        value = solution[position]
        solution[position] = 0.0
        if abs(value) > _NEGLIGIBLE:
            work.exchange_at[end] = position
            work.exchange_value[end] = value
            end += 1
            var = work.basic_at[position]
            if var < num_cols:
                c = work.kernel_of_col[var]
                work.column[c] = value
                work.column_place[structurals] = c
                structurals += 1
            elif var < num_cols + num_rows:
                work.slack_column[var - num_cols] = value
                work.slack_row[slacks] = var - num_cols
                slacks += 1
    work.sizes[COLUMN_ENTRIES] = structurals
    work.sizes[SLACK_ENTRIES] = slacks
    work.exchange_start[work.sizes[EXCHANGES] + 1] = end


@engine_kernel
def exchange_in_factor(core, work, leaving, entering):
    """Let ``entering``, whose column was computed last, take the position of ``leaving``.

    Returns whether the factors hold the new basis; otherwise it has to be factorised.
    """
    slot = leaving - core.num_cols - core.num_rows
    if slot >= 0 and work.slot_factored[slot] == 0:
        return False
    step = work.sizes[EXCHANGES]
    begin = work.exchange_start[step]
    end = work.exchange_start[step + 1]
    exchanged = work.position_of[leaving]
    place = begin
    while place < end and work.exchange_at[place] != exchanged:
        place += 1
    if place == end:
        return False
    work.exchanged[step] = exchanged
    work.exchange_pivot[step] = work.exchange_value[place]
    end -= 1
    work.exchange_at[place] = work.exchange_at[end]
    work.exchange_value[place] = work.exchange_value[end]
    for entry in range(begin, end):
        position = work.exchange_at[entry]
        work.exchange_of[entry] = step
        work.chain_next[entry] = work.chain_first[position]
        work.chain_first[position] = entry
    work.exchange_start[step + 1] = end
    work.sizes[EXCHANGES] = step + 1
    work.basic_at[exchanged] = entering
    work.position_of[entering] = exchanged
    room = len(work.exchange_at) - len(work.basic_at)
    return step + 1 < len(work.exchanged) and end <= room
