"""Every rule of the reduction, alone and all together on random LPs of all that a template may hold."""

from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from core_check import Cuts, assert_same, no_cuts, random_cuts

from cobre.lp import LpIndex, StageTemplate
from cobre.lp.reduction import core_form, core_forms

INF = np.inf


def template_of(matrix, cost, lower, upper, row_lower, row_upper, states=(), dynamic=0, theta=0, state=None):
    """Return a template of a dense matrix; every state component enters the dynamic row ``state`` of it."""
    matrix = np.array(matrix, np.float64).reshape(len(row_lower), len(cost))
    columns, rows = np.nonzero(matrix.T)
    components = len(states)
    enters = [i % dynamic for i in range(components)] if state is None and dynamic else list(state or ())
    used = np.array(enters, np.int32)
    return StageTemplate(
        stage_id=0,
        cost=np.array(cost, np.float64),
        col_lower=np.array(lower, np.float64),
        col_upper=np.array(upper, np.float64),
        row_lower=np.array(row_lower, np.float64),
        row_upper=np.array(row_upper, np.float64),
        matrix_start=np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=len(cost)))]).astype(
            np.int32
        ),
        matrix_row=rows.astype(np.int32),
        matrix_value=matrix.T[columns, rows],
        state_col=np.array(states, np.int32),
        state_start=np.arange(len(used) + 1, dtype=np.int32)
        if len(used)
        else np.zeros(components + 1, np.int32),
        state_row=used,
        state_value=np.linspace(1.0, 1.5, len(used)),
        theta_col=theta,
        fixed_rhs=np.zeros(dynamic),
        noise_start=np.arange(dynamic + 1, dtype=np.int32),
        noise_row=np.arange(dynamic, dtype=np.int32),
        noise_value=np.ones(dynamic),
        opening_values=np.zeros((1, dynamic)),
        psi_start=np.zeros(1, np.int32),
        psi_component=np.zeros(0, np.int32),
        psi_value=np.zeros(0),
        truncated=np.zeros(0, np.bool_),
        valid_truncation=False,
        past_lower=np.zeros(0),
        past_upper=np.zeros(0),
        discount=1.0,
        cost_scale=1.0,
        index=LpIndex([], []),
    )


def same(template, noise=(), state=(), cuts=None):
    form = core_form(template)
    noise = np.array(noise, np.float64)
    assert (
        assert_same(template, form, noise, np.array(state, np.float64), cuts or no_cuts(template))
        == "optimal"
    )
    return form


def test_state_is_the_slack_of_its_balance_and_replaced_elsewhere():
    # v' + 2 q = v + inflow; g <= 3 q + 0.5 v'; g + deficit = 10.
    template = template_of(
        [[0, 2, 4, 0, 0], [0, 0, 0, 1, 1], [0, -0.5, -3, 1, 0]],
        [1, 0, 0, 0, 50],
        [0, 0, 0, 0, 0],
        [INF, 30, 5, 20, INF],
        [0, 0, -INF],
        [0, 0, 0],
        states=[1],
        dynamic=2,
        state=[0],
    )
    form = same(template, noise=[8.0, 10.0], state=[5.0])
    assert (form.num_rows, form.num_cols, form.num_state_rows) == (3, 3, 1)
    np.testing.assert_array_equal(form.row_value[: form.row_start[1]], [2.0])
    # Plane: -3 q - 0.5 (b - 2 q) + g <= 0.
    plane = slice(form.row_start[2], form.row_start[3])
    np.testing.assert_array_equal(form.row_value[plane], [-2.0, 1.0])
    cuts = Cuts(np.array([40.0]), np.array([[-2.0]]))
    same(template, noise=[8.0, 10.0], state=[5.0], cuts=cuts)
    # Without room for the entry of q in the plane the storage keeps its column.
    for most_fill, rows in ((1.0, 3), (0.0, 4)):
        form = core_form(template, most_fill)
        assert form.num_rows == rows
        assert_same(template, form, np.array([8.0, 10.0]), np.array([5.0]), cuts)


def test_memory_is_fixed_and_its_cut_part_is_a_constant():
    # m' = inflow + m; v' + q = v; q + deficit = 10.
    template = template_of(
        [[0, 0.5, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]],
        [1, 0, 0, 0, 9],
        [0, -INF, 0, 0, 0],
        [INF, INF, 30, 20, INF],
        [0, 0, 0],
        [0, 0, 0],
        states=[1, 2],
        dynamic=3,
        state=[0, 1],
    )
    cuts = Cuts(np.array([60.0, 30.0]), np.array([[-2.0, -1.0], [1.0, -5.0]]))
    form = same(template, noise=[3.0, 0.0, 10.0], state=[4.0, 12.0], cuts=cuts)
    assert (form.num_rows, form.num_fixed) == (2, 1)
    np.testing.assert_array_equal(form.state_place, [-1, 0])
    np.testing.assert_array_equal(form.fixed_place, [0, -1])
    b = form.right_hand_side(np.array([3.0, 0.0, 10.0]), np.array([4.0, 12.0]))
    assert b[form.num_rows] == 2.0 * (3.0 + 4.0)


