"""Checkpoints, resuming and warm starts: the same bytes as a run that was never stopped."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.paths import EXAMPLES
from builders.studies import cascade_study, with_training
from file_opens import counted_opens
from kill_and_resume import try_often

from cobre.case.model import Case, CheckpointOptions, CutSelection, UpperBoundOptions
from cobre.comm import Communicator
from cobre.comm.launch import launch
from cobre.errors import OutputError, ValidationError
from cobre.lp.engines.own.stored_bases import PackedBases
from cobre.policy import (
    latest_checkpoint,
    read_checkpoint,
    with_fingerprint,
    write_flatbuffers,
    write_policy_directory,
)
from cobre.sddp import TrainingResult, train
from cobre.sddp.plan import CHECKPOINTS
from cobre.sddp.timing import balance_of

LIMIT = 9
EXAMPLE = EXAMPLES / "random-inflow"

SELECTIONS = {
    "all": CutSelection(),
    "level1": CutSelection("level1", check_frequency=2),
    "lml1": CutSelection("lml1", check_frequency=3),
    "dynamic": CutSelection("dynamic", seed_window=1),
    "capped": CutSelection(max_active_per_stage=6),
}


def study(selection: str = "all") -> Case:
    case = cascade_study(hydros=3, thermals=3, passes=3, iterations=LIMIT, stages=5)
    return with_training(case, cut_selection=SELECTIONS[selection])


def every(root: Path, iterations: int = 2) -> dict[str, Any]:
    return {"output": root, "checkpoint_every": iterations}


def resumed_from(root: Path) -> dict[str, Any]:
    return {"output": root, "resume": True}


def bounds(result: TrainingResult) -> list[tuple[float, ...]]:
    return [
        (record.lower_bound, record.upper_bound, record.upper_bound_std, record.cuts_active)
        for record in result.history
    ]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_resumed_run_makes_the_bytes_of_an_uninterrupted_one(tmp_path, selection):
    case = study(selection)
    whole = train(case)
    train(case, iterations=5, **every(tmp_path, 3))
    resumed = train(case, **resumed_from(tmp_path))
    assert resumed.policy_sha256 == whole.policy_sha256
    assert bounds(resumed) == bounds(whole)
    assert [record.iteration for record in resumed.history] == list(range(1, LIMIT + 1))
    assert resumed.termination_reason == whole.termination_reason


def test_every_checkpoint_leads_to_the_same_end(tmp_path):
    case = study("capped")
    whole = train(case, keep_checkpoints=LIMIT, **every(tmp_path, 1))
    for iteration in (1, 4, 8):
        root = tmp_path / f"from-{iteration}"
        (root / CHECKPOINTS).mkdir(parents=True)
        name = f"checkpoint-{iteration:06d}"
        (tmp_path / CHECKPOINTS / name).rename(root / CHECKPOINTS / name)
        resumed = train(case, **resumed_from(root))
        assert resumed.policy_sha256 == whole.policy_sha256


def test_the_deterministic_bound_goes_on_too(tmp_path):
    bounded = UpperBoundOptions(enabled=True, interval_iterations=3)
    case = with_training(study(), upper_bound=bounded)
    whole = train(case)
    train(case, iterations=4, **every(tmp_path))
    resumed = train(case, **resumed_from(tmp_path))
    assert resumed.deterministic_bound.value == whole.deterministic_bound.value
    assert [record.deterministic_upper_bound for record in resumed.history] == [
        record.deterministic_upper_bound for record in whole.history
    ]


def opens_of_tables(opens: Counter[Path], checkpoint: Path) -> dict[str, int]:
    """How often each table of a checkpoint was opened."""
    return {path.name: opens[path] for path in checkpoint.rglob("*.parquet")}


def resume_on_rank(comm: Communicator, root: Path, checkpoint: Path) -> tuple[str, dict[str, int]]:
    with counted_opens() as opens:
        digest = train(study("lml1"), communicator=comm, **resumed_from(root)).policy_sha256
    return digest, opens_of_tables(opens, checkpoint)


def train_on_rank(comm: Communicator, root: Path) -> str:
    return train(study("lml1"), iterations=4, communicator=comm, **every(root, 4)).policy_sha256


def test_the_number_of_ranks_may_change(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    whole = train(study("lml1")).policy_sha256
    launch(train_on_rank, 2, args=(tmp_path,), timeout_s=250)
    found = latest_checkpoint(tmp_path / CHECKPOINTS)
    results = launch(resume_on_rank, 3, args=(tmp_path, found.path), timeout_s=250)
    assert [digest for digest, _ in results] == [whole] * 3
    # One rank reads for all, each file once.
    names = {path.name for path in found.path.rglob("*.parquet")}
    assert {"cuts.parquet", "bases.parquet", "history.parquet"} < names
    assert [opens for _, opens in results] == [dict.fromkeys(names, times) for times in (1, 0, 0)]


def test_a_run_that_is_resumed_reads_each_file_once(tmp_path):
    case = with_training(study(), upper_bound=UpperBoundOptions(enabled=True, interval_iterations=3))
    train(case, iterations=4, **every(tmp_path, 4))
    checkpoint = tmp_path / CHECKPOINTS / "checkpoint-000004"
    with counted_opens() as opens:
        resumed = train(case, iterations=6, **resumed_from(tmp_path))
    assert resumed.policy_sha256 == train(case, iterations=6).policy_sha256
    found = opens_of_tables(opens, checkpoint)
    assert "states.parquet" in found
    assert set(found.values()) == {1}


def own_bases_at_the_end(root: Path) -> PackedBases:
    return PackedBases.among(read_checkpoint(latest_checkpoint(root / CHECKPOINTS).path).extra_arrays)


@pytest.mark.parametrize("ranks", [1, 2])
def test_bases_of_the_own_engine_go_on_too(tmp_path, ranks):
    case = study()
    train(case, output=tmp_path / "whole")
    train(case, iterations=4, ranks=ranks, output=tmp_path / "resumed")
    held = own_bases_at_the_end(tmp_path / "resumed")
    train(case, ranks=3 - ranks, **resumed_from(tmp_path / "resumed"))
    whole, resumed = (own_bases_at_the_end(tmp_path / name) for name in ("whole", "resumed"))
    # A basis for each pass and node.
    assert np.array_equal(held.forward_pass * 5 + held.node, np.arange(3 * 5))
    assert held.num_cuts.max() > 0
    assert held.arrays().keys() == whole.arrays().keys()
    assert not np.array_equal(held.code, whole.code)
    for stored, again in zip(whole, resumed, strict=True):
        assert stored.dtype == again.dtype
        assert np.array_equal(stored, again)


def test_bases_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    train(study(), iterations=2, output=tmp_path)
    packed = own_bases_at_the_end(tmp_path)
    wrong = packed._replace(node=packed.node[::-1].copy())
    monkeypatch.setattr(PackedBases, "among", lambda arrays: wrong)
    with pytest.raises(ValidationError, match="starting basis of pass 0"):
        train(study(), **resumed_from(tmp_path))


def test_nothing_to_resume_from_is_an_error(tmp_path):
    with pytest.raises(OutputError, match="resume"):
        train(study(), iterations=2, **resumed_from(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_limit_that_is_reached_already_ends_at_once(tmp_path):
    whole = train(study(), iterations=4, **every(tmp_path))
    again = train(study(), iterations=4, **resumed_from(tmp_path))
    assert again.lp_solves == whole.lp_solves
    assert balance_of(again.workers).imbalance == 1.0
    assert again.policy_sha256 == whole.policy_sha256
    with pytest.raises(ValidationError, match="holds 4 iterations, more than the limit of 3"):
        train(study(), iterations=3, **resumed_from(tmp_path))


def test_another_study_is_refused_with_what_differs(tmp_path):
    train(study(), iterations=2, **every(tmp_path))
    case = study()
    data = tuple(replace(stage, thermal_cost=stage.thermal_cost * 1.5) for stage in case.stage_data)
    with pytest.raises(ValidationError) as caught:
        train(replace(case, stage_data=data), **resumed_from(tmp_path))
    assert any("thermal_cost" in str(problem) for problem in caught.value.problems)
    with pytest.raises(ValidationError, match="tree_seed"):
        train(study(), seed=7, **resumed_from(tmp_path))


def test_without_bases_it_says_that_bits_may_differ(tmp_path):
    case = study()
    schedule = CheckpointOptions(2, store_basis=False)
    case = replace(case, policy=replace(case.policy, checkpointing=schedule))
    train(case, iterations=2, output=tmp_path)
    found = latest_checkpoint(tmp_path / CHECKPOINTS)
    assert found is not None
    assert read_checkpoint(found.path).bases is None
    result = train(study(), **resumed_from(tmp_path))
    assert [problem.kind for problem in result.warnings] == ["NotBitForBit"]
    assert result.lower_bound == pytest.approx(train(study()).lower_bound, rel=1e-3)


def test_stopping_from_outside_leaves_a_checkpoint(tmp_path):
    case = study()
    stopped = train(case, on_iteration=lambda record: record.iteration == 3, output=tmp_path)
    assert stopped.termination_reason == "graceful_shutdown"
    resumed = train(case, **resumed_from(tmp_path))
    assert resumed.policy_sha256 == train(case).policy_sha256


@pytest.mark.parametrize("kind", ["directory", "flatbuffers"])
def test_a_warm_start_begins_where_the_policy_ended(tmp_path, kind):
    case = study()
    first = train(case)
    if kind == "directory":
        write_policy_directory(tmp_path / "policy", with_fingerprint(first.policy, case))
    else:
        write_flatbuffers(tmp_path / "policy", first.policy, case)
    warm = train(case, iterations=1, warm_start=tmp_path / "policy")
    assert warm.lower_bound >= first.lower_bound * (1.0 - 1e-9)
    loaded = [int((made == 0).sum()) for made in warm.policy.iterations[:-1]]
    kept = [len(cuts) for cuts in first.policy.intercepts[:-1]]
    assert loaded == kept
    assert warm.history[0].iteration == 1
    # Of cuts that another program wrote nothing is known.
    assert warm.lower_bound_kind == ("bound" if kind == "directory" else "estimate")


@pytest.mark.parametrize("ranks", [1, 2])
def test_cuts_of_another_study_give_an_estimate_from_then_on(tmp_path, ranks):
    case = study()
    first = train(case, iterations=3)
    policy = tmp_path / "policy"
    write_policy_directory(policy, with_fingerprint(first.policy, case))
    more_water = replace(case, hydros=tuple(replace(hydro, initial_storage_hm3=1.0) for hydro in case.hydros))
    assert train(more_water, iterations=1, warm_start=policy).lower_bound_kind == "bound"
    load = replace(case.scenarios, load_mean_mw=0.5 * case.scenarios.load_mean_mw)
    other = replace(case, scenarios=load)
    warm = train(other, iterations=1, warm_start=policy, ranks=ranks, output=tmp_path / "kept")
    assert warm.lower_bound > train(other, iterations=20).lower_bound
    assert (warm.lower_bound_kind, warm.gap_percent) == ("estimate", None)
    resumed = train(other, iterations=2, **resumed_from(tmp_path / "kept"))
    assert (resumed.lower_bound_kind, resumed.lower_bound_note) == ("estimate", warm.lower_bound_note)
    stored = with_fingerprint(resumed.policy, other)
    write_policy_directory(tmp_path / "later", stored)
    assert train(other, iterations=1, warm_start=tmp_path / "later").lower_bound_kind == "estimate"


def test_a_warm_started_run_can_be_resumed(tmp_path):
    case = study()
    first = train(case, iterations=3)
    policy = tmp_path / "policy"
    write_policy_directory(policy, with_fingerprint(first.policy, case))
    whole = train(case, iterations=5, warm_start=policy)
    train(case, iterations=2, warm_start=policy, **every(tmp_path / "kept"))
    resumed = train(case, iterations=5, **resumed_from(tmp_path / "kept"))
    assert resumed.policy_sha256 == whole.policy_sha256


def test_a_warm_start_of_another_system_is_refused(tmp_path):
    case = study()
    first = train(case, iterations=2)
    write_policy_directory(tmp_path / "policy", with_fingerprint(first.policy, case))
    larger = cascade_study(hydros=4, thermals=3, passes=3, stages=5)
    with pytest.raises(ValidationError, match="does not know a state of the study"):
        train(larger, warm_start=tmp_path / "policy")
    assert np.isfinite(first.lower_bound)


@pytest.mark.parametrize("ranks", [1, 2])
def test_runs_that_were_killed_resume_to_the_same_bytes(ranks):
    story = try_often(EXAMPLE, tries=3, ranks=ranks, iterations=30)
    assert len(story) == 3
