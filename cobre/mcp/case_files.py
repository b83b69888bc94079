"""Cases below the root: read through checked descriptors, and never by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cobre.errors import CobreError, Problem
from cobre.mcp.paths import Root, clean, outside

if TYPE_CHECKING:
    from cobre.case.model import Case

MOST_CASE_BYTES: Final = 2 << 30
"""Of all files of a case together."""
_FOREIGN: Final = b"{}"
"""Stands for the content of a file that is not part of the format: only its name counts."""


def case_contents(root: Root, place: str) -> dict[str, bytes]:
    """Return the files of a case by path inside it; those that are not of the format without their content.

    Raises
    ------
    CobreError
        When there is no case, or a file of it leads out of the root.
    """
    from cobre.case.format import layout

    contents: dict[str, bytes] = {}
    total = 0
    for path in _names(root, place):
        if path not in layout.KNOWN:
            contents[path] = _FOREIGN
            continue
        contents[path] = root.read(f"{place}/{path}")
        total += len(contents[path])
        if total > MOST_CASE_BYTES:
            raise CobreError("TooLarge", f"the files of {place!r} have more than {MOST_CASE_BYTES:,} bytes")
    if layout.CONFIG not in contents and not any(path in layout.KNOWN for path in contents):
        raise CobreError(
            "NotACase",
            f"{place!r} holds no case: there is no config.json",
            {"path": place},
            "cobre_list shows the cases below the root",
        )
    check_boundary(root, place, contents)
    return contents


def build_case(root: Root, place: str, contents: Mapping[str, Any]) -> Case:
    """Return the case of some files.

    Raises
    ------
    cobre.errors.ValidationError
        With every problem.
    """
    from cobre.case.loader import build

    return build(contents, root.path / clean(place))


def check_case(root: Root, place: str) -> tuple[Case | None, list[Problem], list[Problem]]:
    """Return a case (``None`` if there is any error), all errors and all warnings."""
    from cobre.errors import ValidationError

    try:
        case = build_case(root, place, case_contents(root, place))
    except ValidationError as error:
        return None, list(error.problems), []
    return case, [], list(case.warnings)


def load_case(root: Root, place: str) -> Case:
    """Return the case in a directory below the root.

    Raises
    ------
    CobreError
        When there is none, or it is wrong.
    """
    return build_case(root, place, case_contents(root, place))


def boundary_place(place: str, contents: Mapping[str, bytes]) -> str | None:
    """Return where the boundary policy of a case is, perhaps with ``..``; ``None`` without one."""
    from cobre.case.format import layout
    from cobre.case.format.reader import decode_json
    from cobre.case.problems import Reporter

    config = decode_json(contents.get(layout.CONFIG, b""), layout.CONFIG, Reporter())
    policy = (config or {}).get("policy")
    boundary = policy.get("boundary") if isinstance(policy, dict) else None
    path = boundary.get("path") if isinstance(boundary, dict) else None
    if not isinstance(path, str) or not path or "\0" in path:
        return None
    return path if path.startswith("/") else f"{place}/{path}"


def check_boundary(root: Root, place: str, contents: Mapping[str, bytes]) -> None:
    """Refuse a case whose boundary policy lies outside the root, also where nothing is there."""
    boundary = boundary_place(clean(place), contents)
    if boundary is None:
        return
    try:
        inside = root.inside(boundary)
        with root.directory(inside) as descriptor:
            root.check_tree(inside, descriptor)
    except CobreError as error:
        if error.kind == "PathOutsideRoot":
            raise outside("policy.boundary.path of config.json") from error
        if error.kind not in ("FileNotFound", "CannotOpen"):
            raise  # what is missing is reported with the other problems of the case


def snapshot_contents(root: Root, place: str, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a case as they work elsewhere: the path of a boundary policy is absolute."""
    from cobre.case.format import layout

    found = {path: content for path, content in contents.items() if path in layout.KNOWN}
    boundary = boundary_place(clean(place), contents)
    if boundary is not None:
        config = json.loads(found[layout.CONFIG].decode("utf-8-sig"))
        config["policy"]["boundary"]["path"] = str(root.path / root.inside(boundary))
        found[layout.CONFIG] = json.dumps(config, ensure_ascii=False).encode()
    return found


def _names(root: Root, place: str) -> list[str]:
    """Return the paths of the files in a case directory and in its three folders."""
    from cobre.case.format import layout

    names = []
    for folder in ("", *layout.DIRECTORIES):
        where = f"{place}/{folder}" if folder else place
        try:
            with root.directory(where) as descriptor, os.scandir(descriptor) as entries:
                found = [(entry.name, entry.is_dir()) for entry in entries]
        except CobreError as error:
            if folder and error.kind in ("FileNotFound", "CannotOpen"):
                continue
            raise
        names += [f"{folder}/{name}" if folder else name for name, is_directory in found if not is_directory]
    return sorted(names)
