"""Which backend to use, and making its communicator (SEL-01 to SEL-07)."""

from __future__ import annotations

import enum
from collections.abc import Callable

from cobre.comm.contract import Communicator
from cobre.comm.environment import BACKEND_VARIABLE, detect_launch, requested_backend
from cobre.comm.errors import BackendNotAvailable, InvalidBackend


class BackendKind(str, enum.Enum):
    """Names of backends; ``AUTO`` leaves the choice to the environment."""

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"


KNOWN_BACKENDS: tuple[str, ...] = tuple(kind.value for kind in BackendKind if kind is not BackendKind.AUTO)


def _make_local() -> Communicator:
    from cobre.comm.local import LocalCommunicator  # its kernels are decorated, so not at import

    return LocalCommunicator()


_FACTORIES: dict[str, Callable[[], Communicator]] = {"local": _make_local}


def available_backends() -> tuple[str, ...]:
    """Return the backends that can be used here, in the order of preference."""
    return tuple(name for name in KNOWN_BACKENDS if name in _FACTORIES)


def create_communicator(backend: str | BackendKind = "auto") -> Communicator:
    """Make the communicator of this process.

    Parameters
    ----------
    backend
        ``"local"`` or another name in lower case: used or refused, never replaced, whatever the environment
        says. ``"auto"``: what ``COBRE_COMM_BACKEND`` asks for; when that is unset, empty or ``auto`` itself,
        the first backend that fits the way this process was launched.

    Returns
    -------
    Communicator
        A context manager; close it at the end.

    Raises
    ------
    InvalidBackend
        When no backend has this name.
    BackendNotAvailable
        When the backend is known but not available; also when ``auto`` finds only ``local`` although this
        process was launched as one of several, each of which would run the whole job by itself.
    """
    name = backend.value if isinstance(backend, BackendKind) else backend
    if name == BackendKind.AUTO.value:
        name = requested_backend()
    if name == BackendKind.AUTO.value:
        name = _automatic()
    if name not in KNOWN_BACKENDS:
        raise InvalidBackend(str(name), KNOWN_BACKENDS)
    if name not in _FACTORIES:
        raise BackendNotAvailable(name, available_backends())
    return _FACTORIES[name]()


def _automatic() -> str:
    launch = detect_launch()
    if launch is not None and launch.backend not in _FACTORIES:
        raise BackendNotAvailable(
            launch.backend,
            available_backends(),
            message=f"{launch.variable}={launch.size} says that this process is one of {launch.size}, but "
            f"the backend {launch.backend!r} that joins them is not available: each would run the whole job",
            suggestion=f"launch one process, or set {BACKEND_VARIABLE}=local if independent runs are meant",
        )
    return launch.backend if launch is not None else BackendKind.LOCAL.value
