"""The HiGHS engine in nopython.

A worker loads the LP of a node when it gets there and then only changes right-hand sides and adds cuts; all
trial points of a stage are solved before those of the next, so that a few HiGHS objects serve all nodes.
Before the first LP of a trial point the object is reset (``clearSolver``) and given the basis stored for
(forward pass, stage): HiGHS otherwise carries its random state and its list of forbidden pivots from
solve to solve, and a degenerate LP would then answer by what this worker had solved before.

Kernels return a status and leave the story to Python; they neither allocate nor raise.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp.arrays import (
    CUT_INTERCEPT,
    CUT_SLOPES,
    LP_RETRIES,
    LP_SOLVES,
    SIMPLEX_ITERATIONS,
)
from cobre.lp.dual_bound import dual_correction, rounding_allowance
from cobre.lp.highs import (
    BASIC,
    INFINITE,
    PRIMAL_TOLERANCE,
    SMALLEST_COEFFICIENT,
    STATUS_INFEASIBLE,
    STATUS_OPTIMAL,
    symbols,
)
from cobre.lp.inflow_slopes import inflow_slope
from cobre.native import c_string, inner_kernel

OK = 0
INFEASIBLE = 1
NOT_SOLVED = 2
CUTS_REFUSED = 3
RIGHT_HAND_SIDE_REFUSED = 4
LP_REFUSED = 5

_pass_lp = symbols.passLp
_run = symbols.run
_clear_solver = symbols.clearSolver
_model_status = symbols.getModelStatus
_objective_value = symbols.getObjectiveValue
_get_solution = symbols.getSolution
_iteration_count = symbols.getSimplexIterationCount
_change_rows_bounds = symbols.changeRowsBoundsByRange
_add_rows = symbols.addRows
_delete_rows = symbols.deleteRowsByRange
_set_basis = symbols.setBasis
_get_basis = symbols.getBasis
_set_string_option = symbols.setStringOptionValue
_set_int_option = symbols.setIntOptionValue
_set_double_option = symbols.setDoubleOptionValue

_PRESOLVE = c_string("presolve")
_SOLVER = c_string("solver")
_SIMPLEX_STRATEGY = c_string("simplex_strategy")
_SCALE_STRATEGY = c_string("simplex_scale_strategy")
_PRIMAL_TOLERANCE = c_string("primal_feasibility_tolerance")
_ITERATION_LIMIT = c_string("simplex_iteration_limit")
_ON = c_string("on")
_OFF = c_string("off")
_SIMPLEX = c_string("simplex")
_IPM = c_string("ipm")

_BY_COLUMNS = 1
_MINIMISE = 1
_RETRIES = 6
_DUAL_SIMPLEX = 1
_PRIMAL_SIMPLEX = 4
_NO_SCALING = 0
_EQUILIBRATION = 2
_PIVOTS_PER_LINE = 20
"""Simplex iterations for each row and column, besides ``_FEWEST_PIVOTS``, after which an LP is retried."""
_FEWEST_PIVOTS = 10_000
_ROUNDED = 1.0e-14
"""Share of a cost that is rounding."""
_NO_VERSION = -1
"""Of the cuts in an LP that has none yet."""
_LOOSE_TOLERANCE = 1.0e-6
"""Of the last retry: where costs of 1e10 units are in the rows, rounding alone is more than the usual one."""


@inner_kernel
def _load(lp, work, worker, stage):
    """Load the LP of a node without cuts, unless the worker has it; a status."""
    model = lp.model[stage]
    if work.loaded[worker, model] == stage:
        return OK
    cols, rows = lp.num_cols[stage], lp.num_rows[stage]
    col, row, entry = lp.col_offset[stage], lp.limit_offset[stage], lp.matrix_offset[stage]
    entries = lp.matrix_offset[stage + 1] - entry
    work.loaded[worker, model] = -1
    status = _pass_lp(
        work.handle[worker, model],
        np.int32(cols),
        np.int32(rows),
        np.int32(entries),
        np.int32(_BY_COLUMNS),
        np.int32(_MINIMISE),
        0.0,
        lp.cost[col : col + cols].ctypes,
        lp.col_lower[col : col + cols].ctypes,
        lp.col_upper[col : col + cols].ctypes,
        lp.row_lower[row : row + rows].ctypes,
        lp.row_upper[row : row + rows].ctypes,
        lp.matrix_start[col + stage : col + stage + cols + 1].ctypes,
        lp.matrix_row[entry : entry + entries].ctypes,
        lp.matrix_value[entry : entry + entries].ctypes,
    )
    limit = np.int32(_PIVOTS_PER_LINE * (cols + rows) + _FEWEST_PIVOTS)
    if status < 0 or _set_int_option(work.handle[worker, model], _ITERATION_LIMIT.ctypes, limit) < 0:
        return LP_REFUSED
    work.loaded[worker, model] = stage
    work.version[worker, model] = _NO_VERSION
    work.cut_rows[worker, model] = 0
    return OK


@inner_kernel
def _add_cut_rows(lp, pool, work, worker, stage, rows):
    """Give this worker's LP of ``stage`` the cuts listed in ``row_cut``, until it has ``rows`` of them.

    HiGHS drops coefficients that are too small, and would so lift a cut whose slope is negative. A slope that
    would be lost is left out here, and the cut lowered by what it is worth over the range of its component.
    """
    batch = work.cut_start.shape[1]
    states = lp.state_col.shape[1]
    theta = np.int32(lp.theta_col[stage])
    while work.cut_rows[worker, lp.model[stage]] < rows:
        first = work.cut_rows[worker, lp.model[stage]]
        last = min(first + batch, rows)
        entries = 0
        for row in range(first, last):
            slot = work.row_cut[worker, lp.model[stage], row]
            position = row - first
            work.cut_start[worker, position] = entries
            lower = pool.record[stage, slot, CUT_INTERCEPT] / lp.cost_scale
            work.cut_index[worker, entries] = theta
            work.cut_value[worker, entries] = 1.0
            entries += 1
            for state in range(states):
                slope = pool.record[stage, slot, CUT_SLOPES + state]
                value = -slope * lp.state_scale[stage, state] / lp.cost_scale
                if abs(value) > SMALLEST_COEFFICIENT:
                    work.cut_index[worker, entries] = lp.state_col[stage, state]
                    work.cut_value[worker, entries] = value
                    entries += 1
                elif slope != 0.0:
                    end = lp.state_least[stage, state] if slope > 0.0 else lp.state_most[stage, state]
                    lower += min(slope * end, 0.0) / lp.cost_scale
            if not abs(lower) < INFINITE:
                return CUTS_REFUSED
            work.cut_lower[worker, position] = lower
        status = _add_rows(
            work.handle[worker, lp.model[stage]],
            np.int32(last - first),
            work.cut_lower[worker].ctypes,
            work.cut_upper[worker].ctypes,
            np.int32(entries),
            work.cut_start[worker].ctypes,
            work.cut_index[worker].ctypes,
            work.cut_value[worker].ctypes,
        )
        if status < 0:
            return CUTS_REFUSED
        work.cut_rows[worker, lp.model[stage]] = last
    return OK


@inner_kernel
def sync_cuts(lp, pool, work, worker, stage):
    """Make this worker's LP of ``stage`` the template and the active cuts of the pool, in slot order.

    Cuts that another trial point needed besides are removed, so that what was solved before leaves no trace.
    """
    status = _load(lp, work, worker, stage)
    if status != OK:
        return status
    keep = work.base_rows[worker, lp.model[stage]]
    first = work.synced[worker, lp.model[stage]]
    if work.version[worker, lp.model[stage]] != pool.version[stage]:
        work.version[worker, lp.model[stage]] = pool.version[stage]
        keep = 0
        first = pool.first_loaded[stage]
    if work.cut_rows[worker, lp.model[stage]] > keep:
        row = lp.num_rows[stage]
        last = row + work.cut_rows[worker, lp.model[stage]] - 1
        status = _delete_rows(work.handle[worker, lp.model[stage]], np.int32(row + keep), np.int32(last))
        if status < 0:
            return CUTS_REFUSED
        work.cut_rows[worker, lp.model[stage]] = keep
    rows = keep
    for slot in range(first, pool.num_cuts[stage]):
        if pool.active[stage, slot]:
            work.row_cut[worker, lp.model[stage], rows] = slot
            rows += 1
    work.synced[worker, lp.model[stage]] = pool.num_cuts[stage]
    work.base_rows[worker, lp.model[stage]] = rows
    return _add_cut_rows(lp, pool, work, worker, stage, rows)


@inner_kernel
def _is_loaded(lp, work, worker, stage, slot):
    """Whether a cut entered the LP at this trial point."""
    for row in range(work.base_rows[worker, lp.model[stage]], work.cut_rows[worker, lp.model[stage]]):
        if work.row_cut[worker, lp.model[stage], row] == slot:
            return True
    return False


@inner_kernel
def _add_violated_cuts(lp, pool, work, worker, stage):
    """Add the candidates that the last solution violates most; a status, and how many there were.

    By violation, equal ones by slot. Rows of HiGHS hold within a tolerance; cuts outside the LP get the same.
    """
    theta = work.col_value[worker, lp.theta_col[stage]] * lp.cost_scale
    tolerance = pool.violation_tolerance + PRIMAL_TOLERANCE * lp.cost_scale + _ROUNDED * abs(theta)
    states = lp.state_col.shape[1]
    slots, violations = work.violated_cut[worker], work.violation[worker]
    found = 0
    for slot in range(pool.first_candidate[stage], pool.first_loaded[stage]):
        if not pool.active[stage, slot]:
            continue
        violation = pool.record[stage, slot, CUT_INTERCEPT] - theta
        for state in range(states):
            outgoing = work.col_value[worker, lp.state_col[stage, state]] * lp.state_scale[stage, state]
            violation += pool.record[stage, slot, CUT_SLOPES + state] * outgoing
        if violation <= tolerance:
            continue
        if found == pool.added_per_round and violation <= violations[found - 1]:
            continue
        if _is_loaded(lp, work, worker, stage, slot):
            continue
        place = min(found, pool.added_per_round - 1)
        while place > 0 and violations[place - 1] < violation:
            violations[place] = violations[place - 1]
            slots[place] = slots[place - 1]
            place -= 1
        violations[place] = violation
        slots[place] = slot
        found = min(found + 1, pool.added_per_round)
    rows = work.cut_rows[worker, lp.model[stage]]
    for position in range(found):
        work.row_cut[worker, lp.model[stage], rows + position] = slots[position]
    return _add_cut_rows(lp, pool, work, worker, stage, rows + found), found


@inner_kernel
def forget_basis(lp, work, worker, stage):
    """Have the LP solved from scratch; a status."""
    return NOT_SOLVED if _clear_solver(work.handle[worker, lp.model[stage]]) < 0 else OK


@inner_kernel
def start_from_basis(lp, work, basis, worker, stage, own_pass):
    """Forget what this LP object knows and set the basis stored for (pass, stage), if there is one.

    Cuts younger than the basis enter as basic rows. Where a cut that was binding is no longer in the LP there
    are more basic variables than rows; HiGHS then keeps the first independent ones of its factorisation.
    Without a basis, or with one that is refused, the LP is solved from scratch.
    """
    handle = work.handle[worker, lp.model[stage]]
    status = forget_basis(lp, work, worker, stage)
    if status != OK:
        return status
    known = basis.num_rows[own_pass, stage]
    if known == 0:
        return OK
    for col in range(lp.num_cols[stage]):
        work.col_status[worker, col] = basis.col_status[own_pass, stage, col]
    rows = lp.num_rows[stage]
    for row in range(rows):
        work.row_status[worker, row] = basis.row_status[own_pass, stage, row]
    for row in range(work.cut_rows[worker, lp.model[stage]]):
        place = rows + work.row_cut[worker, lp.model[stage], row]
        status = BASIC
        if place < known:
            status = basis.row_status[own_pass, stage, place]
        work.row_status[worker, rows + row] = status
    status = _set_basis(handle, work.col_status[worker].ctypes, work.row_status[worker].ctypes)
    if status < 0 and _clear_solver(handle) < 0:
        return NOT_SOLVED
    return OK


@inner_kernel
def store_basis(lp, work, basis, worker, stage, own_pass):
    """Keep the present basis as the start for (pass, stage)."""
    status = _get_basis(
        work.handle[worker, lp.model[stage]], work.col_status[worker].ctypes, work.row_status[worker].ctypes
    )
    if status < 0:
        basis.num_rows[own_pass, stage] = 0
        return
    for col in range(lp.num_cols[stage]):
        basis.col_status[own_pass, stage, col] = work.col_status[worker, col]
    rows = lp.num_rows[stage]
    for row in range(rows):
        basis.row_status[own_pass, stage, row] = work.row_status[worker, row]
    known = rows + work.synced[worker, lp.model[stage]]
    for place in range(rows, known):
        basis.row_status[own_pass, stage, place] = BASIC
    for row in range(work.cut_rows[worker, lp.model[stage]]):
        place = rows + work.row_cut[worker, lp.model[stage], row]
        basis.row_status[own_pass, stage, place] = work.row_status[worker, rows + row]
    basis.num_rows[own_pass, stage] = known


@inner_kernel
def set_right_hand_side(lp, work, worker, stage, noise, state):
    """Write the right-hand sides of the dynamic rows; a status.

    What HiGHS takes for infinite, and NaN, is refused: the LP would keep the limits of the solve before it.

    Parameters
    ----------
    noise
        Values of the random entities, float64[E]; inflows without the part of past inflows.
    state
        Incoming state, float64[n].
    """
    dynamic = lp.num_dynamic[stage]
    source = lp.rhs_offset[stage]
    rhs = work.rhs[worker]
    for row in range(dynamic):
        rhs[row] = lp.fixed_rhs[source + row]
    hydros = work.inflow.shape[1]
    for entity in range(len(noise)):
        value = noise[entity]
        if entity < hydros:
            for entry in range(lp.psi_start[stage, entity], lp.psi_start[stage, entity + 1]):
                value += lp.psi_value[entry] * state[lp.psi_component[entry]]
            work.inflow[worker, entity] = value
            if lp.truncated[stage, entity] != 0:
                value = max(value, 0.0)
        for entry in range(lp.noise_start[stage, entity], lp.noise_start[stage, entity + 1]):
            rhs[lp.noise_row[entry]] += lp.noise_value[entry] * value
    for component in range(len(state)):
        for entry in range(lp.state_start[stage, component], lp.state_start[stage, component + 1]):
            rhs[lp.state_row[entry]] += lp.state_value[entry] * state[component]
    for row in range(dynamic):
        if not abs(rhs[row]) < INFINITE:
            return RIGHT_HAND_SIDE_REFUSED
    if dynamic == 0:
        return OK
    status = _change_rows_bounds(
        work.handle[worker, lp.model[stage]], 0, np.int32(dynamic - 1), rhs.ctypes, rhs.ctypes
    )
    return OK if status >= 0 else RIGHT_HAND_SIDE_REFUSED


@inner_kernel
def opening_noise(lp, stage, opening):
    """Return the values of the random entities in an opening of the tree, as a view."""
    entities = lp.noise_start.shape[1] - 1
    first = lp.value_offset[stage] + opening * entities
    return lp.opening_value[first : first + entities]


@inner_kernel
def _set_retry_options(handle, level):
    """Options of a retry: 0 restores the ordinary ones, the others try ever different ways; a status."""
    scaling = _EQUILIBRATION if level >= 3 else _NO_SCALING
    strategy = _PRIMAL_SIMPLEX if level == 4 else _DUAL_SIMPLEX
    status = _set_int_option(handle, _SCALE_STRATEGY.ctypes, np.int32(scaling))
    status = min(status, _set_int_option(handle, _SIMPLEX_STRATEGY.ctypes, np.int32(strategy)))
    tolerance = _LOOSE_TOLERANCE if level == 6 else PRIMAL_TOLERANCE
    status = min(status, _set_double_option(handle, _PRIMAL_TOLERANCE.ctypes, tolerance))
    if level == 2 or level == 5:
        status = min(status, _set_string_option(handle, _PRESOLVE.ctypes, _ON.ctypes))
    else:
        status = min(status, _set_string_option(handle, _PRESOLVE.ctypes, _OFF.ctypes))
    if level == 5:
        status = min(status, _set_string_option(handle, _SOLVER.ctypes, _IPM.ctypes))
    else:
        status = min(status, _set_string_option(handle, _SOLVER.ctypes, _SIMPLEX.ctypes))
    return status


@inner_kernel
def _run_to_status(handle, work, worker):
    """Solve with the options set; return the model's status, 0 ("not set") where HiGHS reports an error."""
    failed = _run(handle) < 0
    work.counters[worker, SIMPLEX_ITERATIONS] += _iteration_count(handle)
    return np.int32(0) if failed else _model_status(handle)