def test_state_without_an_equation_of_its_own_keeps_its_column():
    # Two states in one equation; the second component names the same column as the third.
    template = template_of(
        [[0, 1, 1, 2]],
        [1, 0, 1, 1],
        [0, 0, 0, 0],
        [INF, 4, 5, INF],
        [0],
        [0],
        states=[1, 2, 2],
        dynamic=1,
        state=[0, 0, 0],
    )
    cuts = Cuts(np.array([20.0]), np.array([[-1.0, -2.0, -1.5]]))
    form = same(template, noise=[3.0], state=[1.0, 2.0, 3.0], cuts=cuts)
    assert (form.num_state_rows, form.num_rows, form.num_cols) == (3, 4, 3)


def test_column_that_two_components_name_is_the_slack_of_neither():
    template = template_of(
        [[0, 1, 1]], [1, 0, 2], [0, 0, 0], [INF, 4, INF], [0], [0], states=[1, 1], dynamic=1, state=[0, 0]
    )
    cuts = Cuts(np.array([20.0]), np.array([[-1.0, -3.0]]))
    form = same(template, noise=[3.0], state=[1.0, 2.0], cuts=cuts)
    np.testing.assert_array_equal(form.state_place, [0, 1])
    assert form.num_rows == 3


def test_determined_column_with_a_cost_stays():
    # m = inflow at 2 $ a unit; q + deficit = 10 - m.
    template = template_of(
        [[0, 1, 0, 0], [0, 1, 1, 1]],
        [1, 2, 1, 9],
        [0, -INF, 0, 0],
        [0, INF, 3, INF],
        [0, 0],
        [0, 0],
        dynamic=2,
    )
    form = same(template, noise=[4.0, 10.0])
    assert (form.num_rows, form.num_fixed) == (2, 0)


def test_what_cancels_in_a_replaced_row_is_no_entry():
    # v' + 0.1 q + 0.2 w = v; v' + 0.1 q + 0.3 w >= 2.
    template = template_of(
        [[0, 1, 0.1, 0.2], [0, 1, 0.1, 0.3]],
        [1, 0, -1, -1],
        [0, 0, 0, 0],
        [0, 9, 3, 5],
        [0, 2],
        [0, INF],
        states=[1],
        dynamic=1,
        state=[0],
    )
    form = same(template, noise=[0.0], state=[3.0])
    # Of the second row only w is left, which is also in the first.
    np.testing.assert_array_equal(np.diff(form.row_start), [2, 1])


def test_columns_of_one_row_and_parallel_ones_are_merged():
    # Thermals and deficit of two buses; both directions of a line without losses.
    template = template_of(
        [[0, 1, 1, 1, 0, 0, -1, 1], [0, 0, 0, 0, 1, 1, 1, -1]],
        [1, 5, 20, 99, 7, 99, 0.5, 0.25],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 6, 3, INF, 30, INF, 4, 2],
        [0, 0],
        [0, 0],
        dynamic=2,
    )
    form = same(template, noise=[12.0, 8.0])
    assert (form.num_rows, form.num_cols) == (2, 2)
    line = slice(form.piece_start[1], form.piece_start[2])
    np.testing.assert_array_equal(form.kink[line], [-INF, -2.0, 0.0, 4.0, INF])
    np.testing.assert_array_equal(form.slope[line], [-INF, -0.25, 0.5, INF, np.nan])


@pytest.mark.parametrize(
    ("limits", "cost", "kept"),
    [
        ((0, 5), 1.0, 0),
        ((1, 5), 1.0, 1),
        ((2, 2), 0.0, 0),
        ((-INF, INF), 0.0, 0),
        ((0, INF), 0.0, 0),
        ((-4, 0), -2.0, 0),
    ],
)
def test_empty_columns_stay_only_where_they_cost_something(limits, cost, kept):
    template = template_of(
        [[0, 0, 1, 1]], [1, cost, 3, 4], [0, limits[0], 0, 0], [0, limits[1], 5, 9], [7], [7]
    )
    form = same(template)
    assert form.num_cols == 1 + kept
    assert form.num_rows == 1


def test_row_without_limits_is_left_out_and_its_dual_is_0():
    template = template_of([[0, 1, 1], [0, 1, 2]], [1, 3, 4], [0, 0, 0], [0, 5, 9], [7, -INF], [7, INF])
    form = same(template)
    assert (form.num_rows, form.num_cols) == (1, 1)
    assert form.duals(np.array([4.0])).tolist() == [4.0, 0.0]


