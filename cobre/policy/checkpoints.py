"""Checkpoints of a run: written whole, the last few kept, the newest intact one found again (CKP-01, CKP-02).

::

    <root>/   checkpoint-000010/  checkpoint-000020/  ...   latest -> checkpoint-000020

A checkpoint gets its name when all of it is on disk, so a killed writer leaves nothing but a hidden
directory that the next one removes. The newest is identified by a number in the manifest, not by a clock and
not by the iteration: a run that starts again in the same place counts iterations anew.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cobre.durable import output_errors, sync_directory
from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy.model import CheckpointData
from cobre.policy.store.directory import StoredDirectory, foreign_entries, remove_leftovers, write_directory
from cobre.policy.store.manifest import read_manifest

LATEST: Final = "latest"
_CHECKPOINT: Final = r"checkpoint-\d{6,}"
_NAME: Final = re.compile(rf"{_CHECKPOINT}\Z")
_LINK: Final = re.compile(r"\.latest\.[0-9a-f]{8}\.link\Z")
_NO_LOCKS: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


@dataclass(frozen=True)
class FoundCheckpoint:
    """The newest intact checkpoint, its files as they were read, and what was wrong with newer ones."""

    path: Path
    directory: StoredDirectory = field(compare=False, repr=False)
    warnings: tuple[Problem, ...] = ()


def write_checkpoint(root: Path, data: CheckpointData, keep_last: int = 3, *, compress: bool = True) -> Path:
    """Write ``root/checkpoint-NNNNNN``, let ``latest`` point to it, and remove old ones.

    Parameters
    ----------
    root
        Made if it is missing. What cobre did not write there is left alone.
    keep_last
        Checkpoints that stay, the new one among them; at least 1.

    Returns
    -------
    Path
        The new checkpoint; NNNNNN is its number of completed iterations.

    Raises
    ------
    OutputError
        When it cannot be written, something foreign has its name, or another process is writing there.
    """
    if keep_last < 1:
        raise ValueError(f"keep_last is {keep_last}, but the checkpoint just written always stays")
    target = root / f"checkpoint-{data.policy.completed_iterations:06d}"
    with output_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root):
            _check_latest(root)
            remove_leftovers(root, _CHECKPOINT)
            _remove_links(root)
            sequence = 1 + max((number for number, _ in _own_checkpoints(root)), default=0)
            write_directory(target, data, "checkpoint", sequence, compress)
            _point_to(root, target.name)
            for _, path in sorted(_own_checkpoints(root))[:-keep_last]:
                if path != target:
                    _remove(path)
    return target


def latest_checkpoint(root: Path) -> FoundCheckpoint | None:
    """Return the newest checkpoint whose files all match its manifest; ``None`` without any.

    Raises
    ------
    ValidationError
        When there are checkpoints, but none is intact.
    """
    numbered: list[tuple[int, Path, StoredDirectory]] = []
    unreadable: list[Problem] = []
    for path in _named(root):
        try:
            directory = StoredDirectory(path, verify=False)
            numbered.append((directory.manifest.sequence, path, directory))
        except ValidationError as error:
            unreadable += error.problems
    damages: list[Problem] = []
    for _, path, directory in sorted(numbered, key=lambda entry: entry[:2], reverse=True):
        try:
            directory.keep()
        except ValidationError as error:
            directory.release()
            damages += error.problems
        else:
            warnings = tuple(_skipped(problem) for problem in (*damages, *unreadable))
            return FoundCheckpoint(path, directory, warnings)
    if damages or unreadable:
        raise ValidationError(
            [*damages, *unreadable], source=f"the checkpoints in {root}, none of which is intact"
        )
    return None


def _skipped(problem: Problem) -> Problem:
    return Problem(
        problem.kind,
        f"a damaged checkpoint is passed over: {problem.message}",
        problem.context,
        "remove it; the disk may be failing",
    )


def _named(root: Path) -> list[Path]:
    """Return the directories that have the name of a checkpoint."""
    try:
        entries = sorted(root.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [path for path in entries if _NAME.match(path.name) and path.is_dir() and not path.is_symlink()]


def _own_checkpoints(root: Path) -> list[tuple[int, Path]]:
    """Return sequence numbers and paths of what this module wrote, damaged files or not."""
    found = []
    for path in _named(root):
        with contextlib.suppress(ValidationError):  # Not readable, so perhaps not ours: it is left alone.
            manifest = read_manifest(path, verify=False)
            if manifest.kind == "checkpoint" and not foreign_entries(path):
                found.append((manifest.sequence, path))
    return found


def _check_latest(root: Path) -> None:
    link = root / LATEST
    if os.path.lexists(link) and not link.is_symlink():
        raise OutputError(
            "OutputNotWritable",
            f"{link} is not a symbolic link, and checkpoints need that name",
            {"file": str(link)},
            "move it away, or choose another directory",
        )


def _point_to(root: Path, name: str) -> None:
    temporary = root / f".{LATEST}.{secrets.token_hex(4)}.link"
    temporary.symlink_to(name)
    temporary.replace(root / LATEST)
    sync_directory(root)


def _remove(path: Path) -> None:
    """Remove a checkpoint; no name ever refers to a partial one."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.removed")
    path.rename(hidden)
    sync_directory(path.parent)
    shutil.rmtree(hidden)


def _remove_links(root: Path) -> None:
    for path in root.iterdir():
        if _LINK.match(path.name) and path.is_symlink():
            path.unlink()


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Keep other writers out; the system ends the lock with the process, however that ends."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise OutputError(
                    "OutputNotWritable",
                    f"another process is writing checkpoints to {root}",
                    {"file": str(root)},
                    "let each run write to an output directory of its own",
                ) from error
            if error.errno not in _NO_LOCKS:  # Some network file systems have no locks on directories.
                raise
        yield
    finally:
        os.close(descriptor)
