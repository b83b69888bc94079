"""Training from the command line: what is printed and written, and that it is the same every time."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cli_helpers import check_envelope, copy_example, run, snapshot, start, strict_json

from cobre.cli import main
from cobre.results import read_convergence, read_metadata

DATA_KEYS = {
    "iterations",
    "lower_bound",
    "upper_bound",
    "upper_bound_std",
    "gap_percent",
    "termination_reason",
    "total_time_ms",
    "compile_time_ms",
    "lp_solves",
    "backend",
    "ranks",
    "threads",
    "policy_sha256",
    "seed",
    "output_dir",
}
PROGRESS_KEYS = [
    "type",
    "iteration",
    "lower_bound",
    "upper_bound",
    "upper_bound_std",
    "ci_95",
    "gap",
    "wall_time_ms",
    "iteration_time_ms",
]
WRITTEN = {
    "policy",
    "policy/cuts.parquet",
    "policy/first_bases.parquet",
    "policy/manifest.json",
    "policy/manifest.sha256",
    "training",
    "training/_SUCCESS",
    "training/costs.parquet",
    "training/costs_by_entity.parquet",
    "training/solver",
    "training/solver/iterations.parquet",
    "training/timing",
    "training/timing/iterations.parquet",
    "training/convergence.parquet",
    "training/dictionaries",
    "training/dictionaries/bounds.parquet",
    "training/dictionaries/codes.json",
    "training/dictionaries/entities.csv",
    "training/dictionaries/variables.csv",
    "training/hydro_models.json",
    "training/model_provenance.json",
    "training/scaling_report.json",
    "training/events.jsonl",
    "training/metadata.json",
}


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return copy_example(tmp_path)


def train(case: Path, *options: object) -> int:
    return main(["train", str(case), *map(str, options)])


def test_json(case, capsys):
    assert train(case, "--iterations", 3, "--seed", 7, "--output-format", "json") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    envelope = strict_json(captured.out)
    check_envelope(envelope, "train", 0)
    data = envelope["data"]
    assert set(data) >= DATA_KEYS
    assert (data["iterations"], data["seed"], data["threads"], data["ranks"]) == (3, 7, 1, 1)
    assert data["termination_reason"] == "iteration_limit"
    assert re.fullmatch("[0-9a-f]{64}", data["policy_sha256"])
    assert data["output_dir"] == str(case / "output")
    written = set(snapshot(case / "output"))
    assert {name for name in written if not name.startswith("checkpoints")} == WRITTEN
    assert "checkpoints/checkpoint-000003/manifest.json" in written


def test_results_on_disk_agree_with_the_envelope(case, tmp_path, capsys):
    output = tmp_path / "deep" / "results"
    assert train(case, "--iterations", 3, "--output", output, "--output-format", "json") == 0
    data = strict_json(capsys.readouterr().out)["data"]
    assert not (case / "output").exists()
    convergence = read_convergence(output)
    assert convergence.num_rows == data["iterations"] == 3
    assert convergence.column("lower_bound")[-1].as_py() == data["lower_bound"]
    assert sum(convergence.column("lp_solves").to_pylist()) == data["lp_solves"]
    metadata = read_metadata(output)
    assert metadata["status"] == "complete"
    assert metadata["configuration"]["max_iterations"] == 3
    assert metadata["policy_sha256"] == data["policy_sha256"]


@pytest.mark.parametrize(
    ("asked", "used", "words"), [("highs", "highs", "HiGHS"), ("auto", "own", "own engine")]
)
def test_the_lp_engine_is_chosen_and_reported(case, capsys, asked, used, words):
    assert train(case, "--iterations", 2, "--lp-engine", asked, "--output-format", "json-lines") == 0
    lines = [strict_json(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["lp_engine"] == asked
    assert lines[-1]["data"]["lp_engine"] == {"asked": asked, "used": used}
    assert read_metadata(case / "output")["configuration"]["lp_engine"] == {"asked": asked, "used": used}
    assert train(case, "--iterations", 3, "--resume", "--no-progress") == 0
    assert f"per second), {words}\n" in capsys.readouterr().out


def test_an_unknown_lp_engine_is_refused(case, capsys):
    assert train(case, "--lp-engine", "simplex") == 1
    assert "simplex" in capsys.readouterr().err


def test_json_lines(case, capsys):
    assert train(case, "--iterations", 4, "--output-format", "json-lines") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = [strict_json(line) for line in captured.out.splitlines()]
    assert all(next(iter(line)) == "type" for line in lines)
    assert [line["type"] for line in lines] == ["started", *["progress"] * 4, "terminated", "result"]
    assert lines[0]["max_iterations"] == 4
    assert lines[0]["stages"] == 4
    for iteration, line in enumerate(lines[1:5], start=1):
        assert list(line)[: len(PROGRESS_KEYS)] == PROGRESS_KEYS
        assert line["iteration"] == iteration
    assert lines[5]["reason"] == "iteration_limit"
    assert lines[5]["iterations"] == 4
    result = lines[6]
    del result["type"]
    check_envelope(result, "train", 0)
    assert result["data"]["lower_bound"] == lines[4]["lower_bound"]


def test_json_lines_without_progress(case, capsys):
    assert train(case, "--iterations", 2, "--output-format", "json-lines", "--no-progress") == 0
    lines = [strict_json(line)["type"] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["started", "terminated", "result"]


def test_plain_lines_and_summary(case, capsys):
    assert train(case, "--iterations", 3) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("iteration ")] == ["1/3", "2/3", "3/3"]
    assert "loading kernels (or compiling them)..." in lines
    assert "cost of the passes of iteration 1: deficit 74.2%, thermal 25.8%" in lines
    summary = captured.out.partition("Training complete")[2]
    for word in (
        "lower bound",
        "upper bound",
        "gap",
        "per second",
        "sha256",
        str(case / "output"),
        "Verdict",
    ):
        assert word in summary
    assert "\x1b" not in captured.out


def test_costs_by_component(case, capsys):
    assert train(case, "--iterations", 2, "--output-format", "json-lines") == 0
    lines = [strict_json(line) for line in capsys.readouterr().out.splitlines()]
    progress = [line for line in lines if line["type"] == "progress"]
    assert ["costs" in line for line in progress] == [True, False]
    assert progress[0]["costs"]["total"] == pytest.approx(progress[0]["upper_bound"], rel=1e-12)
    costs = lines[-1]["data"]["costs"]
    assert costs["iteration"] == 2
    assert costs["total"] == pytest.approx(progress[1]["upper_bound"], rel=1e-12)
    assert costs["total"] == pytest.approx(sum(costs["components"].values()), rel=1e-12)
    assert train(case, "--iterations", 2, "--no-progress", "--force") == 0
    shown = capsys.readouterr().out
    assert "Mean cost of the forward passes of iteration 2" in shown
    assert f"{costs['components']['thermal']:,.2f} $" in shown


def test_violations_that_dominate_are_reported_at_once_and_at_the_end(case, capsys):
    stats = case / "scenarios" / "load_seasonal_stats.parquet"
    table = pq.read_table(stats)
    load = pc.multiply(table["mean_mw"], 10.0)
    pq.write_table(table.set_column(table.schema.get_field_index("mean_mw"), "mean_mw", load), stats)
    assert train(case, "--iterations", 3) == 0
    captured = capsys.readouterr()
    dominated = "of the cost of the forward passes of iteration"
    assert "of the cost of stage 0 in iteration 1 is paid for violations and deficit: deficit" in captured.err
    assert f"{dominated} 3 is paid for violations and deficit: deficit" in captured.err
    assert "[ViolationsDominate]" in captured.err


def test_no_progress_prints_the_summary_only(case, capsys):
    assert train(case, "--iterations", 3, "--no-progress") == 0
    out = capsys.readouterr().out
    assert out.startswith("Training complete")
    assert "iteration 1" not in out


def test_quiet_prints_nothing(case, capsys):
    assert train(case, "--iterations", 2, "--quiet") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert (case / "output" / "training" / "_SUCCESS").is_file()


def test_more_iterations_raise_the_lower_bound(case, capsys):
    bounds = []
    for iterations in (2, 8):
        assert train(case, "--iterations", iterations, "--output-format", "json") == 0
        bounds.append(strict_json(capsys.readouterr().out)["data"]["lower_bound"])
    assert bounds[0] < bounds[1]


def test_another_seed_gives_another_policy(case, capsys):
    digests = set()
    for seed in (1, 2):
        options = ("--iterations", 2, "--seed", seed, "--force", "--output-format", "json")
        assert train(case, *options) == 0
        digests.add(strict_json(capsys.readouterr().out)["data"]["policy_sha256"])
    assert len(digests) == 2


def test_policy_is_the_same_in_every_process_and_for_any_threads(case, tmp_path):
    digests = set()
    for number, threads in enumerate((1, 1, 2)):
        output = tmp_path / str(number)
        options = ("--threads", threads, "--output", output, "--output-format", "json")
        done = run("train", case, "--iterations", 10, *options)
        assert done.returncode == 0, done.stderr
        envelope = strict_json(done.stdout)
        assert envelope["data"]["threads"] == threads
        digests.add(envelope["data"]["policy_sha256"])
    assert len(digests) == 1


def test_a_case_without_hydros(tmp_path, capsys):
    case = copy_example(tmp_path, "thermal-merit-order")
    assert train(case, "--iterations", 2, "--output-format", "json") == 0
    assert strict_json(capsys.readouterr().out)["data"]["gap_percent"] == pytest.approx(0.0, abs=1e-9)


def test_a_reader_who_leaves_does_not_stop_the_work(case):
    process = start("train", case, "--iterations", 30)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Training ")
    process.stdout.close()
    assert process.stderr is not None
    stderr = process.stderr.read()
    assert (process.wait(), stderr) == (0, "")
    assert read_convergence(case / "output").num_rows == 30
