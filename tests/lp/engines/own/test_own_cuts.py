from types import SimpleNamespace

import numpy as np
import pytest
from core_problems import Solver, agree, study
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.lp.engines.own import core, cuts
from cobre.lp.engines.own.core import GAVE_UP, OPTIMAL
from cobre.lp.opening_order import opening_order


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 3), st.integers(1, 60))
def test_cuts_on_demand_give_the_optimum_of_all_cuts(seed, plants, blocks, count):
    problem, rhs, slopes, constants = study(seed, plants, blocks, count)
    found = opening_order(rhs)
    root = seed % len(rhs)
    solver = Solver(problem, slopes, num_slots=24, num_saved=max(found.num_kept, 1))
    status, value, _ = solver.solve(
        rhs, constants, order=found.order[root], parent=found.parent[root], keep=found.keep[root]
    )
    for place, b in enumerate(rhs):
        expected, cost = problem.solve_by_highs(b, slopes, constants)
        assert status[place] == expected == OPTIMAL
        assert agree(value[place], cost)


def test_constants_may_differ_between_openings():
    problem, rhs, slopes, constants = study(1, 4, 2, 20)
    by_opening = constants + np.random.default_rng(2).normal(0.0, 400.0, (len(rhs), 20))
    status, value, _ = Solver(problem, slopes).solve(rhs, by_opening)
    for place, b in enumerate(rhs):
        assert (
            status[place],
            agree(value[place], problem.solve_by_highs(b, slopes, by_opening[place])[1]),
        ) == (
            OPTIMAL,
            True,
        )


def test_a_cut_that_is_switched_off_is_not_there():
    problem, rhs, slopes, constants = study(3, 4, 2, 20)
    off = constants.copy()
    off[::2] = -np.inf
    value = Solver(problem, slopes).solve(rhs, off)[1]
    expected = Solver(problem, np.ascontiguousarray(slopes[:, 1::2])).solve(rhs, constants[1::2])[1]
    np.testing.assert_allclose(value, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_cuts_of_a_stored_basis_that_were_switched_off_leave_it(seed):
    problem, rhs, slopes, constants = study(seed, 6, 2, 40)
    constants = constants + 9000.0
    solver = Solver(problem, slopes)
    solver.solve(rhs[:1], constants, stores=True)
    active = solver.store.cut[0, : solver.store.num_cuts[0]]
    assert len(active) > 0
    kept = np.setdiff1d(np.arange(40), active)
    off = np.full(40, -np.inf)
    off[kept] = constants[kept]
    solver.work.counters[:] = 0
    status, value, _ = solver.solve(rhs, off)
    assert solver.work.counters[core.COLD_STARTS] == 0
    for place, b in enumerate(rhs):
        expected, cost = problem.solve_by_highs(b, slopes[:, kept], constants[kept])
        assert status[place] == expected == OPTIMAL
        assert agree(value[place], cost)


def test_nearly_parallel_cuts():
    problem, rhs, slopes, constants = study(4, 5, 2, 10)
    near = np.repeat(slopes, 4, axis=1) * (1.0 + 1e-9 * np.random.default_rng(5).normal(size=(5, 40)))
    status, value, _ = Solver(problem, near).solve(rhs, np.repeat(constants, 4))
    for place, b in enumerate(rhs):
        assert status[place] == OPTIMAL
        assert agree(value[place], problem.solve_by_highs(b, near, np.repeat(constants, 4))[1])


@pytest.mark.parametrize("slots", [0, 1, 2, 3, 6])
def test_a_small_working_set_is_used_again_or_the_engine_gives_up(slots):
    problem, rhs, slopes, constants = study(6, 5, 2, 60, openings=12)
    found = opening_order(rhs)
    solver = Solver(problem, slopes, num_slots=slots, num_saved=max(found.num_kept, 1))
    status, value, _ = solver.solve(
        rhs, constants, order=found.order[0], parent=found.parent[0], keep=found.keep[0]
    )
    for place, b in enumerate(rhs):
        if status[place] == GAVE_UP:
            assert value[place] == -np.inf
        else:
            assert agree(value[place], problem.solve_by_highs(b, slopes, constants)[1])
    if slots == 6:
        assert (status == OPTIMAL).all()
        assert solver.work.counters[core.CUTS_ADDED] > 6
    if slots == 0:
        assert (status == GAVE_UP).all()
        assert solver.work.sizes[core.REASON] == core.WORKING_SET_FULL


def test_cold_starts_inside_a_tree_leave_saved_states_as_they_are():
    problem, rhs, slopes, constants = study(7, 6, 2, 50, openings=10)
    found = opening_order(rhs)
    tree = {"order": found.order[0], "parent": found.parent[0], "keep": found.keep[0]}
    expected = Solver(problem, slopes, num_saved=found.num_kept).solve(rhs, constants, **tree)[1]
    for failing in range(1, 40, 3):
        solver = Solver(problem, slopes, num_saved=found.num_kept)
        solver.work.limits[core.MOST_REFACTORISATIONS] = 0
        solver.work.limits[core.FAILING_PIVOTS] = 0
        first = solver.solve(rhs[:1], constants)  # so that the failure below hits an LP of the tree
        assert first[0][0] == OPTIMAL
        solver.work.limits[core.FAILING_CHECKS] = failing % 2 + 1
        status, value, _ = solver.solve(rhs, constants, **tree)
        for place in range(len(rhs)):
            assert status[place] == GAVE_UP or agree(value[place], expected[place])


@pytest.mark.parametrize(("states", "count", "width"), [(1, 5, 32), (4, 96, 32), (6, 70, 32), (9, 300, 256)])
def test_cuts_are_taken_from_the_most_violated_on_and_equal_ones_in_their_order(
    monkeypatch, states, count, width
):
    for name in ("_evaluate", "_largest"):
        monkeypatch.setattr(cuts, name, getattr(cuts, name).py_func)
    random = np.random.default_rng(count)
    slopes = random.integers(-3, 4, (states, count)).astype(float)
    state = random.integers(0, 5, states).astype(float)
    constant = random.integers(0, 20, count).astype(float)
    constant[::7] = -np.inf  # switched off
    pool = core.cut_columns(slopes, width)
    part = SimpleNamespace(num_cols=2, num_state_rows=states)
    work = SimpleNamespace(
        value=np.concatenate([[0.0, 0.0], state]),
        cut_constant=constant,
        violation=np.full(count, np.nan),
        block_violation=np.full(count // core.CUT_BLOCK + 1, np.nan),
    )
    blocks = cuts._scan.py_func(part, work, pool, 5.0, 1e-9)
    violation = constant - 5.0 + state @ slopes
    expected = [cut for cut in np.argsort(-violation, kind="stable") if violation[cut] > 1e-9]
    taken = [cuts._take_most_violated.py_func(work, pool, blocks, 1e-9) for _ in range(len(expected) + 1)]
    assert len(expected) >= 2
    assert taken == [*expected, -1]
