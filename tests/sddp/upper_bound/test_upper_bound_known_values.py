"""Vertices kept from one evaluation of the upper bound to the next."""

import numpy as np
import pytest
from builders.studies import cascade_study

from cobre.lp import StateLayout, build_templates
from cobre.policy.visited import VisitedStates
from cobre.sddp import train
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.upper_bound import KnownValues, upper_bound
from cobre.sddp.upper_bound.known_values import affordable_vertices
from cobre.stochastic import build_opening_tree


def test_the_number_of_states_follows_from_their_number_and_size():
    # All of few; with a small state all of the first ones; of many as many as cost 0.4 of them.
    assert affordable_vertices(7, 0, 90) == 7
    assert affordable_vertices(150, 0, 8) == 150
    assert affordable_vertices(1000, 0, 1) == 200
    assert affordable_vertices(100, 200, 1) == 39
    # With 90 components an LP with 50 vertices takes about 4 times as long: fewer of them, but 16.
    assert affordable_vertices(400, 0, 90) == 42
    assert affordable_vertices(400, 50, 90) == 26
    assert affordable_vertices(100, 200, 90) == 16


def test_new_values_come_first_and_old_ones_stay():
    known = KnownValues(2, 1)
    visited = np.array([[1.0], [2.0], [3.0]])
    new, count, again = known.candidates(0, visited)
    assert (new.tolist(), count, again.tolist()) == (visited.tolist(), 3, [])
    states = np.array([[0.0], [9.0], [3.0], [2.0], [1.0]])
    # The first two are bounded anew by every evaluation; at 2 there is no bound.
    vertices, values = known.keep(0, 3, states, np.array([5.0, 6.0, 7.0, np.inf, 8.0]), 2)
    assert (vertices[:, 0].tolist(), values.tolist()) == ([0.0, 9.0, 3.0, 1.0], [5.0, 6.0, 7.0, 8.0])
    new, count, again = known.candidates(0, np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert (new.tolist(), count, again.tolist()) == ([[4.0]], 1, [[3.0]])
    vertices, values = known.keep(0, 4, np.array([[0.0], [9.0], [4.0], [3.0]]), np.arange(4.0), 2)
    assert (vertices[:, 0].tolist(), values.tolist()) == (
        [0.0, 9.0, 4.0, 3.0, 1.0],
        [0.0, 1.0, 2.0, 3.0, 8.0],
    )
    assert known.candidates(1, visited)[0].tolist() == visited.tolist()


def test_arrays_round_trip_unless_prices_differ():
    known = KnownValues(3, 2, (1.5, -1.0))
    known.keep(1, 4, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0]), 0)
    other = KnownValues(3, 2, (1.5, -1.0))
    other.restore(known.arrays())
    for name, array in known.arrays().items():
        np.testing.assert_array_equal(other.arrays()[name], array)
    dearer = KnownValues(3, 2, (2.0, -1.0))
    dearer.restore(known.arrays())
    assert len(dearer.arrays()["upper_bound_values"]) == 0
    with pytest.raises(ValueError, match="do not fit"):
        KnownValues(2, 2, (1.5, -1.0)).restore(known.arrays())
    with pytest.raises(ValueError, match="incomplete"):
        other.restore({"upper_bound_prices": np.array([1.5, -1.0])})


def test_kept_values_make_valid_bounds_from_fewer_lps():
    case = cascade_study(hydros=3, stages=4, openings=3)
    optimum = train(case, iterations=60).lower_bound
    tree, layout = build_opening_tree(case), StateLayout(case)
    templates, graph = build_templates(case, tree, layout), graph_arrays(case, tree.num_openings)
    random, visited, known = np.random.default_rng(3), VisitedStates(4, 3), KnownValues(4, 3)
    bounds, solves = [], []
    for _ in range(4):
        visited.append(random.uniform(10.0, 400.0, (4, 20, 3)), np.arange(4)[:, None].repeat(20, 1))
        result = upper_bound(templates, graph, visited, layout.initial, known=known)
        bounds.append(result.value)
        solves.append(result.lp_solves)
    whole = upper_bound(templates, graph, visited, layout.initial)
    assert solves[-1] < whole.lp_solves / 3
    assert optimum * (1 - 1e-9) <= whole.value <= bounds[-1] * (1 + 1e-9)
    assert bounds[-1] < bounds[0]
