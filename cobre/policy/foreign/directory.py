"""A policy directory on disk, read with suspicion."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cobre.errors import Problem, ValidationError
from cobre.policy.foreign.decode import decode_manifest, decode_pool, decode_priced_date
from cobre.policy.foreign.flatbuffer import MalformedError
from cobre.policy.foreign.records import Manifest, Pool

_Record = TypeVar("_Record")


class PolicyDirectory:
    """A stored policy; the manifest is read at once, pools when they are asked for.

    Raises
    ------
    ValidationError
        Here and in every method: when a file is missing, cannot be read or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = self._decoded(path / "manifest.bin", decode_manifest)
        files = len(list((path / "cuts").glob("*.bin")))
        if files != self.manifest.num_pools:
            raise _problem(
                path / "manifest.bin",
                f"speaks of {self.manifest.num_pools} pools of cuts, but {path / 'cuts'} holds {files}",
            )

    def pool(self, pool_id: int) -> Pool:
        """Read the cuts of a pool."""
        path = self._file(pool_id)
        pool = self._decoded(path, decode_pool)
        if pool.pool_id != pool_id:
            raise _problem(path, f"says that it holds pool {pool.pool_id}")
        return pool

    def priced_dates(self) -> list[datetime.date | None]:
        """Return for each pool the date of the states that it values, where it is told."""
        return [
            self._decoded(self._file(pool_id), decode_priced_date)
            for pool_id in range(self.manifest.num_pools)
        ]

    def _file(self, pool_id: int) -> Path:
        return self.path / "cuts" / f"{pool_id:03d}.bin"

    def _decoded(self, path: Path, decode: Callable[[bytes], _Record]) -> _Record:
        try:
            return decode(path.read_bytes())
        except FileNotFoundError:
            raise _problem(path, "does not exist", "FileNotFound") from None
        except OSError as error:
            raise _problem(path, f"cannot be read: {error.strerror or error}", "IoError") from error
        except MalformedError as error:
            raise _problem(path, f"is damaged or not of this format: {error}") from error


def _problem(path: Path, what: str, kind: str = "ParseError") -> ValidationError:
    suggestion = "give a policy directory in format version 3 that was written completely, or write it again"
    return ValidationError(
        [Problem(kind, f"{path} {what}", {"file": str(path)}, suggestion)], source="the policy directory"
    )
