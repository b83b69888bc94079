import numpy as np
import pytest
from core_problems import INF, CoreProblem, Solver, agree, bounded, random_problem, reservoir_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.lp.engines.own import core
from cobre.lp.engines.own.core import GAVE_UP, INFEASIBLE, OPTIMAL, UNBOUNDED
from cobre.lp.opening_order import opening_order

SEEDS = st.integers(0, 2**32 - 1)


def assert_like_highs(problem, rhs, status, value, slopes=None, constants=None):
    for place, b in enumerate(np.atleast_2d(rhs)):
        expected, cost = problem.solve_by_highs(b, slopes, constants)
        # Of an LP that waits at artificial values it may be unknown whether it is infeasible or unbounded.
        assert status[place] == expected or (status[place], expected) == (GAVE_UP, UNBOUNDED)
        assert expected != OPTIMAL or agree(value[place], cost), (value[place], cost)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(1, 8), st.integers(0, 7), st.sampled_from([0.0, 2.0, 4.0]))
def test_random_lps_have_the_status_and_the_value_that_highs_finds(seed, cols, rows, spread):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, cols, rows, spread)
    rhs = rng.integers(-5, 12, (3, rows)).astype(float)
    solver = Solver(problem)
    assert_like_highs(problem, rhs, *solver.solve(rhs)[:2])


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(2, 10), st.integers(1, 4))
def test_a_sequence_of_right_hand_sides_costs_what_each_costs_alone(seed, plants, blocks):
    rng = np.random.default_rng(seed)
    problem = reservoir_problem(rng, plants, blocks)
    rhs = stage_rhs(rng, plants, blocks, 10)
    found = opening_order(rhs)
    solver = Solver(problem, num_saved=max(found.num_kept, 1))
    status, value, _ = solver.solve(rhs)
    root = seed % len(rhs)
    by_tree = solver.solve(rhs, order=found.order[root], parent=found.parent[root], keep=found.keep[root])
    assert (status == OPTIMAL).all()
    assert (by_tree[0] == OPTIMAL).all()
    for place, b in enumerate(rhs):
        alone = Solver(problem).solve(b)
        assert agree(value[place], alone[1][0])
        assert agree(by_tree[1][place], alone[1][0])
    assert_like_highs(problem, rhs, status, value)


def stage_rhs(rng, plants, blocks, count):
    water = np.maximum(rng.uniform(50, 200, plants) + rng.normal(0, 30, (count, plants)), 5.0)
    load = rng.uniform(50, 150 * blocks, blocks) + rng.normal(0, 5, (count, blocks))
    return np.hstack([water, load])


def test_an_lp_without_rows():
    problem = CoreProblem(np.zeros((0, 2)), [bounded(1.0, 4.0, 2.0), ([0.0, 3.0], [-1.0, -0.5, 4.0])])
    status, value, _ = Solver(problem).solve(np.zeros((1, 0)))
    assert (status[0], value[0]) == (OPTIMAL, 2.0 - 1.5)


def test_the_prices_of_rows_are_slopes_of_the_value():
    problem = CoreProblem([[1.0]], [bounded(0.0, 5.0, 2.0), ([0.0, 3.0], [-INF, 7.0, INF])])
    status, value, price = Solver(problem).solve([[4.0], [6.0], [8.0], [8.5], [-1.0]])
    assert status.tolist() == [OPTIMAL, OPTIMAL, OPTIMAL, INFEASIBLE, INFEASIBLE]
    assert value[:3].tolist() == [8.0, 17.0, 31.0]
    assert value[3:].tolist() == [INF, INF]
    assert price[0, 0] == 2.0
    assert price[1, 0] == 7.0


@pytest.mark.parametrize("cost", [-1.0, 1.0])
def test_a_free_column_is_bounded_by_its_row_or_not_at_all(cost):
    free = bounded(-INF, INF, cost)
    held = CoreProblem([[1.0]], [free, bounded(-3.0, 3.0, 0.0)])
    status, value, _ = Solver(held).solve([[10.0]])
    assert status[0] == OPTIMAL
    assert value[0] == cost * (13.0 if cost < 0 else 7.0)
    loose = CoreProblem([[1.0]], [free, free if cost < 0 else bounded(0.0, INF, 0.0)])
    assert Solver(loose).solve([[10.0]])[0][0] == (OPTIMAL if cost < 0 else UNBOUNDED)


def test_an_infeasible_lp_of_nearly_parallel_rows_is_proved_or_given_up():
    rows = [[1.0, 1.0], [1.0, 1.0 + 1e-9]]
    exact = ([0.0], [-INF, INF])
    problem = CoreProblem(rows, [bounded(0.0, 5.0, 1.0), bounded(0.0, 5.0, 1.0), exact, exact])
    status, _, _ = Solver(problem).solve([[4.0, 6.0], [4.0, 4.0]])
    assert status[0] in (INFEASIBLE, GAVE_UP)
    assert status[1] in (OPTIMAL, GAVE_UP)


FAILURES = [
    {core.FAILING_CHECKS: 1},
    {core.FAILING_CHECKS: 2},
    {core.FAILING_CHECKS: 4},
    {core.FAILING_PIVOTS: 1},
    {core.FAILING_PIVOTS: 3},
    {core.FAILING_PIVOTS: 4},
    {core.FAILING_CHECKS: 3, core.FAILING_PIVOTS: 1},
    {core.MOST_REFACTORISATIONS: 0, core.FAILING_CHECKS: 1},
]


