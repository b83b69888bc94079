"""Jobs: turns, what became of them, and what a forged record cannot do."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cobre.errors import CobreError
from cobre.mcp.contract import Settings
from cobre.mcp.jobs.runner import command_of
from cobre.mcp.jobs.state import read_request, read_state
from cobre.mcp.jobs.store import JobStore, take_turn, write_result
from cobre.mcp.paths import Root

Make = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    (tmp_path / ".cobre-jobs").mkdir()
    return JobStore(Settings(Root.at(tmp_path), allow_write=True))


@pytest.fixture
def make(store: JobStore) -> Iterator[Make]:
    """Writes the directory of a job, alive as if a process held its lock."""
    held = []

    def write(number: int, *, alive: bool = True, log: list[Any] | None = None, **request: Any) -> Path:
        kind = request.setdefault("kind", "train")
        place = store.directory / f"{kind}-{number}"
        (place / "case").mkdir(parents=True)
        document = {
            "id": place.name,
            "number": number,
            "case": "plan",
            "output": f"out-{number}",
            "options": {},
        }
        document |= {"submitted_at": "now", **request}
        (place / "job.json").write_text(json.dumps(document))
        if log is not None:
            (place / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
        descriptor = os.open(place / "alive", os.O_RDWR | os.O_CREAT)
        if alive:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        held.append(descriptor)
        return place

    yield write
    for descriptor in held:
        os.close(descriptor)


def test_jobs_take_turns_in_order(make: Make) -> None:
    first, second, third = make(1), make(2), make(3)
    assert not take_turn(third)
    assert not take_turn(second)
    assert take_turn(first)
    assert not take_turn(second)
    write_result(first, 0, None, {"success": True})
    assert not take_turn(third)
    assert take_turn(second)


def test_lost_jobs_hold_nobody_up(make: Make) -> None:
    lost = make(1, alive=False)
    running = make(2, alive=False)
    (running / "started.json").write_text("{}")
    assert take_turn(make(3))
    assert read_state(lost).status == "interrupted"
    assert read_state(running).status == "interrupted"


def test_several_run_where_they_may_but_never_into_one_output(make: Make) -> None:
    two = {"max_jobs": 2}
    first, second, third = make(1, output="o", **two), make(2, output="o", **two), make(3, **two)
    assert take_turn(first)
    assert not take_turn(second)
    assert not take_turn(third)  # it waits behind the second
    write_result(first, 0, None, {"success": True})
    assert take_turn(second)
    assert take_turn(third)


@pytest.mark.parametrize(
    ("exit_code", "stopped_by", "envelope", "status"),
    [
        (0, None, {"success": True, "data": {"status": "complete"}}, "complete"),
        (0, "cancel", {"success": True, "summary": {"status": "partial"}}, "cancelled"),
        (0, "time", {"success": True, "summary": {"status": "partial"}}, "stopped"),
        (0, "signal", {"success": True, "summary": {"status": "partial"}}, "stopped"),
        (0, "cancel", {"success": True, "summary": {"status": "complete"}}, "complete"),
        (143, "cancel", {"success": False, "errors": []}, "cancelled"),
        (-9, "cancel", None, "cancelled"),
        (None, "cancel", None, "cancelled"),
        (3, None, {"success": False, "errors": []}, "failed"),
        (-9, None, None, "failed"),
    ],
)
def test_how_a_job_ended(
    make: Make, exit_code: int | None, stopped_by: str | None, envelope: Any, status: str
) -> None:
    place = make(1)
    write_result(place, exit_code, stopped_by, envelope)
    state = read_state(place)
    assert (state.status, state.ended, state.exit_code) == (status, True, exit_code)


def test_a_result_counts_also_where_the_process_was_lost_behind_it(make: Make) -> None:
    log = [{"type": "started"}, {"type": "result", "success": True, "data": {"status": "complete"}}]
    place = make(1, alive=False, log=log)
    assert read_state(place).status == "complete"


def test_progress_never_decreases_from_training_to_simulation(make: Make) -> None:
    lines = [{"type": "started", "max_iterations": 20}]
    place = make(1, kind="run", log=lines)
    seen = [read_state(place).progress.done]
    for line in (
        {"type": "progress", "iteration": 1, "lower_bound": 5.0},
        {"type": "progress", "iteration": 9, "lower_bound": 6.0},
        {"type": "terminated"},
        {"type": "started", "phase": "simulation", "scenarios": 30},
        {"type": "progress", "phase": "simulation", "scenarios_done": 0, "scenarios": 30},
        {"type": "progress", "phase": "simulation", "scenarios_done": 30, "scenarios": 30},
    ):
        with (place / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        seen.append(read_state(place).progress.done)
    assert seen == sorted(seen)
    assert seen[-1] == 50
    assert read_state(place).progress.message() == "30 of 30 scenarios"


def test_lines_that_are_cut_off_or_long_are_passed_over(make: Make) -> None:
    lines = [{"type": "progress", "iteration": 3}, {"type": "terminated", "long": "x" * 200_000}]
    place = make(1, log=lines)
    with (place / "log.jsonl").open("a") as log:
        log.write('{"type": "progress", "iteration"')
    assert read_state(place).progress.done == 3


def test_a_queue_has_an_end(store: JobStore, make: Make) -> None:
    make(1)
    full = JobStore(Settings(store.settings.root, allow_write=True, max_waiting=1))
    with pytest.raises(CobreError) as caught:
        full.submit("train", "plan", {"config.json": b"{}"}, "out", {})
    assert caught.value.kind == "QueueFull"
    assert sorted(path.name for path in store.directory.iterdir()) == ["queue.lock", "train-1"]


@pytest.mark.parametrize(
    "job", ["", "train-0", "train-9", "../plan", "train-1/../train-1", "train-1\n", "x" * 80]
)
def test_unknown_jobs(store: JobStore, make: Make, job: str) -> None:
    make(1)
    with pytest.raises(CobreError) as caught:
        store.state(job)
    assert caught.value.kind == "UnknownJob"


def test_a_cancelled_job_that_waits_is_not_started_again(store: JobStore, make: Make) -> None:
    make(1, alive=False)
    assert store.cancel("train-1", at_once=False).status == "cancelled"
    assert store.revive() == []
    assert store.state("train-1").status == "cancelled"


def test_a_job_that_waited_when_its_process_was_lost_is_taken_up_again(store: JobStore, make: Make) -> None:
    """By a real process; its case is empty, so that the command ends soon."""
    make(1, alive=False)
    assert store.revive() == ["train-1"]
    assert store.revive() == []  # another server finds it alive
    deadline = time.monotonic() + 120.0
    while not (state := store.state("train-1")).ended and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (state.status, state.exit_code) == ("failed", 3)
    assert state.result is not None
    assert state.result["errors"][0]["kind"] == "FileNotFound"
    assert (store.settings.root.path / "out-1").is_dir()


@pytest.mark.parametrize(
    "options",
    [
        {"output": "/etc"},
        {"iterations": "5 --output /etc"},
        {"iterations": True},
        {"policy": "../elsewhere"},
        {"warm_start": "/etc"},
        {"lp_engine": "highs; rm"},
        {"-x": True},
    ],
)
def test_a_forged_job_runs_nothing_else(store: JobStore, make: Make, options: dict[str, Any]) -> None:
    place = make(1, options=options)
    with pytest.raises(CobreError):
        command_of(read_request(place), place, store.settings.root)


@pytest.mark.parametrize("output", ["../out", "/etc", "link", ".cobre-jobs/train-1"])
def test_the_output_of_a_job_stays_below_the_root(store: JobStore, make: Make, output: str) -> None:
    place = make(1, output=output)
    outside = store.settings.root.path.with_name("outside")
    (store.settings.root.path / "link").symlink_to(outside)
    with pytest.raises(CobreError):
        command_of(read_request(place), place, store.settings.root)
    assert not outside.exists()


@pytest.mark.parametrize("name", ["messages.log", "log.jsonl", "result.json", "started.json", "alive"])
def test_links_in_the_place_of_files_of_a_job_are_not_followed(
    store: JobStore, make: Make, name: str
) -> None:
    """Such as a directory that somebody has packed may hold."""
    secret = store.settings.root.path.with_name(f"secret-{name}")
    secret.write_text(
        json.dumps({"type": "progress", "iteration": 7, "at": "secret", "envelope": {"x": 1}}) + "\n"
    )
    before = secret.read_text()
    place = make(1, alive=False)
    (place / name).unlink(missing_ok=True)
    (place / name).symlink_to(secret)
    assert "secret" not in str(store.state("train-1"))
    assert store.state("train-1").progress.done == 0
    if name in ("messages.log", "alive"):
        assert store.revive() == []
    assert secret.read_text() == before


def test_jobs_that_are_links_are_none(store: JobStore, make: Make) -> None:
    place = make(1, alive=False)
    outside = store.settings.root.path.with_name("jobs-outside")
    place.rename(outside)
    place.symlink_to(outside)
    assert store.states() == []
    assert store.revive() == []
    place.unlink()
    (store.directory / "queue.lock").unlink()
    store.directory.rmdir()
    store.directory.symlink_to(outside.parent)
    assert store.states() == []
    assert store.revive() == []
    with pytest.raises(CobreError) as caught:
        store.submit("train", "plan", {}, "out", {})
    assert caught.value.kind == "PathOutsideRoot"


def test_a_damaged_record_is_reported(store: JobStore, make: Make) -> None:
    (make(1, alive=False) / "job.json").write_text('{"id": "train-1"}')
    make(2)
    assert [state.request.number for state in store.states()] == [2]
    assert store.revive() == []
    with pytest.raises(CobreError) as caught:
        store.state("train-1")
    assert caught.value.kind == "JobDamaged"