@inner_kernel
def _solve_with_retries(handle, work, worker):
    """Climb the retry ladder: cold, presolved, scaled, primal simplex, interior point, loose limits.

    Bounds come from duals, so a looser hold on limits leaves them valid.
    """
    outcome = NOT_SOLVED
    for level in range(1, _RETRIES + 1):
        work.counters[worker, LP_RETRIES] += 1
        if _set_retry_options(handle, level) < 0 or _clear_solver(handle) < 0:
            continue
        status = _run_to_status(handle, work, worker)
        if status == STATUS_OPTIMAL:
            outcome = OK
            break
        # Two independent ways agreeing on infeasibility settle it.
        if status == STATUS_INFEASIBLE:
            if outcome == INFEASIBLE:
                break
            outcome = INFEASIBLE
    if _set_retry_options(handle, 0) < 0:
        return NOT_SOLVED
    return outcome


@inner_kernel
def solve_loaded(lp, work, worker, stage):
    """Solve the LP as it is; on OK the worker's scratch arrays hold values and duals."""
    handle = work.handle[worker, lp.model[stage]]
    work.counters[worker, LP_SOLVES] += 1
    if _run_to_status(handle, work, worker) != STATUS_OPTIMAL:
        status = _solve_with_retries(handle, work, worker)
        if status != OK:
            return status
    status = _get_solution(
        handle,
        work.col_value[worker].ctypes,
        work.col_dual[worker].ctypes,
        work.row_value[worker].ctypes,
        work.row_dual[worker].ctypes,
    )
    work.objective[worker] = _objective_value(handle)
    return OK if status >= 0 else NOT_SOLVED


