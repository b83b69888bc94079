"""What an LP starts from: the slack basis, a stored basis, or a saved state of the same trial point.

A start from a stored basis is a function of that basis and of the data alone, whatever was solved before.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.engines.own.core import (
    AT_KINK,
    AWAKE,
    COLD_STARTS,
    IN_SEGMENT,
    KERNEL,
    NONBASIC,
    SINGULAR,
    SLOTS,
    UPDATES,
    has_sparse_factors,
    put_at_kink,
    put_basic_at_kink,
    put_in_segment,
    put_where_price_suits,
)
from cobre.lp.engines.own.cuts import load_cut, put_to_sleep, set_cut_rhs
from cobre.lp.engines.own.kernel_inverse import refactor
from cobre.lp.engines.own.pricing import price_structurals, refresh_prices, suit_kinks_to_prices
from cobre.lp.engines.own.sparse_factor import factorise
from cobre.native import engine_kernel


@engine_kernel
def start_cold(core, work):
    """Start from the slack basis: all rows inactive, prices the slopes closest to 0.

    The working set stays, asleep: saved states may hold its slots.
    """
    num_cols = core.num_cols
    work.counters[COLD_STARTS] += 1
    work.sizes[KERNEL] = 0
    work.sizes[AWAKE] = 0
    work.sizes[UPDATES] = 0
    for slot in range(work.sizes[SLOTS]):
        put_to_sleep(core, work, slot)
    for row in range(core.num_rows):
        var = num_cols + row
        first = core.piece_start[var]
        last = core.piece_start[var + 1] - 1
        place = first
        while place < last - 1 and core.slope[place] < 0.0:
            place += 1
        if place == first or core.slope[place] <= 0.0:
            put_in_segment(core, work, var, place)
        else:
            put_basic_at_kink(core, work, var, place)
        work.kernel_of_row[row] = -1
        work.weight[var] = 1.0
        work.value[var] = 0.0
    price_structurals(core, work, work.price, work.col_scratch, work.col_scale)
    for col in range(num_cols):
        work.kernel_of_col[col] = -1
        work.weight[col] = 1.0
        work.price[col] = work.col_scratch[col]
        put_where_price_suits(core, work, col)
    if has_sparse_factors(core, work):
        factorise(core, work)


@engine_kernel
def begin_point(work):
    """Forget the working set: a new trial point, or another LP."""
    work.sizes[SLOTS] = 0
    work.sizes[AWAKE] = 0
    for slot in range(len(work.slot_pins)):
        work.slot_pins[slot] = 0


@engine_kernel
def repair(core, work):
    """Compute inverse and prices from the basis, and suit kinks to prices; return 0 or a reason."""
    if not refactor(core, work):
        return SINGULAR
    for row in range(core.num_rows):
        var = core.num_cols + row
        if work.kernel_of_row[row] < 0 and work.low[var] < work.high[var]:
            work.price[var] = core.slope[work.place[var]]
    refresh_prices(core, work)
    refresh_prices(core, work)
    suit_kinks_to_prices(core, work)
    return 0


@engine_kernel
def start_from_store(core, work, pool, store, key):
    """Start a trial point from the basis stored under ``key``; from the slack basis if there is none."""
    begin_point(work)
    if store.known[key] == 0 or not _load_basis(core, work, pool, store, key) or repair(core, work) != 0:
        begin_point(work)
        start_cold(core, work)


@engine_kernel
def _load_basis(core, work, pool, store, key):
    num_cols = core.num_cols
    num_rows = core.num_rows
    cols = 0
    rows = 0
    room = len(work.kernel_col)
    for var in range(num_cols + num_rows):
        place = core.piece_start[var] + store.place[key, var]
        kind = store.kind[key, var]
        work.value[var] = 0.0
        work.price[var] = 0.0
        work.weight[var] = 1.0
        if kind == IN_SEGMENT:
            put_in_segment(core, work, var, place)
        elif kind == AT_KINK:
            put_basic_at_kink(core, work, var, place)
        else:
            put_at_kink(core, work, var, place)
        if var < num_cols:
            work.kernel_of_col[var] = -1
            if kind != NONBASIC:
                if cols == room:
                    return False
                work.kernel_col[cols] = var
                work.kernel_of_col[var] = cols
                cols += 1
        else:
            work.kernel_of_row[var - num_cols] = -1
            if kind == NONBASIC:
                if rows == room:
                    return False
                work.kernel_row[rows] = var - num_cols
                work.kernel_of_row[var - num_cols] = rows
                rows += 1
    for entry in range(store.num_cuts[key]):
        if rows == room:
            return False
        slot = load_cut(core, work, pool, store.cut[key, entry])
        row = num_rows + slot
        work.price[num_cols + row] = 0.0
        put_at_kink(core, work, num_cols + row, core.piece_start[num_cols + num_rows] + 1)
        work.kernel_row[rows] = row
        work.kernel_of_row[row] = rows
        work.slot_awake[slot] = 1
        work.awake[work.sizes[AWAKE]] = slot
        work.sizes[AWAKE] += 1
        set_cut_rhs(core, work, pool, slot)
        rows += 1
    work.sizes[KERNEL] = cols
    return rows == cols


@engine_kernel
def store_basis(core, work, store, key):
    """Store the present optimal basis; a free variable that lies at 0 outside it makes it of no use."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    store.known[key] = 0
    for var in range(num_cols + num_rows):
        first = core.piece_start[var]
        place = work.place[var] - first
        if var < num_cols:
            basic = work.kernel_of_col[var] >= 0
        else:
            basic = work.kernel_of_row[var - num_cols] < 0
        kind = NONBASIC
        if basic:
            kind = AT_KINK if work.low[var] == work.high[var] else IN_SEGMENT
        elif place == 0 or work.place[var] == core.piece_start[var + 1] - 1:
            return
        store.place[key, var] = place
        store.kind[key, var] = kind
    count = 0
    for slot in range(work.sizes[SLOTS]):
        if work.kernel_of_row[num_rows + slot] >= 0:
            cut = work.slot_cut[slot]
            entry = count
            while entry > 0 and store.cut[key, entry - 1] > cut:
                store.cut[key, entry] = store.cut[key, entry - 1]
                entry -= 1
            store.cut[key, entry] = cut
            count += 1
    store.num_cuts[key] = count
    store.known[key] = 1


