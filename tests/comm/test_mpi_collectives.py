"""The mpi backend's collectives and errors, on MPICH and Open MPI."""

from __future__ import annotations

import mpi_jobs
import pytest
from mpi_jobs import IMPLEMENTATIONS, LAUNCHERS

LIBRARIES = {"mpich": "MPICH", "openmpi": "Open MPI"}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_collectives(implementation, ranks, tmp_path):  # COM-10 to COM-31, COM-45, MPI-01, MPI-02
    job = mpi_jobs.run(implementation, ranks, "collectives", tmp_path)
    job.all_ok(ranks)
    assert all(report["library"].startswith(LIBRARIES[implementation]) for report in job.reports.values())


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_errors_of_mpi(implementation, tmp_path):  # ERR-04, MPI-05, COM-43
    mpi_jobs.run(implementation, 2, "errors", tmp_path).all_ok(2)


@pytest.mark.skipif(len(LAUNCHERS) < 2, reason="needs MPICH and Open MPI")
def test_both_share_compiled_code(tmp_path):
    variables = {"COBRE_CACHE_DIR": str(tmp_path / "cache")}
    stats = []
    for implementation in ("mpich", "openmpi"):
        folder = tmp_path / implementation
        folder.mkdir()
        job = mpi_jobs.run(implementation, 1, "cache", folder, environment=variables)
        job.all_ok(1)
        stats.append(job.reports[0]["stats"])
    assert stats == [[[0, 1], [0, 1]], [[1, 0], [1, 0]]]