@inner_kernel
def solve_with_cuts(lp, pool, work, worker, stage):
    """Solve the LP as it is, with every cut that the pool has for it; see :func:`solve_loaded`."""
    while True:
        status = solve_loaded(lp, work, worker, stage)
        if status != OK or pool.first_candidate[stage] >= pool.first_loaded[stage]:
            return status
        status, added = _add_violated_cuts(lp, pool, work, worker, stage)
        if status != OK or added == 0:
            return status


@inner_kernel
def prepare_from_scratch(lp, pool, work, worker, stage):
    """Solve the LP without its cuts, and give it these again: a start where there is no basis; a status.

    HiGHS has been seen to run for ever on large LPs with cuts that it started from nothing.
    """
    rows = work.cut_rows[worker, lp.model[stage]]
    if rows == 0:
        return OK
    first, last = lp.num_rows[stage], lp.num_rows[stage] + rows - 1
    if _delete_rows(work.handle[worker, lp.model[stage]], np.int32(first), np.int32(last)) < 0:
        return CUTS_REFUSED
    work.cut_rows[worker, lp.model[stage]] = 0
    status = solve_loaded(lp, work, worker, stage)
    return status if status != OK else _add_cut_rows(lp, pool, work, worker, stage, rows)


@inner_kernel
def objective(lp, work, worker, stage):
    """Objective of the last solve in $, future cost included."""
    return work.objective[worker] * lp.cost_scale