def test_merging_that_has_no_minimum_is_not_done():
    # A column that earns 2 without limit beside one that costs 1: unbounded either way, and no error.
    template = template_of([[0, 1, -1]], [1, -2, 1], [0, 0, 0], [0, INF, INF], [3], [3])
    form = core_form(template)
    assert form.num_cols == 3
    assert assert_same(template, form, np.zeros(0), np.zeros(0), no_cuts(template)) != "optimal"


def random_template(random: np.random.Generator) -> StageTemplate:
    """Return an LP with everything: rows and columns of all kinds of limits, states of all kinds."""
    columns, rows = int(random.integers(4, 14)), int(random.integers(2, 9))
    dynamic = int(random.integers(1, rows + 1))
    matrix = random.choice([-2.0, -1.0, -0.5, 0.25, 1.0, 3.0], (rows, columns))
    matrix[random.random((rows, columns)) < random.choice([0.4, 0.6, 0.8])] = 0.0
    for _ in range(3):
        one, other = random.choice(columns, 2)
        if random.random() < 0.5:
            matrix[:, one] = random.choice([-1.0, 0.5, 2.0]) * matrix[:, other]
    matrix[:, 0] *= random.random() < 0.2
    kind = random.choice(["box", "up", "free", "fixed", "down"], columns, p=[0.45, 0.3, 0.1, 0.1, 0.05])
    low = random.choice([0.0, -3.0, 1.0], columns)
    lower = np.where(np.isin(kind, ["free", "down"]), -INF, low)
    upper = np.select([kind == "box", kind == "fixed", kind == "down"], [low + 9.0, low, low + 4.0], INF)
    cost = random.choice([0.0, 0.0, 1.0, 2.5, 40.0], columns) * np.where(kind == "down", -1.0, 1.0)
    cost[kind == "free"] = 0.0
    lower[0], upper[0], cost[0] = 0.0, INF, 1.0
    row_kind = random.choice(
        ["equal", "below", "above", "ranged", "free"], rows, p=[0.3, 0.25, 0.25, 0.1, 0.1]
    )
    row_low = random.choice([-6.0, 0.0, 2.0], rows)
    row_lower = np.where(np.isin(row_kind, ["below", "free"]), -INF, row_low)
    row_upper = np.select(
        [row_kind == "equal", np.isin(row_kind, ["below", "ranged"])], [row_low, row_low + 5.0], INF
    )
    row_lower[:dynamic] = row_upper[:dynamic] = 0.0
    for row in range(dynamic):  # Some equations of one column, some that can always be kept.
        chance = random.random()
        if chance < 0.2:
            column = random.integers(1, columns)
            matrix[row] = 0.0
            matrix[row, column], cost[column] = random.choice([0.5, 1.0, -2.0]), 0.0
            lower[column], upper[column] = -INF, INF
    states = random.choice(
        np.arange(1, columns), int(random.integers(0, min(4, columns - 1))), replace=random.random() < 0.1
    )
    return template_of(matrix, cost, lower, upper, row_lower, row_upper, states=states, dynamic=dynamic)


@pytest.mark.parametrize("seed", range(4))
def test_random_lps_have_the_same_optimum_point_and_duals(seed):
    random = np.random.default_rng(seed)
    statuses = Counter()
    for _ in range(120):
        template = random_template(random)
        form = core_form(template, most_fill=random.choice([0.0, np.inf]))
        for count in (0, 2):
            noise = random.choice([0.0, 3.0, 8.0], template.num_dynamic_rows)
            state = random.choice([0.0, 1.0, 4.0], template.num_states)
            cuts = random_cuts(template, random, count)
            statuses[assert_same(template, form, noise, state, cuts)] += 1
    assert statuses["optimal"] > 60


def test_lps_of_other_openings_share_the_arrays_of_their_core_form():
    one, other = (random_template(np.random.default_rng(seed)) for seed in (1, 2))
    more = replace(one, opening_values=np.ones((3, one.num_dynamic_rows)))
    forms = core_forms([one, other, more])
    assert forms[0].row_value is forms[2].row_value
    assert forms[0].row_value is not forms[1].row_value
    assert [form.template for form in forms] == [one, other, more]


def test_arrays_are_what_kernels_take_and_the_same_bits_each_time():
    template = random_template(np.random.default_rng(3))
    first, second = core_form(template), core_form(template)
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, np.ndarray):
            assert one.flags.c_contiguous
            assert one.dtype in (np.int32, np.float64)
            assert one.tobytes() == other.tobytes()
    for start, line_place in ((first.row_start, first.row_col), (first.col_start, first.col_row)):
        assert all((np.diff(line_place[a:b]) > 0).all() for a, b in pairwise(start))
