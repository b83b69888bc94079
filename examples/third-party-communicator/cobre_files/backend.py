"""What cobre has to know of the backend ``files``; light: the transport is imported when it is used."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cobre.comm.environment import BACKEND_VARIABLE, number
from cobre.comm.errors import MissingConfiguration
from cobre.comm.registry import Backend, Seat, Traits, Transport
from cobre.errors import Problem, ValidationError

if TYPE_CHECKING:
    from cobre_files.communicator import FilesCommunicator

_PREFIX = "cobre-files-"


@dataclass(frozen=True)
class FilesConfig:
    """How one rank finds the others.

    Attributes
    ----------
    directory
        The same on all ranks, and of no other job; made if it is missing, removed by the last rank.
    rank, size
        This process's rank, and how many there are.
    connect_timeout_s
        How long ranks look for each other.
    timeout_s
        How long a collective waits for a rank that is alive.
    """

    directory: str
    rank: int
    size: int
    connect_timeout_s: float = 60.0
    timeout_s: float = 3600.0


class FilesTransport(Transport):
    """A new directory, removed with whatever is in it when the job has ended."""

    backend = "files"

    def __init__(self, size: int, timeout_s: float | None = None) -> None:
        super().__init__(size, timeout_s)
        self._directory = tempfile.mkdtemp(prefix=_PREFIX)

    def config(self, rank: int) -> FilesConfig:
        """Return a rank's configuration."""
        return FilesConfig(self._directory, rank, self.size, self.connect_timeout_s, self.timeout_s)

    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables from which a rank makes the same configuration."""
        return {
            BACKEND_VARIABLE: self.backend,
            "COBRE_FILES_DIRECTORY": self._directory,
            "COBRE_FILES_RANK": str(rank),
            "COBRE_FILES_SIZE": str(self.size),
            "COBRE_FILES_CONNECT_TIMEOUT_MS": str(round(1000 * self.connect_timeout_s)),
            "COBRE_FILES_TIMEOUT_SECS": str(self.timeout_s),
        }

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)  # the last rank may have removed it already


class FilesBackend(Backend):
    """Processes that share a directory."""

    name = "files"
    description = "processes that share a directory, through files"
    config_type = FilesConfig
    transport = FilesTransport
    traits = Traits(
        detects_silence=True, detects_divergence=True, detects_death=True, folds_in_rank_order=True
    )
    trigger = "COBRE_FILES_DIRECTORY"

    def obstacle(self) -> str | None:
        """Return what is missing."""
        return None if sys.platform == "linux" else "the files backend needs Linux"

    def configuration(self, environment: Mapping[str, str], *, automatic: bool = False) -> FilesConfig:
        """Return the configuration that the environment gives."""
        names = ["COBRE_FILES_DIRECTORY", "COBRE_FILES_RANK", "COBRE_FILES_SIZE"]
        missing = [name for name in names if not environment.get(name)]
        if missing:
            raise MissingConfiguration(self.name, missing)
        rank, size = (number(environment, name) for name in names[1:])
        if rank is None or size is None or not rank < size:
            given = ", ".join(f"{name}={environment[name]}" for name in names[1:])
            text = f"{given}: a rank is a whole number from 0 to one less than their number"
            raise ValidationError([Problem("OutOfRange", text, {"setting": names[1]})], "the environment")
        return FilesConfig(
            environment[names[0]],
            rank,
            size,
            _seconds(environment, "COBRE_FILES_CONNECT_TIMEOUT_MS", 1e-3, FilesConfig.connect_timeout_s),
            _seconds(environment, "COBRE_FILES_TIMEOUT_SECS", 1.0, FilesConfig.timeout_s),
        )

    def create(self, config: FilesConfig) -> FilesCommunicator:
        """Make this rank's communicator."""
        from cobre_files.communicator import FilesCommunicator

        return FilesCommunicator(config)

    def join(self, seat: Seat) -> FilesCommunicator:
        """Make the communicator of a seat, in a directory with the session's name."""
        return self.create(
            FilesConfig(str(_seat_directory(seat.session)), seat.rank, seat.size, 120.0, seat.timeout_s)
        )

    def leftovers(self, session: str) -> list[str]:
        """Return the directories of a session that are still there."""
        return [str(path) for path in _seat_directory("").parent.glob(f"{_PREFIX}{session}*")]


def _seat_directory(session: str) -> Path:
    return Path(tempfile.gettempdir()) / f"{_PREFIX}{session}"


def _seconds(environment: Mapping[str, str], name: str, unit: float, default: float) -> float:
    text = environment.get(name)
    try:
        return float(text) * unit if text else default
    except ValueError:
        problem = Problem("TypeMismatch", f"{name}={text} is no number", {"setting": name, "value": text})
        raise ValidationError([problem], "the environment") from None
