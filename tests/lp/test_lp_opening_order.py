from itertools import combinations

import numpy as np
import pytest

from cobre.lp.opening_order import opening_order, tree_walk


def walked(found, root):
    """Return what each opening starts from, in the order of the walk; checks that kept states exist."""
    kept, previous, starts = {}, -1, {}
    for opening, place, keeps in zip(found.order[root], found.parent[root], found.keep[root], strict=True):
        starts[int(opening)] = kept[int(place)] if place >= 0 else previous
        previous = int(opening)
        if keeps >= 0:
            assert keeps < found.num_kept
            kept[int(keeps)] = previous
    return starts


def spanning_length(values):
    """Return the length of a minimum spanning tree, edges by Kruskal's algorithm."""
    count = len(values)
    distance = np.sqrt(np.square(values[:, None] - values[None]).sum(axis=-1))
    part, total = list(range(count)), 0.0
    for i, j in sorted(combinations(range(count), 2), key=lambda edge: distance[edge]):
        if part[i] != part[j]:
            total += distance[i, j]
            part = [part[i] if other == part[j] else other for other in part]
    return total


@pytest.mark.parametrize("count", [1, 2, 3, 12, 40])
def test_every_root_walks_along_the_same_minimum_spanning_tree(count):
    values = np.random.default_rng(count).normal(size=(count, 3))
    found = opening_order(values)
    edges = None
    for root in range(count):
        assert sorted(found.order[root]) == list(range(count))
        assert found.order[root, 0] == root
        starts = walked(found, root)
        assert starts.pop(root) == -1
        tree = {frozenset(edge) for edge in starts.items()}
        assert edges is None or tree == edges
        edges = tree
    length = sum(np.linalg.norm(values[a] - values[b]) for a, b in map(tuple, edges))
    assert length == pytest.approx(spanning_length(values), rel=1e-12)


def test_ties_go_to_the_lower_index():
    found = opening_order(np.zeros((5, 2)))
    # All openings are alike: each is tied to the first.
    assert found.order[0].tolist() == [0, 1, 2, 3, 4]
    assert found.parent[0].tolist() == [-1, -1, 0, 0, 0]
    assert found.keep[0].tolist() == [0, -1, -1, -1, -1]
    assert found.num_kept == 1


def test_a_line_of_openings_keeps_one_state_at_most():
    found = opening_order(np.arange(30.0)[:, None])
    assert found.num_kept == 1
    assert (found.keep[0] == -1).all()
    assert found.order[29].tolist() == list(range(29, -1, -1))


def test_values_that_are_infinitely_far_apart_are_still_visited():
    values = np.array([[0.0], [np.inf], [1.0], [-np.inf]])
    with np.errstate(invalid="ignore"):
        found = opening_order(values)
    assert sorted(found.order[2]) == [0, 1, 2, 3]


def test_a_tree_is_walked_from_any_root():
    # 0 - 1 - 2 - 3, and 4 at 1.
    neighbours = [[1], [0, 2, 4], [1, 3], [2], [1]]
    order, parent, keep, num_kept = tree_walk(neighbours, 1)
    assert order.tolist() == [1, 0, 4, 2, 3]
    assert parent.tolist() == [-1, -1, 0, 0, -1]
    assert keep.tolist() == [0, -1, -1, -1, -1]
    assert num_kept == 1
