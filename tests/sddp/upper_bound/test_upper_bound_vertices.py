import numpy as np
import pytest
from builders.studies import cascade_study

from cobre.lp import StateLayout, build_templates
from cobre.policy.visited import VisitedStates
from cobre.sddp.upper_bound.vertices import chosen_states, vertices_of
from cobre.stochastic import build_opening_tree

INF = np.inf


def rows(array):
    return [tuple(row) for row in array.tolist()]


def test_archive_grows_and_keeps_the_order():
    archive = VisitedStates(2, 1)
    for iteration in range(5):
        states = np.arange(6.0).reshape(2, 3, 1) + 10.0 * iteration
        archive.append(states, np.array([[0, 0, 0], [1, 2, 1]]))
        states[:] = np.nan  # a copy was made
    assert archive.count == 15
    np.testing.assert_array_equal(archive.of_stage(0)[:4, 0], [0.0, 1.0, 2.0, 10.0])
    np.testing.assert_array_equal(archive.of_node(1, 2)[:, 0], [4.0, 14.0, 24.0, 34.0, 44.0])
    np.testing.assert_array_equal(archive.of_node(1, 1)[:3, 0], [3.0, 5.0, 13.0])


def test_the_latest_states_and_far_ones_are_chosen():
    visited = np.array([[0.0], [50.0], [9.0], [100.0], [10.0], [11.0], [10.0]])
    # Latest first; 10 repeats. Of the others the farthest from 10 and 11 is 100, then 50.
    assert rows(chosen_states(visited, 4)) == [(10.0,), (11.0,), (100.0,), (50.0,)]
    assert rows(chosen_states(visited, 10)) == [(10.0,), (11.0,), (100.0,), (9.0,), (50.0,), (0.0,)]
    assert len(chosen_states(np.zeros((0, 2)), 10)) == 0


@pytest.mark.parametrize(
    ("up", "down", "corners"),
    [
        ([1.0, 1.0], [INF, INF], [(10.0, 10.0), (400.0, 400.0)]),
        ([INF, 1.0], [1.0, INF], [(400.0, 10.0), (10.0, 400.0)]),
        ([INF, 1.0], [INF, INF], [(10.0, 10.0), (400.0, 10.0), (400.0, 400.0)]),
    ],
)
def test_corners_hold_every_state(up, down, corners):
    case = cascade_study(hydros=2, stages=2)
    template = build_templates(case, build_opening_tree(case), StateLayout(case))[0]
    visited = np.array([[30.0, 40.0], [50.0, 60.0]])
    found = vertices_of(template, visited, np.array([200.0, 200.0]), np.array(up), np.array(down), 10)
    assert rows(found) == [*corners, (200.0, 200.0), (50.0, 60.0), (30.0, 40.0)]


def test_a_component_that_nobody_moves_stays_where_it_is():
    case = cascade_study(hydros=2, stages=2)
    template = build_templates(case, build_opening_tree(case), StateLayout(case))[0]
    visited = np.array([[200.0, 40.0]])
    nothing = np.array([INF, INF])
    found = vertices_of(template, visited, np.array([200.0, 200.0]), nothing, nothing, 10)
    assert rows(found) == [(200.0, 10.0), (200.0, 400.0), (200.0, 200.0), (200.0, 40.0)]
