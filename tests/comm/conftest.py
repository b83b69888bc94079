"""Tests that start many processes are a run of their own: ``pytest -m ranks``."""

import pytest

_SEVERAL_RANKS = {
    "test_comm_bench",
    "test_comm_launch",
    "test_comm_launch_command",
    "test_conformance_mpi",
    "test_conformance_random",
    "test_conformance_runner",
    "test_conformance_same",
    "test_conformance_shm",
    "test_conformance_tcp",
    "test_mpi_collectives",
    "test_mpi_failures",
    "test_mpi_regions",
    "test_shm_collectives",
    "test_shm_failures",
    "test_shm_segment",
    "test_tcp_collectives",
    "test_tcp_failures",
    "test_tcp_hostile",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in _SEVERAL_RANKS:
            item.add_marker(pytest.mark.ranks)
