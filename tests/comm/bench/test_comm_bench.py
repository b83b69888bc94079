"""The bench measures what it says, and tells it in tables and in JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cobre.comm.bench import OPERATIONS, Operation, Result, as_json, as_text
from cobre.comm.bench.measure import measure_communicator, measure_memcpy
from cobre.comm.bench.run import bench_columns, measure_column, run_bench
from cobre.comm.errors import BackendNotAvailable
from cobre.comm.local import LocalCommunicator

KINDS = ("barrier", "allreduce", "broadcast", "allgatherv", "gather_shared")
FEW = [Operation(f"{kind} few", kind, 16, 20) for kind in KINDS]
TWO = [operation for operation in FEW if operation.kind in ("barrier", "gather_shared")]  # less to compile


def test_every_kind_of_operation_is_measured():
    with LocalCommunicator() as communicator:
        results = measure_communicator(communicator, FEW, 2, "local")
    assert [result.operation for result in results] == [operation.name for operation in FEW]
    assert all(0 < result.best_us <= result.median_us < 1e6 for result in results)
    copies = measure_memcpy(FEW, 3, 2)
    assert [copy.operation for copy in copies] == [operation.name for operation in FEW]
    assert all(copy.ranks == 3 for copy in copies)


@pytest.mark.parametrize("column", bench_columns())
def test_each_backend_is_measured_in_a_job_of_its_own(column):
    results = measure_column(column, 2, TWO, 1)
    wanted = [(column, operation.name) for operation in TWO]
    if column.startswith("mpi-"):
        wanted += [(f"{column} mpi4py", op.name) for op in TWO if op.kind != "gather_shared"]
    assert [(result.column, result.operation) for result in results] == wanted
    assert all(result.ranks == 2 and result.median_us > 0 for result in results)


def test_a_backend_that_is_not_there_is_refused():
    with pytest.raises(BackendNotAvailable):
        run_bench([2], ["pigeon"])


def test_tables_show_times_and_ratios():
    results = [
        Result("shm", 2, "barrier", 0.5, 0.4),
        Result("mpi-mpich", 2, "barrier", 1.0, 0.9),
        Result("mpi-mpich mpi4py", 2, "barrier", 1.25, 1.0),
        Result("shm", 2, "allgatherv 1 MB", 250.0, 200.0),
        Result("memcpy", 2, "allgatherv 1 MB", 1234.5, 200.0),
    ]
    times, ratios, calls = as_text(results).split("\n\n")
    lines = [line.split() for line in times.splitlines()]
    assert lines[2] == ["barrier", "0.50", "1.00", "1.25", "-"]
    assert lines[3] == ["allgatherv", "1", "MB", "250.0", "-", "-", "1234"]
    assert ratios.splitlines()[2].split() == ["barrier", "2.00", "2.50"]
    assert calls.splitlines()[2].split() == ["barrier", "0.80"]
    document = json.loads(as_json(results, {"cpus": 2}))
    assert document["about"] == {"cpus": 2}
    assert document["results"][1]["median_us"] == 1.0


def test_a_gather_into_a_region_is_compared_with_plain_gathers_of_its_size():
    results = [
        Result("shm", 2, "allgatherv 1 MB", 200.0, 190.0),
        Result("shm", 2, "gather_shared 1 MB", 80.0, 70.0),
        Result("mpi-openmpi", 2, "allgatherv 1 MB", 240.0, 230.0),
        Result("mpi-openmpi", 2, "gather_shared 1 MB", 75.0, 70.0),
    ]
    _, ratios, regions = as_text(results).split("\n\n")
    assert [line.split()[-1] for line in ratios.splitlines()[2:]] == ["1.20", "0.94"]
    title, columns, *rows = regions.splitlines()
    assert title.startswith("2 ranks, allgatherv divided by shm's gather of that size into a region:")
    assert columns.split() == ["mpi-openmpi"]
    assert [row.split() for row in rows] == [["allgatherv", "1", "MB", "3.00"]]


def test_the_plan_has_the_sizes_that_people_compare():
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    for size in ("8 B", "64 KB", "1 MB", "16 MB"):
        assert {f"allgatherv {size}", f"gather_shared {size}"} <= set(names)
    assert next(op for op in OPERATIONS if op.name == "allgatherv 16 MB").bytes_per_rank == 16 << 20


def test_the_command_line_prints_json():
    done = subprocess.run(
        [sys.executable, "-m", "cobre.comm", "info", "--json"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    about = json.loads(done.stdout)
    assert about["auto"]["backend"] == "local"
    assert about["auto"]["reasons"]
    assert about["backends"]["local"] is True
    assert about["versions"]["numba"]
