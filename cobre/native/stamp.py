"""Which source files a compiled kernel is made of, and a digest over them.

Numba watches only the file that defines a cached function, so an edit of a callee in another file goes
unnoticed. A kernel of the package is stamped with the digest over its *kernel sources*: its own module and,
repeatedly, every module of the package from which one of these imports, at the top level,

- anything of a module that works with Numba or defines tuples or enumerations, which kernels read by field;
- a constant (a name in capitals) of any module, since constants are compiled into the code.

A package that calls ``members_of`` (:mod:`cobre.rules`) stands for all of its modules.

Names that a package hands on are followed to the module that defines them. Drivers, readers and the command
line are no part of any kernel: an edit there recompiles nothing.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE_DIRECTORY = Path(__file__).resolve().parent.parent
"""Directory of the ``cobre`` package; kernels defined below it use the package cache."""

_PACKAGE = PACKAGE_DIRECTORY.name
_MODULE = rf"({_PACKAGE}(?:\.[\w.]+)?)(?![\w.])"  # and no package whose name begins like ours
_IMPORT = re.compile(
    rf"^from {_MODULE} import (?:\(([^)]*)\)|([^\n(]+))|^import {_MODULE}",
    re.MULTILINE,
)
_MEMBERS = re.compile(r"\bin members_of\(")
_IN_KERNELS = re.compile(
    r"\b(?:numba|llvmlite|inner_kernel|engine_kernel|array_struct|NamedTuple|IntEnum|IntFlag)\b"
)


def digest_of_files(files: dict[str, Path]) -> str:
    """Return the SHA-256 over names and contents of files, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for name in sorted(files):
        content = files[name].read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


@functools.cache
def package_stamp() -> str:
    """Return the digest over all sources of the package, read once per process."""
    files = PACKAGE_DIRECTORY.rglob("*.py")
    return digest_of_files({file.relative_to(PACKAGE_DIRECTORY).as_posix(): file for file in files})


@functools.cache
def kernel_stamp(file: Path) -> str:
    """Return the digest over the kernel sources of a module of the package, given by its file."""
    return digest_of_files({str(path.relative_to(PACKAGE_DIRECTORY)): path for path in kernel_sources(file)})


@functools.cache
def module_stamp(module: str) -> str:
    """Return the digest over the kernel sources of a module that is imported, also of another package.

    Of another package all files count, and the kernel sources of what they import from this one.
    """
    own = _module_file(module)
    if own is None:  # defined in an interactive session, where the source is not to be had
        return ""
    if own.is_relative_to(PACKAGE_DIRECTORY):
        return kernel_stamp(own)
    top = _module_file(module.partition(".")[0]) or own
    files = sorted(top.parent.rglob("*.py")) if top.name == "__init__.py" else [own]
    sources = frozenset().union(*map(kernel_sources, files))
    return digest_of_files({_name(path, top.parent): path for path in sources})


def _module_file(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file).resolve()


def _name(path: Path, top: Path) -> str:
    """Return a name for a source file that does not depend on where packages are installed."""
    base = top.parent if path.is_relative_to(top) else PACKAGE_DIRECTORY.parent
    return path.relative_to(base).as_posix()


def kernel_sources(file: Path) -> frozenset[Path]:
    """Return the files whose contents make up the kernels of a module, given by its own file."""
    found: set[Path] = set()
    pending = [file]
    while pending:
        current = pending.pop()
        if current not in found:
            found.add(current)
            pending.extend(_imported(current))
    return frozenset(found)


@functools.cache
def _imported(file: Path) -> tuple[Path, ...]:
    sources = (_definition(module, name) for module, name in _top_level_imports(file))
    members = sorted(file.parent.glob("*.py")) if _MEMBERS.search(_text(file)) else []
    return (*(path for path, in_kernels in sources if in_kernels), *members)


def _definition(module: str, name: str) -> tuple[Path, bool]:
    """Return the file behind a name that is imported, and whether it can matter to a kernel."""
    file = _file_of(f"{module}.{name}") if name else None
    if file is None:
        file = _file_of(module)
        if file is None:
            raise ModuleNotFoundError(f"no module {module} below {PACKAGE_DIRECTORY}")
        for other, handed_on in _top_level_imports(file) if name and file.name == "__init__.py" else ():
            if handed_on == name:
                return _definition(other, name)
    return file, name.isupper() or _IN_KERNELS.search(_text(file)) is not None


@functools.cache
def _top_level_imports(file: Path) -> tuple[tuple[str, str], ...]:
    return tuple(_pairs(_text(file)))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that is imported; the name is empty for ``import module``."""
    for match in _IMPORT.finditer(text):
        module, in_brackets, in_line, plain = match.groups()
        if plain:
            yield plain, ""
            continue
        listed = re.sub(r"#.*", "", in_brackets if in_brackets is not None else in_line)
        for name in filter(None, (part.strip() for part in listed.split(","))):
            yield module, name.split(" as ")[0].strip()


def _file_of(module: str) -> Path | None:
    path = PACKAGE_DIRECTORY.joinpath(*module.split(".")[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@functools.cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
