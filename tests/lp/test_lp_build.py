from dataclasses import replace

import numpy as np
import pytest
from builders.studies import cascade_study, with_training

from cobre.case.model import Case
from cobre.case.model.uniform import constant_production
from cobre.lp import StageTemplate, build_templates
from cobre.lp.assembly import LpAssembly
from cobre.lp.index import ABSENT, unique_labels
from cobre.stochastic import build_opening_tree


def templates_of(case: Case) -> tuple[StageTemplate, ...]:
    return build_templates(case, build_opening_tree(case))


def entry(template: StageTemplate, row: str, column: str) -> float:
    """Coefficient of a named column in a named row (0 where there is none)."""
    j = template.col_names.index(column)
    i = template.row_names.index(row)
    first, last = template.matrix_start[j], template.matrix_start[j + 1]
    values = dict(
        zip(template.matrix_row[first:last].tolist(), template.matrix_value[first:last].tolist(), strict=True)
    )
    return values.get(i, 0.0)


def test_matrix_adds_up_sorts_and_drops_zeros():
    lp = LpAssembly()
    first, second = lp.add_columns("column", (("first", "second"),))
    upper, lower = lp.add_rows("row", (("upper", "lower"),))
    lp.put([lower, upper], [first, first], [2.0, 1.0])
    lp.put(lower, first, 3.0)
    lp.put(upper, [second, second], [4.0, -4.0])
    lp.put([ABSENT, upper], [first, ABSENT], 7.0)
    built = lp.finish(states=0, entities=0)
    assert built.matrix_start.tolist() == [0, 2, 2]
    assert built.matrix_row.tolist() == [upper, lower]
    assert built.matrix_value.tolist() == [1.0, 5.0]


def test_equations_come_first_and_the_index_follows():
    lp = LpAssembly()
    limits = lp.add_rows("limit", (("a", "b"),), where=[False, True], upper=3.0)
    balance = lp.add_equations("balance", (("x", "y"),), rhs=[1.0, 2.0])
    flow = lp.add_columns("flow", (("x", "y"), ("night", "day")), cost=[[1.0], [2.0]], upper=[5.0, 6.0])
    lp.add_columns("future_cost")
    lp.put(balance[:, None], flow, 1.0)
    lp.put(limits[1], flow[0], 1.0)
    lp.put_state(balance, [1, 0], [2.0, 4.0])
    lp.put_noise(balance, [2, 2], [3.0, 5.0])
    built = lp.finish(states=2, entities=3)
    assert built.index.row_names == ("balance[x]", "balance[y]", "limit[b]")
    assert built.index.col_names[1:] == ("flow[x, day]", "flow[y, night]", "flow[y, day]", "future_cost")
    assert built.index.rows["limit"].ids.tolist() == [ABSENT, 2]
    assert (built.index.row("limit[b]"), built.index.column("flow[y, night]")) == (2, 2)
    assert built.row_upper.tolist() == [0.0, 0.0, 3.0]
    assert built.matrix_row.tolist() == [0, 2, 0, 2, 1, 1]
    assert built.fixed_rhs.tolist() == [1.0, 2.0]
    assert (built.noise_start.tolist(), built.noise_row.tolist()) == ([0, 0, 0, 2], [0, 1])
    assert built.noise_value.tolist() == [3.0, 5.0]
    assert built.cost.tolist() == [1.0, 1.0, 2.0, 2.0, 0.0]
    assert built.col_upper[:4].tolist() == [5.0, 6.0, 5.0, 6.0]
    assert (built.state_start.tolist(), built.state_row.tolist()) == ([0, 1, 2], [1, 0])
    assert built.state_value.tolist() == [4.0, 2.0]


def test_equal_names_get_their_id():
    assert unique_labels(["a", "b", "a"], [3, 4, 5]) == ("a #3", "b", "a #5")
    assert len(set(unique_labels(["a", "a", "a #1"], [1, 2, 3]))) == 3


def test_cheapest_cost_takes_each_column_at_its_better_bound():
    lp = LpAssembly()
    lp.add_columns("cost", cost=2.0, lower=3.0, upper=10.0)
    lp.add_columns("reward", cost=-4.0, upper=5.0)
    lp.add_columns("free of charge", lower=-np.inf)
    assert lp.finish(states=0, entities=0).cheapest_cost() == 6.0 - 20.0
    lp.add_columns("endless reward", cost=-1.0)
    endless = lp.finish(states=0, entities=0)
    assert endless.cheapest_cost() == -np.inf
    assert endless.unbounded_rewards() == ["endless reward"]


def test_water_flows_down_the_cascade():
    template = templates_of(cascade_study(hydros=2, blocks=2))[0]
    volume = 0.0036 * 360.0
    for kind in ("hydro_turbined", "hydro_spillage"):
        column = f"{kind}[plant 0, block 1]"
        assert entry(template, "hydro_balance[plant 0]", column) == pytest.approx(volume, rel=1e-15)
        assert entry(template, "hydro_balance[plant 1]", column) == pytest.approx(-volume, rel=1e-15)
    slack = entry(template, "hydro_balance[plant 0]", "hydro_inflow_slack[plant 0]")
    assert slack == pytest.approx(-2.0 * volume, rel=1e-15)
    assert entry(template, "bus_balance[bus 0, block 1]", "hydro_turbined[plant 0, block 1]") == 0.8
    assert entry(template, "bus_balance[bus 1, block 1]", "hydro_turbined[plant 0, block 1]") == 0.0


