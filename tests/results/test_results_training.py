"""What a training run leaves on disk."""

from __future__ import annotations

import datetime
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from builders.studies import cascade_study
from rich.console import Console

import cobre
from cobre.cli.train_report import result_data, show_result
from cobre.cli.views import progress_fields
from cobre.errors import OutputError
from cobre.policy import NodeCuts, StateEntry, case_nodes, case_transitions, read_policy_directory
from cobre.results import read_convergence, read_metadata, training, write_training
from cobre.sddp import Policy, TrainingResult
from cobre.sddp.progress import IterationRecord
from cobre.sddp.timing import WorkerInfo

BEGAN = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone.utc)
ENDED = BEGAN + datetime.timedelta(seconds=90)
WRITTEN = {
    "policy/cuts.parquet",
    "policy/manifest.json",
    "policy/manifest.sha256",
    "training/_SUCCESS",
    "training/solver/iterations.parquet",
    "training/timing/iterations.parquet",
    "training/convergence.parquet",
    "training/dictionaries/bounds.parquet",
    "training/dictionaries/codes.json",
    "training/dictionaries/entities.csv",
    "training/dictionaries/variables.csv",
    "training/hydro_models.json",
    "training/model_provenance.json",
    "training/metadata.json",
}


def _record(iteration: int) -> IterationRecord:
    return IterationRecord(
        iteration=iteration,
        lower_bound=10.0 * iteration,
        upper_bound=50.0,
        upper_bound_std=5.0,
        upper_bound_kind="statistical",
        forward_passes=2,
        cuts_added=2,
        cuts_active=2 * iteration,
        lp_solves=9,
        lp_retries=1,
        simplex_iterations=30,
        forward_time_ms=1.4,
        backward_time_ms=2.6,
        communication_time_ms=0.0,
        iteration_time_ms=5.0,
        wall_time_ms=7.0 * iteration,
    )


@pytest.fixture
def result(case) -> TrainingResult:
    first = NodeCuts(
        slot=np.arange(4),
        iteration=np.array([1, 1, 2, 2]),
        forward_pass=np.array([0, 1, 0, 1]),
        intercept=np.array([1.0, 2.0, 3.0, 0.1 + 0.2]),
        slopes=np.arange(8.0).reshape(4, 2),
        active=np.array([True, False, True, True]),
    )
    none = np.zeros(0, np.int64)
    policy = Policy(
        components=(StateEntry("storage", 0, 0, "a"), StateEntry("storage", 1, 0, "b")),
        nodes=case_nodes(case, [0.0, 0.0]),
        transitions=case_transitions(case),
        cuts=(first, NodeCuts(none, none, none, np.zeros(0), np.zeros((0, 2)), np.zeros(0, np.bool_))),
        is_chain=True,
        forward_passes=2,
        seed=42,
        completed_iterations=2,
        lower_bounds=np.array([10.0, 20.0]),
        upper_bounds=np.array([50.0, 50.0]),
    )
    return TrainingResult(
        iterations=2,
        lower_bound=20.0,
        upper_bound=50.0,
        upper_bound_std=5.0,
        termination_reason="iteration_limit",
        total_time_ms=100.0,
        compile_time_ms=50.0,
        lp_solves=18,
        backend="local",
        ranks=1,
        threads=2,
        seed=42,
        policy=policy,
        policy_sha256=policy.sha256(),
        history=(_record(1), _record(2)),
    )


@pytest.fixture
def case():
    return cascade_study(hydros=2, stages=2, iterations=2, passes=2)


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_files_and_convergence(tmp_path, case, result):
    write_training(tmp_path / "new" / "output", case, result, BEGAN, ENDED, "complete")
    assert _files(tmp_path / "new" / "output") == WRITTEN
    table = read_convergence(tmp_path / "new" / "output")
    assert table.schema.names == training.CONVERGENCE_SCHEMA.names
    assert table.schema.types == training.CONVERGENCE_SCHEMA.types
    assert table.to_pylist()[1] == {
        "iteration": 2,
        "lower_bound": 20.0,
        "lower_bound_kind": "bound",
        "upper_bound": 50.0,
        "upper_bound_std": 5.0,
        "upper_bound_kind": "statistical",
        "gap_percent": None,  # the upper one is a sample
        "cuts_added": 2,
        "cuts_removed": 0,
        "cuts_active": 4,
        "time_forward_ms": 1,
        "time_backward_ms": 3,
        "time_total_ms": 5,
        "forward_passes": 2,
        "lp_solves": 9,
    }


def test_an_estimate_is_called_one_wherever_it_is_written(tmp_path, case, result):
    history = tuple(replace(record, lower_bound_kind="estimate") for record in result.history)
    result = replace(
        result,
        history=history,
        policy=replace(result.policy, lower_bound_kind="estimate"),
        lower_bound_kind="estimate",
        lower_bound_note="cuts of another study",
    )
    write_training(tmp_path, case, result, BEGAN, ENDED, "complete")
    rows = read_convergence(tmp_path).to_pylist()
    assert [(row["lower_bound_kind"], row["gap_percent"]) for row in rows] == [("estimate", None)] * 2
    metadata = read_metadata(tmp_path)
    assert metadata["bounds"]["final_lower_bound_kind"] == "estimate"
    assert metadata["bounds"]["final_lower_bound_note"] == "cuts of another study"
    assert metadata["convergence"]["final_gap_percent"] is None
    assert read_policy_directory(tmp_path / "policy").lower_bound_kind == "estimate"
    data = result_data(case, result)
    assert (data["lower_bound_kind"], data["gap_percent"]) == ("estimate", None)
    fields = progress_fields(history[0])
    assert (fields["lower_bound_kind"], fields["gap"], fields["gap_percent"]) == ("estimate", None, None)
    screen = Console(file=io.StringIO(), width=200)
    own = WorkerInfo(0, 9.0, "local", "here", 1.0, 1.0, 1.0, 0.0, 0.0, 9, 2, 2**20, 0)
    show_result(screen, case, replace(result, workers=(own,)))
    shown = screen.file.getvalue()
    assert "estimate" in shown
    assert "no lower bound: cuts of another study" in shown
    assert " gap" not in shown


