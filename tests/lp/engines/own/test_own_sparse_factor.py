"""What only LPs with many pivots and active cuts meet: full exchanges, cuts in the factors, no room."""

import numpy as np
import pytest
from core_problems import Solver, agree, reservoir_problem, study

from cobre.lp.engines.own import core
from cobre.lp.engines.own.core import GAVE_UP, OPTIMAL
from cobre.lp.opening_order import opening_order


def tree_of(rhs, root=0):
    found = opening_order(rhs)
    return found.num_kept, {
        "order": found.order[root],
        "parent": found.parent[root],
        "keep": found.keep[root],
    }


@pytest.mark.parametrize("seed", range(3))
def test_many_exchanges_and_cuts_give_the_optimum_that_highs_finds(seed):
    problem, rhs, slopes, constants = study(seed, 40, 4, 80, openings=5)
    constants = constants + 60000.0
    kept, tree = tree_of(rhs, seed)
    solver = Solver(problem, slopes, num_slots=30, num_saved=max(kept, 1))
    status, value, _ = solver.solve(rhs, constants, **tree)
    assert solver.work.counters[core.PIVOTS] > 100
    assert solver.work.counters[core.CUTS_ADDED] > 0
    for place, b in enumerate(rhs):
        expected, cost = problem.solve_by_highs(b, slopes, constants)
        assert status[place] == expected == OPTIMAL
        assert agree(value[place], cost)


def test_values_of_both_representations_agree():
    problem, rhs, slopes, constants = study(11, 30, 3, 60, openings=8)
    kept, tree = tree_of(rhs)
    values = []
    usual = Solver.largest_kernel
    try:
        for largest in (core.LARGEST_KERNEL, 0):
            Solver.largest_kernel = largest
            solver = Solver(problem, slopes, num_slots=30, num_saved=max(kept, 1))
            solver.solve(rhs[:1], constants, stores=True)
            status, value, _ = solver.solve(rhs, constants, **tree)
            assert (status == OPTIMAL).all()
            values.append(value)
    finally:
        Solver.largest_kernel = usual
    np.testing.assert_allclose(values[0], values[1], rtol=1e-10)


def test_slots_are_used_again_while_the_factors_hold_their_old_cuts():
    problem, rhs, slopes, constants = study(12, 10, 2, 200, openings=10)
    kept, tree = tree_of(rhs)
    solver = Solver(problem, slopes, num_slots=8, num_saved=max(kept, 1))
    status, value, _ = solver.solve(rhs, constants, **tree)
    assert solver.work.counters[core.CUTS_ADDED] > 8
    for place, b in enumerate(rhs):
        if status[place] != GAVE_UP:
            assert status[place] == OPTIMAL
            assert agree(value[place], problem.solve_by_highs(b, slopes, constants)[1])


def test_factors_without_room_make_the_engine_give_up_and_never_give_a_wrong_value():
    problem, rhs, slopes, constants = study(13, 12, 3, 30)
    expected = [problem.solve_by_highs(b, slopes, constants)[1] for b in rhs]
    for room in (40, 80, 160, 320):
        solver = Solver(problem, slopes)
        small = {name: getattr(solver.work, name)[:room].copy() for name in ("part_col", "part_value")}
        solver.work = solver.work._replace(**small)
        status, value, _ = solver.solve(rhs, constants, stores=True)
        for place, cost in enumerate(expected):
            assert status[place] == GAVE_UP or agree(value[place], cost)


def test_an_lp_of_the_other_representation_in_between_changes_nothing():
    small = reservoir_problem(np.random.default_rng(14), 3, 2)
    large, rhs, slopes, constants = study(15, 12, 2, 20)
    usual = Solver.largest_kernel
    Solver.largest_kernel = 10  # between the smaller sides of the two LPs
    try:
        alone = Solver(large, slopes, num_slots=20)
        expected = alone.solve(rhs, constants)
        shared = Solver(large, slopes, num_slots=20)
        other = Solver(small, num_slots=20)
        other.work = shared.work
        for _ in range(2):
            assert other.solve([[100.0, 90.0, 80.0, 60.0, 50.0]])[0][0] == OPTIMAL
            for left, right in zip(shared.solve(rhs, constants), expected, strict=True):
                np.testing.assert_array_equal(left, right)
    finally:
        Solver.largest_kernel = usual
