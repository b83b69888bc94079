"""``cobre train`` on several ranks: started by itself, and joined; errors, signals, and ranks that die."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cli_helpers import check_envelope, copy_example, edit_json, run, start, strict_json

from cobre.results import read_convergence, read_metadata

MANY = 20000
STOP_S = 60.0  # only a hang takes so long
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")


def _data(process, code=0):
    assert process.returncode == code, process.stderr
    envelope = strict_json(process.stdout)
    check_envelope(envelope, "train", code)
    return envelope["data"]


def _json_run(*arguments):
    return run("train", *arguments, "--output-format", "json")


def _read_until(process: subprocess.Popen[str], beginning: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginning):
            return
    raise AssertionError(f"no line begins with {beginning}: {process.communicate()}")


def _rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    assert process.stderr is not None
    rest = process.stdout.read(), process.stderr.read()
    process.wait()
    return rest


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return sorted(int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split())


def _join(case: Path, ranks: int, *arguments: object, command: str = "train") -> list[subprocess.Popen[str]]:
    """Start the ranks of a job by hand, as a launcher would."""
    name = f"/cobre_joined_{secrets.token_hex(6)}"
    return [
        start(
            command,
            case,
            *arguments,
            COBRE_COMM_BACKEND="shm",
            COBRE_SHM_NAME=name,
            COBRE_SHM_RANK=str(rank),
            COBRE_SHM_SIZE=str(ranks),
        )
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_started_here_write_what_one_process_writes(tmp_path, backend):
    case = copy_example(tmp_path)
    one = _data(_json_run(case, "--iterations", 6, "--output", tmp_path / "one"))
    two = _data(
        _json_run(case, "--iterations", 6, "--output", tmp_path / "two", "--ranks", 2, "--backend", backend)
    )
    assert (two["backend"], two["ranks"]) == (backend, 2)
    assert two["policy_sha256"] == one["policy_sha256"]
    cuts = Path("policy") / "cuts.parquet"
    assert (tmp_path / "one" / cuts).read_bytes() == (tmp_path / "two" / cuts).read_bytes()
    bounds = ["iteration", "lower_bound", "upper_bound", "upper_bound_std", "lp_solves"]
    assert (
        read_convergence(tmp_path / "one")
        .select(bounds)
        .equals(read_convergence(tmp_path / "two").select(bounds))
    )
    assert [worker["rank"] for worker in two["workers"]] == [0, 1]
    assert two["balance"]["imbalance_word"] in ("excellent", "fine", "notable", "investigate")
    timing = pq.read_table(tmp_path / "two" / "training" / "timing" / "iterations.parquet")
    assert timing.column("iteration").to_pylist() == [i for i in range(1, 7) for _ in range(2)]
    assert timing.column("rank").to_pylist() == [0, 1] * 6
    assert sum(timing.column("lp_solves").to_pylist()) == two["lp_solves"]


def test_people_see_where_the_time_of_each_rank_went(tmp_path):
    case = copy_example(tmp_path)
    done = run("train", case, "--iterations", 3, "--ranks", 2)
    assert done.returncode == 0, done.stderr
    assert "2 ranks of" in done.stdout
    head = next(line for line in done.stdout.splitlines() if "communication" in line and "idle" in line)
    assert head.split() == ["rank", "forward", "backward", "communication", "idle", "LPs", "passes", "MiB"]
    assert "load imbalance" in done.stdout


def test_joined_ranks_speak_with_one_voice(tmp_path):
    case = copy_example(tmp_path)
    one = _data(_json_run(case, "--iterations", 4, "--output", tmp_path / "one"))
    ranks = _join(case, 3, "--iterations", 4, "--output-format", "json")
    outputs = [process.communicate() for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0, 0], outputs
    assert [bool(stdout) for stdout, _ in outputs] == [True, False, False]
    assert not any(stderr for _, stderr in outputs)
    assert strict_json(outputs[0][0])["data"]["policy_sha256"] == one["policy_sha256"]


def test_joined_ranks_train_and_simulate_and_one_of_them_ends_with_the_verdict(tmp_path):
    case = copy_example(tmp_path)
    ranks = _join(case, 2, "--iterations", 3, "--scenarios", 40, "--no-progress", command="run")
    outputs = [process.communicate() for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], outputs
    assert outputs[1] == ("", "")
    lines = outputs[0][0].splitlines()
    assert lines[-1].split(maxsplit=1)[1].startswith("cobre report ")
    titles = [line for line in lines if not line.startswith(" ")]
    assert titles[-4:-1] == ["Training complete", "Simulation complete", "Expected cost by component"]
    assert titles[-1] == "Verdict: not converged"


def test_a_wrong_case_ends_all_joined_ranks_alike(tmp_path):
    case = copy_example(tmp_path)
    edit_json(case / "config.json", lambda content: content["training"].update(forward_passes=-1))
    ranks = _join(case, 2, "--output-format", "json")
    outputs = [process.communicate() for process in ranks]
    assert [process.returncode for process in ranks] == [3, 3], outputs
    check_envelope(strict_json(outputs[0][0]), "train", 3)
    assert outputs[1] == ("", "")


def test_a_wrong_output_directory_ends_all_joined_ranks_alike(tmp_path):
    case = copy_example(tmp_path)
    (tmp_path / "file").touch()
    ranks = _join(case, 2, "--output-format", "json", "--output", tmp_path / "file" / "below")
    outputs = [process.communicate() for process in ranks]
    assert [process.returncode for process in ranks] == [2, 2], outputs
    assert outputs[1] == ("", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_stops_started_ranks_with_results(tmp_path, number, code):
    case = copy_example(tmp_path)
    process = start(
        "train", case, "--iterations", MANY, "--ranks", 2, "--threads", 1, "--output-format", "json-lines"
    )
    _read_until(process, '{"type": "progress"')
    process.send_signal(number)
    rest, stderr = _rest(process)
    assert process.returncode == code, stderr
    result = strict_json(rest.splitlines()[-1])
    assert result["data"]["status"] == "partial"
    assert result["data"]["termination_reason"] == "graceful_shutdown"
    told = result["errors"] if code else result["warnings"]
    assert [problem["context"]["signal"] for problem in told if problem["kind"] == "Interrupted"] == [
        number.name
    ]
    assert read_metadata(case / "output")["status"] == "partial"
    assert read_convergence(case / "output").num_rows == result["data"]["iterations"] < MANY


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_to_one_joined_rank_stops_all_at_the_same_boundary(tmp_path, number, code):
    case = copy_example(tmp_path)
    ranks = _join(case, 2, "--iterations", MANY, "--output-format", "json-lines")
    _read_until(ranks[0], '{"type": "progress"')
    ranks[1].send_signal(number)
    rest, stderr = _rest(ranks[0])
    assert _rest(ranks[1]) == ("", "")
    assert [process.returncode for process in ranks] == [code, code], stderr
    result = strict_json(rest.splitlines()[-1])
    assert result["data"]["status"] == "partial"
    assert read_convergence(case / "output").num_rows == result["data"]["iterations"] < MANY


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_others_and_is_named(tmp_path, victim):
    case = copy_example(tmp_path)
    process = start(
        "train", case, "--iterations", MANY, "--ranks", 2, "--threads", 1, "--output-format", "json-lines"
    )
    _read_until(process, '{"type": "progress"')
    children = _children(process.pid)
    assert len(children) == 2
    os.kill(children[victim], signal.SIGKILL)
    began = time.monotonic()
    rest, stderr = _rest(process)
    assert time.monotonic() - began < STOP_S
    assert process.returncode == 4, stderr
    (problem,) = strict_json(rest.splitlines()[-1])["errors"]
    assert problem["kind"] == "WorkerFailed"
    assert f"rank {victim} " in problem["message"]
    assert "--resume" in problem["suggestion"]
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.parametrize("victim", [0, 1])
def test_joined_ranks_end_when_one_is_killed(tmp_path, victim):
    case = copy_example(tmp_path)
    ranks = _join(case, 2, "--iterations", MANY, "--output-format", "json-lines")
    _read_until(ranks[0], '{"type": "progress"')
    survivor = ranks[1 - victim]
    ranks[victim].kill()
    began = time.monotonic()
    rest, stderr = _rest(survivor)
    assert time.monotonic() - began < STOP_S
    assert survivor.returncode == 4
    _rest(ranks[victim])
    story = stderr if victim == 0 else str(strict_json(rest.splitlines()[-1])["errors"][0])
    assert f"rank {victim} " in story
    assert "--resume" in story


def test_ranks_are_not_started_by_a_rank(tmp_path):
    case = copy_example(tmp_path)
    variables = {"COBRE_SHM_NAME": "/cobre_job_x", "COBRE_SHM_RANK": "0", "COBRE_SHM_SIZE": "2"}
    done = run("train", case, "--ranks", 2, "--output-format", "json", **variables)
    assert done.returncode == 2
    assert "itself a rank" in strict_json(done.stdout)["errors"][0]["message"]
