"""Run configuration: environment variables and the output directory (exit code 2)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_helpers import check_envelope, copy_example, run, snapshot, strict_json

from cobre.cli import main
from cobre.cli.environment import default_threads
from cobre.cli.exit_codes import ConfigurationError
from cobre.errors import OutputError
from cobre.output import choose_output

UNWRITABLE = Path("/proc/self")  # also for root


def test_threads_come_from_the_environment():
    assert default_threads({}) == 1
    assert default_threads({"SLURM_CPUS_PER_TASK": "4"}) == 4
    assert default_threads({"COBRE_NUM_THREADS": "2", "SLURM_CPUS_PER_TASK": "4"}) == 2
    assert default_threads({"COBRE_NUM_THREADS": "", "SLURM_CPUS_PER_TASK": "4"}) == 4


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5", "\u0662", "1e3", "100000000", "9" * 5000])
def test_threads_that_are_no_number_are_refused(text):
    with pytest.raises(ConfigurationError, match="COBRE_NUM_THREADS"):
        default_threads({"COBRE_NUM_THREADS": text})


def test_bad_environment_exits_2(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    before = snapshot(tmp_path)
    monkeypatch.setenv("COBRE_NUM_THREADS", "many")
    assert main(["train", str(case), "--output-format", "json"]) == 2
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "train", 2)
    assert envelope["errors"][0]["context"] == {"setting": "COBRE_NUM_THREADS", "value": "many"}
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("command", "variable", "value"),
    [
        (["train"], "COBRE_HIGHS_LIB", "/etc/passwd"),
        (["validate"], "COBRE_HIGHS_LIB", "/no/such/file"),
        (["train"], "NUMBA_NUM_THREADS", "0"),
        (["stochastic"], "NUMBA_NUM_THREADS", "x"),
        (["train"], "NUMBA_THREADING_LAYER", "xyz"),
        (["train", "--ranks", "2"], "NUMBA_THREADING_LAYER", "xyz"),
        (["train"], "NUMBA_DISABLE_JIT", "1"),
    ],
)
def test_a_variable_that_keeps_libraries_from_loading_exits_2(tmp_path, command, variable, value):
    case = copy_example(tmp_path)
    before = snapshot(tmp_path)
    finished = run(*command, case, "--output-format", "json", **{variable: value})
    assert "Traceback" not in finished.stderr
    envelope = strict_json(finished.stdout)
    check_envelope(envelope, command[0], 2)
    (problem,) = envelope["errors"]
    assert variable in problem["message"]
    place = {"rank": 0} if "--ranks" in command else {}
    assert problem["context"] == {"setting": variable, "value": value, **place}
    assert variable in problem["suggestion"]
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "field"),
    [(["--threads", "100000"], "threads"), (["--ranks", "100000"], "ranks")],
)
def test_more_workers_than_can_start_exit_1(tmp_path, capsys, options, field):
    case = copy_example(tmp_path)
    assert main(["train", str(case), *options, "--output-format", "json"]) == 1
    (problem,) = strict_json(capsys.readouterr().out)["errors"]
    assert problem["context"] == {"field": field, "value": 100000}
    assert problem["suggestion"]


def test_threads_of_numba_give_way_to_the_threads_asked_for(tmp_path):
    case = copy_example(tmp_path)
    options = ["--threads", 2, "--iterations", 1, "--quiet"]
    assert run("train", case, *options, NUMBA_NUM_THREADS="1").returncode == 0


def test_an_option_outranks_the_environment(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    monkeypatch.setenv("COBRE_NUM_THREADS", "many")
    assert main(["train", str(case), "--threads", "1", "--iterations", "1", "--quiet"]) == 0


def test_output_that_is_a_file_exits_2(tmp_path, capsys):
    case = copy_example(tmp_path)
    (tmp_path / "taken").write_text("keep me")
    before = snapshot(tmp_path)
    for output in ("taken", "taken/below"):
        options = ["--output", str(tmp_path / output), "--output-format", "json"]
        assert main(["train", str(case), *options]) == 2
        envelope = strict_json(capsys.readouterr().out)
        check_envelope(envelope, "train", 2)
        assert "not a directory" in envelope["errors"][0]["message"]
    assert snapshot(tmp_path) == before


def test_unwritable_output_is_refused():
    with pytest.raises(OutputError, match="cannot be written"):
        choose_output(Path("case"), UNWRITABLE / "results")


def test_unwritable_subdirectory_is_refused(tmp_path):
    (tmp_path / "training").write_text("")
    with pytest.raises(OutputError, match="not a directory"):
        choose_output(Path("case"), tmp_path)


def test_choosing_creates_nothing(tmp_path):
    assert choose_output(tmp_path, None) == (tmp_path / "output", [])
    assert choose_output(tmp_path, tmp_path / "a" / "b") == (tmp_path / "a" / "b", [])
    assert list(tmp_path.iterdir()) == []


def test_unwritable_case_directory_falls_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen, (warning,) = choose_output(UNWRITABLE, None)
    assert chosen == tmp_path / f"{os.getpid()}-output"
    assert warning.kind == "OutputRedirected"
    assert str(chosen) in warning.message
    assert list(tmp_path.iterdir()) == []


def test_training_of_a_read_only_case(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    case.chmod(0o555)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    before = snapshot(case)
    assert main(["train", str(case), "--iterations", "1", "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "train", 0)
    assert envelope["warnings"][0]["kind"] == "OutputRedirected"
    assert envelope["data"]["output_dir"] == str(work / "random-inflow-output")
    assert (work / "random-inflow-output" / "training" / "_SUCCESS").is_file()
    assert snapshot(case) == before


def test_warnings_go_to_standard_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("cobre.cli.study_command.usable_cpus", lambda: 1)
    case = copy_example(tmp_path)
    assert main(["train", str(case), "--iterations", "1", "--threads", "2", "--no-progress"]) == 0
    captured = capsys.readouterr()
    assert "warning: [TooManyThreads]" in captured.err
    assert "TooManyThreads" not in captured.out
