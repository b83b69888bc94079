"""The suite itself: a faulty backend of another package is found out, and nothing takes the report down."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from cobre.comm.conformance import Traits, run_conformance
from cobre.comm.conformance.catalogue import check_named

HERE = str(Path(__file__).parent)
NAMES = ("barrier_repeated", "allgatherv_heterogeneous", "rank_in_range")


@pytest.fixture(autouse=True)
def _ranks_find_the_modules_beside_this_one(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", HERE)


def outcome(factory: str, *names: str):
    checks = [check_named(name) for name in names]
    report = run_conformance(factory, 1, traits=Traits(), checks=checks)
    return report, {row.check.name: row.passed for row in report.rows if row.face == 0}


def test_a_sound_backend_of_another_package_passes():
    report, rows = outcome("faulty_backends:make_sound", *NAMES)
    assert rows == dict.fromkeys(NAMES, True)
    assert report.passed
    assert report.lines()[-1].endswith("6 rows, 0 failed")


def test_a_crash_fails_one_row_only():
    report, rows = outcome("faulty_backends:make_crashing", *NAMES)
    assert rows == {"barrier_repeated": False, "allgatherv_heterogeneous": True, "rank_in_range": True}
    row = report.row("barrier_repeated")
    assert row.outcomes[0].died
    assert "rank 0: died" in row.fault


def test_wrong_bytes_are_found():
    report, rows = outcome("faulty_backends:make_forgetful", *NAMES)
    assert rows == {"barrier_repeated": True, "allgatherv_heterogeneous": False, "rank_in_range": True}
    assert "instead of" in report.row("allgatherv_heterogeneous").fault
    assert not report.passed


def test_a_communicator_that_cannot_be_made_is_a_fault():
    report, rows = outcome("faulty_backends:make_nothing", "rank_in_range")
    assert rows == {"rank_in_range": False}
    assert "no communicator today" in report.row("rank_in_range").fault


def test_a_factory_that_is_not_there_is_told():
    with pytest.raises(RuntimeError, match="surely_not_there"):
        outcome("surely_not_there:make", "rank_in_range")


def test_from_the_command_line():
    def run(backend: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cobre.comm", "conformance", "--backend", backend, "-n", "1"]
        return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)

    good = run("local")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "0 failed" in good.stdout
    unknown = run("pigeon")
    assert unknown.returncode == 4
    assert "there is no backend 'pigeon'; known: mpi, tcp, shm, local" in unknown.stderr


ORPHANS = """
import threading, time
from cobre.comm.conformance import ConformanceJob
from cobre.comm.conformance import targets_named
job = ConformanceJob(targets_named("local")[0], 1)
threading.Thread(target=job.call, args=("launch_functions:never_end",), daemon=True).start()
while not job._links:
    time.sleep(0.01)
print(job._processes[0].pid, flush=True)
time.sleep(100)
"""


def test_busy_ranks_end_when_the_job_is_killed():
    driver = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        rank = Path(f"/proc/{int(driver.stdout.readline())}/exe")
        assert rank.exists()
        driver.kill()
        driver.wait(30)
        deadline = time.monotonic() + 30
        while rank.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not rank.exists()
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