@inner_kernel
def objective_bound(lp, pool, work, worker, stage):
    """Lower bound of the optimal value last found, in $; with its duals it holds at every state."""
    correction = dual_correction(lp, pool, work, worker, stage) - rounding_allowance(lp, work, worker, stage)
    return (work.objective[worker] + correction) * lp.cost_scale


@inner_kernel
def future_cost(lp, work, worker, stage):
    """Discounted future cost in the objective of the last solve, in $."""
    theta = work.col_value[worker, lp.theta_col[stage]]
    return lp.discount[stage] * theta * lp.cost_scale


@inner_kernel
def split_cost(lp, work, worker, stage, factor, components, payers):
    """Add the cost of the last solve, without future cost and times ``factor``, to what it is paid for ($).

    Parameters
    ----------
    components, payers
        In, out: $ by component and by payer, see :mod:`cobre.lp.cost_components`.
    """
    for entry in range(lp.cost_start[stage], lp.cost_start[stage + 1]):
        amount = work.col_value[worker, lp.cost_col[entry]]
        if amount != 0.0:
            cost = factor * (lp.cost_value[entry] * amount)
            components[lp.cost_component[entry]] += cost
            payers[lp.cost_payer[entry]] += cost


@inner_kernel
def outgoing_state(lp, work, worker, stage, out):
    """Write the outgoing state of the last solve, clipped into its bounds."""
    for component in range(len(out)):
        value = work.col_value[worker, lp.state_col[stage, component]] * lp.state_scale[stage, component]
        value = max(value, lp.state_lower[stage, component])
        out[component] = min(value, lp.state_upper[stage, component])