@engine_kernel
def _pin(core, work, saved, place, change):
    for r in range(saved.kernel[place]):
        slot = saved.kernel_row[place, r] - core.num_rows
        if slot >= 0:
            work.slot_pins[slot] += change


@engine_kernel
def forget_saved(saved):
    """Forget all saved states: a new trial point."""
    for place in range(len(saved.kernel)):
        saved.kernel[place] = 0


@engine_kernel
def save_state(core, work, saved, place):
    """Save the present state at a place of storage; cuts active in it keep their slots meanwhile."""
    _pin(core, work, saved, place, -1)
    variables = core.num_cols + core.num_rows
    size = work.sizes[KERNEL]
    saved.kernel[place] = size
    saved.updates[place] = work.sizes[UPDATES]
    for var in range(variables):
        saved.value[place, var] = work.value[var]
        saved.price[place, var] = work.price[var]
        saved.place[place, var] = work.place[var]
        saved.price_low[place, var] = work.price_low[var]
        saved.price_high[place, var] = work.price_high[var]
        saved.low[place, var] = work.low[var]
        saved.high[place, var] = work.high[var]
        saved.weight[place, var] = work.weight[var]
    for slot in range(work.sizes[SLOTS]):
        saved.price[place, variables + slot] = work.price[variables + slot]
    for c in range(size):
        saved.kernel_col[place, c] = work.kernel_col[c]
        saved.kernel_row[place, c] = work.kernel_row[c]
    if not has_sparse_factors(core, work):
        for r in range(size):
            for c in range(size):
                saved.inverse[place, r, c] = work.inverse[r, c]
    _pin(core, work, saved, place, 1)


@engine_kernel
def restore_state(core, work, saved, place):
    """Go back to a saved state; cuts that are not active in it sleep."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    variables = num_cols + num_rows
    size = saved.kernel[place]
    work.sizes[KERNEL] = size
    work.sizes[AWAKE] = 0
    work.sizes[UPDATES] = saved.updates[place]
    for slot in range(work.sizes[SLOTS]):
        put_to_sleep(core, work, slot)
    for var in range(variables):
        work.value[var] = saved.value[place, var]
        work.price[var] = saved.price[place, var]
        work.place[var] = saved.place[place, var]
        work.price_low[var] = saved.price_low[place, var]
        work.price_high[var] = saved.price_high[place, var]
        work.low[var] = saved.low[place, var]
        work.high[var] = saved.high[place, var]
        work.weight[var] = saved.weight[place, var]
    for col in range(num_cols):
        work.kernel_of_col[col] = -1
    for row in range(num_rows):
        work.kernel_of_row[row] = -1
    for c in range(size):
        work.kernel_col[c] = saved.kernel_col[place, c]
        work.kernel_of_col[work.kernel_col[c]] = c
        row = saved.kernel_row[place, c]
        work.kernel_row[c] = row
        if row >= num_rows:
            var = num_cols + row
            put_at_kink(core, work, var, core.piece_start[variables] + 1)
            work.price[var] = saved.price[place, var]
        work.kernel_of_row[row] = c
    if has_sparse_factors(core, work):
        if not refactor(core, work):
            start_cold(core, work)
        return
    for r in range(size):
        for c in range(size):
            work.inverse[r, c] = saved.inverse[place, r, c]
