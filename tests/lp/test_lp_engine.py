"""Both engines from nopython code, against independent solves of the same LPs."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from builders.studies import cascade_study
from numba import njit
from scipy.optimize import linprog
from scipy.sparse import csc_matrix

from cobre.lp import StageTemplate, build_templates, scale_templates
from cobre.lp import arrays as lp_arrays
from cobre.lp.engine import OK, RIGHT_HAND_SIDE_REFUSED, opening_noise, outgoing_state
from cobre.lp.engines.dispatch import solve_one, solve_openings
from cobre.lp.engines.own.setup import OwnEngine
from cobre.lp.engines.own.trial import archive_cuts
from cobre.lp.highs import SMALLEST_COEFFICIENT, HighsModel
from cobre.lp.reduction import core_forms
from cobre.stochastic import build_opening_tree


@njit
def all_openings(
    lp, own, pool, work, basis, worker, stage, own_pass, root, state, values, cut_values, slopes
):
    archive_cuts(lp, own, pool, stage)
    return solve_openings(
        lp, own, pool, work, basis, worker, stage, own_pass, root, state, values, cut_values, slopes
    )


@njit
def one(lp, own, pool, work, basis, worker, stage, own_pass, opening, state):
    archive_cuts(lp, own, pool, stage)
    noise = opening_noise(lp, stage, opening)
    return solve_one(lp, own, pool, work, basis, worker, stage, own_pass, noise, state)


@njit
def write_state(lp, work, worker, stage, out):
    outgoing_state(lp, work, worker, stage, out)


def in_unit(template: StageTemplate, cost_scale: float) -> StageTemplate:
    """Put the costs of a template in another unit, without asking whether the solver can tell them from 0."""
    cost, lower = template.cost * (template.cost_scale / cost_scale), template.col_lower.copy()
    cost[template.theta_col] = template.discount
    lower[template.theta_col] *= template.cost_scale / cost_scale
    return replace(template, cost=cost, col_lower=lower, cost_scale=cost_scale)


class Engine:
    """LP objects and workspaces of a small study, for two workers and three passes."""

    CAPACITY = 8

    def __init__(
        self,
        resources: ExitStack,
        scaled: bool,
        cost_scale: float | None = None,
        objects: int = 3,
        own: bool = False,
    ) -> None:
        case = cascade_study(hydros=5, thermals=6, stages=3, openings=6, seed=3)
        self.templates = build_templates(case, build_opening_tree(case))
        if cost_scale is not None:
            self.templates = tuple(in_unit(template, cost_scale) for template in self.templates)
        solved, _ = scale_templates(self.templates, beyond=0.0 if scaled else np.inf)
        self.lp = lp_arrays.lp_arrays(solved, np.arange(3) % objects)
        handles = np.zeros((2, objects), np.intp)
        for place in np.ndindex(handles.shape):
            handles[place] = resources.enter_context(HighsModel(None)).handle
        states = len(case.hydros)
        self.pool = lp_arrays.cut_pool(3, self.CAPACITY, states)
        self.work = lp_arrays.lp_workspace(self.lp, handles, self.CAPACITY, cut_entries=2 * (states + 1))
        self.basis = lp_arrays.basis_store(self.lp, 3, self.CAPACITY)
        self.state = np.linspace(40.0, 250.0, states)
        forms = core_forms(solved) if own else [None] * 3
        self.own = OwnEngine(
            self.lp, self.pool, forms, [part.opening_values for part in solved], workers=2, passes=3
        )
        self.own.load_engine()

    @property
    def study(self):
        return self.lp, self.own.arrays, self.pool, self.work, self.basis

    def solve_openings(self, worker=0, stage=1, own_pass=0, state=None, root=0):
        openings = int(self.lp.num_openings[stage])
        values, cut_values, slopes = (
            np.zeros(openings),
            np.zeros(openings),
            np.zeros((openings, len(self.state))),
        )
        state = self.state if state is None else state
        where = (worker, stage, own_pass, root, state)
        status, last = all_openings(*self.study, *where, values, cut_values, slopes)
        assert (status, last) == (OK, openings)
        np.testing.assert_array_equal(cut_values, values)
        return values, slopes

    def add_cuts(self, stage: int, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        first = int(self.pool.num_cuts[stage])
        slots = slice(first, first + count)
        self.pool.slope[stage, slots] = -random.uniform(100.0, 4000.0, (count, len(self.state)))
        self.pool.intercept[stage, slots] = random.uniform(1.0e6, 3.0e6, count)
        self.pool.num_cuts[stage] += count


@pytest.fixture(params=["highs", "highs-scaled", "own", "own-scaled"])
def engine(request):
    kind, _, scaled = request.param.partition("-")
    with ExitStack() as resources:
        yield Engine(resources, bool(scaled), own=kind == "own")


@pytest.fixture(params=[False, True], ids=["unscaled", "scaled"])
def highs(request):
    with ExitStack() as resources:
        yield Engine(resources, request.param)


def test_an_object_that_serves_all_nodes_gives_the_same_bits():
    with ExitStack() as resources:
        answers = []
        for objects in (3, 1):
            engine = Engine(resources, scaled=False, objects=objects)
            answers.append([])
            for turn in range(3):
                for stage in (0, 1, 2, 1):
                    answers[-1].extend(engine.solve_openings(stage=stage, own_pass=turn))
                engine.add_cuts(0, 2, seed=turn)
                engine.add_cuts(1, 2, seed=3 + turn)
        for one_each, shared in zip(*answers, strict=True):
            np.testing.assert_array_equal(one_each, shared)
        assert engine.work.loaded.tolist() == [[1], [-1]]


def test_scaling_changes_neither_values_nor_slopes():
    with ExitStack() as resources:
        answers = []
        for scaled in (False, True):
            engine = Engine(resources, scaled)
            engine.add_cuts(1, 5, seed=1)
            values, slopes = engine.solve_openings()
            final = np.zeros(len(engine.state))
            one(*engine.study, 0, 1, 0, 0, engine.state)
            write_state(engine.lp, engine.work, 0, 1, final)
            answers.append((values, slopes, final))
    for plain, scaled in zip(*answers, strict=True):
        np.testing.assert_allclose(scaled, plain, rtol=1e-9, atol=1e-9)


def independent_optimum(template: StageTemplate, pool, stage: int, opening: int, state) -> float:
    """Solve the same LP with scipy, from the template's arrays."""
    shape = (template.num_rows, template.num_cols)
    matrix = csc_matrix((template.matrix_value, template.matrix_row, template.matrix_start), shape).tocsr()
    dynamic = template.num_dynamic_rows
    count = int(pool.num_cuts[stage])
    cuts = np.zeros((count, template.num_cols))
    cuts[:, template.theta_col] = -1.0
    cuts[:, template.state_col] = pool.slope[stage, :count] / template.cost_scale
    has_upper = np.isfinite(template.row_upper[dynamic:])
    has_lower = np.isfinite(template.row_lower[dynamic:])
    others = matrix[dynamic:].toarray()
    solution = linprog(
        template.cost,
        A_ub=np.vstack([others[has_upper], -others[has_lower], cuts]),
        b_ub=np.concatenate(
            [
                template.row_upper[dynamic:][has_upper],
                -template.row_lower[dynamic:][has_lower],
                -pool.intercept[stage, :count] / template.cost_scale,
            ]
        ),
        A_eq=matrix[:dynamic],
        b_eq=template.rhs(opening, np.asarray(state)),
        bounds=np.column_stack([template.col_lower, template.col_upper]),
        method="highs",
    )
    assert solution.status == 0
    return float(solution.fun) * template.cost_scale


