"""``cobre simulate`` and ``cobre run``: what they show, write and refuse."""

from __future__ import annotations

import json
import signal

import pytest
from cli_helpers import check_envelope, copy_example, edit_json, run, start, strict_json


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A case with its policy in the usual place."""
    case = copy_example(tmp_path_factory.mktemp("trained"))
    done = run("train", case, "--iterations", 3, "-q")
    assert done.returncode == 0, done.stderr
    return case


def test_for_people(trained):
    done = run("simulate", trained, "--scenarios", 200)
    assert done.returncode == 0, done.stderr
    assert "200 scenarios, 1 thread" in done.stdout
    assert "scenario 200/200" in done.stdout
    for words in ("expected cost", "CVaR 95 %", "deficit", "Expected cost by component", "thermal"):
        assert words in done.stdout
    assert str(trained / "output") in done.stdout
    assert f"cobre simulate {trained} --scenarios" in done.stdout  # how to narrow the interval
    assert (trained / "output" / "simulation" / "_SUCCESS").exists()


def test_for_programs(trained, tmp_path):
    options = ("--policy", trained / "output" / "policy", "--output", tmp_path, "--scenarios", 40)
    done = run("simulate", trained, *options, "--output-format", "json", "--threads", 2)
    envelope = strict_json(done.stdout)
    check_envelope(envelope, "simulate", 0)
    data = envelope["data"]
    assert (data["scenarios"], data["status"], data["kind"]) == (40, "complete", "sample")
    assert data["mean_cost"] == pytest.approx(sum(data["components"].values()))
    lines = [
        strict_json(line)
        for line in run(
            "simulate", trained, *options, "--output-format", "json-lines", "--ranks", 2
        ).stdout.splitlines()
    ]
    assert [line["type"] for line in lines] == ["started", "progress", "progress", "terminated", "result"]
    assert lines[0]["phase"] == "simulation"
    assert lines[2]["scenarios_done"] == 40
    again = lines[-1]["data"]
    assert {name: again[name] for name in ("mean_cost", "cvar_95")} == {
        name: data[name] for name in ("mean_cost", "cvar_95")
    }


def test_interrupted_and_resumed(trained, tmp_path):
    options = (trained, "--policy", trained / "output" / "policy", "--output", tmp_path)
    many = (*options, "--scenarios", 100_000)
    process = start("simulate", *many, "--output-format", "json-lines")
    for line in process.stdout:
        if json.loads(line).get("scenarios_done"):
            break
    process.send_signal(signal.SIGINT)
    last = json.loads(process.stdout.read().splitlines()[-1])
    assert process.wait() == 130
    assert "--resume" in last["errors"][0]["message"]
    assert not (tmp_path / "simulation").exists()
    process = start("simulate", *many, "--resume", "--output-format", "json-lines")
    for line in process.stdout:
        if json.loads(line).get("scenarios_resumed"):
            break
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait() == 143
    done = run("simulate", *options, "--scenarios", 50, "--resume")
    assert done.returncode == 3
    assert "another number of scenarios" in done.stderr


def test_a_run_that_was_interrupted_is_resumed_as_it_says(tmp_path):
    case = copy_example(tmp_path)
    again = ("run", case, "--iterations", 2, "--scenarios", 100_000, "--output-format", "json-lines")
    process = start(*again)
    for line in process.stdout:
        if json.loads(line).get("scenarios_done"):
            break
    process.send_signal(signal.SIGINT)
    last = json.loads(process.stdout.read().splitlines()[-1])
    assert process.wait() == 130
    assert "run the same command with --resume" in last["errors"][0]["message"]
    process = start(*again, "--resume")
    for line in process.stdout:
        if json.loads(line).get("scenarios_resumed"):
            break
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait() == 143
    assert run("run", case, "--resume", "--force").returncode == 1


def test_a_run_does_both(trained, tmp_path):
    case = copy_example(tmp_path)
    asked = {"enabled": True, "selection": {"method": "sampled", "num_scenarios": 30}}
    edit_json(case / "config.json", lambda config: config.update(simulation=asked))
    done = run("run", case, "--iterations", 3, "--output-format", "json")
    data = strict_json(done.stdout)["data"]
    assert (data["training"]["iterations"], data["simulation"]["scenarios"]) == (3, 30)
    assert data["training"]["policy_sha256"] == data["simulation"]["policy_sha256"]
    edit_json(case / "config.json", lambda config: config["training"].update(enabled=False))
    done = run("run", case)
    assert done.returncode == 0, done.stderr
    assert "Training" not in done.stdout
    done = run("train", case)
    assert done.returncode == 3
    assert "training.enabled is false" in done.stderr


def test_what_is_refused(trained, tmp_path):
    done = run("simulate", trained, "--output", tmp_path)
    assert done.returncode == 3
    assert "there is no policy to simulate" in done.stderr
    assert "cobre train" in done.stderr
    assert list(tmp_path.iterdir()) == []
    done = run("simulate", trained, "--resume", "--output", trained / "output", "--scenarios", 7)
    assert done.returncode == 2
    assert "nothing to resume" in done.stderr
    assert run("simulate", trained, "--scenarios", 0).returncode == 1
    assert run("simulate", trained, "--resume", "--force").returncode == 1
