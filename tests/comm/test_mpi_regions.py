"""Shared regions of the mpi backend."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

import mpi_jobs
import pytest
from mpi_jobs import IMPLEMENTATIONS

from cobre.comm.mpi_region import _populate


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_regions(implementation, ranks, tmp_path):  # SHR-03 to SHR-11
    job = mpi_jobs.run(implementation, ranks, "regions", tmp_path)
    job.all_ok(ranks)
    assert job.leftovers == []


@pytest.mark.parametrize("program", ["different_regions", "unclosed"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_irregular_ends(implementation, program, tmp_path):  # SHR-10
    job = mpi_jobs.run(implementation, 2, program, tmp_path)
    job.all_ok(2)
    assert job.leftovers == []


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