@pytest.mark.parametrize("cuts", [0, 5])
def test_values_are_optimal(engine, cuts):
    engine.add_cuts(1, cuts, seed=1)
    values, _ = engine.solve_openings()
    expected = [
        independent_optimum(engine.templates[1], engine.pool, 1, opening, engine.state)
        for opening in range(len(values))
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-9)


def test_slopes_are_subgradients(engine):
    engine.add_cuts(1, 4, seed=2)
    values, slopes = engine.solve_openings()
    random = np.random.default_rng(5)
    for _ in range(20):
        other = engine.state + random.uniform(-30.0, 30.0, len(engine.state))
        elsewhere, _ = engine.solve_openings(state=other)
        tangent = values + slopes @ (other - engine.state)
        assert (elsewhere >= tangent - 1e-7 * np.abs(values)).all()


def test_answers_do_not_depend_on_what_the_worker_solved_before(engine):
    engine.add_cuts(1, 3, seed=3)
    one(*engine.study, 0, 1, 0, 2, engine.state)
    fresh_values, fresh_slopes = engine.solve_openings(worker=1)
    random = np.random.default_rng(7)
    for _ in range(15):
        engine.solve_openings(worker=0, own_pass=1, state=random.uniform(10.0, 400.0, len(engine.state)))
    used_values, used_slopes = engine.solve_openings(worker=0)
    assert used_values.tobytes() == fresh_values.tobytes()
    assert used_slopes.tobytes() == fresh_slopes.tobytes()


def test_answers_do_not_depend_on_when_cuts_were_added(engine):
    for step in range(3):
        engine.add_cuts(1, 2, seed=10 + step)
        engine.solve_openings(worker=0, own_pass=1)  # worker 0 adds two at a time, worker 1 all at once
    eager_values, eager_slopes = engine.solve_openings(worker=0)
    late_values, late_slopes = engine.solve_openings(worker=1)
    assert eager_values.tobytes() == late_values.tobytes()
    assert eager_slopes.tobytes() == late_slopes.tobytes()


def test_stored_basis_leaves_nothing_to_do(highs):
    counters = highs.work.counters
    one(*highs.study, 0, 1, 2, 4, highs.state)
    cold = counters[0, lp_arrays.SIMPLEX_ITERATIONS]
    assert cold > 0
    one(*highs.study, 1, 1, 2, 4, highs.state)
    assert counters[1, lp_arrays.SIMPLEX_ITERATIONS] == 0
    assert counters[:, lp_arrays.LP_SOLVES].tolist() == [1, 1]
    assert counters[:, lp_arrays.LP_RETRIES].tolist() == [0, 0]


