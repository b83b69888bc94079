"""Communicators: one contract, a Python owner and a nopython kernel for each backend.

``create_communicator()`` makes one. Its owner raises :class:`CommError`; its ``kernel`` goes into nopython
code. :mod:`cobre.comm.contract` states what both promise, :mod:`cobre.comm.conformance` checks it.
"""

from cobre.comm.config import ShmConfig, TcpConfig
from cobre.comm.contract import (
    SUPPORTED_DTYPES,
    Communicator,
    HostRanks,
    MpiInfo,
    ReduceOp,
    SlurmInfo,
    Topology,
)
from cobre.comm.errors import (
    AllocationFailed,
    BackendError,
    BackendNotAvailable,
    CollectiveFailed,
    CommError,
    InitializationFailed,
    InvalidBackend,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    MissingConfiguration,
    RankLost,
)
from cobre.comm.selection import (
    BackendKind,
    Selection,
    available_backends,
    create_communicator,
    explain_selection,
)

__all__ = [
    "SUPPORTED_DTYPES",
    "AllocationFailed",
    "BackendError",
    "BackendKind",
    "BackendNotAvailable",
    "CollectiveFailed",
    "CommError",
    "Communicator",
    "HostRanks",
    "InitializationFailed",
    "InvalidBackend",
    "InvalidBufferSize",
    "InvalidCommunicator",
    "InvalidRoot",
    "MissingConfiguration",
    "MpiInfo",
    "RankLost",
    "ReduceOp",
    "Selection",
    "ShmConfig",
    "SlurmInfo",
    "TcpConfig",
    "Topology",
    "available_backends",
    "create_communicator",
    "explain_selection",
]
