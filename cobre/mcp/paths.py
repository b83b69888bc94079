"""Paths that stay below one root, whatever names, links and races there are.

A path is walked component by component, each opened relative to the descriptor of the one before and never
through a link; links are followed by hand, so that one that leads out of the root is refused and not opened.
What is returned is the descriptor that was checked, and never a name that could mean something else by then.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cobre.errors import CobreError

_MOST_LINKS: Final = 40
_MOST_CHARACTERS: Final = 1024
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
"""Not blocking, because opening a pipe would wait for a writer."""
MOST_BYTES: Final = 1 << 30
"""Largest file that is read."""
PRIVATE_DIRECTORY: Final = ".cobre-jobs"
"""Below the root: where jobs are kept; no tool writes there but those of jobs."""


def refused(kind: str, message: str, place: str, suggestion: str | None = None) -> CobreError:
    """Return the error of a path that is not usable; it names what the client gave, and nothing else."""
    return CobreError(kind, message, {"path": place[:200]}, suggestion)


def outside(place: str) -> CobreError:
    """Return the error of a path that leads out of the root."""
    return refused(
        "PathOutsideRoot",
        f"{place[:200]!r} leads out of the directory that this server works in",
        place,
        "give a path relative to it, without '..'; cobre_list shows what there is",
    )


def clean(place: str) -> str:
    """Return a relative path in its plain form, such as ``a/b`` for ``./a//b/``; ``.`` is the root.

    >>> clean("plans//four/"), clean("")
    ('plans/four', '.')

    Raises
    ------
    CobreError
        Kind ``PathOutsideRoot`` or ``InvalidPath``.
    """
    if "\0" in place or len(place) > _MOST_CHARACTERS or not _encodes(place):
        raise refused("InvalidPath", "a path must be a text of at most 1024 characters without NUL", place)
    parts = [part for part in place.split("/") if part not in ("", ".")]
    if place.startswith("/") or ".." in parts:
        raise outside(place)
    return "/".join(parts) or "."


def _encodes(place: str) -> bool:
    try:
        place.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class Root:
    """The directory that a server works in.

    Attributes
    ----------
    path
        Absolute, without links.
    device, inode
        Which directory it was when the server began; another one under its name is refused.
    """

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> Root:
        """Return the root at a path.

        Raises
        ------
        CobreError
            When it is no directory.
        """
        try:
            resolved = path.resolve(strict=True)
            status = resolved.stat()
        except (OSError, RuntimeError, ValueError) as error:
            raise CobreError(
                "InvalidRoot", f"{path} cannot be used: {error}", {"field": "root", "value": str(path)}
            ) from error
        if not stat.S_ISDIR(status.st_mode) or resolved == resolved.parent:
            raise CobreError(
                "InvalidRoot",
                f"{path} is "
                f"{'all of the file system' if stat.S_ISDIR(status.st_mode) else 'not a directory'}",
                {"field": "root", "value": str(path)},
                "give a directory that holds cases and results, and nothing else",
            )
        return cls(resolved, status.st_dev, status.st_ino)

    # -- opening

    @contextmanager
    def directory(self, place: str, *, create: bool = False) -> Iterator[int]:
        """Give the descriptor of a directory for the block.

        Parameters
        ----------
        place
            Relative path.
        create
            Make it, and what is missing above it.
        """
        descriptor = self._open(clean(place), place, os.O_DIRECTORY, create=create)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, place: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a regular file.

        Raises
        ------
        CobreError
            Kind ``FileNotFound``, ``PathOutsideRoot``, ``NotAFile`` or ``TooLarge``.
        """
        descriptor = self._open(clean(place), place, 0)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise refused("NotAFile", f"{place!r} is not a regular file", place)
            content = b""
            if status.st_size <= most:
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    content = file.read(most + 1)
        finally:
            os.close(descriptor)
        if max(status.st_size, len(content)) > most:
            raise refused("TooLarge", f"{place!r} has more than {most:,} bytes", place)
        return content

    def exists(self, place: str) -> bool:
        """Return whether there is a file or directory at a path that does not lead out."""
        try:
            os.close(self._open(clean(place), place, 0))
        except CobreError as error:
            if error.kind == "FileNotFound":
                return False
            raise
        return True

    def inside(self, place: str) -> str:
        """Return the plain relative path of what a path with ``..``, or an absolute one, leads to.

        Raises
        ------
        CobreError
            When it leads out of the root, or nothing is there.
        """
        descriptor = self._open(place, place, 0)
        try:
            return self._name_of(descriptor, place)
        finally:
            os.close(descriptor)

    def _open(self, path: str, shown: str, flags: int, *, create: bool = False) -> int:
        pending = deque(self._parts(path, shown))
        opened = [self._open_root()]
        links = 0
        try:
            while pending:
                name = pending.popleft()
                if name in ("", "."):
                    continue
                if name == "..":
                    if len(opened) == 1:
                        raise outside(shown)
                    os.close(opened.pop())
                    continue
                wanted = flags if not pending else os.O_DIRECTORY
                try:
                    if create:
                        _make(name, opened[-1])
                    opened.append(os.open(name, _READ | wanted, dir_fd=opened[-1]))
                except OSError as error:
                    target = _link_target(name, opened[-1])
                    links += 1
                    if target is None or links > _MOST_LINKS:
                        raise _failure(shown, error) from error
                    if target.startswith("/"):
                        while len(opened) > 1:
                            os.close(opened.pop())
                    pending.extendleft(reversed(self._parts(target, shown)))
            self._name_of(opened[-1], shown)
            return os.dup(opened[-1])
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _parts(self, path: str, shown: str) -> list[str]:
        """Return the components of a path: of an absolute one those below the root."""
        if not path.startswith("/"):
            return path.split("/")
        own = f"{self.path}/"
        if not f"{path}/".startswith(own):
            raise outside(shown)
        return path[len(own) :].split("/")

    def _open_root(self) -> int:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise CobreError("RootGone", "the directory that this server works in is gone") from error
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != (self.device, self.inode):
            os.close(descriptor)
            raise CobreError("RootGone", "the directory that this server works in was replaced by another")
        return descriptor

    def _name_of(self, descriptor: int, shown: str) -> str:
        """Return where an open file is by now, relative to the root; refuse one that is not below it."""
        name = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (a text, also of what was removed)
        if name == str(self.path):
            return "."
        if not name.startswith(f"{self.path}/"):
            raise outside(shown)
        return name[len(str(self.path)) + 1 :]

    # -- whole trees

    def check_tree(self, place: str, descriptor: int) -> None:
        """Refuse a tree that holds a link that leads out of the root, or a pipe or device.

        Parameters
        ----------
        place
            What the tree is called.
        descriptor
            Of its directory.
        """
        base = self._name_of(descriptor, place)
        for above, _, _, within in os.fwalk(".", dir_fd=descriptor):
            with os.scandir(within) as entries:
                for entry in entries:
                    name = os.path.normpath(f"{base}/{above}/{entry.name}")
                    if entry.is_symlink():
                        self._check_link(name)
                    elif not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
                        raise refused("NotAFile", f"{name!r} is neither a file nor a directory", name)

    def _check_link(self, name: str) -> None:
        try:
            os.close(self._open(name, name, 0))
        except CobreError as error:
            if error.kind != "FileNotFound":
                raise


def by_descriptor(descriptor: int) -> Path:
    """Return a path that leads to an open directory, whatever its name is by then."""
    return Path(f"/proc/self/fd/{descriptor}")


def _make(name: str, directory: int) -> None:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return


def _link_target(name: str, directory: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        return None


def _failure(shown: str, error: OSError) -> CobreError:
    if isinstance(error, FileNotFoundError):
        return refused(
            "FileNotFound", f"there is no {shown!r}", shown, "cobre_list shows what there is below the root"
        )
    return refused("CannotOpen", f"{shown!r} cannot be opened: {error.strerror or error}", shown)
