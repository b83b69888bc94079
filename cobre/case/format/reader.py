"""JSON files to Python objects; every fault of a file becomes a problem with its place."""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cobre.case.problems import Reporter

_MAX_DEPTH = 50
"""Deepest nesting that is read; far more than the format has, far less than Python's recursion limit."""


class _RepeatedKeys(dict[str, Any]):
    """A JSON object in which some keys occur more than once."""

    repeated: tuple[str, ...] = ()


def decode_json(data: bytes, path: str, reporter: Reporter) -> dict[str, Any] | None:
    """Return the JSON object in the content of a file.

    Repeated keys are reported and the last value is kept, as most parsers do.

    Returns
    -------
    dict or None
        ``None`` when the content is no JSON object (a problem states why).
    """
    repeated: list[str] = []
    document = _decode(data, path, repeated, reporter)
    if document is None:
        return None
    value = document[0]
    if not isinstance(value, dict):
        found = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
        reporter.error(
            "SchemaViolation",
            f"{path} must hold a JSON object, but its root is {found.get(type(value), 'a number')}.",
            file=path,
            value=value,
            suggestion="Wrap the content in { ... } with the keys of this file.",
        )
        return None
    if repeated:
        _report_repeated(value, path, reporter)
    return value


def read_bytes(root: Path, path: str, reporter: Reporter) -> bytes | None:
    """Return the content of ``root/path``, or ``None`` after reporting why it cannot be read."""
    file = root / path
    try:
        mode = file.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            # A pipe would make us wait for a writer.
            raise OSError("it is not a regular file")
        data = file.read_bytes()
    except FileNotFoundError:
        reporter.error(
            "FileNotFound",
            f"The file {path} does not exist (a link to nothing?).",
            file=path,
            suggestion="Restore the file or remove the link.",
        )
        return None
    except IsADirectoryError:
        reporter.error(
            "ParseError",
            f"{path} must be a file, but it is a directory.",
            file=path,
            suggestion="Replace the directory with the file.",
        )
        return None
    except OSError as error:
        reporter.error(
            "ParseError",
            f"{path} cannot be read: {error.strerror or error}.",
            file=path,
            suggestion="Check that you may read the file.",
        )
        return None
    if not data.strip():
        reporter.error(
            "ParseError",
            f"{path} is empty.",
            file=path,
            suggestion="Fill the file, or restore it from a copy.",
        )
        return None
    return data


def _decode(data: bytes, path: str, repeated: list[str], reporter: Reporter) -> tuple[Any] | None:
    """Return the parsed document in a tuple (the document itself may be ``None``).

    Keys that occur more than once in an object are added to ``repeated``.
    """

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(given)
        if len(plain) == len(given):
            return plain
        marked = _RepeatedKeys(plain)
        marked.repeated = tuple(key for key, count in Counter(key for key, _ in given).items() if count > 1)
        repeated.extend(marked.repeated)
        return marked

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        reporter.error(
            "ParseError",
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} on line {line}.",
            file=path,
            line=line,
            column=error.start - before.rfind(b"\n"),
            suggestion="Save the file in UTF-8.",
        )
        return None
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        reporter.error(
            "ParseError",
            f"{path} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            file=path,
            line=error.lineno,
            column=error.colno,
            suggestion="Look there and just before for a missing or extra comma, quote or bracket.",
        )
        return None
    except RecursionError:
        _report_depth(path, reporter)
        return None
    except ValueError as error:  # an integer with thousands of digits
        reporter.error("ParseError", f"{path} holds a number that cannot be read: {error}.", file=path)
        return None
    if isinstance(value, (dict, list)) and any(depth > _MAX_DEPTH for _, depth, _ in _walk(value)):
        _report_depth(path, reporter)
        return None
    # A lone surrogate escape passes the JSON parser but is no text: nothing could print or store it.
    if "\\ud" in text.lower() and not _is_text(value):
        reporter.error(
            "ParseError",
            f"{path} holds a string that is not valid Unicode (a lone surrogate escape \\ud8xx ... \\udfxx).",
            file=path,
            suggestion="Write the character itself in UTF-8.",
        )
        return None
    return (value,)


def _report_depth(path: str, reporter: Reporter) -> None:
    reporter.error(
        "ParseError",
        f"{path} is nested too deeply to be read.",
        file=path,
        suggestion=f"No file of the format has more than {_MAX_DEPTH} levels.",
    )


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _walk(document: Any) -> Iterator[tuple[str, int, Any]]:
    """Yield (field path, depth, value) of every container in a document, without recursion."""
    stack: list[tuple[str, int, Any]] = [("", 1, document)]
    while stack:
        place, depth, value = stack.pop()
        yield place, depth, value
        if isinstance(value, dict):
            inside = [(f"{place}.{key}" if place else key, item) for key, item in value.items()]
        else:
            inside = [(f"{place}[{index}]", item) for index, item in enumerate(value)]
        stack.extend(
            (path, depth + 1, item) for path, item in reversed(inside) if isinstance(item, (dict, list))
        )


def _report_repeated(document: dict[str, Any], path: str, reporter: Reporter) -> None:
    for place, _, value in _walk(document):
        for key in value.repeated if isinstance(value, _RepeatedKeys) else ():
            field = f"{place}.{key}" if place else key
            reporter.error(
                "SchemaViolation",
                f"{path}: the key '{field}' occurs more than once in the same object.",
                file=path,
                field=field,
                value=value[key],
                suggestion="Keep one of them.",
            )
