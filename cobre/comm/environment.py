"""Everything that communicators read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from cobre.comm.contract import SlurmInfo

BACKEND_VARIABLE = "COBRE_COMM_BACKEND"

# Where launchers say how many processes they have started, and which backend would join these.
_SIZE_VARIABLES: tuple[tuple[str, str], ...] = (
    ("OMPI_COMM_WORLD_SIZE", "mpi"),
    ("PMI_SIZE", "mpi"),
    ("MPI_LOCALNRANKS", "mpi"),
    ("SLURM_STEP_NUM_TASKS", "mpi"),  # the only size that srun gives with PMIx, or without any MPI plug-in
    ("COBRE_TCP_SIZE", "tcp"),
    ("COBRE_SHM_SIZE", "shm"),
)


@dataclass(frozen=True)
class Launch:
    """A launcher's statement that this process is one of several.

    Attributes
    ----------
    variable
        The environment variable that says so.
    size
        Number of processes, more than 1.
    backend
        The backend that would join them.
    """

    variable: str
    size: int
    backend: str


def requested_backend(environment: Mapping[str, str] | None = None) -> str:
    """Return the backend that the environment asks for; ``"auto"`` when it is silent or empty (SEL-01)."""
    return _environment(environment).get(BACKEND_VARIABLE, "") or "auto"


def detect_launch(environment: Mapping[str, str] | None = None) -> Launch | None:
    """Return the first statement that more than one process was launched, or ``None``."""
    variables = _environment(environment)
    for name, backend in _SIZE_VARIABLES:
        size = _number(variables, name)
        if size is not None and size > 1:
            return Launch(name, size, backend)
    return None


def slurm_info(environment: Mapping[str, str] | None = None) -> SlurmInfo | None:
    """Return the Slurm job that this process belongs to, or ``None``."""
    variables = _environment(environment)
    job_id = variables.get("SLURM_JOB_ID")
    if not job_id:
        return None
    return SlurmInfo(job_id, variables.get("SLURM_JOB_NODELIST"), _number(variables, "SLURM_CPUS_PER_TASK"))


def _environment(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment


def _number(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None
