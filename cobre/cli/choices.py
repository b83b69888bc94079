"""Values that options choose from."""

from __future__ import annotations

import enum


class LaunchBackend(str, enum.Enum):
    """Backends whose ranks ``cobre launch`` can start."""

    SHM = "shm"
    TCP = "tcp"


class TrainBackend(str, enum.Enum):
    """How the ranks of ``cobre train`` talk."""

    AUTO = "auto"
    SHM = "shm"
    TCP = "tcp"
    MPI = "mpi"
    LOCAL = "local"


class KernelBackend(str, enum.Enum):
    """Backends whose kernels ``cobre warmup`` can compile."""

    LOCAL = "local"
    SHM = "shm"
    TCP = "tcp"
    MPI = "mpi"


class PolicyFormat(str, enum.Enum):
    """Formats of policy directories."""

    COBRE = "cobre"
    COBRE_RS = "cobre-rs"


class TemplateName(str, enum.Enum):
    """Cases that ``cobre init`` can write."""

    TOY = "toy"
    CASCADE = "cascade"
    FOUR_REGION = "four-region"
    WEEKLY = "weekly"
    SYNTHETIC = "synthetic"
