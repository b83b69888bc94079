"""A policy directory on disk, read with suspicion."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy.foreign.decode import decode_manifest, decode_pool, decode_priced_date
from cobre.policy.foreign.flatbuffer import MalformedError
from cobre.policy.foreign.records import Manifest, Pool

_Record = TypeVar("_Record")


MANIFEST: Final = "manifest.bin"
_OWN_NAMES: Final = frozenset({MANIFEST, "cuts", "basis", "states"})


def check_replaceable(path: Path) -> None:
    """Refuse a place that holds anything but a policy directory of this format.

    Raises
    ------
    OutputError
        Naming what is there.
    """
    if not os.path.lexists(path):
        return
    is_directory = path.is_dir() and not path.is_symlink()
    names = {entry.name for entry in path.iterdir()} if is_directory else {path.name}
    foreign = sorted(names - _OWN_NAMES) or (sorted(names) if names and MANIFEST not in names else [])
    if foreign:
        raise OutputError(
            "OutputNotWritable",
            f"{path} holds what is not of a policy directory of cobre-rs, and writing would remove it: "
            f"{', '.join(foreign[:5])}",
            {"file": str(path)},
            "choose another directory, or move these files away",
        )


class PolicyDirectory:
    """A stored policy; the manifest is read at once, pools when they are asked for, each file once.

    Raises
    ------
    ValidationError
        Here and in every method: when a file is missing, cannot be read or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._contents: dict[Path, bytes] = {}
        self.manifest: Manifest = self._decoded(path / MANIFEST, decode_manifest)
        files = len(list((path / "cuts").glob("*.bin")))
        if files != self.manifest.num_pools:
            raise _problem(
                path / MANIFEST,
                f"states {self.manifest.num_pools} pools of cuts, but {path / 'cuts'} holds {files}",
            )

    def pool(self, pool_id: int) -> Pool:
        """Read the cuts of a pool."""
        path = self._file(pool_id)
        pool = self._decoded(path, decode_pool)
        if pool.pool_id != pool_id:
            raise _problem(path, f"states that it holds pool {pool.pool_id}")
        return pool

    def priced_dates(self) -> list[datetime.date | None]:
        """Return for each pool the date of the states that it values, where it is known."""
        return [
            self._decoded(self._file(pool_id), decode_priced_date)
            for pool_id in range(self.manifest.num_pools)
        ]

    def content(self, pool_id: int) -> bytes:
        """Return the bytes of a pool's file."""
        return self._decoded(self._file(pool_id), bytes)

    def _file(self, pool_id: int) -> Path:
        return self.path / "cuts" / f"{pool_id:03d}.bin"

    def _decoded(self, path: Path, decode: Callable[[bytes], _Record]) -> _Record:
        try:
            if path not in self._contents:
                self._contents[path] = path.read_bytes()
            return decode(self._contents[path])
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
