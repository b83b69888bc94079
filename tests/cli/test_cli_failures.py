"""Failures while a command runs: exit code 4, a short message, no traceback unless asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_helpers import check_envelope, copy_example, edit_json, strict_json

from cobre.cli import main
from cobre.cli.exit_codes import ExitCode, exit_code_of
from cobre.comm.errors import InitializationFailed
from cobre.errors import CobreError, OutputError, Problem, ValidationError


@pytest.fixture
def infeasible_case(tmp_path: Path) -> Path:
    """A river that flows uphill, and no slack for it."""
    case = copy_example(tmp_path)
    path = case / "scenarios" / "inflow_seasonal_stats.parquet"
    table = pq.read_table(path)
    position = table.schema.get_field_index("mean_m3s")
    pq.write_table(table.set_column(position, "mean_m3s", pa.array([-1.0e6] * table.num_rows)), path)
    edit_json(case / "config.json", lambda c: c["modeling"]["inflow_non_negativity"].update(method="none"))
    return case


def test_an_lp_without_solution(infeasible_case, capsys):
    assert main(["train", str(infeasible_case), "--output-format", "json"]) == 4
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "train", 4)
    (problem,) = envelope["errors"]
    assert problem["kind"] == "SolverFailure"
    assert {"stage", "scenario", "opening", "solver_status"} <= set(problem["context"])
    assert Path(problem["context"]["model_file"]).parent == infeasible_case / "output"
    assert envelope["data"] is None
    assert not (infeasible_case / "output" / "training").exists()


def test_an_unknown_backend(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    monkeypatch.setenv("COBRE_COMM_BACKEND", "pigeon")
    assert main(["train", str(case), "--output-format", "json"]) == 2
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "train", 2)
    assert envelope["errors"][0]["context"]["requested_value"] == "pigeon"


def test_too_little_memory(tmp_path, monkeypatch, capsys):
    def fail(*arguments, **options):
        raise MemoryError("Unable to allocate 256. GiB")

    case = copy_example(tmp_path)
    monkeypatch.setattr("cobre.sddp.training.train_together", fail)
    assert main(["train", str(case), "--output-format", "json"]) == 4
    (problem,) = strict_json(capsys.readouterr().out)["errors"]
    assert problem["kind"] == "OutOfMemory"
    assert "256. GiB" in problem["message"]
    assert not (case / "output").exists()


@pytest.mark.parametrize("debug", [False, True])
def test_unexpected_errors(tmp_path, monkeypatch, capsys, debug):
    def fail(path):
        raise RuntimeError("the unforeseen")

    monkeypatch.setattr("cobre.case.check", fail)
    monkeypatch.setenv("COBRE_DEBUG", "1" if debug else "")
    assert main(["validate", str(tmp_path), "--output-format", "json"]) == 4
    captured = capsys.readouterr()
    envelope = strict_json(captured.out)
    check_envelope(envelope, "validate", 4)
    assert envelope["errors"][0]["kind"] == "InternalError"
    assert "the unforeseen" in envelope["errors"][0]["message"]
    assert ("Traceback" in captured.err) is debug
    assert ("COBRE_DEBUG" in envelope["errors"][0]["suggestion"]) is not debug


def test_results_that_cannot_be_written_keep_the_data(tmp_path, monkeypatch, capsys):
    def fail(*arguments):
        raise OutputError("OutputNotWritable", "no space left on device")

    case = copy_example(tmp_path)
    monkeypatch.setattr("cobre.results.write_training", fail)
    assert main(["train", str(case), "--iterations", "1", "--output-format", "json"]) == 2
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "train", 2)
    assert envelope["data"]["iterations"] == 1


def test_exit_code_of_errors():
    argument = ValidationError([Problem("InvalidValue", "no", {"field": "threads", "value": 0})])
    both = ValidationError([*argument.problems, Problem("InvalidValue", "no", {"file": "config.json"})])
    assert exit_code_of(argument) is ExitCode.ARGUMENTS
    assert exit_code_of(both) is ExitCode.INPUT
    assert exit_code_of(CobreError("UnsafeCacheDirectory", "no")) is ExitCode.CONFIGURATION
    assert exit_code_of(CobreError("MpiError", "no")) is ExitCode.RUNTIME
    no_segment = InitializationFailed("shm", "no", setting="/dev/shm")
    assert exit_code_of(no_segment) is ExitCode.CONFIGURATION
