"""The LPs of one trial point by the own engine: data in, values, slopes and columns out.

A trial point is a node and an incoming state; its openings differ in what is drawn. What depends on the state
alone is computed once (:func:`begin_trial`), the rest for each opening (:func:`solve_opening`).
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.lp.arrays import CUT_INTERCEPT, CUT_SLOPES, F64_1D, F64_2D, I32_1D, I64_1D
from cobre.lp.engines.own.core import (
    DUAL_VALUE,
    FUTURE_REACH,
    INFINITY,
    KERNEL,
    MAGNITUDE,
    PRIMAL_VALUE,
    CoreStruct,
    CutStruct,
    WorkStruct,
)
from cobre.lp.engines.own.data import FormStruct
from cobre.lp.engines.own.entry import FROM_STORE, INTO_STORE, solve_at
from cobre.lp.highs import INFINITE
from cobre.lp.inflow_slopes import inflow_slope
from cobre.native import array_struct, engine_kernel, struct_at

I8_1D = Annotated[NDArray[np.int8], types.int8[::1]]
Addresses = Annotated[NDArray[np.intp], types.intp[::1]]


NOT_FINITE = np.int64(-1)
"""Status of an LP whose data are not finite numbers."""

NO_OPENING = np.int64(-1)
"""What is drawn is no opening, or it does not matter which."""

_ROUNDING = 1.0e-14
"""Share of a component by which it may differ from what constants of cuts contain, from rounding alone."""


class OwnArrays(NamedTuple):
    """The own engine of one rank.

    Attributes
    ----------
    engine
        Address of the engine (:mod:`cobre.lp.engines.own.entry`).
    uses_own
        By node: 1 where the own engine solves its LPs.
    core, form, cuts
        By node: addresses of ``CoreStruct``, ``FormStruct``, ``CutStruct``; 0 where another engine is used.
    work, saved
        By worker: addresses of ``WorkStruct`` and ``SavedStruct``.
    store
        Address of the ``StoreStruct``, by (own pass, node).
    archived, intercept
        By node: cuts of the pool that the archive has, and their intercepts in units of the LP.
    spread
        By node: how large structural 0 can become.
    last_root, order_start, order, parent, keep
        :class:`cobre.lp.opening_order.OpeningOrder` by node, then by (root, position).
    at_state, extended, expected, change, past, worth, carried, constant
        Scratch by worker: the right-hand side without what is drawn, and with it; what it is where nothing is
        drawn or truncated, and how far it differs from what constants of cuts already contain; the part of
        past inflows in the inflow of each plant; slopes of the value in the extended right-hand side; the
        components that the state alone fixes, in units of records; constants of cuts at the state, where
        draws change them.
    """

    engine: Addresses
    uses_own: I8_1D
    core: Addresses
    form: Addresses
    cuts: Addresses
    work: Addresses
    saved: Addresses
    store: Addresses
    archived: I64_1D
    intercept: F64_2D
    spread: F64_1D
    last_root: I64_1D
    order_start: I64_1D
    order: I32_1D
    parent: I32_1D
    keep: I32_1D
    at_state: F64_2D
    extended: F64_2D
    expected: F64_2D
    change: F64_2D
    past: F64_2D
    worth: F64_2D
    carried: F64_2D
    constant: F64_2D


OwnStruct = array_struct(OwnArrays)


@engine_kernel
def archive_cuts(lp, own, pool, node):
    """Take the cuts that are new in the pool of a node into the archive.

    Ranks that share the archive write the same numbers to the same places.
    """
    if own.uses_own[node] == 0:
        return
    form = struct_at(FormStruct, own.form[node])
    cuts = struct_at(CutStruct, own.cuts[node])
    core = struct_at(CoreStruct, own.core[node])
    width = cuts.slope.shape[2]
    for cut in range(own.archived[node], pool.num_cuts[node]):
        record = pool.record[node, cut]
        block, place = cut // width, cut % width
        for row in range(len(form.archive_component)):
            component = form.archive_component[row]
            cuts.slope[block, row, place] = record[CUT_SLOPES + component] * form.unit[component]
        for opening in range(len(cuts.drawn)):
            total = 0.0
            for row in range(cuts.drawn.shape[1]):
                total += cuts.slope[block, core.num_state_rows + row, place] * cuts.drawn[opening, row]
            cuts.slope[block, len(form.archive_row) + opening, place] = total
        own.intercept[node, cut] = record[CUT_INTERCEPT] / lp.cost_scale
        size = abs(record[CUT_INTERCEPT])
        for component in range(lp.state_least.shape[1]):
            extent = max(abs(lp.state_least[node, component]), abs(lp.state_most[node, component]))
            size += abs(record[CUT_SLOPES + component]) * extent
        own.spread[node] = max(own.spread[node], 2.0 * size / (lp.cost_scale * core.theta_scale))
    own.archived[node] = pool.num_cuts[node]


@engine_kernel
def begin_trial(lp, own, pool, worker, node, state):
    """Compute what all openings of a trial point share."""
    form = struct_at(FormStruct, own.form[node])
    at_state = own.at_state[worker]
    for row in range(form.num_extended):
        at_state[row] = form.base[row]
    for component in range(len(state)):
        value = state[component]
        for entry in range(form.state_start[component], form.state_start[component + 1]):
            at_state[form.state_row[entry]] += form.state_value[entry] * value
    for hydro in range(lp.psi_start.shape[1] - 1):
        total = 0.0
        for entry in range(lp.psi_start[node, hydro], lp.psi_start[node, hydro + 1]):
            total += lp.psi_value[entry] * state[lp.psi_component[entry]]
        own.past[worker, hydro] = total
    core = struct_at(CoreStruct, own.core[node])
    constant = own.constant[worker]
    if not _draws_change_cuts(core, form):
        constant = struct_at(WorkStruct, own.work[worker]).cut_constant
    intercept = own.intercept[node]
    active = pool.active[node]
    for cut in range(pool.num_cuts[node]):
        constant[cut] = intercept[cut] if active[cut] else -INFINITY
    if len(form.carried_component) > 0:
        carried = own.carried[worker]
        for place in range(len(form.carried_component)):
            component = form.carried_component[place]
            carried[place] = at_state[form.carried_row[place]] * form.unit[component]
        for cut in range(pool.num_cuts[node]):
            total = 0.0
            for place in range(len(form.carried_component)):
                total += carried[place] * pool.record[node, cut, CUT_SLOPES + form.carried_component[place]]
            constant[cut] += total
    if _draws_change_cuts(core, form):
        expected = own.expected[worker]
        for row in range(form.num_extended):
            expected[row] = at_state[row]
        for hydro in range(lp.psi_start.shape[1] - 1):
            for entry in range(form.noise_start[hydro], form.noise_start[hydro + 1]):
                expected[form.noise_row[entry]] += form.noise_value[entry] * own.past[worker, hydro]
        _add_components(own, node, expected, constant[: pool.num_cuts[node]])


@engine_kernel
def _add_components(own, node, extended, constant):
    """Add to constants of cuts the worth of the components that draws fix, from an extended vector."""
    core = struct_at(CoreStruct, own.core[node])
    form = struct_at(FormStruct, own.form[node])
    cuts = struct_at(CutStruct, own.cuts[node])
    width = cuts.slope.shape[2]
    for block in range((len(constant) + width - 1) // width):
        here = constant[block * width : min((block + 1) * width, len(constant))]
        for row in range(core.num_state_rows, len(form.archive_row)):
            value = extended[form.archive_row[row]]
            if value != 0.0:
                slope = cuts.slope[block, row]
                for place in range(len(here)):
                    here[place] += slope[place] * value


@engine_kernel
def _draws_change_cuts(core, form):
    """Return whether components of the outgoing state are fixed by what is drawn."""
    return core.num_state_rows < len(form.archive_row)


@engine_kernel
def _set_data(lp, own, pool, worker, node, opening, noise, work):
    """Write the right-hand side and the constants of cuts for what is drawn; whether all of it is finite."""
    form = struct_at(FormStruct, own.form[node])
    core = struct_at(CoreStruct, own.core[node])
    extended = own.extended[worker]
    hydros = lp.psi_start.shape[1] - 1
    for row in range(form.num_extended):
        extended[row] = own.at_state[worker, row]
    for entity in range(len(noise)):
        value = noise[entity]
        if entity < hydros:
            value += own.past[worker, entity]
            if lp.truncated[node, entity] != 0:
                value = max(value, 0.0)
        for entry in range(form.noise_start[entity], form.noise_start[entity + 1]):
            extended[form.noise_row[entry]] += form.noise_value[entry] * value
    finite = True
    for row in range(form.num_extended):
        finite &= abs(extended[row]) < INFINITE
    for row in range(core.num_rows):
        work.rhs[row] = extended[row]
    if finite and _draws_change_cuts(core, form):
        _set_constants(own, pool, worker, node, opening, work.cut_constant[: pool.num_cuts[node]])
    return finite


@engine_kernel
def _set_constants(own, pool, worker, node, opening, constant):
    """Set the constants of cuts at a trial point for what is drawn, ``own.extended``."""
    core = struct_at(CoreStruct, own.core[node])
    form = struct_at(FormStruct, own.form[node])
    cuts = struct_at(CutStruct, own.cuts[node])
    extended, expected, change = own.extended[worker], own.expected[worker], own.change[worker]
    known = 0 <= opening < len(cuts.drawn)
    for row in range(core.num_state_rows, len(form.archive_row)):
        at = form.archive_row[row]
        contained = expected[at] + (cuts.drawn[opening, row - core.num_state_rows] if known else 0.0)
        difference = extended[at] - contained
        rounding = _ROUNDING * (abs(extended[at]) + abs(expected[at]))
        change[at] = difference if abs(difference) > rounding else 0.0
    for cut in range(len(constant)):
        constant[cut] = own.constant[worker, cut]
    if known:
        width = cuts.slope.shape[2]
        for block in range((len(constant) + width - 1) // width):
            here = constant[block * width : min((block + 1) * width, len(constant))]
            of_opening = cuts.slope[block, len(form.archive_row) + opening]
            for place in range(len(here)):
                here[place] += of_opening[place]
    _add_components(own, node, change, constant)


@engine_kernel
def order_entry(lp, own, node, root, position):
    """Return where the entry of a position of the tree of openings is, seen from an opening."""
    return own.order_start[node] + min(root, own.last_root[node]) * lp.num_openings[node] + position


@engine_kernel
def solve_drawn(lp, own, pool, worker, node, own_pass, noise):
    """Solve the LP at the trial point begun for one draw, from the stored basis of (pass, node); a status."""
    return _solve(lp, own, pool, worker, node, own_pass, NO_OPENING, noise, FROM_STORE, INTO_STORE)


@engine_kernel
def solve_opening(lp, own, pool, worker, node, own_pass, root, position, noise):
    """Solve the opening at a position of the tree, the first from the basis of (pass, node); a status."""
    entry = order_entry(lp, own, node, root, position)
    start = FROM_STORE if position == 0 else np.int64(own.parent[entry])
    opening, end = np.int64(own.order[entry]), np.int64(own.keep[entry])
    return _solve(lp, own, pool, worker, node, own_pass, opening, noise, start, end)


@engine_kernel
def _solve(lp, own, pool, worker, node, own_pass, opening, noise, start, end):
    work = struct_at(WorkStruct, own.work[worker])
    work.result[FUTURE_REACH] = own.spread[node]
    if not _set_data(lp, own, pool, worker, node, opening, noise, work):
        return NOT_FINITE
    return solve_at(
        own.engine[0],
        own.core[node],
        own.work[worker],
        own.cuts[node],
        own.saved[worker],
        own.store[0],
        own_pass * len(own.core) + node,
        start,
        end,
    )


@engine_kernel
def value_bound(lp, own, worker):
    """Return the lower bound of the last optimal value, $; with its prices it holds at every state."""
    result = struct_at(WorkStruct, own.work[worker]).result
    return (result[DUAL_VALUE] - lp.rounding * result[MAGNITUDE]) * lp.cost_scale


@engine_kernel
def worth_of_data(own, pool, worker, node):
    """Write into ``own.worth`` the slopes of the last value in the extended right-hand side (LP units)."""
    core = struct_at(CoreStruct, own.core[node])
    form = struct_at(FormStruct, own.form[node])
    work = struct_at(WorkStruct, own.work[worker])
    worth = own.worth[worker]
    num_cols, num_rows = core.num_cols, core.num_rows
    for row in range(num_rows):
        worth[row] = work.price[num_cols + row]
    for row in range(num_rows, form.num_extended):
        worth[row] = 0.0
    for r in range(work.sizes[KERNEL]):
        slot = work.kernel_row[r] - num_rows
        if slot >= 0:
            weight = -work.price[num_cols + num_rows + slot] * work.slot_scale[slot]
            record = pool.record[node, work.slot_cut[slot]]
            for row in range(len(form.archive_component)):
                component = form.archive_component[row]
                slope = record[CUT_SLOPES + component] * form.unit[component]
                worth[form.archive_row[row]] += weight * slope
            for place in range(len(form.carried_component)):
                component = form.carried_component[place]
                slope = record[CUT_SLOPES + component] * form.unit[component]
                worth[form.carried_row[place]] += weight * slope


@engine_kernel
def slopes_of_value(lp, own, pool, worker, node, noise, out):
    """Write the slope of the last optimal value in the incoming state ($ per unit of state).

    Returns how far a cut with this slope stays below the value at the state, see
    :func:`cobre.lp.inflow_slopes.inflow_slope`.
    """
    form = struct_at(FormStruct, own.form[node])
    worth = own.worth[worker]
    worth_of_data(own, pool, worker, node)
    for component in range(len(out)):
        total = 0.0
        for entry in range(form.state_start[component], form.state_start[component + 1]):
            total += form.state_value[entry] * worth[form.state_row[entry]]
        out[component] = total * lp.cost_scale
    shortfall = 0.0
    for hydro in range(lp.psi_start.shape[1] - 1):
        first, last = lp.psi_start[node, hydro], lp.psi_start[node, hydro + 1]
        if first == last:
            continue
        total = 0.0
        for entry in range(form.noise_start[hydro], form.noise_start[hydro + 1]):
            total += form.noise_value[entry] * worth[form.noise_row[entry]]
        inflow = noise[hydro] + own.past[worker, hydro]
        slope, missing = inflow_slope(lp, node, hydro, total * lp.cost_scale, inflow, noise[hydro])
        shortfall += missing
        for entry in range(first, last):
            out[lp.psi_component[entry]] += slope * lp.psi_value[entry]
    return min(shortfall, 0.0)


@engine_kernel
def recover_columns(lp, own, worker, node, columns):
    """Write the columns of the template from the last solution; return its value in units of the LP."""
    core = struct_at(CoreStruct, own.core[node])
    form = struct_at(FormStruct, own.form[node])
    work = struct_at(WorkStruct, own.work[worker])
    variables = core.num_cols + core.num_rows
    for col in range(lp.num_cols[node]):
        source = form.col_source[col]
        if source < variables:
            value = work.value[source]
        else:
            value = own.extended[worker, source - core.num_cols]
        value = min(max(value - form.col_origin[col], form.col_least[col]), form.col_most[col])
        columns[col] = (value + form.col_offset[col]) / form.col_factor[col]
    return work.result[PRIMAL_VALUE]
