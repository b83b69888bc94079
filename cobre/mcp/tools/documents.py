"""Files of a case as documents: decoded, changed by JSON Pointer or by rows, encoded, compared."""

from __future__ import annotations

import difflib
import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from cobre.errors import CobreError

_MOST_DIFF_LINES: Final = 2_000
_MOST_COMPARED_LINES: Final = 50_000
"""Beyond which finding the difference would take too long."""
_DEEPEST: Final = 50
_INDENT: Final = re.compile(rb"[{\[]\s*\n( +)\S")


class Change(BaseModel):
    """One change of a file of a case.

    A JSON file takes ``pointer`` and ``value``; a table (Parquet) takes ``where`` with ``set``, ``scale`` or
    ``op = remove``, or ``rows`` with ``op = add``. A whole file is removed by ``op = remove`` alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(max_length=256, description="Such as system/thermals.json.")
    op: Literal["replace", "add", "remove"] = Field(
        "replace", description="replace: a value that is there; add: a new key, list item or rows; remove."
    )
    pointer: str | None = Field(
        None,
        max_length=1024,
        description="JSON Pointer, such as /training/stopping_rules/0/limit. An item of a list may also "
        "be named by a key: /thermals/name=Gas/cost_per_mwh, /hydros/id=3; '-' is the place behind the "
        "last.",
    )
    value: Any = Field(None, description="The new value at the pointer.")
    where: dict[str, str | int | float | bool | None] | None = Field(
        None, description="Rows of a table: those with these values; all rows if empty."
    )
    set: dict[str, Any] | None = Field(None, description="New values by column, for those rows.")
    scale: dict[str, float] | None = Field(None, description="Factors by column, for those rows.")
    rows: list[dict[str, Any]] | None = Field(
        None, max_length=10_000, description="Rows to add to a table, by column; the table is made if needed."
    )


def fault(change: Change, message: str, suggestion: str | None = None) -> CobreError:
    """Return the error of a change that cannot be made."""
    place = {"file": change.file, **({"pointer": change.pointer} if change.pointer is not None else {})}
    return CobreError("InvalidEdit", f"{change.file}: {message}", place, suggestion)


def decoded(path: str, content: bytes) -> Any:
    """Return the JSON object or the table in a file.

    Raises
    ------
    cobre.errors.ValidationError
        When it cannot be read.
    """
    from cobre.case.format.documents import CaseDocuments
    from cobre.case.problems import Reporter
    from cobre.errors import ValidationError

    reporter = Reporter()
    documents = CaseDocuments("case", {path: content})
    if path.endswith(".json"):
        document = documents.read_json(path, reporter)
        if document is not None and not reporter.errors:
            return document
    elif documents.open_table(path, reporter) is not None:
        return documents[path]
    raise ValidationError(reporter.errors, source=path)


def encoded(path: str, document: Any, before: bytes | None) -> bytes:
    """Return the content of a file; JSON is indented as it was before.

    Raises
    ------
    CobreError
        When JSON cannot hold it.
    """
    if path.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = document if isinstance(document, pa.Table) else pa.table(document)
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()
    found = _INDENT.match(before.lstrip(b"\xef\xbb\xbf \r\n")) if before else None
    text = json.dumps(document, indent=len(found[1]) if found else 2, ensure_ascii=False)
    return f"{text}\n".encode()


def changed(document: Any, change: Change) -> Any:
    """Return a document with a change; a JSON object is changed in place.

    Raises
    ------
    CobreError
        Kind ``InvalidEdit`` when the change does not fit.
    """
    if isinstance(document, dict):
        if any(part is not None for part in (change.where, change.set, change.scale, change.rows)):
            raise fault(change, "where, set, scale and rows are for tables", "give pointer and value")
        return _changed_json(document, change)
    if change.pointer is not None or change.value is not None:
        raise fault(change, "pointer and value are for JSON files", "give where with set or scale, or rows")
    return _changed_table(document, change)


# -- JSON


def _changed_json(document: dict[str, Any], change: Change) -> dict[str, Any]:
    if change.pointer is None:
        raise fault(change, "which key?", "give a pointer such as /training/forward_passes")
    if _depth(change.value) > _DEEPEST:
        raise fault(change, f"the value is nested more than {_DEEPEST} levels deep")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in change.pointer.split("/")]
    if parts[0] or len(parts) < 2:
        raise fault(change, "a pointer begins with '/'", "such as /training/forward_passes")
    target: Any = document
    for part in parts[1:-1]:
        key = _key(target, part, change)
        if not _has(target, key):
            raise fault(change, f"there is no {part!r} at this place", _known(target))
        target = target[key]
    key = _key(target, parts[-1], change, new=change.op == "add")
    _put(target, key, parts[-1], change)
    return document


def _put(target: Any, key: Any, part: str, change: Change) -> None:
    if change.op == "add" and isinstance(target, list):
        target.insert(len(target) if key is None else key, change.value)
    elif change.op == "add":
        target[key] = change.value
    elif not _has(target, key):
        advice = _known(target)
        raise fault(change, f"there is no {part!r} at this place", f"{advice}; op 'add' makes a new one")
    elif change.op == "replace":
        target[key] = change.value
    else:
        del target[key]


def _key(target: Any, part: str, change: Change, *, new: bool = False) -> Any:
    """Return the key or index that a part of a pointer means; ``None`` for the place behind the last item."""
    if isinstance(target, dict):
        return part
    if not isinstance(target, list):
        raise fault(change, f"{part!r} is below a plain value")
    if part == "-" and new:
        return None
    if re.fullmatch(r"\d{1,9}", part):
        index = int(part)
        if index > len(target) or (index == len(target) and not new):
            raise fault(change, f"the list has {len(target)} items, so none at {index}", "the first is 0")
        return index
    name, sign, wanted = part.partition("=")
    places = [
        place
        for place, item in enumerate(target)
        if sign and isinstance(item, dict) and name in item and str(item[name]) == wanted
    ]
    if len(places) != 1:
        raise fault(
            change,
            f"{len(places)} items of the list fit {part!r}",
            "give an index from 0, or KEY=VALUE of one item, such as id=3 or name=Gas",
        )
    return places[0]


def _has(target: Any, key: Any) -> bool:
    return key in target if isinstance(target, dict) else isinstance(target, list) and key is not None


def _known(target: Any) -> str:
    if isinstance(target, dict):
        return f"its keys: {', '.join(list(target)[:20]) or 'none'}"
    return "the first item of a list is 0"


def _depth(value: Any) -> int:
    deepest, stack = 0, [(value, 1)]
    while stack:
        item, depth = stack.pop()
        deepest = max(deepest, depth)
        inside = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if depth <= _DEEPEST:
            stack += [(part, depth + 1) for part in inside]
    return deepest


# -- tables


def _changed_table(table: Any, change: Change) -> Any:
    import pyarrow as pa

    if change.rows is not None:
        if change.op != "add" or change.where or change.set or change.scale:
            raise fault(change, "rows are added with op 'add', and nothing else")
        for row in change.rows:
            _require_columns(table, row, change)
        try:
            return pa.concat_tables([table, pa.Table.from_pylist(change.rows, schema=table.schema)])
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise fault(change, f"these rows do not fit the columns: {str(error)[:200]}") from error
    rows = _rows(table, change)
    if change.op == "remove":
        if change.set or change.scale or change.where is None:
            raise fault(change, "rows are removed with op 'remove' and where")
        return table.filter(pa.array([not row for row in rows], pa.bool_()))
    if change.op == "add" or not (change.set or change.scale):
        raise fault(change, "what shall change?", "give set or scale, with where; or rows with op 'add'")
    if not any(rows):
        raise fault(change, "no row fits where")
    for column, value in {**(change.set or {}), **(change.scale or {})}.items():
        table = _with_values(table, column, rows, value, column in (change.scale or {}), change)
    return table


def _rows(table: Any, change: Change) -> list[bool]:
    """Return which rows fit."""
    found = [True] * len(table)
    for column, wanted in (change.where or {}).items():
        _require_columns(table, [column], change)
        found = [
            fits and value == wanted for fits, value in zip(found, table[column].to_pylist(), strict=True)
        ]
    return found


def _require_columns(table: Any, columns: Any, change: Change) -> None:
    for column in columns:
        if column not in table.column_names:
            raise fault(
                change, f"there is no column {column!r:.80}", f"its columns: {', '.join(table.column_names)}"
            )


def _with_values(table: Any, column: str, rows: list[bool], value: Any, scaled: bool, change: Change) -> Any:
    import pyarrow as pa

    _require_columns(table, [column], change)
    field = table.schema.field(column)
    try:
        values = [
            (value if not scaled else None if old is None else old * value) if fits else old
            for fits, old in zip(rows, table[column].to_pylist(), strict=True)
        ]
        array = pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise fault(change, f"column {column}: {str(error)[:200]}") from error
    return table.set_column(table.schema.get_field_index(column), field, array)


# -- comparing


def case_digest(contents: Mapping[str, bytes]) -> str:
    """Return a digest over the files of a case that are of the format."""
    from cobre.case.format import layout

    digest = hashlib.sha256()
    for path in layout.KNOWN:
        if path in contents:
            digest.update(f"{path}\0{hashlib.sha256(contents[path]).hexdigest()}\n".encode())
    return digest.hexdigest()


def unified_diff(path: str, before: Any, after: Any) -> list[str]:
    """Return the lines of a unified diff of two documents, tables as CSV; at most 2,000 lines."""
    old, new = _lines(before), _lines(after)
    names = ["/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}"]
    if len(old) == len(new) and not isinstance(before, dict):
        found = _in_place(old, new, names)
    elif max(len(old), len(new)) > _MOST_COMPARED_LINES:
        found = iter([f"--- {names[0]}", f"+++ {names[1]}", f"@@ {len(old)} lines become {len(new)} @@"])
    else:
        found = difflib.unified_diff(old, new, names[0], names[1], lineterm="")
    lines = list(itertools.islice(found, _MOST_DIFF_LINES + 1))
    return lines if len(lines) <= _MOST_DIFF_LINES else [*lines[:-1], "... (cut off)"]


def _in_place(old: list[str], new: list[str], names: list[str]) -> Iterator[str]:
    """Yield the lines of a diff of two tables with as many rows: row by row, which is fast."""
    yield from (f"--- {names[0]}", f"+++ {names[1]}")
    for number, (one, other) in enumerate(zip(old, new, strict=True), start=1):
        if one != other:
            yield from (f"@@ -{number} +{number} @@", f"-{one}", f"+{other}")


def _lines(document: Any) -> list[str]:
    if document is None:
        return []
    if isinstance(document, dict):
        return json.dumps(document, indent=2, ensure_ascii=False).splitlines()
    import pyarrow.csv as csv

    buffer = io.BytesIO()
    csv.write_csv(document, buffer)
    return buffer.getvalue().decode("utf-8", "replace").splitlines()
