"""A trained policy written as a directory, and used as the boundary of another study."""

import errno
from dataclasses import replace

import numpy as np
import pytest
from builders.studies import cascade_study, with_training

from cobre.case.model import Case, PolicyGraph, PolicyNode, PolicyOptions, Transition
from cobre.case.model.horizon import chain_graph
from cobre.errors import OutputError, ValidationError
from cobre.policy import write_flatbuffers, write_policy_directory
from cobre.policy.foreign import PolicyDirectory
from cobre.sddp import train


def part(case: Case, first: int, last: int) -> Case:
    """The study of some stages of another one."""
    keep = slice(first, last)
    return replace(
        case,
        stages=case.stages[keep],
        graph=chain_graph(last - first),
        stage_data=case.stage_data[keep],
        production=case.production[keep],
        evaporation=case.evaporation[keep],
        generic=case.generic[keep],
        scenarios=replace(
            case.scenarios,
            inflow_mean_m3s=case.scenarios.inflow_mean_m3s[keep],
            inflow_std_m3s=case.scenarios.inflow_std_m3s[keep],
            load_mean_mw=case.scenarios.load_mean_mw[keep],
            load_std_mw=case.scenarios.load_std_mw[keep],
            ncs_mean=case.scenarios.ncs_mean[keep],
            ncs_std=case.scenarios.ncs_std[keep],
        ),
    )


@pytest.fixture(scope="module")
def whole() -> Case:
    """Four stages without noise and with more load than water and cheap plants can serve."""
    case = cascade_study(
        hydros=2, thermals=3, buses=1, stages=4, blocks=1, openings=1, passes=1, noise=0.0, iterations=30
    )
    load = np.array([[120.0], [130.0], [150.0], [180.0]])
    return replace(case, scenarios=replace(case.scenarios, load_mean_mw=load))


@pytest.fixture(scope="module")
def later(whole: Case) -> Case:
    """Stages 2 to 4, with noise in the first of them only, so that many states are visited at its end."""
    case = part(whole, 1, 4)
    std = np.zeros_like(case.scenarios.inflow_std_m3s)
    std[0] = 0.8 * case.scenarios.inflow_mean_m3s[0]
    case = replace(
        case,
        stages=(replace(case.stages[0], num_openings=30), *case.stages[1:]),
        scenarios=replace(case.scenarios, inflow_std_m3s=std),
    )
    return with_training(case, forward_passes=20, iteration_limit=12)


@pytest.fixture(scope="module")
def trained(later: Case):
    return train(later)


@pytest.fixture
def directory(tmp_path, later, trained):
    write_flatbuffers(tmp_path / "stored" / "policy", trained.policy, later)
    return tmp_path / "stored" / "policy"


def test_files_hold_the_policy(directory, later, trained):
    stored = PolicyDirectory(directory)
    manifest = stored.manifest
    assert (manifest.num_stages, manifest.num_pools, manifest.completed_iterations) == (3, 3, 12)
    assert [(node.id, node.stage_id, node.pool_id) for node in manifest.nodes] == [
        (0, 1, 0),
        (1, 2, 1),
        (2, 3, 2),
    ]
    assert manifest.final_lower_bound == manifest.lower_bound_history[-1] == trained.lower_bound
    assert stored.priced_dates() == [stage.end_date for stage in later.stages]
    for number, (intercepts, slopes) in enumerate(
        zip(trained.policy.intercepts, trained.policy.slopes, strict=True)
    ):
        pool, cuts = stored.pool(number), len(intercepts)
        np.testing.assert_array_equal(pool.intercepts[:cuts], intercepts)
        np.testing.assert_array_equal(pool.slopes[:cuts], slopes)
        assert pool.active.all()
        # The floor of the future cost stands behind the cuts.
        assert len(pool.intercepts) == (cuts + 1 if cuts else 0)
        if cuts:
            assert pool.intercepts[cuts] == trained.policy.future_cost_floor[number]
            assert not pool.slopes[cuts].any()
            np.testing.assert_array_equal(pool.iterations[:cuts], trained.policy.iterations[number])
            np.testing.assert_array_equal(pool.forward_passes[:cuts], trained.policy.passes[number])
            assert pool.iterations[cuts - 1] == 12