@inner_kernel
def state_slope(lp, work, worker, stage, noise, out):
    """Write the slope of the last optimal value in the incoming state ($ per unit of state).

    Parameters
    ----------
    noise
        Values of the random entities that were solved for.

    Returns
    -------
    float
        How far a cut with this slope stays below the optimal value at the state itself, in $ (0 or negative),
        see :mod:`cobre.lp.inflow_slopes`.
    """
    for component in range(len(out)):
        total = 0.0
        for entry in range(lp.state_start[stage, component], lp.state_start[stage, component + 1]):
            total += lp.state_value[entry] * work.row_dual[worker, lp.state_row[entry]]
        out[component] = total * lp.cost_scale
    shortfall = 0.0
    for hydro in range(work.inflow.shape[1]):
        first, last = lp.psi_start[stage, hydro], lp.psi_start[stage, hydro + 1]
        if first == last:
            continue
        worth = 0.0
        for entry in range(lp.noise_start[stage, hydro], lp.noise_start[stage, hydro + 1]):
            worth += lp.noise_value[entry] * work.row_dual[worker, lp.noise_row[entry]]
        inflow = work.inflow[worker, hydro]
        slope, missing = inflow_slope(lp, stage, hydro, worth * lp.cost_scale, inflow, noise[hydro])
        shortfall += missing
        for entry in range(first, last):
            out[lp.psi_component[entry]] += slope * lp.psi_value[entry]
    return min(shortfall, 0.0)
