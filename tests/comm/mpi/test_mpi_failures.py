"""How jobs of the mpi backend start and end: faults of one rank end the whole job, and nothing hangs."""

from __future__ import annotations

import subprocess
import sys

import mpi_jobs
import pytest
from mpi_jobs import IMPLEMENTATIONS, LAUNCHERS

from cobre.comm.mpi.launchers import MpiLauncher


@pytest.mark.parametrize("program", ["hook", "caught", "finalized", "mismatch"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_ends_well(implementation, program, tmp_path):  # MPI-03, MPI-06
    mpi_jobs.run(implementation, 2, program, tmp_path).all_ok(2)


@pytest.mark.parametrize(("program", "code"), [("abort", 7), ("exit_in_block", 3)])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_exit_code_of_one_rank_ends_the_job(implementation, program, code, tmp_path):  # COM-02
    job = mpi_jobs.run(implementation, 3, program, tmp_path)
    assert job.code == code
    assert program != "abort" or "last words" in job.output


@pytest.mark.parametrize("program", ["uncaught", "uncaught_in_block"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_an_uncaught_exception_of_one_rank_ends_the_job(implementation, program, tmp_path):
    job = mpi_jobs.run(implementation, 3, program, tmp_path)
    assert job.code not in (0, None)
    assert "ValueError: a fault of one rank" in job.errors


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_killed_rank_ends_the_job(implementation, tmp_path):
    assert mpi_jobs.run(implementation, 3, "killed", tmp_path).code not in (0, None)


@pytest.mark.skipif(len(LAUNCHERS) < 2, reason="needs MPICH and Open MPI")
def test_the_launcher_of_another_mpi_is_noticed(tmp_path):  # MPI-06: no N singletons
    mixed = MpiLauncher("mpich", LAUNCHERS["mpich"].program, LAUNCHERS["openmpi"].library)
    mpi_jobs.run("mpich", 2, "singletons", tmp_path, launcher=mixed).all_ok(2)


def test_no_mpi_library_is_told():
    code = """
import cobre.comm as comm
try:
    comm.create_communicator("mpi")
except comm.InitializationFailed as error:
    print(error)
"""
    pytest.importorskip("mpi4py")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"MPI4PY_LIBMPI": "/nonexistent/libmpi.so", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "the backend 'mpi' did not start" in done.stdout, done.stderr
