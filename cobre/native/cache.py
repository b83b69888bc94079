"""Where compiled kernels of the package are kept on disk, and when they are stale.

Each kernel carries the stamp of the sources it is made of (:mod:`cobre.native.stamp`), in the name of its
files too: several versions of the package share one private directory without overwriting each other.
Functions of other packages keep Numba's own rules.

Cached kernels are pickles: who may write them may run code as the reader. The directory is therefore private
(mode 0700); one that others own or may write to is refused, and so is one below a directory in which others
could exchange it. Every file starts with a digest of the rest. What is damaged is dropped, with a warning
that names the file, and compiled anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from cobre.errors import CobreError
from cobre.native.stamp import PACKAGE_DIRECTORY, kernel_stamp

CACHE_DIRECTORY_VARIABLE = "COBRE_CACHE_DIR"

_LAYOUT = "v2"
"""Of the files; versions of the package that write them otherwise never read each other's."""

_PRIVATE_MODE = 0o700
_DIGEST_BYTES = hashlib.sha256().digest_size
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_directory() -> Path:
    """Return the private directory of the package's compiled kernels; create it where it is missing.

    The root is ``$COBRE_CACHE_DIR``; else ``$XDG_CACHE_HOME/cobre``; else ``~/.cache/cobre``. When one of the
    last two cannot be written, a directory of this user below the system's temporary directory takes its
    place. Below the root there is one directory for each version of Python, Numba and the files' layout.

    Returns
    -------
    Path
        An existing directory with mode 0700 that belongs to this user.

    Raises
    ------
    CobreError
        Kind ``UnsafeCacheDirectory`` when others own the directory or may write to it, and
        ``CacheUnavailable`` when no directory can be written.
    """
    return _resolve(
        os.environ.get(CACHE_DIRECTORY_VARIABLE, ""),
        os.environ.get("XDG_CACHE_HOME", ""),
    )


@functools.cache
def _resolve(chosen: str, xdg: str) -> Path:
    if chosen:
        try:
            return _prepare(Path(chosen).expanduser().absolute())
        except OSError as error:
            raise _unavailable(f"{CACHE_DIRECTORY_VARIABLE}={chosen}", error) from error
    try:
        default = Path(xdg) / "cobre" if os.path.isabs(xdg) else Path.home() / ".cache" / "cobre"  # noqa: PTH117
        return _prepare(default)
    except (OSError, RuntimeError):  # not writable, or this user has no home
        fallback = Path(tempfile.gettempdir()) / f"cobre-{os.getuid()}"
    try:
        fallback.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
        require_private(fallback)
        return _prepare(fallback)
    except OSError as error:
        raise _unavailable(str(fallback), error) from error


def _unavailable(place: str, error: OSError) -> CobreError:
    return CobreError(
        "CacheUnavailable",
        f"compiled kernels cannot be cached: {place} is not writable ({error.strerror or error})",
        {"directory": place},
        f"set {CACHE_DIRECTORY_VARIABLE} to a directory of your own",
    )


def _prepare(root: Path) -> Path:
    root.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)
    _require_trusted_root(root)
    abi = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    directory = root / f"{abi}-numba{numba.__version__}-{_LAYOUT}"
    directory.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
    require_private(directory)
    tempfile.TemporaryFile(dir=directory).close()
    return directory


def _require_trusted_root(root: Path) -> None:
    """Refuse a root in which others could exchange our directory for theirs, or above which anybody could.

    Group-writable directories above the root are accepted: with private groups a home has that mode.
    """
    resolved = root.resolve()
    if resolved.stat().st_uid not in (os.getuid(), 0):
        raise _unsafe(root, f"it belongs to user id {resolved.stat().st_uid}")
    for directory in (resolved, *resolved.parents):
        mode = directory.stat().st_mode
        forbidden = _WRITABLE_BY_OTHERS if directory == resolved else stat.S_IWOTH
        if mode & forbidden and not mode & stat.S_ISVTX:
            raise _unsafe(directory, f"other users may write to it (mode {stat.S_IMODE(mode):04o})")


