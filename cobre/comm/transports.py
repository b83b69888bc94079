"""What the ranks of one job need to find each other, made and freed by the process that starts them.

Names and secrets are fresh for every job (10.6). They reach the ranks through a pipe or their environment,
never through arguments, which every user of the machine can read.
"""

from __future__ import annotations

import os
import secrets
import socket
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from cobre.comm.config import NONCE_BYTES, ShmConfig, TcpConfig
from cobre.comm.environment import BACKEND_VARIABLE, SHM_TRIGGER, TCP_TRIGGER, launch_pace, launch_timeouts
from cobre.comm.errors import BackendNotAvailable, InitializationFailed, InvalidBackend

if TYPE_CHECKING:
    from typing_extensions import Self

LAUNCHABLE_BACKENDS: Final = ("shm", "tcp")
"""Backends whose ranks the launchers can start; those of mpi are started by mpiexec or srun."""

_CONNECT_TIMEOUT_S: Final = 300.0
"""How long ranks look for each other: long, since the launcher sees those that end before they join."""

_SEGMENT_DIRECTORY: Final = "/dev/shm"
_NAME_BYTES: Final = 8
_TOKEN_BYTES: Final = 32
_LOOPBACK: Final = "127.0.0.1"


class Transport(ABC):
    """The common ground of one job's ranks; a context manager that frees it.

    Parameters
    ----------
    size
        Number of ranks.
    timeout_s
        How long a collective may wait for a rank that is alive; ``None`` for what this process's environment
        says, or the default.
    """

    backend: ClassVar[str]

    def __init__(self, size: int, timeout_s: float | None = None) -> None:
        self.size = size
        self.connect_timeout_s, default_s = launch_timeouts(self.backend, _CONNECT_TIMEOUT_S)
        self.timeout_s = default_s if timeout_s is None else timeout_s

    @abstractmethod
    def config(self, rank: int) -> ShmConfig | TcpConfig:
        """Return a rank's configuration."""

    @abstractmethod
    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables from which a rank makes the same configuration."""

    def descriptors(self, rank: int) -> tuple[int, ...]:
        """Return the descriptors that a rank has to inherit."""
        return ()

    def started(self) -> None:  # noqa: B027  (most transports have nothing to do)
        """Free what only the ranks need, once they have it."""

    @abstractmethod
    def close(self) -> None:
        """Free everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class ShmTransport(Transport):
    """The file of the control segment, and the nonce that tells this job's from others'.

    The file has no name: ranks open it through this process. So nothing is left behind however the job ends.
    """

    backend = "shm"

    def __init__(self, size: int, timeout_s: float | None = None) -> None:
        super().__init__(size, timeout_s)
        self.name = f"/cobre_job_{secrets.token_hex(_NAME_BYTES)}"
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            self._file = os.open(_SEGMENT_DIRECTORY, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            story = f"{_SEGMENT_DIRECTORY}, where shared memory is made, cannot be used: {error.strerror}"
            raise InitializationFailed(
                self.backend,
                story,
                error.errno or 0,
                setting=_SEGMENT_DIRECTORY,
                suggestion="mount a tmpfs there (docker run --shm-size ...), or use the backend tcp",
            ) from error
        self._segment = f"/proc/{os.getpid()}/fd/{self._file}"

    def config(self, rank: int) -> ShmConfig:
        """Return a rank's configuration."""
        return ShmConfig(
            self.name,
            rank,
            self.size,
            connect_timeout_s=self.connect_timeout_s,
            timeout_s=self.timeout_s,
            nonce=self._nonce,
            segment=self._segment,
        )

    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables from which a rank makes the same configuration."""
        return {
            BACKEND_VARIABLE: self.backend,
            SHM_TRIGGER: self.name,
            "COBRE_SHM_RANK": str(rank),
            "COBRE_SHM_SIZE": str(self.size),
            "COBRE_SHM_NONCE": self._nonce.hex(),
            "COBRE_SHM_SEGMENT": self._segment,
            "COBRE_SHM_CONNECT_TIMEOUT_MS": _milliseconds(self.connect_timeout_s),
            "COBRE_SHM_TIMEOUT_SECS": str(self.timeout_s),
        }

    def close(self) -> None:
        """Close the file, whose memory goes with the last rank."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class TcpTransport(Transport):
    """A listening socket on the loopback interface that rank 0 takes over, and the ranks' token."""

    backend = "tcp"

    def __init__(self, size: int, timeout_s: float | None = None) -> None:
        super().__init__(size, timeout_s)
        self._heartbeat_s, self._silence_s = launch_pace()
        self._token = secrets.token_urlsafe(_TOKEN_BYTES).encode()  # text, as it may go into a variable
        self._listener = socket.create_server((_LOOPBACK, 0), backlog=max(16, 2 * size))
        self._port = int(self._listener.getsockname()[1])

    def config(self, rank: int) -> TcpConfig:
        """Return a rank's configuration."""
        return TcpConfig(
            _LOOPBACK,
            rank,
            self.size,
            port=self._port,
            token=self._token,
            connect_timeout_s=self.connect_timeout_s,
            timeout_s=self.timeout_s,
            listener_fd=self._listener.fileno() if rank == 0 else None,
            heartbeat_s=self._heartbeat_s,
            silence_s=self._silence_s,
        )

    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables from which a rank makes the same configuration."""
        variables = {
            BACKEND_VARIABLE: self.backend,
            TCP_TRIGGER: _LOOPBACK,
            "COBRE_TCP_PORT": str(self._port),
            "COBRE_TCP_RANK": str(rank),
            "COBRE_TCP_SIZE": str(self.size),
            "COBRE_TCP_TOKEN": self._token.decode(),
            "COBRE_TCP_CONNECT_TIMEOUT_MS": _milliseconds(self.connect_timeout_s),
            "COBRE_TCP_TIMEOUT_SECS": str(self.timeout_s),
            "COBRE_TCP_HEARTBEAT_SECS": str(self._heartbeat_s),
            "COBRE_TCP_SILENCE_SECS": str(self._silence_s),
        }
        if rank == 0:
            variables["COBRE_TCP_LISTENER_FD"] = str(self._listener.fileno())
        return variables

    def descriptors(self, rank: int) -> tuple[int, ...]:
        """Return the listening socket for rank 0."""
        return (self._listener.fileno(),) if rank == 0 else ()

    def started(self) -> None:
        """Close the parent's copy of the listening socket, so that it dies with rank 0."""
        self._listener.close()

    def close(self) -> None:
        """Close the listening socket."""
        self._listener.close()


def make_transport(backend: str, size: int, timeout_s: float | None = None) -> Transport:
    """Make what the ranks of a job need.

    Raises
    ------
    InvalidBackend
        When no backend has this name.
    BackendNotAvailable
        When the backend's ranks cannot be started by this launcher, or not on this platform.
    """
    from cobre.comm.selection import KNOWN_BACKENDS, available_backends

    if backend not in KNOWN_BACKENDS:
        raise InvalidBackend(backend, KNOWN_BACKENDS)
    usable = [name for name in available_backends() if name in LAUNCHABLE_BACKENDS]
    if backend not in usable:
        message = f"the launcher cannot start ranks of the backend {backend!r}"
        suggestion = f"choose one of: {', '.join(usable)}" if usable else "run one process, on 'local'"
        if backend == "mpi":
            suggestion = "start MPI jobs with mpiexec or srun"
        raise BackendNotAvailable(backend, usable, message=message, suggestion=suggestion)
    return ShmTransport(size, timeout_s) if backend == "shm" else TcpTransport(size, timeout_s)


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
