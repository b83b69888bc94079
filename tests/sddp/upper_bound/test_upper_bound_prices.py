from dataclasses import replace

import numpy as np
import pytest
from builders.studies import cascade_study, with_training

from cobre.case.model import HYDRO_PENALTIES, Case
from cobre.lp import StateLayout, build_templates, scale_templates
from cobre.lp.highs import HighsModel
from cobre.policy.boundary import BoundaryCuts
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.upper_bound import StatePrices, state_prices
from cobre.stochastic import build_opening_tree

HM3 = 0.0036  # hm3 of one m3/s in an hour
SPILL = 0.01 / HM3
SLACK = 1.0e3 / HM3


def prices_of(case: Case, boundary: BoundaryCuts | None = None, *, scaled: bool = False) -> StatePrices:
    tree = build_opening_tree(case)
    templates = build_templates(case, tree, StateLayout(case))
    if scaled:
        templates, _ = scale_templates(templates, beyond=0.0)
    return state_prices(templates, graph_arrays(case, tree.num_openings), boundary)


@pytest.mark.parametrize("scaled", [False, True])
def test_more_water_is_spilt_down_the_cascade_and_less_is_bought(scaled):
    # Three plants in a row: what the first one spills the others spill, too.
    prices = prices_of(cascade_study(hydros=3, stages=3), scaled=scaled)
    np.testing.assert_allclose(prices.up[:2], [[3 * SPILL, 2 * SPILL, SPILL]] * 2, rtol=1e-9)
    np.testing.assert_allclose(prices.down[:2], SLACK, rtol=1e-9)
    assert not prices.up[2].any()
    assert not prices.down[2].any()
    assert prices.complete


def test_each_stage_has_the_price_of_the_next_one():
    # Storage is limited, so that no stage can keep more water for good: it spills what comes in addition.
    case = cascade_study(hydros=1, stages=3)
    penalty = case.stage_data[1].hydro_penalty.copy()
    penalty[:, HYDRO_PENALTIES.index("spillage")] *= 50.0
    dear = replace(case.stage_data[1], hydro_penalty=penalty)
    case = replace(case, stage_data=(case.stage_data[0], dear, case.stage_data[2]))
    np.testing.assert_allclose(prices_of(case).up[:2, 0], [50 * SPILL, SPILL], rtol=1e-9)


def test_without_slacks_less_water_has_no_price():
    prices = prices_of(with_training(cascade_study(hydros=2, stages=2), inflow_method="none"))
    assert np.isinf(prices.down[0]).all()
    assert np.isfinite(prices.up).all()
    assert not prices.complete


def test_boundary_cuts_price_the_final_state():
    case = cascade_study(hydros=2, stages=2)
    cuts = BoundaryCuts(np.array([5.0, 7.0]), np.array([[-3.0, 2.0], [-8.0, -1.0]]))
    prices = prices_of(case, cuts)
    np.testing.assert_array_equal(prices.up[1], [0.0, 2.0])
    np.testing.assert_array_equal(prices.down[1], [8.0, 1.0])


def test_margin_and_fallback():
    prices = StatePrices(np.array([[2.0, np.inf, -4.0]]), np.array([[np.inf, 0.0, 1.0]]))
    grown = prices.scaled(1.5)
    np.testing.assert_array_equal(grown.up, [[3.0, np.inf, -2.0]])
    np.testing.assert_array_equal(grown.down, [[np.inf, 0.0, 1.5]])
    np.testing.assert_array_equal(prices.filled(9.0).up, [[2.0, 9.0, -4.0]])
    np.testing.assert_array_equal(prices.filled(9.0).down, [[9.0, 0.0, 1.0]])


def test_no_value_of_the_last_stage_rises_faster_than_its_price():
    case = cascade_study(hydros=4, stages=2, openings=4)
    tree = build_opening_tree(case)
    templates = build_templates(case, tree, StateLayout(case))
    prices = prices_of(case)
    last = templates[1]
    random = np.random.default_rng(3)
    with HighsModel(last) as model:

        def value(state: np.ndarray, opening: int) -> float:
            rhs = last.rhs(opening, state)
            model.set_row_bounds(0, rhs, rhs)
            assert model.solve() == "optimal"
            return model.objective() * last.cost_scale

        for _ in range(100):
            state, move = random.uniform(10.0, 400.0, 4), random.uniform(-60.0, 60.0, 4)
            opening = int(random.integers(4))
            most = prices.up[0] @ np.maximum(move, 0.0) + prices.down[0] @ np.maximum(-move, 0.0)
            assert value(state + move, opening) <= value(state, opening) + most + 1e-6