def test_types_are_those_of_the_format():
    types = {field.name: str(field.type) for field in training.CONVERGENCE_SCHEMA}
    assert types["iteration"] == types["cuts_added"] == types["cuts_removed"] == "int32"
    assert types["forward_passes"] == "int32"
    assert types["cuts_active"] == types["time_total_ms"] == types["lp_solves"] == "int64"
    nullable = {field.name for field in training.CONVERGENCE_SCHEMA if field.nullable}
    assert nullable == {"upper_bound_std", "gap_percent"}


def test_tables_are_compressed_with_zstd(tmp_path, case, result):
    write_training(tmp_path, case, result, BEGAN, ENDED, "complete")
    for name in ("training/convergence.parquet", "policy/cuts.parquet"):
        assert pq.ParquetFile(tmp_path / name).metadata.row_group(0).column(0).compression == "ZSTD"


def test_cuts_hold_every_bit_of_the_policy(tmp_path, case, result):
    write_training(tmp_path, case, result, BEGAN, ENDED, "complete")
    rows = pq.read_table(tmp_path / "policy" / "cuts.parquet").to_pylist()
    assert [(row["node"], row["slot"], row["iteration"], row["forward_pass"]) for row in rows] == [
        (0, 0, 1, 0),
        (0, 1, 1, 1),
        (0, 2, 2, 0),
        (0, 3, 2, 1),
    ]
    assert [row["intercept"] for row in rows] == result.policy.intercepts[0].tolist()
    assert [row["slopes"] for row in rows] == result.policy.slopes[0].tolist()
    assert [row["active"] for row in rows] == [True, False, True, True]
    manifest = json.loads((tmp_path / "policy" / "manifest.json").read_text())
    assert manifest["format_version"] == 1
    assert manifest["policy_sha256"] == read_policy_directory(tmp_path / "policy").sha256()


def test_metadata(tmp_path, case, result):
    write_training(tmp_path, case, result, BEGAN, ENDED, "partial")
    metadata = read_metadata(tmp_path)
    assert metadata["software_version"] == cobre.__version__
    assert metadata["solver"] == "HiGHS"
    assert metadata["started_at"] == "2024-01-01T12:00:00.000Z"
    assert metadata["duration_seconds"] == 90.0
    assert metadata["status"] == "partial"
    assert metadata["configuration"]["max_iterations"] == case.training.iteration_limit
    assert metadata["problem_dimensions"]["num_hydros"] == 2
    assert metadata["convergence"] == {
        "achieved": False,
        "final_gap_percent": None,
        "termination_reason": "iteration_limit",
    }
    assert metadata["row_pool"]["total_generated"] == 4
    assert metadata["solve_stats"]["total_lp_solves"] == 18
    assert metadata["distribution"]["threads_per_rank"] == 2


def test_a_rewrite_that_fails_leaves_no_marker(tmp_path, case, result, monkeypatch):
    write_training(tmp_path, case, result, BEGAN, ENDED, "complete")

    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OutputError, match="No space left"):
        write_training(tmp_path, case, result, BEGAN, ENDED, "complete")
    assert _files(tmp_path) == WRITTEN - {"training/_SUCCESS"}


def test_output_in_the_way_is_an_output_error(tmp_path, case, result):
    (tmp_path / "output").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        write_training(tmp_path / "output", case, result, BEGAN, ENDED, "complete")


def test_reading_what_is_not_there_or_broken(tmp_path, case, result):
    for read in (read_convergence, read_metadata):
        with pytest.raises(OutputError) as caught:
            read(tmp_path)
        assert caught.value.kind == "OutputNotFound"
    write_training(tmp_path, case, result, BEGAN, ENDED, "complete")
    (tmp_path / "training" / "convergence.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "training" / "metadata.json").write_text("[]")
    for read in (read_convergence, read_metadata):
        with pytest.raises(OutputError) as caught:
            read(tmp_path)
        assert caught.value.kind == "OutputCorrupted"


def test_a_policy_without_states(tmp_path, result):
    cuts = [replace(part, slopes=np.zeros((len(part), 0))) for part in result.policy.cuts]
    policy = replace(result.policy, components=(), cuts=tuple(cuts))
    case = cascade_study(hydros=0, stages=2, iterations=2, passes=2)
    trained = replace(result, policy=policy, policy_sha256=policy.sha256())
    write_training(tmp_path, case, trained, BEGAN, ENDED, "complete")
    stored = read_policy_directory(tmp_path / "policy")
    assert stored.components == ()
    assert stored.cuts[0].intercept.tolist() == policy.intercepts[0].tolist()
    assert stored.sha256() == policy.sha256()
