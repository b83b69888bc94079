"""Bases whose prices suit no kink: steps of the primal simplex make them optimal."""

import numpy as np
from core_problems import INF, CoreProblem, Solver, agree, badly_scaled_problem, study

from cobre.lp.engines.own import core
from cobre.lp.engines.own.core import OPTIMAL


def with_other_costs(rng, problem):
    """Return a problem with the same kinks, and other slopes of variables that have one finite slope."""
    pieces = []
    for kinks, slopes in problem.pieces:
        if len(slopes) <= 3:
            slopes = [slope + rng.normal(0.0, 0.5) if abs(slope) < INF else slope for slope in slopes]
        pieces.append((kinks, sorted(slopes)))
    pieces[0] = problem.pieces[0]
    return CoreProblem(problem.matrix, pieces, problem.num_state_rows)


def test_bases_stored_at_other_costs_become_optimal_without_a_cold_start():
    clean_ups = 0
    for seed in range(12):
        problem, rhs, slopes, constants = study(seed, 12, 3, 20, openings=3)
        first = Solver(problem, slopes)
        first.solve(rhs[:1], constants, stores=True)
        changed = with_other_costs(np.random.default_rng(seed), problem)
        solver = Solver(changed, slopes)
        solver.store = first.store
        status, value, _ = solver.solve(rhs, constants)
        clean_ups += solver.work.counters[core.CLEAN_UPS]
        assert solver.work.counters[core.COLD_STARTS] == 0
        for place, b in enumerate(rhs):
            expected, cost = changed.solve_by_highs(b, slopes, constants)
            assert status[place] == expected == OPTIMAL
            assert agree(value[place], cost)
    assert clean_ups > 12


def test_small_entries_and_long_steps_are_no_reason_to_give_up():
    clean_ups = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        problem = badly_scaled_problem(rng)
        water = np.maximum(rng.uniform(50, 200, 8) + rng.normal(0, 30, (4, 8)), 5.0)
        rhs = np.hstack([water, rng.uniform(100, 300, (4, 2))])
        solver = Solver(problem)
        status, value, _ = solver.solve(rhs)
        clean_ups += solver.work.counters[core.CLEAN_UPS]
        for place, b in enumerate(rhs):
            expected, cost = problem.solve_by_highs(b)
            assert status[place] == expected
            # HiGHS may be off by its tolerance of values times a penalty.
            assert expected != OPTIMAL or abs(value[place] - cost) <= 1e-8 * (1.0 + abs(cost))
    assert clean_ups > 0
