"""Logs of events: whole lines whatever happened before, and processes that are there or gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cobre.event_log import EventLog, EventReader, is_running, this_process


def test_events_are_appended_and_read_as_they_come(tmp_path):
    path = tmp_path / "training" / "events.jsonl"
    log, other, reader = EventLog(path), EventLog(path), EventReader(path)
    log.write([("A", {"x": 1}), ("B", {"y": float("inf"), "z": [float("nan"), 2.5]})])
    assert list(reader.new_events()) == [
        {"event": "A", "x": 1},
        {"event": "B", "y": None, "z": [None, 2.5]},
    ]
    other.write([("C", {})])
    log.write([("D", {})])
    assert [event["event"] for event in reader.new_events()] == ["C", "D"]
    assert list(reader.new_events()) == []
    assert (log.error, other.problems()) == (None, ())
    for each in (log, other):
        each.close()
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["A", "B", "C", "D"]


def test_part_of_a_line_is_neither_read_nor_continued(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "A"}\n{"event": "B", "lower')
    reader = EventReader(path)
    assert [event["event"] for event in reader.new_events()] == ["A"]
    log = EventLog(path)
    log.write([("C", {})])
    log.close()
    assert [event["event"] for event in reader.new_events()] == ["C"]


def test_a_log_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "training").write_text("in the way")
    log = EventLog(tmp_path / "training" / "events.jsonl")
    log.write([("A", {})])
    log.write([("B", {})])
    (problem,) = log.problems()
    assert problem.kind == "EventLogNotWritten"
    assert str(tmp_path) in problem.message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_a_warning():
    log = EventLog(Path("/dev/full"))
    log.write([("A", {})])
    assert "No space" in log.problems()[0].message


def test_a_run_without_output_has_no_log():
    log = EventLog(None)
    log.write([("A", {})])
    assert log.problems() == ()


def test_discarding_leaves_nothing_unless_others_have_written(tmp_path):
    path = tmp_path / "new" / "training" / "events.jsonl"
    log = EventLog(path)
    log.write([("A", {})])
    log.discard()
    assert list(tmp_path.iterdir()) == []
    log, other = EventLog(path), EventLog(path)
    log.write([("A", {})])
    other.write([("B", {})])
    log.discard()
    later = EventLog(path)
    later.write([("C", {})])
    later.discard()
    for each in (log, other, later):
        each.close()
    assert [event["event"] for event in EventReader(path).new_events()] == ["A", "B", "C"]


def test_processes():
    assert is_running(this_process()) is True
    assert is_running({**this_process(), "host": "elsewhere"}) is None
    assert is_running({"host": this_process()["host"]}) is None
    code = (
        "import cobre.event_log as log, json, time\n"
        "print(json.dumps(log.this_process()), flush=True)\n"
        "time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    process = json.loads(child.stdout.readline())
    assert is_running(process) is True
    # Another process that has got the same number.
    assert is_running({**process, "process_start": process["process_start"] - 1}) is False
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_running(process) is False  # ended, though its parent has not asked for its status
    child.wait()
    child.stdout.close()
    assert is_running(process) is False
