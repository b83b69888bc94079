"""``cobre watch`` on runs that go on, have ended, failed, or were killed; and the events that it reads."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import copy_example, edit_json, run, start, strict_json

import cobre
from cobre.cli import main
from cobre.errors import CobreError

TIMES = frozenset({"timestamp", "host", "pid", "process_start", "output_dir", "ranks", "threads_per_rank"})


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return copy_example(tmp_path)


def events_of(output: Path) -> list[dict[str, Any]]:
    lines = (output / "training" / "events.jsonl").read_text().splitlines()
    return [strict_json(line) for line in lines]


def timeless(output: Path) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in event.items() if name not in TIMES and not name.endswith("_ms")}
        for event in events_of(output)
    ]


def watched(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main(["watch", *map(str, arguments), "--output-format", "json"])
    return code, strict_json(capsys.readouterr().out)


def test_the_events_of_a_run(case, tmp_path):
    cobre.train(case, iterations=3, output=tmp_path / "one", checkpoint_every=2)
    events = events_of(tmp_path / "one")
    update = ["ConvergenceUpdate", "IterationSummary"]
    expected = ["TrainingStarted", *update, *update, "CheckpointComplete", *update, "CheckpointComplete"]
    assert [event["event"] for event in events] == [*expected, "TrainingFinished"]
    result = cobre.train(case, iterations=3)
    assert [event["lower_bound"] for event in events if event["event"] == update[0]] == [
        record.lower_bound for record in result.history
    ]
    assert events[-1]["policy_sha256"] == result.policy_sha256
    assert events[-1]["verdict"]["conclusion"] == result.verdict.conclusion
    # Nothing but times, processes and places differs, whatever runs it.
    cobre.train(case, iterations=3, output=tmp_path / "two", checkpoint_every=2, ranks=2, threads=1)
    assert timeless(tmp_path / "one") == timeless(tmp_path / "two")
    # A resumed run appends.
    cobre.train(case, iterations=4, output=tmp_path / "one", resume=True)
    assert events_of(tmp_path / "one")[: len(events)] == events
    assert events_of(tmp_path / "one")[len(events)]["policy_mode"] == "resume"


def test_cut_selection_has_an_event(case, tmp_path):
    selection = {"selection": {"method": "level1", "check_frequency": 2}}
    edit_json(case / "config.json", lambda content: content["training"].update(cut_selection=selection))
    result = cobre.train(case, iterations=4, output=tmp_path / "out")
    told = {
        event["iteration"]: event["cuts_deactivated"]
        for event in events_of(tmp_path / "out")
        if event["event"] == "CutSelectionComplete"
    }
    assert told == {
        record.iteration: record.cuts_removed for record in result.history if record.iteration % 2 == 0
    }


def test_a_finished_run(case, capsys):
    assert main(["train", str(case), "--iterations", "3", "--quiet"]) == 0
    assert main(["watch", str(case)]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("iteration ")] == [
        *("1/3", "2/3", "3/3")
    ]
    assert "Training complete" in shown
    assert "Verdict: not converged" in shown
    code, envelope = watched(capsys, case / "output")
    assert (code, envelope["data"]["status"], envelope["data"]["iteration"]) == (0, "complete", 3)
    assert main(["watch", str(case), "--output-format", "json-lines"]) == 0
    lines = [strict_json(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[:-1] == events_of(case / "output")
    assert (lines[-1]["type"], lines[-1]["command"]) == ("result", "watch")
    # Of several runs in a directory the last one counts.
    assert main(["train", str(case), "--iterations", "5", "--resume", "--quiet"]) == 0
    assert watched(capsys, case)[1]["data"]["max_iterations"] == 5


def test_a_run_that_goes_on_and_is_killed(case, capsys):
    process = start("train", case, "--iterations", 20_000, "--checkpoint-every", 50, "--quiet")
    log = case / "output" / "training" / "events.jsonl"
    while not (log.exists() and "CheckpointComplete" in log.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    code, envelope = watched(capsys, case, "--no-follow")
    assert (code, envelope["data"]["status"]) == (0, "running")
    watcher = start("watch", case)
    assert watcher.stdout is not None
    assert watcher.stdout.readline().startswith("Training ")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    out, err = watcher.communicate()
    assert watcher.returncode == 4, out + err
    assert "[RunGone]" in err
    assert "cobre train ... --resume" in err
    done = events_of(case / "output")[-1]["iteration"]
    assert f"after iteration {done}: process {process.pid} on" in err


def test_a_run_that_is_followed_to_its_end(case):
    process = start("train", case, "--iterations", 300, "--quiet")
    log = case / "output" / "training" / "events.jsonl"
    while not log.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    followed = run("watch", case, "--output-format", "json-lines")
    process.communicate()
    assert (process.returncode, followed.returncode) == (0, 0)
    lines = [json.loads(line) for line in followed.stdout.splitlines()]
    assert lines[:-1] == events_of(case / "output")
    assert lines[-2]["event"] == "TrainingFinished"


def test_a_run_that_failed(case, tmp_path, capsys):
    def fail(record: object) -> None:
        raise CobreError("Nonsense", "the third iteration is one too many", {}, "")

    with pytest.raises(CobreError):
        cobre.train(case, iterations=3, output=tmp_path / "out", on_iteration=fail)
    code, envelope = watched(capsys, tmp_path / "out")
    assert code == 4
    (error,) = envelope["errors"]
    assert error["kind"] == "RunFailed"
    assert "after iteration 1, without results: Nonsense: the third iteration" in error["message"]


def test_a_process_elsewhere_is_unknown(case, capsys):
    log = case / "output" / "training" / "events.jsonl"
    log.parent.mkdir(parents=True)
    begun = {"event": "TrainingStarted", "host": "elsewhere", "pid": 1, "max_iterations": 9}
    log.write_text(json.dumps(begun) + "\n")
    code, envelope = watched(capsys, case, "--no-follow")
    assert (code, envelope["data"]["status"]) == (0, "unknown")


def test_nothing_to_watch(tmp_path, capsys):
    code, envelope = watched(capsys, tmp_path)
    assert (code, envelope["errors"][0]["kind"]) == (2, "OutputNotFound")
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "events.jsonl").write_text("no events\n")
    code, envelope = watched(capsys, tmp_path, "--no-follow")
    assert (code, envelope["errors"][0]["kind"]) == (2, "OutputCorrupted")