def test_a_study_cut_in_two_is_worth_as_much_as_the_whole(directory, whole, trained, tmp_path):
    complete = train(whole)
    assert complete.lower_bound == pytest.approx(complete.upper_bound, rel=1e-9)
    first = replace(part(whole, 0, 2), policy=PolicyOptions(directory))
    assert first.stages[-1].discount_factor != 1.0
    result = train(first)
    assert result.warnings == ()
    assert result.lower_bound == pytest.approx(complete.lower_bound, rel=1e-9)
    assert result.upper_bound == pytest.approx(complete.upper_bound, rel=1e-9)
    # What training writes is as good a boundary: its cuts are the same.
    write_policy_directory(tmp_path / "own", trained.policy)
    own = train(replace(first, policy=PolicyOptions(tmp_path / "own")))
    assert own.warnings == ()
    assert (own.lower_bound, own.policy_sha256) == (result.lower_bound, result.policy_sha256)
    # Without the boundary the water is wasted.
    alone = train(part(whole, 0, 2))
    assert alone.lower_bound < result.lower_bound - 1.0


def test_all_nodes_of_the_last_stage_see_the_boundary(directory, whole):
    chain = replace(part(whole, 0, 2), policy=PolicyOptions(directory))
    fork = PolicyGraph(
        (PolicyNode(0, 0), PolicyNode(1, 1), PolicyNode(2, 1)), (Transition(0, 1, 0.5), Transition(0, 2, 0.5))
    )
    result = train(replace(chain, graph=fork))
    assert result.lower_bound == pytest.approx(train(chain).lower_bound, rel=1e-12)
    np.testing.assert_array_equal(result.policy.slopes[1], result.policy.slopes[2])


def test_states_that_the_boundary_does_not_know_are_told(directory, whole):
    case = part(whole, 0, 2)
    renamed = replace(case.hydros[1], id=7)
    hydros = (replace(case.hydros[0], downstream_id=7), renamed)
    with pytest.raises(ValidationError, match="storage of hydro 1"):
        train(replace(case, hydros=hydros, policy=PolicyOptions(directory)))


def test_loaded_cuts_are_marked_in_what_is_written(directory, whole, tmp_path):
    first = with_training(replace(part(whole, 0, 2), policy=PolicyOptions(directory)), iteration_limit=2)
    result = train(first)
    loaded = len(PolicyDirectory(directory).pool(0).intercepts)
    assert result.policy.boundary_cuts == loaded == len(result.policy.intercepts[1])
    assert len(result.policy.intercepts[0]) == 2
    assert [made.tolist() for made in result.policy.iterations] == [[1, 2], [0] * loaded]
    write_flatbuffers(tmp_path / "again", result.policy, first)
    again = PolicyDirectory(tmp_path / "again").pool(1)
    assert again.warm_start_count == loaded
    assert not again.iterations.any()


def test_writing_replaces_a_policy_but_nothing_else(directory, later, trained, tmp_path):
    write_flatbuffers(directory, replace(trained.policy, seed=5), later)
    assert PolicyDirectory(directory).manifest.rng_seed == 5
    (directory / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        write_flatbuffers(directory, trained.policy, later)
    assert PolicyDirectory(directory).manifest.rng_seed == 5
    assert [entry.name for entry in directory.parent.iterdir()] == ["policy"]


def _full_disk(staging, target):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_write_leaves_the_old_policy(directory, later, trained, monkeypatch):
    before = (directory / "manifest.bin").read_bytes()
    monkeypatch.setattr("cobre.policy.foreign.conversion.put_directory", _full_disk)
    with pytest.raises(OutputError, match="No space"):
        write_flatbuffers(directory, trained.policy, later)
    assert (directory / "manifest.bin").read_bytes() == before
    assert [entry.name for entry in directory.parent.iterdir()] == ["policy"]
