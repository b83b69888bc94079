"""The LPs of the bound by the own engine against the same LPs by HiGHS."""

from functools import partial

import numpy as np
import pytest
from builders.studies import cascade_study, dry_study, with_training

import cobre.case
from cobre.case.model import Case
from cobre.lp import StateLayout, build_templates, scale_templates
from cobre.lp.engines.own.core import FAILING_CHECKS
from cobre.policy.boundary import BoundaryCuts, future_cost_floor
from cobre.policy.visited import VisitedStates
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.upper_bound import state_prices, upper_bound
from cobre.sddp.upper_bound.inner_lp import inner_lp, last_lp
from cobre.sddp.upper_bound.node_lp import NodeLp, NodeLps
from cobre.sddp.upper_bound.solving import Solver
from cobre.sddp.upper_bound.state_order import state_order
from cobre.stochastic import build_opening_tree
from cobre.templates import four_region


class Setting:
    """The LPs of a study with vertices at random between the limits of the state, and prices."""

    def __init__(self, case: Case, boundary: BoundaryCuts | None = None, *, scaled: bool = False) -> None:
        tree, layout = build_opening_tree(case), StateLayout(case)
        floor = None if boundary is None else partial(future_cost_floor, boundary)
        self.templates = build_templates(case, tree, layout, floor)
        if scaled:
            self.templates, _ = scale_templates(self.templates, beyond=0.0)
        self.graph = graph_arrays(case, tree.num_openings)
        self.boundary, self.initial = boundary, layout.initial
        self.prices = state_prices(self.templates, self.graph, boundary)

    def states(self, count: int, seed: int = 0) -> np.ndarray:
        random = np.random.default_rng(seed)
        spread = random.uniform(0.2, 1.8, (count, len(self.initial))) * self.initial
        # Many components of visited states lie at the same limit.
        return np.where(random.uniform(size=spread.shape) < 0.4, self.initial, spread)

    def lps(self, threads: int = 1) -> NodeLps:
        return NodeLps(self.boundary, self.prices, None, threads)

    def inner(self, node: int, vertices: np.ndarray, threads: int = 1) -> tuple[NodeLp, np.ndarray]:
        """Return the LPs of a node by the engine, and their values at the vertices by HiGHS."""
        template = self.templates[node]
        values = 1.0e6 + 1.0e3 * np.square(vertices - 0.7 * self.initial).sum(axis=1) / self.initial.max()
        up, down = self.prices.up[node], self.prices.down[node]
        reference = inner_lp(template, vertices, values, up, down)
        expected = np.array([reference.values(template.opening_values, state) for state in vertices])
        reference.close()
        return self.lps(threads).inner(node, template, vertices, values), expected


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """Compare values; a state with one LP without solution may have others left out."""
    finite = np.isfinite(expected).all(axis=1)
    np.testing.assert_array_equal(np.isfinite(found).all(axis=1), finite)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-8, atol=1e-5)
    assert finite.sum() > len(finite) // 2


def four_regions() -> Case:
    """Four reservoirs with inflows that follow earlier ones."""
    return cobre.case.build(four_region.build())


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("study", [cascade_study, four_regions])
def test_values_are_those_of_highs(study, scaled):
    setting = Setting(study(), scaled=scaled)
    lp, expected = setting.inner(1, setting.states(70))
    assert_same(lp.values(setting.states(70)), expected)
    assert lp.lp_fallbacks == np.isinf(expected).any(axis=1).sum()


def test_moves_without_a_price_are_not_made():
    # Without slacks less water has no price.
    setting = Setting(with_training(cascade_study(hydros=3), inflow_method="none"))
    assert not setting.prices.complete
    states = setting.states(40)
    lp, expected = setting.inner(1, states)
    assert_same(lp.values(states), expected)