def test_dropped_cuts_leave_no_trace(engine):
    engine.add_cuts(1, 6, seed=4)
    engine.solve_openings(worker=0)
    assert one(*engine.study, 0, 1, 0, 0, engine.state) == OK
    engine.pool.active[1, [0, 3, 4]] = False
    engine.pool.version[1] += 1
    engine.add_cuts(1, 1, seed=5)
    for own_pass in (0, 1):  # with a basis of before, and without one
        used = engine.solve_openings(worker=0, own_pass=own_pass)
        fresh = engine.solve_openings(worker=1, own_pass=own_pass)
        np.testing.assert_array_equal(used[0], fresh[0])
        np.testing.assert_array_equal(used[1], fresh[1])
    if not engine.own.arrays.uses_own.any():
        assert engine.work.row_cut[0, 1, :4].tolist() == [1, 2, 5, 6]
        assert engine.work.cut_rows[:, 1].tolist() == [4, 4]


def test_cuts_added_where_they_are_violated_give_the_same_values(highs):
    highs.add_cuts(1, 8, seed=6)
    expected, _ = highs.solve_openings(worker=0)
    highs.pool.first_loaded[1] = 7
    highs.pool.version[1] += 1
    lazy, slopes = highs.solve_openings(worker=0)
    np.testing.assert_allclose(lazy, expected, rtol=1e-12)
    assert highs.work.base_rows[0, 1] == 1
    assert 1 < highs.work.cut_rows[0, 1] <= 8
    highs.solve_openings(worker=0, own_pass=1, state=highs.state * 0.5)
    again, again_slopes = highs.solve_openings(worker=1)
    np.testing.assert_array_equal(again, lazy)
    np.testing.assert_array_equal(again_slopes, slopes)


@pytest.mark.parametrize("value", [1e20, 1e300, np.nan, np.inf, -np.inf])
def test_right_hand_sides_that_an_lp_cannot_hold_are_refused(engine, value):
    engine.solve_openings()
    engine.state[1] = value
    values, slopes = np.zeros(6), np.zeros((6, len(engine.state)))
    status, opening = all_openings(*engine.study, 0, 1, 0, 0, engine.state, values, values.copy(), slopes)
    assert (status, opening) == (RIGHT_HAND_SIDE_REFUSED, 0)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_slope_too_small_for_the_solver_lowers_the_cut(highs, sign):
    """HiGHS would drop it, and the cut would be too high by its worth wherever the state is large."""
    highs.lp.state_least[1] = 5.0
    highs.lp.state_most[1] = 1e14
    tiny = sign * 0.9 * SMALLEST_COEFFICIENT * highs.lp.cost_scale / highs.lp.state_scale[1]
    worth = tiny.sum() * 1e14 if sign < 0.0 else 0.0
    assert worth == 0.0 or worth < -1e5
    found = []
    for intercept, slope in ((1e9, tiny), (1e9 + worth, 0.0)):
        highs.pool.intercept[1, 0], highs.pool.slope[1, 0] = intercept, slope
        highs.pool.num_cuts[1] = 1
        highs.pool.version[1] += 1
        found.append(highs.solve_openings()[0])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)


def test_value_is_lowered_by_duals_of_the_wrong_sign(highs):
    """With a unit of costs as large as the tolerance the optimal basis is not found, but bounds hold."""
    exact, _ = highs.solve_openings()
    with ExitStack() as resources:
        coarse = Engine(resources, scaled=False, cost_scale=highs.lp.cost_scale * 2.0**30)
        values, slopes = coarse.solve_openings()
        assert (values <= exact * (1.0 + 1e-9)).all()
        other = coarse.state * 0.3
        assert (values + slopes @ (other - coarse.state) <= highs.solve_openings(state=other)[0]).all()


def test_both_engines_give_the_same_values_and_states():
    with ExitStack() as resources:
        answers = []
        for own in (False, True):
            engine = Engine(resources, scaled=True, own=own)
            engine.add_cuts(1, 6, seed=8)
            values, _ = engine.solve_openings(root=3)
            assert one(*engine.study, 0, 1, 0, 2, engine.state) == OK
            final = np.zeros(len(engine.state))
            write_state(engine.lp, engine.work, 0, 1, final)
            answers.append((values, final, engine.work.objective[:1].copy()))
    for by_highs, by_own in zip(*answers, strict=True):
        np.testing.assert_allclose(by_own, by_highs, rtol=1e-9)


def test_an_lp_with_cuts_and_no_basis_starts_from_that_without_cuts(highs):
    highs.add_cuts(1, 6, seed=9)
    expected, _ = highs.solve_openings(worker=0)
    highs.work.counters[:] = 0
    assert one(*highs.study, 1, 1, 2, 0, highs.state) == OK
    assert highs.work.counters[1, lp_arrays.LP_SOLVES] == 2  # once without cuts, once with them
    assert highs.work.cut_rows[1, 1] == 6
    assert highs.work.objective[1] * highs.lp.cost_scale == pytest.approx(expected[0], rel=1e-9)
