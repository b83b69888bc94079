"""The build backend: that of setuptools, with archives whose bytes depend on the files alone.

setuptools puts the time of the build, the builder's name and the modes of a checkout (its umask) into a
source archive, and those modes into a wheel. Here every member has one date, one of two modes and no owner,
and members are sorted by name. The date is ``SOURCE_DATE_EPOCH`` where it is set, else 1 January 2020.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401 (hooks that builders look for here)
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_DEFAULT_DATE_S = 1_577_836_800
"""1 January 2020: later than what a zip archive can hold at least, 1980."""


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Build the source archive; return its name."""
    with _dated():
        name = build_meta.build_sdist(sdist_directory, config_settings)
        _normalise_tar(Path(sdist_directory) / name, _date_s())
    return name


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel; return its name."""
    with _dated():
        name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
        _normalise_zip(Path(wheel_directory) / name, _date_s())
    return name


class _dated:  # noqa: N801 (used as a function)
    """Sets ``SOURCE_DATE_EPOCH`` for what setuptools writes."""

    def __enter__(self) -> None:
        self._before = os.environ.get("SOURCE_DATE_EPOCH")
        os.environ["SOURCE_DATE_EPOCH"] = str(_date_s())

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            del os.environ["SOURCE_DATE_EPOCH"]


def _date_s() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _DEFAULT_DATE_S)


def _mode(mode: int) -> int:
    return 0o755 if mode & 0o100 else 0o644


def _normalise_tar(path: Path, date_s: int) -> None:
    packed = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.size, clean.type, clean.linkname = member.size, member.type, member.linkname
            clean.mtime, clean.mode = date_s, _mode(member.mode)
            new.addfile(clean, old.extractfile(member) if member.isfile() else None)
    # The header of gzip has a date too, and would have the name of the file.
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, date_s) as compressed:
        compressed.write(packed.getvalue())


def _normalise_zip(path: Path, date_s: int) -> None:
    date = time.gmtime(max(date_s, 315_532_800))[:6]
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w") as new:
        # RECORD stays last, as the specification of wheels recommends.
        for member in sorted(
            old.infolist(), key=lambda member: (member.filename.endswith("/RECORD"), member.filename)
        ):
            clean = zipfile.ZipInfo(member.filename, date)
            clean.compress_type = zipfile.ZIP_DEFLATED
            clean.create_system = 3
            clean.external_attr = (0o100000 | _mode(member.external_attr >> 16)) << 16
            new.writestr(clean, old.read(member))
    path.write_bytes(packed.getvalue())
