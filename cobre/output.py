"""Where a run writes, and whether it can, before it has worked for hours."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from cobre.errors import OutputError, Problem

_SUBDIRECTORIES = (
    *("training", "policy", "stochastic", "checkpoints"),
    *("simulation", "hydro_models", "generic_constraints"),
)
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def choose_output(case_path: Path, requested: Path | None) -> tuple[Path, list[Problem]]:
    """Return the output directory of a run and warnings about the choice; create nothing.

    The directory is the one asked for, else ``output`` in the case directory; where that cannot be written,
    ``<name of the case>-output`` in the current directory.

    Raises
    ------
    OutputError
        When the directory cannot be created or written.
    """
    if requested is not None:
        _require_writable(requested)
        return requested.absolute(), []
    preferred = case_path / "output"
    try:
        _require_writable(preferred)
    except OutputError as error:
        fallback = Path.cwd() / f"{case_path.resolve().name or 'case'}-output"
        _require_writable(fallback)
        warning = Problem(
            "OutputRedirected",
            f"{error.message}; results go to {fallback}",
            {"field": "output", "value": str(fallback)},
            "choose another directory: --output (output=)",
        )
        return fallback, [warning]
    return preferred.absolute(), []


def _require_writable(directory: Path) -> None:
    trouble = _why_not_writable(directory)
    for name in _SUBDIRECTORIES:
        # Where the directory itself is missing, so are these.
        if trouble is None and (directory / name).exists():
            trouble = _why_not_writable(directory / name)
    if trouble is not None:
        raise OutputError(
            "OutputNotWritable",
            f"the output directory {directory} cannot be written: {trouble}",
            {"field": "output", "value": str(directory)},
            "choose a directory that you may write to: --output (output=)",
        )


def _why_not_writable(directory: Path) -> str | None:
    """Try to make a file in the directory, or in the one that would hold it; leave nothing behind."""
    place = directory
    try:
        while not os.path.lexists(place):
            if place.parent == place:
                break
            place = place.parent
        if not place.is_dir():
            return f"{place} is {'not a directory' if place.exists() else 'a link to nothing'}"
        if not place.stat().st_mode & _ANY_WRITE:
            return f"{place} is read-only"  # the system lets root write there all the same
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        # Special file systems such as /proc refuse a new file as if its directory were missing.
        known = error.errno not in (None, errno.ENOENT)
        return f"{(error.strerror or str(error)) if known else 'no file can be made'} ({place})"
    return None
