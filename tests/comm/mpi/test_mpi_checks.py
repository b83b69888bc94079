"""The mpi backend on MPICH and Open MPI: what the conformance suite does not reach, and what jobs leave."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

import mpi_jobs
import pytest
from mpi_jobs import IMPLEMENTATIONS, LAUNCHERS

from cobre.comm.mpi.region import _populate

LIBRARIES = {"mpich": "MPICH", "openmpi": "Open MPI"}


# COM-10 to COM-31, COM-43, COM-45, ERR-04, MPI-01 to MPI-05, SHR-03 to SHR-11
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_checks(implementation, ranks, tmp_path):
    job = mpi_jobs.run(implementation, ranks, "checks", tmp_path)
    job.all_ok(ranks)
    assert all(report["library"].startswith(LIBRARIES[implementation]) for report in job.reports.values())
    assert job.leftovers == []


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_regions_that_nobody_closes(implementation, tmp_path):  # SHR-10
    job = mpi_jobs.run(implementation, 2, "unclosed", tmp_path)
    job.all_ok(2)
    assert job.leftovers == []


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


@pytest.mark.skipif(sys.platform != "linux", reason="MADV_POPULATE_WRITE is of Linux")
def test_memory_that_cannot_be_had_is_noticed(tmp_path):  # AllocationFailed instead of SIGBUS
    path = tmp_path / "file"
    path.write_bytes(bytes(4 * mmap.PAGESIZE))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4 * mmap.PAGESIZE) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert _populate(address + 100, 3 * mmap.PAGESIZE)
        os.truncate(path, mmap.PAGESIZE)
        assert _populate(address, mmap.PAGESIZE)
        assert not _populate(address, 2 * mmap.PAGESIZE)
