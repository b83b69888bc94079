"""The backends that come with the package, described, and what launchers make for their ranks.

Nothing of a backend itself is imported here: a program uses one, and each has kernels to declare.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cobre._distribution import install_hint
from cobre.comm.config import NONCE_BYTES, ShmConfig, TcpConfig
from cobre.comm.environment import (
    BACKEND_VARIABLE,
    SHM_TRIGGER,
    TCP_TRIGGER,
    detect_mpi,
    launch_pace,
    shm_config,
    tcp_config,
)
from cobre.comm.errors import InitializationFailed
from cobre.comm.registry import Backend, Membership, Seat, Traits, Transport

if TYPE_CHECKING:
    from cobre.comm.contract import Communicator

_SEGMENT_DIRECTORY: Final = "/dev/shm"
_NAME_BYTES: Final = 8
_TOKEN_BYTES: Final = 32
_LOOPBACK: Final = "127.0.0.1"
_SEAT_CONNECT_S: Final = 120.0


class LocalBackend(Backend):
    """One process by itself."""

    name = "local"
    description = "one process with itself"
    how_to_start = "run one process"
    traits = Traits(folds_in_rank_order=True)
    sizes = (1,)

    def membership(self, environment: Mapping[str, str]) -> Membership | None:
        """Return ``None``: it is what is left when nothing joins this process with others."""
        return None

    def create(self, config: Any) -> Communicator:
        """Make the communicator."""
        from cobre.comm.local import LocalCommunicator

        return LocalCommunicator()


class MpiBackend(Backend):
    """Processes of an MPI job."""

    name = "mpi"
    description = "processes of an MPI job"
    how_to_start = "start MPI jobs with mpiexec or srun"
    traits = Traits(shares_regions=True, folds_in_rank_order=True)
    priority = 10

    def obstacle(self) -> str | None:
        """Return what is missing."""
        if os.name != "posix":
            return "the mpi backend needs POSIX"
        # importing mpi4py.MPI would start MPI: only look whether it is there (SEL-07)
        if importlib.util.find_spec("mpi4py") is None:
            return f"mpi4py is not installed ({install_hint('mpi')})"
        return None

    def membership(self, environment: Mapping[str, str]) -> Membership | None:
        """Return what a launcher of MPI jobs has set (SEL-03)."""
        launch = detect_mpi(environment)
        if launch is None:
            return None
        return Membership(f"launched as one of an MPI job ({launch.evidence})", launch.size)

    def absence(self) -> str:
        """Return that no launcher of MPI jobs was seen."""
        return "this process was not started by a launcher of MPI jobs"

    def create(self, config: Any) -> Communicator:
        """Make the communicator."""
        from cobre.comm.mpi.communicator import MpiCommunicator

        return MpiCommunicator()


class ShmTransport(Transport):
    """The file of the control segment, and the nonce that identifies this job.

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


class ShmBackend(Backend):
    """Processes of one machine, through shared memory."""

    name = "shm"
    description = "processes of one machine, through shared memory"
    config_type = ShmConfig
    transport = ShmTransport
    traits = Traits(True, True, True, True, True)
    priority = 30
    trigger = SHM_TRIGGER

    def obstacle(self) -> str | None:
        """Return what is missing."""
        return _not_linux(self.name)

    def configuration(self, environment: Mapping[str, str], *, automatic: bool = False) -> ShmConfig:
        """Return the configuration that the environment gives."""
        return shm_config(environment)

    def create(self, config: ShmConfig) -> Communicator:
        """Make this rank's communicator."""
        from cobre.comm.shm.communicator import ShmCommunicator

        return ShmCommunicator(config)

    def join(self, seat: Seat) -> Communicator:
        """Make the communicator of a seat, in a segment with the session's name."""
        config = ShmConfig(
            f"/{_session_name(seat.session)}",
            seat.rank,
            seat.size,
            connect_timeout_s=_SEAT_CONNECT_S,
            timeout_s=seat.timeout_s,
            nonce=seat.session.encode()[:NONCE_BYTES].ljust(NONCE_BYTES, b"-"),
        )
        return self.create(config)

    def leftovers(self, session: str) -> list[str]:
        """Return the segments of a session."""
        return sorted(path.name for path in Path(_SEGMENT_DIRECTORY).glob(f"{_session_name(session)}*"))


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


class TcpBackend(Backend):
    """Processes anywhere, through sockets to rank 0."""

    name = "tcp"
    description = "processes anywhere, through sockets to rank 0"
    config_type = TcpConfig
    transport = TcpTransport
    traits = Traits(
        detects_silence=True, detects_divergence=True, detects_death=True, folds_in_rank_order=True
    )
    priority = 20
    trigger = TCP_TRIGGER

    def obstacle(self) -> str | None:
        """Return what is missing."""
        return _not_linux(self.name)

    def configuration(self, environment: Mapping[str, str], *, automatic: bool = False) -> TcpConfig:
        """Return the configuration that the environment gives."""
        return tcp_config(environment, automatic=automatic)

    def create(self, config: TcpConfig) -> Communicator:
        """Make this rank's communicator."""
        from cobre.comm.tcp.communicator import TcpCommunicator

        return TcpCommunicator(config)

    def with_descriptors(self, config: TcpConfig, descriptors: Sequence[int]) -> TcpConfig:
        """Return a configuration of rank 0 with the listening socket as it is called here."""
        return replace(config, listener_fd=descriptors[0])

    def join(self, seat: Seat) -> Communicator:
        """Make the communicator of a seat, on the loopback interface."""
        listener = socket.create_server((_LOOPBACK, 0), backlog=2 * seat.size) if seat.rank == 0 else None
        port = seat.publish(None if listener is None else listener.getsockname()[1])
        config = TcpConfig(
            _LOOPBACK,
            seat.rank,
            seat.size,
            port=port,
            connect_timeout_s=_SEAT_CONNECT_S,
            timeout_s=seat.timeout_s,
            token=seat.session.encode(),
            listener_fd=None if listener is None else listener.detach(),
        )
        return self.create(config)


def _not_linux(name: str) -> str | None:
    return None if sys.platform == "linux" else f"the {name} backend needs Linux"


def _session_name(session: str) -> str:
    return f"cobre_check_{session}"


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
