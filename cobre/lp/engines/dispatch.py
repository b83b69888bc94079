"""Stage LPs by the engine of their node; what the own engine does not solve goes to HiGHS, in nopython.

Both engines take the openings of a trial point along the tree of :mod:`cobre.lp.opening_order`, from the
opening that its forward pass drew. A status that is not ``OK`` is always HiGHS's.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.arrays import LP_FALLBACKS, LP_SOLVES_OWN
from cobre.lp.engine import (
    OK,
    forget_basis,
    objective_bound,
    opening_noise,
    prepare_from_scratch,
    set_right_hand_side,
    solve_with_cuts,
    start_from_basis,
    state_slope,
    store_basis,
    sync_cuts,
)
from cobre.lp.engines.own.core import OPTIMAL
from cobre.lp.engines.own.trial import (
    begin_trial,
    order_entry,
    recover_columns,
    slopes_of_value,
    solve_drawn,
    solve_opening,
    value_bound,
)
from cobre.native import inner_kernel


@inner_kernel
def solve_one(lp, own, pool, work, basis, worker, node, own_pass, noise, state):
    """Solve one LP from the stored basis of (pass, node), then store its basis there; a status.

    On ``OK`` the worker's scratch arrays have the columns and the objective.

    Parameters
    ----------
    noise
        Values of the random entities, float64[E]; inflows without the part of past inflows.
    state
        Incoming state, float64[n].
    """
    if own.uses_own[node] != 0:
        begin_trial(lp, own, pool, worker, node, state)
        if solve_drawn(lp, own, pool, worker, node, own_pass, noise) == OPTIMAL:
            work.counters[worker, LP_SOLVES_OWN] += 1
            work.objective[worker] = recover_columns(lp, own, worker, node, work.col_value[worker])
            return OK
        return _fall_back(lp, pool, work, worker, node, noise, state)
    status = sync_cuts(lp, pool, work, worker, node)
    if status == OK:
        status = start_from_basis(lp, work, basis, worker, node, own_pass)
    if status == OK:
        status = set_right_hand_side(lp, work, worker, node, noise, state)
    if status == OK and basis.num_rows[own_pass, node] == 0:
        status = prepare_from_scratch(lp, pool, work, worker, node)
    if status == OK:
        status = solve_with_cuts(lp, pool, work, worker, node)
    if status == OK:
        store_basis(lp, work, basis, worker, node, own_pass)
    return status


@inner_kernel
def _fall_back(lp, pool, work, worker, node, noise, state):
    """Solve one LP from scratch by HiGHS; a status."""
    work.counters[worker, LP_FALLBACKS] += 1
    status = sync_cuts(lp, pool, work, worker, node)
    if status == OK:
        status = forget_basis(lp, work, worker, node)
    if status == OK:
        status = set_right_hand_side(lp, work, worker, node, noise, state)
    if status == OK:
        status = prepare_from_scratch(lp, pool, work, worker, node)
    if status == OK:
        status = solve_with_cuts(lp, pool, work, worker, node)
    return status


@inner_kernel
def solve_openings(
    lp, own, pool, work, basis, worker, node, own_pass, root, state, values, cut_values, slopes
):
    """Solve all openings of one trial point, each from the basis of the one above it in the tree.

    Parameters
    ----------
    root
        The opening that is solved first.
    state
        Incoming state, float64[n].
    values, cut_values, slopes
        Out: of each opening a lower bound of the optimal value ($; the value itself unless tolerances are in
        the way), the value and the slope in the state of a linear function that is nowhere above it,
        float64[openings], float64[openings] and float64[openings, n]. Both values are the same unless
        truncated inflow is in the way, see :mod:`cobre.lp.inflow_slopes`.

    Returns
    -------
    (status, opening)
        The opening is the one that failed, or the number of openings.
    """
    openings = lp.num_openings[node]
    by_own = own.uses_own[node] != 0
    if by_own:
        begin_trial(lp, own, pool, worker, node, state)
    else:
        status = sync_cuts(lp, pool, work, worker, node)
        if status == OK:
            status = start_from_basis(lp, work, basis, worker, node, own_pass)
        if status != OK:
            return status, root
    for position in range(openings):
        opening = own.order[order_entry(lp, own, node, root, position)]
        noise = opening_noise(lp, node, opening)
        if by_own and solve_opening(lp, own, pool, worker, node, own_pass, root, position, noise) == OPTIMAL:
            work.counters[worker, LP_SOLVES_OWN] += 1
            values[opening] = value_bound(lp, own, worker)
            shortfall = slopes_of_value(lp, own, pool, worker, node, noise, slopes[opening])
        else:
            if by_own:
                status = _fall_back(lp, pool, work, worker, node, noise, state)
            else:
                status = set_right_hand_side(lp, work, worker, node, noise, state)
                if status == OK and position == 0 and basis.num_rows[own_pass, node] == 0:
                    status = prepare_from_scratch(lp, pool, work, worker, node)
                if status == OK:
                    status = solve_with_cuts(lp, pool, work, worker, node)
            if status != OK:
                return status, opening
            values[opening] = objective_bound(lp, pool, work, worker, node)
            shortfall = state_slope(lp, work, worker, node, noise, slopes[opening])
        cut_values[opening] = values[opening] + shortfall
    return OK, openings
