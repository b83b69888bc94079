"""``cobre launch`` and ``cobre clean-shm`` from the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_helpers import run

SCRIPT = """
import sys
import numpy as np
from cobre.comm import ReduceOp, create_communicator

with create_communicator() as comm:
    total = np.zeros(1, np.int64)
    comm.allreduce(np.array([comm.rank + 1], np.int64), total, ReduceOp.SUM)
    print(comm.backend, comm.size, total[0], *sys.argv[1:], flush=True)
"""


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_find_each_other(tmp_path: Path, backend: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    finished = run("launch", "-n", 2, "--backend", backend, "--", sys.executable, script, "--option")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [f"{backend} 2 3 --option"] * 2


def test_the_exit_code_of_the_first_failure_is_passed_on() -> None:
    finished = run("launch", "-n", 2, "--", sys.executable, "-c", "import sys; sys.exit(7)")
    assert finished.returncode == 7


def test_a_program_that_does_not_exist_is_refused() -> None:
    finished = run("launch", "-n", 2, "--", "no-such-program-at-all")
    assert finished.returncode != 0
    assert "no-such-program-at-all" in finished.stderr


@pytest.mark.usefixtures("only_cleaner_of_segments")
def test_clean_shm_says_what_it_did() -> None:
    finished = run("clean-shm")
    assert finished.returncode == 0
    assert finished.stdout


def test_ranks_must_be_positive() -> None:
    finished = run("launch", "-n", 0, "--", "true")
    assert finished.returncode == 1
    assert "-n" in finished.stderr