@pytest.mark.parametrize("study", [cascade_study, four_regions])
@pytest.mark.parametrize("cuts", [0, 300])
def test_last_stage_with_and_without_boundary_cuts(study, cuts):
    case, boundary = study(), None
    if cuts:
        random, initial = np.random.default_rng(7), StateLayout(case).initial
        slopes = random.uniform(-50.0, 5.0, (cuts, len(initial)))
        boundary = BoundaryCuts(1.0e6 - slopes @ initial * random.uniform(size=cuts), slopes)
    setting = Setting(case, boundary)
    template, states = setting.templates[-1], setting.states(40)
    reference = last_lp(template, setting.boundary)
    expected = np.array([reference.values(template.opening_values, state) for state in states])
    reference.close()
    lp = setting.lps().last(len(setting.templates) - 1, template)
    assert_same(lp.values(states), expected)


def test_what_the_engine_gives_up_on_is_solved_by_highs():
    setting = Setting(cascade_study())
    states = setting.states(50)
    lp, expected = setting.inner(1, states)
    assert lp.values(states).shape == expected.shape
    ((work, _),) = lp._solver._workers
    solve = lp._solver.solve

    def failing(*arguments):
        work.limits[FAILING_CHECKS] = 5 * 5  # an LP is given up after five attempts
        return solve(*arguments)

    lp._solver.solve = failing
    assert_same(lp.values(states), expected)
    assert lp.lp_fallbacks == 5


def test_an_lp_without_solution_is_confirmed_once_for_a_state():
    setting = Setting(dry_study())
    lp = setting.lps().last(1, setting.templates[1])
    found = lp.values(np.array([[10.0], [200.0]]))
    assert np.isinf(found[0]).all()
    assert lp.lp_fallbacks >= 1


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads):
    setting = Setting(four_regions())
    states = setting.states(80)
    alone, _ = setting.inner(1, states)
    together, _ = setting.inner(1, states, threads)
    np.testing.assert_array_equal(together.values(states), alone.values(states))


def test_values_do_not_depend_on_what_was_solved_before():
    setting = Setting(four_regions())
    states, other = setting.states(40), setting.states(90, seed=1)
    fresh, _ = setting.inner(1, states)
    used, _ = setting.inner(1, states)
    used.values(other)
    np.testing.assert_array_equal(used.values(states), fresh.values(states))


def test_nodes_that_the_engine_gives_up_on_are_left_to_highs(monkeypatch):
    setting = Setting(cascade_study(hydros=3, stages=4, openings=3))
    visited = VisitedStates(4, 3)
    states = np.random.default_rng(1).uniform(10.0, 400.0, (4, 11, 3))
    visited.append(states, np.arange(4)[:, None].repeat(11, axis=1))

    def bound(threads: int = 1) -> float:
        lps = setting.lps(threads)
        return upper_bound(setting.templates, setting.graph, visited, setting.initial, lps=lps).value

    by_engine = bound()
    monkeypatch.setattr(Solver, "prepare", lambda *arguments: False)
    by_highs = bound()
    assert by_highs == pytest.approx(by_engine, rel=1e-9)
    assert bound(threads=3) == by_highs


def test_blocks_hold_every_state_once_and_start_anew():
    values = np.random.default_rng(2).uniform(size=(75, 4))
    found = state_order(values, block=32)
    assert found.start.tolist() == [0, 32, 64, 75]
    assert sorted(found.order.tolist()) == list(range(75))
    kept: set[int] = set()
    for position in range(75):
        if position in found.start:
            kept = set()
            assert found.parent[position] == -1
        assert found.parent[position] == -1 or found.parent[position] in kept
        if found.keep[position] >= 0:
            kept.add(int(found.keep[position]))
            assert found.keep[position] < found.num_kept


@pytest.mark.parametrize("count", [1, 2, 32, 33])
def test_blocks_of_few_states(count):
    found = state_order(np.zeros((count, 3)), block=32)
    assert found.start[-1] == count
    assert sorted(found.order.tolist()) == list(range(count))
