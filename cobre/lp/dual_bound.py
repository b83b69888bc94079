"""A lower bound of an LP's optimal value from the duals that the solver returns, in nopython.

For any row duals p, with d = cost - A' p, the optimal value is at least

    sum_i min(p_i r_i)  +  sum_j min(d_j y_j)      over the limits of each row r_i and each column y_j,

which is the solver's objective plus what every dual of the wrong sign is worth over the range it acts on:

    sum_i min(p_i (r_i - r_i*)) + sum_j min(d_j (y_j - y_j*)),   0 where all signs are right.

The solver accepts wrong signs up to its tolerance, so the objective alone may lie above the optimum where
costs are as small as the tolerance. As a function of the state the bound is linear: with these duals it
is a valid cut. Ranges are those of :mod:`cobre.lp.reach`.

Where costs are far apart the digits that cancel in the sums are worth more than the smallest costs: the
bound is then also lowered by ``rounding`` times the sum of the magnitudes.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.lp.arrays import CUT_INTERCEPT, CUT_SLOPES
from cobre.native import inner_kernel


@inner_kernel
def _future_spread(lp, pool, work, worker, stage):
    """Bound the range of the future cost and of the slack of every cut in the LP, in units of the objective.

    At an optimum the future cost is its floor, or the value of one of the cuts at some outgoing state.
    """
    states = lp.state_col.shape[1]
    most = abs(lp.col_least[lp.col_offset[stage] + lp.theta_col[stage]]) * lp.cost_scale
    for row in range(work.cut_rows[worker, lp.model[stage]]):
        slot = work.row_cut[worker, lp.model[stage], row]
        size = abs(pool.record[stage, slot, CUT_INTERCEPT])
        for state in range(states):
            extent = max(abs(lp.state_least[stage, state]), abs(lp.state_most[stage, state]))
            size += abs(pool.record[stage, slot, CUT_SLOPES + state]) * extent
        most = max(most, size)
    return 2.0 * most / lp.cost_scale


@inner_kernel
def dual_correction(lp, pool, work, worker, stage):
    """Return what to add to the objective of the last solve to get a valid bound (0 or less, LP units)."""
    correction = 0.0
    spread = -1.0  # found when it is needed
    first = lp.col_offset[stage]
    theta = lp.theta_col[stage]
    for col in range(lp.num_cols[stage]):
        dual = work.col_dual[worker, col]
        if dual == 0.0:
            continue
        if col == theta and dual < 0.0:
            spread = _future_spread(lp, pool, work, worker, stage)
            correction += dual * spread
            continue
        end = lp.col_least[first + col] if dual > 0.0 else lp.col_most[first + col]
        correction += min(dual * (end - work.col_value[worker, col]), 0.0)
    first = lp.row_offset[stage]
    dynamic = lp.num_dynamic[stage]
    rows = lp.num_rows[stage]
    for row in range(dynamic, rows):
        dual = work.row_dual[worker, row]
        if dual == 0.0:
            continue
        place = first + row - dynamic
        end = lp.row_least[place] if dual > 0.0 else lp.row_most[place]
        correction += min(dual * (end - work.row_value[worker, row]), 0.0)
    for row in range(rows, rows + work.cut_rows[worker, lp.model[stage]]):
        dual = work.row_dual[worker, row]
        if dual < 0.0:
            if spread < 0.0:
                spread = _future_spread(lp, pool, work, worker, stage)
            correction += dual * spread
    return correction


@inner_kernel
def rounding_allowance(lp, work, worker, stage):
    """Return what rounding may have added to the bound (LP units); 0 unless costs are far apart."""
    if lp.rounding == 0.0:
        return 0.0
    size = 0.0
    for col in range(lp.num_cols[stage]):
        size += abs(work.col_dual[worker, col] * work.col_value[worker, col])
    for row in range(lp.num_rows[stage] + work.cut_rows[worker, lp.model[stage]]):
        size += abs(work.row_dual[worker, row] * work.row_value[worker, row])
    return lp.rounding * size
