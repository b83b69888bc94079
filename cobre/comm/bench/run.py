"""Measuring all backends, one job after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from cobre.comm.bench.measure import measure_communicator, measure_memcpy
from cobre.comm.bench.plan import OPERATIONS, Operation, Result
from cobre.comm.errors import BackendNotAvailable
from cobre.comm.launch import launch
from cobre.comm.launch.processes import bind_to_parent, end_processes, scrubbed
from cobre.comm.mpi.launchers import MpiLauncher, find_mpi_launchers
from cobre.comm.registry import launchable_backends
from cobre.comm.selection import available_backends
from cobre.errors import CobreError

_JOB_SECONDS: Final = 900.0


def bench_columns() -> list[str]:
    """Return what can be measured here: what can be launched, and mpi once for each implementation found."""
    columns = sorted(launchable_backends())
    if "mpi" in available_backends():
        columns += [f"mpi-{launcher.name}" for launcher in find_mpi_launchers()]
    return columns


def run_bench(
    ranks: Sequence[int],
    columns: Sequence[str] | None = None,
    *,
    operations: Sequence[Operation] = OPERATIONS,
    repetitions: int = 5,
    on_job: Callable[[str, int], None] | None = None,
) -> list[Result]:
    """Measure backends of this machine.

    Parameters
    ----------
    ranks
        Numbers of ranks.
    columns
        Backends; default all that are there. ``"mpi"`` means all MPI implementations, ``"mpi-openmpi"`` one.
    operations
        What to measure.
    repetitions
        How often each is repeated.
    on_job
        Called with backend and ranks before each job starts.

    Returns
    -------
    list of Result
        Those of an MPI implementation come twice: from nopython code, and by mpi4py from Python.

    Raises
    ------
    BackendNotAvailable
        When a backend is not there.
    """
    chosen = _expand(columns)
    results: list[Result] = []
    for size in ranks:
        for column in chosen:
            if on_job is not None:
                on_job(column, size)
            results += measure_column(column, size, operations, repetitions)
        results += measure_memcpy(operations, size, repetitions)
    return results


def measure_column(
    column: str, ranks: int, operations: Sequence[Operation], repetitions: int
) -> list[Result]:
    """Measure one of :func:`bench_columns` in a job of its own; figures of mpi4py follow those of MPI."""
    if column.startswith("mpi-"):
        return _measure_mpi(column, ranks, operations, repetitions)
    arguments = (tuple(operations), repetitions, column)
    results: list[Result] = launch(
        measure_communicator, ranks, backend=column, args=arguments, timeout_s=_JOB_SECONDS
    )[0]
    return results


def _expand(columns: Sequence[str] | None) -> list[str]:
    available = bench_columns()
    if columns is None:
        return available
    chosen: list[str] = []
    for column in columns:
        matching = [name for name in available if column in (name, name.partition("-")[0])]
        if not matching:
            raise BackendNotAvailable(column, available)
        chosen += [name for name in matching if name not in chosen]
    return chosen


def _measure_mpi(column: str, ranks: int, operations: Sequence[Operation], repetitions: int) -> list[Result]:
    launcher = next(item for item in find_mpi_launchers() if f"mpi-{item.name}" == column)
    with tempfile.TemporaryDirectory(prefix="cobre-bench-") as directory:
        output = Path(directory) / "results.json"
        program = [
            *(sys.executable, "-m", "cobre.comm.bench.mpi_rank"),
            *("--name", column),
            *("--operations", json.dumps([asdict(operation) for operation in operations])),
            *("--repetitions", str(repetitions)),
            *("--output", str(output)),
        ]
        process = subprocess.Popen(
            _bound(launcher, ranks, program),
            env=scrubbed(launcher.environment()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(bind_to_parent, os.getpid(), signal.SIGTERM),
        )
        try:
            text, _ = process.communicate(timeout=_JOB_SECONDS)
        finally:
            end_processes([process])
        if process.returncode != 0 or not output.exists():
            raise CobreError(
                "WorkerFailed",
                f"the measurement of {column} on {ranks} ranks ended with exit code {process.returncode}",
                {"output": text.decode(errors="replace")[-2000:]},
            )
        return [Result(**result) for result in json.loads(output.read_text())]


def _bound(launcher: MpiLauncher, ranks: int, program: Sequence[str]) -> list[str]:
    """Bind ranks to cores where there are enough, as our own launcher does."""
    command = launcher.command(ranks, program)
    if ranks > len(os.sched_getaffinity(0)):
        return command
    option = "--bind-to" if launcher.name == "openmpi" else "-bind-to"
    return [command[0], option, "core", *command[1:]]
