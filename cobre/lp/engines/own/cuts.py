"""Cuts on demand: the pool is scanned at optimality, violated cuts enter the working set.

A cut ``theta >= constant + g . x'`` with x' = b_S - A_S x (state rows S) is the row

    -theta_scale x_0 - (g'A_S) x + s = -(constant + g'b_S),    s >= 0,

multiplied by a power of two. A cut of the working set sleeps until it is violated: its row then costs
nothing.
A slot is used again for another cut when neither the present basis nor a saved state has its cut active.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.engines.own.core import (
    ARTIFICIAL_VALUE,
    AWAKE,
    CUTS_ADDED,
    FEASIBILITY,
    FUTURE_REACH,
    INFINITY,
    SCANS,
    SLOTS,
    put_in_segment,
)
from cobre.lp.engines.own.pricing import list_if_outside
from cobre.native import engine_kernel

_ADDED_PER_SCAN = 3
_RELATIVE_VIOLATION = 1.0e-11
_LARGEST_ENTRY = 1.5
_NO_SLOT = -1

_FEWEST_EVALUATED = 256
"""Cuts, the newest, among which the most violated ones are taken; older ones only where none of them is."""

_FAR_BELOW = 4.0
"""Constants of cuts that are switched off lie this many times as low as the future cost can be high."""


@engine_kernel
def add_violated_cuts(core, work, pool):
    """Wake the most violated cuts of the pool; return how many, -1 when the working set has no room."""
    if pool.num_cuts[0] == 0:
        return 0
    future_cost = work.value[0] * core.theta_scale
    tolerance = FEASIBILITY + _RELATIVE_VIOLATION * abs(future_cost)
    work.counters[SCANS] += 1
    blocks = _scan(core, work, pool, future_cost, tolerance)
    added = 0
    while added < _ADDED_PER_SCAN:
        worst = _take_most_violated(work, pool, blocks, tolerance)
        if worst < 0:
            break
        slot = _slot_of(work, worst)
        if slot == _NO_SLOT:
            slot = load_cut(core, work, pool, worst)
            if slot == _NO_SLOT:
                return added if added > 0 else -1
        elif work.slot_awake[slot] != 0:
            continue
        wake(core, work, pool, slot)
        added += 1
    work.counters[CUTS_ADDED] += added
    return added


@engine_kernel
def _scan(core, work, pool, future_cost, tolerance):
    """Evaluate cuts at the outgoing state, the newest first, until some are violated; return the blocks.

    ``violation`` is left by cut, and the largest one of each block in ``block_violation``, 0 where none is
    above the tolerance or, once enough cuts were evaluated, the block was passed over. Without a violated
    cut all were evaluated.
    """
    cuts = pool.num_cuts[0]
    width = pool.slope.shape[2]
    state = work.value[core.num_cols : core.num_cols + core.num_state_rows]
    blocks = (cuts + width - 1) // width
    evaluated = 0
    found = False
    for block in range(blocks - 1, -1, -1):
        if found and evaluated >= _FEWEST_EVALUATED:
            work.block_violation[block] = 0.0
            continue
        here = work.violation[block * width : min((block + 1) * width, cuts)]
        constant = work.cut_constant[block * width : block * width + len(here)]
        _evaluate(pool.slope[block], state, constant, future_cost, here)
        reached = 0
        for place in range(len(here)):
            reached |= 1 if here[place] > tolerance else 0
        work.block_violation[block] = _largest(here) if reached != 0 else 0.0
        found = found or reached != 0
        evaluated += len(here)
    return blocks


@engine_kernel
def _largest(values):
    """Return the largest of some values that are all numbers, or 0; by eight chains, for vectors."""
    zero = 0.0
    most0, most1, most2, most3 = zero, zero, zero, zero
    most4, most5, most6, most7 = zero, zero, zero, zero
    place = 0
    while place + 8 <= len(values):
        most0 = values[place] if values[place] > most0 else most0
        most1 = values[place + 1] if values[place + 1] > most1 else most1
        most2 = values[place + 2] if values[place + 2] > most2 else most2
        most3 = values[place + 3] if values[place + 3] > most3 else most3
        most4 = values[place + 4] if values[place + 4] > most4 else most4
        most5 = values[place + 5] if values[place + 5] > most5 else most5
        most6 = values[place + 6] if values[place + 6] > most6 else most6
        most7 = values[place + 7] if values[place + 7] > most7 else most7
        place += 8
    while place < len(values):
        most0 = values[place] if values[place] > most0 else most0
        place += 1
    return max(max(max(most0, most1), max(most2, most3)), max(max(most4, most5), max(most6, most7)))


@engine_kernel
def _take_most_violated(work, pool, blocks, tolerance):
    """Return the most violated cut, the first of equal ones, and leave it out from now on; -1 for none."""
    largest = tolerance
    block = np.int64(-1)
    for candidate in range(blocks):
        if work.block_violation[candidate] > largest:
            largest = work.block_violation[candidate]
            block = np.int64(candidate)
    if block < 0:
        return block
    width = pool.slope.shape[2]
    first = block * width
    here = work.violation[first : min(first + width, pool.num_cuts[0])]
    place = np.int64(0)
    while here[place] != largest:
        place += 1
    here[place] = 0.0
    work.block_violation[block] = _largest(here)
    return first + place


@engine_kernel
def _evaluate(slope, state, constant, future_cost, violation):
    """Set the violations of a block of cuts; rows of the state are taken by fours, in one fixed order."""
    cuts = len(violation)
    rows = len(state)
    row = 0
    if rows >= 4:
        state0, state1, state2, state3 = state[0], state[1], state[2], state[3]
        slope0, slope1, slope2, slope3 = slope[0], slope[1], slope[2], slope[3]
        for cut in range(cuts):
            first = slope0[cut] * state0 + slope1[cut] * state1
            second = slope2[cut] * state2 + slope3[cut] * state3
            violation[cut] = (constant[cut] - future_cost) + (first + second)
        row = 4
    else:
        for cut in range(cuts):
            violation[cut] = constant[cut] - future_cost
    while row + 4 <= rows:
        state0, state1, state2, state3 = state[row], state[row + 1], state[row + 2], state[row + 3]
        slope0, slope1, slope2, slope3 = slope[row], slope[row + 1], slope[row + 2], slope[row + 3]
        for cut in range(cuts):
            first = slope0[cut] * state0 + slope1[cut] * state1
            second = slope2[cut] * state2 + slope3[cut] * state3
            violation[cut] += first + second
        row += 4
    while row < rows:
        state0 = state[row]
        slope0 = slope[row]
        for cut in range(cuts):
            violation[cut] += slope0[cut] * state0
        row += 1


@engine_kernel
def _slot_of(work, cut):
    for slot in range(work.sizes[SLOTS]):
        if work.slot_cut[slot] == cut:
            return slot
    return _NO_SLOT


@engine_kernel
def load_cut(core, work, pool, cut):
    """Put a cut to sleep in a slot of the working set; return the slot, -1 when none is free."""
    slot = work.sizes[SLOTS]
    if slot < len(work.slot_cut):
        work.sizes[SLOTS] = slot + 1
    else:
        slot = _free_slot(core, work)
        if slot == _NO_SLOT:
            return slot
    entries = work.cut_row[slot]
    for col in range(core.num_cols):
        entries[col] = 0.0
    block, place = cut // pool.slope.shape[2], cut % pool.slope.shape[2]
    for row in range(core.num_state_rows):
        slope = pool.slope[block, row, place]
        if slope != 0.0:
            for entry in range(core.row_start[row], core.row_start[row + 1]):
                entries[core.row_col[entry]] -= slope * core.row_value[entry]
    entries[0] -= core.theta_scale
    largest = 0.0
    for col in range(core.num_cols):
        largest = max(largest, abs(entries[col]))
    scale = 1.0
    while scale * largest > _LARGEST_ENTRY:
        scale *= 0.5
    while scale * largest < 0.5 * _LARGEST_ENTRY:
        scale *= 2.0
    for col in range(core.num_cols):
        entries[col] *= scale
    work.slot_cut[slot] = cut
    work.slot_scale[slot] = scale
    work.slot_pins[slot] = 0
    work.slot_factored[slot] = 0
    put_to_sleep(core, work, slot)
    return slot


@engine_kernel
def _free_slot(core, work):
    """Return a slot whose cut no basis needs, one that sleeps if possible; -1 when there is none."""
    for slot in range(work.sizes[SLOTS]):
        if work.slot_awake[slot] == 0 and work.slot_pins[slot] == 0:
            return slot
    for entry in range(work.sizes[AWAKE]):
        slot = work.awake[entry]
        row = core.num_rows + slot
        satisfied = work.kernel_of_row[row] < 0 and work.value[core.num_cols + row] > FEASIBILITY
        if satisfied and work.slot_pins[slot] == 0:
            work.sizes[AWAKE] -= 1
            for later in range(entry, work.sizes[AWAKE]):
                work.awake[later] = work.awake[later + 1]
            return slot
    return _NO_SLOT


@engine_kernel
def put_to_sleep(core, work, slot):
    """Make the slack of a cut basic and of no concern; it is no part of the list of those awake."""
    row = core.num_rows + slot
    var = core.num_cols + row
    work.kernel_of_row[row] = -1
    work.slot_awake[slot] = 0
    put_in_segment(core, work, var, core.piece_start[core.num_cols + core.num_rows] + 1)
    work.value[var] = 0.0
    work.weight[var] = 1.0


@engine_kernel
def set_cut_rhs(core, work, pool, slot):
    """Compute the right-hand side of a cut's row from those of the state rows.

    A cut that is switched off but active in the basis gets a constant so low that it leaves.
    """
    cut = work.slot_cut[slot]
    block, place = cut // pool.slope.shape[2], cut % pool.slope.shape[2]
    total = work.cut_constant[cut]
    if is_switched_off(work, slot):
        reach = work.result[FUTURE_REACH] * core.theta_scale
        total = -_FAR_BELOW * (reach if reach == reach else ARTIFICIAL_VALUE)
    for row in range(core.num_state_rows):
        total += pool.slope[block, row, place] * work.rhs[row]
    work.rhs[core.num_rows + slot] = -total * work.slot_scale[slot]


@engine_kernel
def is_switched_off(work, slot):
    """Return whether the cut of a slot does not count."""
    return work.cut_constant[work.slot_cut[slot]] == -INFINITY


@engine_kernel
def wake(core, work, pool, slot):
    """Have a sleeping cut priced and kept up to date."""
    set_cut_rhs(core, work, pool, slot)
    var = core.num_cols + core.num_rows + slot
    total = work.rhs[core.num_rows + slot]
    for col in range(core.num_cols):
        total -= work.cut_row[slot, col] * work.value[col]
    work.value[var] = total
    work.slot_awake[slot] = 1
    work.awake[work.sizes[AWAKE]] = slot
    work.sizes[AWAKE] += 1
    list_if_outside(work, var)


@engine_kernel
def keep_active_cuts_awake(core, work, pool):
    """Let cuts sleep whose slack is basic; compute the right-hand sides of the others."""
    work.sizes[AWAKE] = 0
    for slot in range(work.sizes[SLOTS]):
        if work.kernel_of_row[core.num_rows + slot] >= 0:
            work.slot_awake[slot] = 1
            work.awake[work.sizes[AWAKE]] = slot
            work.sizes[AWAKE] += 1
            set_cut_rhs(core, work, pool, slot)
        else:
            put_to_sleep(core, work, slot)
