"""Where compiled kernels of the package are kept on disk, and when they are stale.

Numba stamps a cached function with the file that defines it, so an edit of a callee in another file goes
unnoticed. Here all kernels of the package share one stamp, a digest over every source file, and one private
directory named after it. Functions of other packages keep Numba's own rules.

Cached kernels are pickles: who may write them may run code as the reader. The directory is therefore private
(mode 0700) and one that others own or may write to is refused.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from cobre.errors import CobreError

PACKAGE_DIRECTORY = Path(__file__).resolve().parent.parent
"""Directory of the ``cobre`` package; kernels defined below it use the package cache."""

CACHE_DIRECTORY_VARIABLE = "COBRE_CACHE_DIR"

_PRIVATE_MODE = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def source_digest(directory: Path) -> str:
    """Return a digest over every Python file below a directory: its relative path and its content.

    Parameters
    ----------
    directory
        The directory whose ``*.py`` files are read, at any depth.

    Returns
    -------
    str
        SHA-256 as 64 hexadecimal digits; independent of the directory's own location.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*.py"), key=lambda file: file.relative_to(directory).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(directory).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


@functools.cache
def package_stamp() -> str:
    """Return the digest over all sources of the package, read once per process."""
    return source_digest(PACKAGE_DIRECTORY)


def cache_directory() -> Path:
    """Return the private directory of the package's compiled kernels; create it where it is missing.

    The root is ``$COBRE_CACHE_DIR``; else ``$XDG_CACHE_HOME/cobre``; else ``~/.cache/cobre``. When one of the
    last two cannot be written, a directory of this user below the system's temporary directory takes its
    place. Below the root there is one directory for each package stamp and Python version.

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
    directory = root / f"{package_stamp()[:20]}-{abi}"
    directory.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
    require_private(directory)
    tempfile.TemporaryFile(dir=directory).close()
    return directory


def _require_trusted_root(root: Path) -> None:
    """Refuse a root in which others could swap our directory for theirs."""
    status = root.stat()
    if status.st_uid not in (os.getuid(), 0):
        raise _unsafe(root, f"it belongs to user id {status.st_uid}")
    if status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
        raise _unsafe(root, f"other users may write to it (mode {stat.S_IMODE(status.st_mode):04o})")


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
        f"the kernel cache {directory} is refused: {reason}",
        {"directory": str(directory), "reason": reason},
        f"make it yours alone (chmod 700), remove it, or set {CACHE_DIRECTORY_VARIABLE} to another directory",
    )


class PackageCacheLocator(caching._CacheLocator):  # type: ignore[misc]
    """Tells Numba where a kernel of the package is cached, and under which stamp."""

    def __init__(self, relative_path: Path, line: int) -> None:
        self._relative_path = relative_path
        self._line = line
        self._directory = cache_directory()

    def get_cache_path(self) -> str:
        """Return the package's cache directory."""
        return str(self._directory)

    def get_source_stamp(self) -> str:
        """Return the stamp of the whole package."""
        return package_stamp()

    def get_disambiguator(self) -> str:
        """Return sub-package path and line: Numba itself adds only the base name of the file."""
        return ".".join((*self._relative_path.with_suffix("").parts, str(self._line)))

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> PackageCacheLocator | None:
        """Return a locator for a function of the package, ``None`` for any other."""
        path = Path(py_file).resolve()
        if not path.is_relative_to(PACKAGE_DIRECTORY):
            return None
        return cls(path.relative_to(PACKAGE_DIRECTORY), py_func.__code__.co_firstlineno)


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