@pytest.mark.parametrize("limits", FAILURES)
def test_a_failure_at_any_step_costs_a_new_inverse_or_a_cold_start_but_no_digit(limits):
    rng = np.random.default_rng(5)
    problem = reservoir_problem(rng, 5, 2)
    rhs = stage_rhs(rng, 5, 2, 6)
    expected = Solver(problem).solve(rhs)[1]
    solver = Solver(problem)
    for place, limit in limits.items():
        solver.work.limits[place] = limit
    status, value, _ = solver.solve(rhs)
    counters = solver.work.counters
    assert counters[core.REFACTORISATIONS] + counters[core.COLD_STARTS] > 1
    for place in range(len(rhs)):
        assert status[place] == GAVE_UP or agree(value[place], expected[place])
    assert (status == GAVE_UP).sum() == counters[core.GIVEN_UP] <= 1


def test_checks_that_always_fail_make_the_engine_give_up_and_leave_it_usable():
    rng = np.random.default_rng(6)
    problem = reservoir_problem(rng, 4, 2)
    rhs = stage_rhs(rng, 4, 2, 3)
    solver = Solver(problem)
    solver.work.limits[core.FAILING_CHECKS] = 5
    status, value, _ = solver.solve(rhs)
    assert status.tolist() == [GAVE_UP, OPTIMAL, OPTIMAL]
    assert value[0] == -INF
    assert solver.work.counters[core.CHECKS_FAILED] == 5
    assert_like_highs(problem, rhs[1:], status[1:], value[1:])


def test_a_limit_of_one_pivot_is_kept():
    rng = np.random.default_rng(7)
    problem = reservoir_problem(rng, 4, 2)
    solver = Solver(problem)
    solver.work.limits[core.MOST_ITERATIONS] = 1
    status, _, _ = solver.solve(stage_rhs(rng, 4, 2, 1))
    assert status[0] == GAVE_UP
    assert solver.work.sizes[core.REASON] == core.PIVOT_LIMIT
    assert solver.work.counters[core.ITERATIONS] == 2  # from the start and from the slack basis


def test_results_do_not_depend_on_what_was_solved_before():
    rng = np.random.default_rng(9)
    problem = reservoir_problem(rng, 6, 2)
    slopes = -rng.uniform(0.0, 120.0, (6, 40))
    constants = rng.uniform(8000.0, 9000.0, 40) - (slopes * rng.uniform(0.0, 150.0, (6, 40))).sum(axis=0)
    rhs = stage_rhs(rng, 6, 2, 8)
    found = opening_order(rhs)
    tree = {"order": found.order[3], "parent": found.parent[3], "keep": found.keep[3]}
    fresh = Solver(problem, slopes, num_saved=found.num_kept)
    fresh.solve(rhs[3:4], constants, stores=True)
    used = Solver(problem, slopes, num_saved=found.num_kept)
    used.solve(rhs[3:4], constants, stores=True)
    used.solve(rhs[::-1] * 1.3, constants - 500.0, key=1)
    used.solve(stage_rhs(rng, 6, 2, 5), constants, key=1, stores=True)
    for _ in range(2):
        one, other = fresh.solve(rhs, constants, **tree), used.solve(rhs, constants, **tree)
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


def test_a_stored_basis_needs_no_pivot_for_the_lp_that_it_is_of():
    rng = np.random.default_rng(10)
    problem = reservoir_problem(rng, 6, 3)
    rhs = stage_rhs(rng, 6, 3, 1)
    solver = Solver(problem)
    cold = solver.solve(rhs, stores=True)
    solver.work.counters[:] = 0
    warm = solver.solve(rhs)
    assert solver.work.counters[core.ITERATIONS] == 0
    assert solver.work.counters[core.COLD_STARTS] == 0
    assert agree(warm[1][0], cold[1][0])


def test_a_stored_basis_that_is_singular_means_a_cold_start():
    rng = np.random.default_rng(11)
    problem = reservoir_problem(rng, 3, 2)
    rhs = stage_rhs(rng, 3, 2, 1)
    solver = Solver(problem)
    expected = solver.solve(rhs, stores=True)[1]
    basic = np.flatnonzero(solver.store.kind[0, : problem.num_cols] == core.IN_SEGMENT)
    solver.store.kind[0, basic[0]] = core.NONBASIC
    solver.store.place[0, basic[0]] = 1
    solver.work.counters[:] = 0
    assert agree(solver.solve(rhs)[1][0], expected[0])
    assert solver.work.counters[core.COLD_STARTS] == 1


def test_expansion_for_highs_is_exact():
    pieces = [([0.0, 2.0], [-INF, 1.0, 3.0]), ([1.0], [-2.0, 5.0])]
    problem = CoreProblem([[1.0]], pieces)
    status, value = problem.solve_by_highs(np.array([6.0]))
    # x + s = 6: the slack goes to 1, where its cost is -2; x = 5 costs 2 * 1 + 3 * 3.
    assert (status, value) == (OPTIMAL, pytest.approx(9.0))