def require_private(directory: Path) -> None:
    """Check that a directory is this user's alone to write.

    Raises
    ------
    CobreError
        Kind ``UnsafeCacheDirectory`` when it is not a plain directory, belongs to another user, or may be
        written by its group or by others.
    """
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise _unsafe(directory, "it is not a directory")
    if status.st_uid != os.getuid():
        raise _unsafe(directory, f"it belongs to user id {status.st_uid}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise _unsafe(directory, f"other users may write to it (mode {stat.S_IMODE(status.st_mode):04o})")


def _unsafe(directory: Path, reason: str) -> CobreError:
    return CobreError(
        "UnsafeCacheDirectory",
        f"the kernel cache may not lie in {directory}: {reason}",
        {"directory": str(directory), "reason": reason},
        f"make it yours alone (chmod 700), remove it, or set {CACHE_DIRECTORY_VARIABLE} to another directory",
    )


class PackageCacheLocator(caching._CacheLocator):  # type: ignore[misc]
    """Gives Numba the cache directory of a kernel of the package, and its stamp."""

    def __init__(self, file: Path, line: int) -> None:
        self._module = ".".join(file.relative_to(PACKAGE_DIRECTORY).with_suffix("").parts)
        self._line = line
        self._stamp = kernel_stamp(file)
        self._directory = cache_directory()

    def get_cache_path(self) -> str:
        """Return the package's cache directory."""
        return str(self._directory)

    def get_source_stamp(self) -> str:
        """Return the stamp of the sources that the kernel is made of."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return module, line and stamp: Numba itself adds only the base name of the file."""
        return f"{self._module}.{self._line}.{self._stamp[:16]}"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> PackageCacheLocator | None:
        """Return a locator for a function of the package, ``None`` for any other."""
        path = Path(py_file).resolve()
        if not path.is_relative_to(PACKAGE_DIRECTORY):
            return None
        return cls(path, py_func.__code__.co_firstlineno)


@dataclass(frozen=True)
class _ForeignSignature:
    """A key of an index that names a type of a package which this process cannot import."""

    pickled: bytes


def _signature(pickled: bytes) -> Any:
    """Return a key of an index; one over a missing third-party type stays as it is, and matches nothing."""
    try:
        return pickle.loads(pickled)
    except (ImportError, AttributeError):
        return _ForeignSignature(pickled)


class CheckedCacheFile(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files; those of the package carry a digest, which is checked before unpickling.

    Each key of an index is a pickle of its own: kernels over a type of a third party, which another process
    may not have installed, lie beside those that every process can load. Files of other packages are read and
    written as Numba does.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._checked = isinstance(source_stamp, str) and Path(cache_path) == _resolved_directory()

    def _load_index(self) -> Any:
        if not self._checked:
            return super()._load_index()
        index = self._read(self._index_path)
        if index is None or index[:2] != (self._version, self._source_stamp):
            return {}
        return {_signature(key): name for key, name in index[2]}

    def _save_index(self, overloads: Any) -> None:
        if not self._checked:
            super()._save_index(overloads)
            return
        entries = [
            (key.pickled if isinstance(key, _ForeignSignature) else self._dump(key), name)
            for key, name in overloads.items()
        ]
        self._write(self._index_path, (self._version, self._source_stamp, entries))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name)) if self._checked else super()._load_data(name)

    def _save_data(self, name: str, data: Any) -> None:
        if self._checked:
            self._write(self._data_path(name), data)
        else:
            super()._save_data(name, data)

    def _write(self, path: str, content: Any) -> None:
        payload = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(payload).digest())
            file.write(payload)

    def _read(self, path: str) -> Any:
        """Return what was written, ``None`` where there is no file or a damaged one, which is removed."""
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            return None
        digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() == digest:
            return pickle.loads(payload)
        Path(path).unlink(missing_ok=True)
        warnings.warn(
            f"a file of the kernel cache was damaged and is removed; its kernels are compiled anew: {path}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _resolved_directory() -> Path | None:
    try:
        return cache_directory()
    except CobreError:
        return None


def install_cache_locator() -> None:
    """Make Numba cache the package's kernels by these rules; harmless when called again.

    The locator goes into Numba's default list rather than only into ``numba.config``, because Numba resets
    its whole configuration whenever a ``NUMBA_*`` environment variable changes.
    """
    defaults = caching.CacheImpl._locator_classes
    if PackageCacheLocator not in defaults:
        defaults.insert(0, PackageCacheLocator)
    name = f"{PackageCacheLocator.__module__}.{PackageCacheLocator.__qualname__}"
    override = numba.config.CACHE_LOCATOR_CLASSES
    if override and name not in override.split(","):
        numba.config.CACHE_LOCATOR_CLASSES = f"{name},{override}"
    caching.IndexDataCacheFile = CheckedCacheFile
