"""What another study can start from."""

from dataclasses import replace

import numpy as np
import pytest
from stored import node, policy, storage

from cobre.errors import ValidationError
from cobre.policy import (
    StateEntry,
    adapted_cuts,
    compatibility,
)


def test_same_study() -> None:
    stored = policy()
    found = compatibility(stored, stored.components, stored.nodes)
    assert found.notes == ()
    np.testing.assert_array_equal(found.components.place, [0, 1, 2])
    np.testing.assert_array_equal(found.node, [0, 1, -1])  # The end belongs to the boundary.
    cuts = adapted_cuts(stored, found)
    active = stored.cuts[1].active
    np.testing.assert_array_equal(cuts[1][0], stored.cuts[1].intercept[active])
    np.testing.assert_array_equal(cuts[1][1], stored.cuts[1].slopes[active])
    assert cuts[2][1].shape == (0, 3)


def test_components_are_found_by_what_they_are() -> None:
    stored = policy()
    turned = tuple(replace(part, name="other") for part in reversed(stored.components))
    found = compatibility(stored, turned, stored.nodes)
    np.testing.assert_array_equal(found.components.place, [2, 1, 0])
    active = stored.cuts[0].active
    np.testing.assert_array_equal(adapted_cuts(stored, found)[0][1], stored.cuts[0].slopes[active][:, ::-1])


NEW = (
    storage(9),
    StateEntry("inflow_lag", 1, 1, "lag"),
    StateEntry("in_transit", 1, 1, "water"),
    StateEntry("commitment", 4, 2, "power"),
)


@pytest.mark.parametrize("part", NEW, ids=str)
def test_unknown_components_are_refused_unless_they_are_zero(part: StateEntry) -> None:
    stored = policy()
    state = (*stored.components, part)
    with pytest.raises(ValidationError, match="would not hold") as error:
        compatibility(stored, state, stored.nodes)
    assert error.value.context["entity"] == str(part)
    held = np.zeros((3, 4), np.bool_)
    held[0, 3] = True
    with pytest.raises(ValidationError):
        compatibility(stored, state, stored.nodes, held)
    held[1, 3] = True  # No cuts are taken at the last node.
    found = compatibility(stored, state, stored.nodes, held)
    assert [note.context["entity"] for note in found.notes] == [str(part)]
    slopes = adapted_cuts(stored, found)[0][1]
    np.testing.assert_array_equal(slopes[:, 3], 0.0)
    np.testing.assert_array_equal(slopes[:, :3], stored.cuts[0].slopes[stored.cuts[0].active])


def test_components_that_are_gone() -> None:
    stored = policy()
    with pytest.raises(ValidationError, match="depend on a state that the study does not have"):
        compatibility(stored, stored.components[:2], stored.nodes)
    cuts = tuple(replace(part, slopes=part.slopes * [1, 1, 0]) for part in stored.cuts)
    found = compatibility(replace(stored, cuts=cuts), stored.components[:2], stored.nodes)
    assert "dropped" in found.notes[0].message


def test_all_faults_at_once() -> None:
    stored = policy()
    with pytest.raises(ValidationError) as error:
        compatibility(stored, (*stored.components[1:], *NEW), stored.nodes)
    assert len(error.value.problems) == 5


def test_stages_are_found_by_dates() -> None:
    stored = policy(nodes=4)
    later = [replace(entry, id=place, stage_id=10 + place) for place, entry in enumerate(stored.nodes[1:])]
    found = compatibility(stored, stored.components, later)
    np.testing.assert_array_equal(found.node, [1, 2, -1])
    assert ["not used" in note.message for note in found.notes] == [True]
    earlier = [node(-1), *stored.nodes]
    found = compatibility(stored, stored.components, earlier)
    np.testing.assert_array_equal(found.node, [-1, 0, 1, 2, -1])
    assert "has no cuts for node -1" in found.notes[0].message


def test_another_horizon_is_refused() -> None:
    stored = policy(nodes=4)
    with pytest.raises(ValidationError, match="another future"):
        compatibility(stored, stored.components, stored.nodes[:3])
    with pytest.raises(ValidationError, match="another future"):
        compatibility(stored, stored.components, [*stored.nodes, node(4)])
    moved = [replace(entry, start_date=entry.start_date.replace(day=2)) for entry in stored.nodes]
    with pytest.raises(ValidationError, match="no stage of the study has the dates"):
        compatibility(stored, stored.components, moved)


def test_nodes_of_a_graph_are_found_by_id() -> None:
    stored = policy()
    twin = replace(stored.nodes[1], id=7)
    graph = replace(
        stored,
        is_chain=False,
        nodes=(stored.nodes[0], stored.nodes[1], twin, stored.nodes[2]),
        cuts=(stored.cuts[0], stored.cuts[1], stored.cuts[0], stored.cuts[2]),
    )
    found = compatibility(graph, graph.components, [graph.nodes[0], twin, graph.nodes[1], graph.nodes[3]])
    np.testing.assert_array_equal(found.node, [0, 2, 1, -1])
