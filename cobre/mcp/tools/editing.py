"""Tools that change cases: edit one with a diff, or write a new one from a template."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from cobre.errors import CobreError, Problem, ValidationError
from cobre.mcp.case_files import build_case, case_contents, check_boundary
from cobre.mcp.contract import Answer, Arguments, Issue, Name, Place, Settings, Tool
from cobre.mcp.paths import PRIVATE_DIRECTORY, by_descriptor, clean
from cobre.mcp.tools.case import CasePlace
from cobre.mcp.tools.documents import Change, case_digest, changed, decoded, encoded, fault, unified_diff


class EditArguments(Arguments):
    """Arguments of ``cobre_edit_case``."""

    case: CasePlace
    changes: Annotated[list[Change], Field(min_length=1, max_length=200, description="Made in this order.")]
    apply: Annotated[
        bool, Field(description="Write the files; without it the diff and the problems are only shown.")
    ] = False
    force: Annotated[bool, Field(description="Write also a case that has errors.")] = False
    expected_sha256: Annotated[
        str | None,
        Field(
            pattern="^[0-9a-f]{64}$",
            description="case_sha256 of the case that the changes are meant for; refused if it is "
            "another by now.",
        ),
    ] = None


class Edited(Answer):
    """What changes do to a case."""

    case: str
    diff: str
    """Unified diff of all files that change; tables as CSV."""
    files: list[str]
    """Files that change."""
    valid: bool
    """Whether the changed case has no errors."""
    errors: list[Issue]
    warnings: list[Issue]
    applied: bool
    """Whether the files were written."""
    case_sha256: str
    """Digest of the case as it is on disk now."""

    def headline(self) -> str:
        """Return what happened."""
        if self.applied:
            state = f"written: {', '.join(self.files)}"
        elif not self.files:
            state = "nothing changes"
        else:
            state = f"not written; would change {', '.join(self.files)}"
        problems = "valid" if self.valid else f"{len(self.errors)} errors"
        return f"{self.case}: {state}; {problems}, warnings: {len(self.warnings)}."


def edit(settings: Settings, arguments: EditArguments) -> Edited:
    """Make changes, check the case they give, and write it if asked to: all files or none."""
    if arguments.apply:
        settings.require_write("change cases")
        refuse_private(settings.root.inside(clean(arguments.case)))
        with _only_writer(settings, arguments.case):
            return _edit(settings, arguments)
    return _edit(settings, arguments)


def _edit(settings: Settings, arguments: EditArguments) -> Edited:
    root, place = settings.root, clean(arguments.case)
    contents = case_contents(root, place)
    digest = case_digest(contents)
    if arguments.expected_sha256 not in (None, digest):
        raise CobreError(
            "CaseChanged",
            f"{place!r} was changed meanwhile",
            {"case_sha256": digest},
            "look at it again (cobre_inspect_case) and give its case_sha256",
        )
    before, after = _documents(contents, arguments.changes)
    files = [path for path in after if not _same(before[path], after[path])]
    new = dict(contents)
    for path in files:
        if after[path] is None:
            new.pop(path)
        else:
            new[path] = _encoded(path, after[path], contents.get(path))
    check_boundary(root, place, new)
    errors: list[Problem] = []
    warnings: list[Problem] = []
    try:
        warnings += build_case(root, place, new).warnings
    except ValidationError as error:
        errors = list(error.problems)
    applied = arguments.apply and bool(files) and (arguments.force or not errors)
    if applied:
        _write(settings, place, files, new)
        digest = case_digest(new)
    hide = settings.hider.problem
    return Edited(
        case=arguments.case,
        diff="\n".join(line for path in files for line in unified_diff(path, before[path], after[path])),
        files=files,
        valid=not errors,
        errors=[Issue(**hide(problem)) for problem in errors],
        warnings=[Issue(**hide(problem)) for problem in warnings],
        applied=applied,
        case_sha256=digest,
    )


def _documents(contents: Mapping[str, bytes], changes: list[Change]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the documents that changes name, as they are and as they will be; ``None`` = absent."""
    from cobre.case.format import layout
    from cobre.case.problems import suggest_name

    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for change in changes:
        path = change.file
        if path not in layout.KNOWN:
            raise fault(change, "it is not a file of the format", suggest_name(path, layout.KNOWN, "one of"))
        if path not in after:
            there = path in contents
            before[path] = decoded(path, contents[path]) if there else None
            after[path] = decoded(path, contents[path]) if there else None
        if after[path] is None:
            after[path] = _new_document(change)
        whole = change.op == "remove" and change.pointer is None and change.where is None
        after[path] = None if whole else changed(after[path], change)
    return before, after