def test_right_hand_side_adds_state_noise_and_load_factor():
    case = cascade_study(hydros=2, buses=2, blocks=2)
    tree = build_opening_tree(case)
    template = build_templates(case, tree)[1]
    state = np.array([100.0, 30.0])
    rhs = template.rhs(2, state)
    inflow = tree.inflow_m3s[tree.rows(1)][2]
    load = tree.load_mw[tree.rows(1)][2]
    np.testing.assert_allclose(rhs[:2], state + 0.0036 * 720.0 * inflow, rtol=1e-14)
    np.testing.assert_allclose(rhs[2:], [load[0] * 1.1, load[0] * 0.9, load[1] * 1.1, load[1] * 0.9])


def test_turbine_limit_is_the_tighter_of_flow_and_power():
    case = cascade_study(hydros=1, buses=1, blocks=1)
    for productivity, most in ((0.8, 75.0), (0.5, 80.0), (0.0, 80.0)):
        production = constant_production(len(case.stages), [productivity])
        template = templates_of(replace(case, production=production))[0]
        column = template.col_names.index("hydro_turbined[plant 0, block 0]")
        assert template.col_upper[column] == most


def test_future_cost_bound_is_valid_also_with_rewards_and_minimum_generation():
    case = cascade_study(stages=3, thermals=1, buses=1, blocks=1)
    paid = replace(case.stage_data[0], thermal_min_mw=np.full((1, 1), 10.0), thermal_cost=np.array([20.0]))
    first, middle, last = templates_of(replace(case, stage_data=(paid,) * 3))
    must_run = 720.0 * 10.0 * 20.0 / first.cost_scale
    assert middle.col_lower[middle.theta_col] == pytest.approx(must_run)
    assert first.col_lower[first.theta_col] == pytest.approx(must_run * (1 + 0.99))
    assert (last.col_lower[last.theta_col], last.col_upper[last.theta_col]) == (0.0, 0.0)
    rewarded = replace(case.stage_data[0], thermal_cost=np.array([-20.0]))
    first, middle, _ = templates_of(replace(case, stage_data=(rewarded,) * 3))
    assert middle.col_lower[middle.theta_col] == pytest.approx(-720.0 * 30.0 * 20.0 / first.cost_scale)
    assert first.col_lower[first.theta_col] == pytest.approx(1.99 * middle.col_lower[middle.theta_col])


def test_storage_floor_is_soft_only_below_it():
    case = cascade_study(hydros=1)
    hard = templates_of(case)[0]
    assert "hydro_storage_min[plant 0]" not in hard.row_names
    assert hard.col_lower[hard.state_col[0]] == 10.0
    low = replace(case.hydros[0], initial_storage_hm3=4.0)
    soft = templates_of(replace(case, hydros=(low,)))[0]
    assert soft.col_lower[soft.state_col[0]] == 0.0
    row = soft.row_names.index("hydro_storage_min[plant 0]")
    assert soft.row_lower[row] == 10.0
    assert entry(soft, "hydro_storage_min[plant 0]", "hydro_storage_below[plant 0]") == 1.0


@pytest.mark.parametrize("method", ["none", "penalty", "truncation", "truncation_with_penalty"])
def test_inflow_slack_exists_for_the_penalty_methods_only(method):
    template = templates_of(with_training(cascade_study(), inflow_method=method))[0]
    expected = 4 if "penalty" in method else 0
    assert sum(name.startswith("hydro_inflow_slack") for name in template.col_names) == expected


def test_cost_scale_divides_costs_but_not_discount():
    case = cascade_study(stages=2)
    plain = templates_of(with_training(case, cost_scale_factor=1.0))[0]
    scaled = templates_of(with_training(case, cost_scale_factor=500.0))[0]
    others = np.arange(plain.num_cols) != plain.theta_col
    np.testing.assert_allclose(scaled.cost[others] * 500.0, plain.cost[others])
    assert scaled.cost[scaled.theta_col] == plain.cost[plain.theta_col] == 0.99


def test_a_floor_of_the_end_frees_its_cost_and_reaches_back():
    case = cascade_study(hydros=2, stages=3)
    tree = build_opening_tree(case)
    boxes = []

    def floor(lower, upper):
        boxes.append((lower.tolist(), upper.tolist()))
        return -5.0e6

    plain, valued = build_templates(case, tree), build_templates(case, tree, None, floor)
    assert boxes == [([10.0, 10.0], [400.0, 400.0])]
    bounds = [
        [(t.col_lower[t.theta_col] * t.cost_scale, t.col_upper[t.theta_col]) for t in templates]
        for templates in (plain, valued)
    ]
    assert bounds[0][-1] == (0.0, 0.0)
    assert bounds[1][-1] == (-5.0e6, np.inf)
    assert bounds[1][1][0] == pytest.approx(bounds[0][1][0] - 0.99 * 5.0e6)
    assert bounds[1][0][0] == pytest.approx(bounds[0][0][0] - 0.99**2 * 5.0e6)
    assert (valued[-1].discount, valued[-1].cost[valued[-1].theta_col]) == (0.99, 0.99)
