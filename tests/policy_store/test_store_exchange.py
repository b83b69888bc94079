"""What another study can start from, and policies in the format of cobre-rs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.studies import cascade_study
from stored import node, policy, storage

from cobre.case.model import Case, PolicyOptions
from cobre.errors import OutputError, ValidationError
from cobre.policy_files import PolicyDirectory
from cobre.policy_files.encode import encode_manifest, encode_pool
from cobre.policy_store import (
    PolicyData,
    StateEntry,
    adapted_cuts,
    case_fingerprint,
    case_nodes,
    compatibility,
    differences,
    from_flatbuffers,
    to_flatbuffers,
)
from cobre.sddp import Policy


def test_same_study() -> None:
    stored = policy()
    found = compatibility(stored, stored.components, stored.nodes)
    assert found.notes == ()
    np.testing.assert_array_equal(found.component, [0, 1, 2])
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
    np.testing.assert_array_equal(found.component, [2, 1, 0])
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


# FlatBuffers


@pytest.fixture(scope="module")
def case() -> Case:
    return cascade_study(hydros=3, stages=3, iterations=3, passes=2)


@pytest.fixture(scope="module")
def stored(case: Case) -> PolicyData:
    made = policy(iterations=3, passes=2, hydros=3, nodes=3)
    nodes = [
        replace(entry, loaded_cuts=known.loaded_cuts)
        for entry, known in zip(case_nodes(case, [1.5, -2.0, 0.0]), made.nodes, strict=True)
    ]
    return replace(made, nodes=tuple(nodes))


def write_files(path: Path, stored: PolicyData, case: Case) -> Path:
    manifest, pools = to_flatbuffers(stored, case)
    (path / "cuts").mkdir(parents=True)
    (path / "manifest.bin").write_bytes(encode_manifest(manifest))
    for pool in pools:
        (path / "cuts" / f"{pool.pool_id:03d}.bin").write_bytes(encode_pool(pool))
    return path


def test_there_and_back(tmp_path: Path, case: Case, stored: PolicyData) -> None:
    path = write_files(tmp_path / "policy", stored, case)
    found = from_flatbuffers(path, case, stored.components)
    assert found.cost_scale_factor == stored.cost_scale_factor
    assert found.seed == stored.seed
    assert [entry.loaded_cuts for entry in found.nodes] == [len(part) for part in found.cuts]
    for before, after, entry in zip(stored.cuts, found.cuts, stored.nodes, strict=True):
        np.testing.assert_array_equal(after.intercept, [*before.intercept, entry.future_cost_floor])
        np.testing.assert_array_equal(after.slopes[:-1], before.slopes)
        np.testing.assert_array_equal(after.active, [*before.active, True])
        np.testing.assert_array_equal(after.slopes[-1], 0.0)
    manifest = PolicyDirectory(path).manifest
    assert manifest.lower_bound_history == tuple(stored.lower_bounds)
    pool = PolicyDirectory(path).pool(1)
    np.testing.assert_array_equal(pool.iterations[:-1], stored.cuts[1].iteration)
    np.testing.assert_array_equal(pool.forward_passes[:-1], stored.cuts[1].forward_pass)


def test_read_policy_can_start_the_study(tmp_path: Path, case: Case, stored: PolicyData) -> None:
    found = from_flatbuffers(write_files(tmp_path / "policy", stored, case), case, stored.components)
    adaptation = compatibility(found, stored.components, case_nodes(case))
    intercepts, slopes = adapted_cuts(found, adaptation)[0]
    active = stored.cuts[0].active
    np.testing.assert_array_equal(intercepts, [*stored.cuts[0].intercept[active], 1.5])
    np.testing.assert_array_equal(slopes[:-1], stored.cuts[0].slopes[active])


def test_boundary_counts_by_its_cuts(tmp_path: Path, case: Case, stored: PolicyData) -> None:
    """Not by its place, its time, or the pools of other dates."""
    cuts = [replace(part, intercept=part.intercept + 1) for part in stored.cuts]
    variants = {
        "one": stored,
        "same": stored,
        "before": replace(stored, cuts=(cuts[0], *stored.cuts[1:])),
        "end": replace(stored, cuts=(*stored.cuts[:2], cuts[2])),
    }
    prints = {"none": case_fingerprint(case)}
    for name, variant in variants.items():
        path = write_files(tmp_path / name, variant, case)
        prints[name] = case_fingerprint(replace(case, policy=PolicyOptions(path)))
    assert prints["one"] == prints["same"] == prints["before"]
    for other in ("none", "end"):
        (problem,) = differences(prints[other], prints["one"])
        assert problem.context["topic"] == "boundary"


def test_digest_is_that_of_the_trained_policy(stored: PolicyData) -> None:
    whole = [replace(part, active=np.ones(len(part), np.bool_)) for part in stored.cuts]
    trained = Policy(
        stage_ids=tuple(entry.stage_id for entry in stored.nodes),
        state_names=tuple(part.name for part in stored.components),
        forward_passes=stored.forward_passes,
        intercepts=tuple(part.intercept for part in whole),
        slopes=tuple(part.slopes for part in whole),
        future_cost_floor=(0.0,) * 3,
        iterations=tuple(part.iteration.astype(np.int32) for part in whole),
        passes=tuple(part.forward_pass.astype(np.int32) for part in whole),
        active=tuple(part.active for part in whole),
    )
    assert replace(stored, cuts=tuple(whole)).sha256() == trained.sha256()
    graph = replace(stored, cuts=tuple(whole), is_chain=False)
    assert graph.sha256() == replace(trained, node_ids=(0, 1, 2)).sha256() != trained.sha256()


def test_lags_and_order_of_components(tmp_path: Path, case: Case, stored: PolicyData) -> None:
    lag = StateEntry("inflow_lag", 1, 2, "lag")
    parts = (stored.components[0], lag, stored.components[2])
    path = write_files(tmp_path / "policy", replace(stored, components=parts), case)
    found = from_flatbuffers(path, case, (lag, *parts[::2]))
    np.testing.assert_array_equal(found.cuts[0].slopes[:-1], stored.cuts[0].slopes[:, [1, 0, 2]])
    with pytest.raises(ValidationError) as error:
        from_flatbuffers(path, case, stored.components)
    messages = " ".join(problem.message for problem in error.value.problems)
    assert "does not know a state of the study (storage of hydro 1)" in messages
    assert "values a state that the study does not have (inflow lag of hydro 1, index 2)" in messages


def test_policy_of_other_dates(tmp_path: Path, case: Case, stored: PolicyData) -> None:
    path = write_files(tmp_path / "policy", stored, case)
    moved = replace(
        case,
        stages=tuple(
            replace(s, start_date=s.start_date.replace(year=2030), end_date=s.end_date.replace(year=2030))
            for s in case.stages
        ),
    )
    with pytest.raises(ValidationError, match="no cuts that value states at the end") as error:
        from_flatbuffers(path, moved, stored.components)
    assert error.value.suggestion is not None
    assert "2024" in error.value.suggestion


def test_water_from_two_plants_must_have_one_value(case: Case, stored: PolicyData) -> None:
    hydros = tuple(replace(hydro, downstream_id=2 if hydro.id < 2 else None) for hydro in case.hydros)
    both = replace(case, hydros=hydros)
    parts = (storage(2), StateEntry("in_transit", 0, 1, "a"), StateEntry("in_transit", 1, 1, "b"))
    with pytest.raises(OutputError, match="differently by where it comes from"):
        to_flatbuffers(replace(stored, components=parts), both)
    cuts = tuple(replace(part, slopes=part.slopes[:, [0, 1, 1]].copy()) for part in stored.cuts)
    _, pools = to_flatbuffers(replace(stored, components=parts, cuts=cuts), both)
    assert len(pools[0].slots) == 2