def _new_document(change: Change) -> Any:
    """Return what a file that is not there begins with."""
    if change.op != "add":
        raise fault(change, "the case has no such file", "op 'add' makes one")
    if change.file.endswith(".json"):
        return {}
    import pyarrow as pa

    if not change.rows:
        raise fault(change, "a new table needs rows")
    try:
        return pa.Table.from_pylist(change.rows).slice(0, 0)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise fault(change, f"these rows make no table: {str(error)[:200]}") from error


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, dict):
        return json.dumps(one) == json.dumps(other)  # 1, 1.0 and true are equal in Python
    return bool(one.equals(other))


def _encoded(path: str, document: Any, before: bytes | None) -> bytes:
    try:
        return encoded(path, document, before)
    except (TypeError, ValueError, RecursionError) as error:
        raise CobreError("InvalidEdit", f"{path} cannot hold this value: {error}", {"file": path}) from error


@contextmanager
def _only_writer(settings: Settings, place: str) -> Iterator[None]:
    """Let one process at a time change a case."""
    with settings.root.directory(place) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _write(settings: Settings, place: str, files: list[str], new: Mapping[str, bytes]) -> None:
    """Put files in their places: all of them are on disk before the first gets its name."""
    from cobre.durable import atomic_files

    with ExitStack() as opened:
        paths: list[Path] = []
        removed: list[Path] = []
        for path in files:
            folder, _, name = path.rpartition("/")
            directory = opened.enter_context(
                settings.root.directory(f"{place}/{folder}" if folder else place, create=True)
            )
            (paths if path in new else removed).append(by_descriptor(directory) / name)
        with atomic_files(paths) as written:
            for file, path in zip(written, [path for path in files if path in new], strict=True):
                file.write(new[path])
        for gone in removed:
            gone.unlink()


class CreateArguments(Arguments):
    """Arguments of ``cobre_create_case``."""

    directory: Annotated[Place, Field(description="A new directory, or an empty one.")]
    template: Annotated[
        Name, Field(description="toy, cascade, four-region, weekly or synthetic: what the case is like.")
    ] = "toy"


class Created(Answer):
    """A new case."""

    case: str
    template: str
    about: str
    files: list[str]

    def headline(self) -> str:
        """Return where it is."""
        return f"Wrote the case {self.case}, from the template {self.template}: {self.about}"


def create(settings: Settings, arguments: CreateArguments) -> Created:
    """Write a case from a template."""
    from cobre.templates import TEMPLATES

    place = clean(arguments.directory)
    template = TEMPLATES.get(arguments.template)
    if template is None:
        raise CobreError(
            "UnknownTemplate",
            f"there is no template {arguments.template!r}",
            {"template": arguments.template},
            f"one of {', '.join(TEMPLATES)}",
        )
    refuse_private(place)
    with settings.root.directory(place, create=True) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.listdir(descriptor):  # noqa: PTH208 (of a descriptor)
            raise CobreError(
                "OutputExists", f"{place!r} is not empty", {"path": place}, "choose another name"
            )
        documents = {
            path: content if isinstance(content, bytes) else encoded(path, content, None)
            for path, content in template.build().items()
        }
        build_case(settings.root, place, documents)
        _write(settings, place, list(documents), documents)
    return Created(case=place, template=template.name, about=template.summary, files=sorted(documents))


def refuse_private(place: str) -> None:
    """Refuse to write where jobs are kept.

    Raises
    ------
    CobreError
        Kind ``PathOutsideRoot``.
    """
    if place.split("/")[0] == PRIVATE_DIRECTORY:
        raise CobreError(
            "PathOutsideRoot", f"{PRIVATE_DIRECTORY} is for jobs only", {"path": place}, "choose another name"
        )


TOOLS: Final = (
    Tool(
        "cobre_edit_case",
        "Edit a case",
        "Change values of a case: JSON files by JSON Pointer, tables by rows. Returns the unified diff and "
        "every problem that the changed case has. Nothing is written without apply = true (and a server "
        "that may write), and a case with errors only with force = true.",
        EditArguments,
        Edited,
        edit,
        destructive=True,
    ),
    Tool(
        "cobre_create_case",
        "Create a case from a template",
        "Write a new, complete case to start from. Needs a server that may write.",
        CreateArguments,
        Created,
        create,
        writes=True,
    ),
)
