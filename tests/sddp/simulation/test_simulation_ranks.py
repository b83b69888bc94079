"""A simulation on ranks and threads: the same bytes as on one, wherever its policy comes from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders.paths import TESTS
from simulation_jobs import identity, simulate_all, studies

from cobre.comm.launch import launch
from cobre.comm.mpi.launchers import find_mpi_launchers
from cobre.errors import SolverError, WorkerError
from cobre.policy import write_policy_directory
from cobre.sddp import Study, train
from cobre.sddp.ranks.cpus import rank_environment

TIMEOUT_S = 280
LAUNCHERS = {launcher.name: launcher for launcher in find_mpi_launchers()}


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Directories of the policies of all studies, side by side."""
    directory = tmp_path_factory.mktemp("policies")
    for number, case in enumerate(studies()):
        write_policy_directory(directory / f"policy-{number}", train(case).policy)
    return directory


@pytest.fixture(scope="module")
def alone(policies, tmp_path_factory):
    """What one rank with one thread makes of them."""
    output = tmp_path_factory.mktemp("alone")
    return [
        identity(Study(case).simulate(policies / f"policy-{number}", output=output / str(number)))
        for number, case in enumerate(studies())
    ]


def test_threads_change_no_bit(alone, policies, tmp_path):
    found = [
        identity(
            Study(case).simulate(policies / f"policy-{number}", threads=2, output=tmp_path / str(number))
        )
        for number, case in enumerate(studies())
    ]
    assert found == alone
    assert len(alone[0][2]) > 10  # tables that were compared


@pytest.mark.parametrize(("backend", "ranks", "threads"), [("shm", 3, 1), ("shm", 1, 2), ("tcp", 2, 1)])
def test_ranks_change_no_bit(alone, policies, tmp_path, backend, ranks, threads):
    paths = [policies / f"policy-{number}" for number in range(len(alone))]
    results = launch(
        simulate_all,
        ranks,
        backend=backend,
        args=(paths, threads, tmp_path),
        timeout_s=TIMEOUT_S,
        environment=rank_environment(threads),
    )
    assert all(found == alone for found in results)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_mpi_ranks_change_no_bit(alone, policies, name):
    for report in policies.glob("mpi-2-*"):
        shutil.rmtree(report) if report.is_dir() else report.unlink()
    if name not in LAUNCHERS:
        pytest.skip(f"no {name} found: pip install mpi4py {name}")
    launcher = LAUNCHERS[name]
    variables = {
        **launcher.environment(),
        **rank_environment(1),
        "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}",
    }
    program = [sys.executable, str(Path(__file__).with_name("simulation_jobs.py")), str(policies), "1"]
    done = subprocess.run(
        launcher.command(2, program), env=variables, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert json.loads((policies / f"mpi-2-rank-{rank}.json").read_text()) == alone


def test_started_ranks_take_a_policy_in_memory(alone, tmp_path):
    case = studies()[0]
    seen = []
    result = Study(case).simulate(
        train(case),
        ranks=2,
        output=tmp_path,
        on_progress=lambda progress: seen.append(progress.scenarios_done),
    )
    assert identity(result) == alone[0]
    assert seen == [0, result.scenarios]


def test_a_failure_is_the_same_on_all_ranks(tmp_path):
    from test_simulation import drained_later

    case, policy = drained_later()
    with pytest.raises(WorkerError) as caught:
        Study(case).simulate(policy, ranks=2, output=tmp_path, scenarios=200)
    error = caught.value.inner
    assert isinstance(error, SolverError)
    assert error.on_all_ranks
    assert "(simulation)" in error.message
    assert not (tmp_path / "simulation").exists()
