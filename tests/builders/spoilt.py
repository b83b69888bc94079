"""Documents and tables with one thing spoilt, and the judge of what is reported about them.

All ways to spoil a value at all places of a file are many. Unless ``whole`` they are dealt out: every place
is spoilt, in some of the ways, and the ways take turns from place to place.
"""

from __future__ import annotations

import copy
import datetime
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from cobre.case import Case, check

KINDS = {
    "FileNotFound",
    "ParseError",
    "SchemaViolation",
    "InvalidReference",
    "DuplicateId",
    "InvalidValue",
    "CycleDetected",
    "DimensionMismatch",
    "BusinessRuleViolation",
    "NotImplemented",
    "BoundaryReconciliationError",
    "IncompatibleSettings",
}
WARNING_KINDS = {"UnusedEntity", "ModelQuality", "SemanticAmbiguity"}
VALUES = [None, float("nan"), float("inf"), -1, 0, 10**30, 1e308, True, "text", [], {}, [None], {"x": 1}]
CELLS = [None, -1, 0, 10**9, 2**31 - 1, -(2**31), 2**40, float("nan"), float("inf"), 1e308, -1e308, 0.5]
CELLS += ["text", True, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
TURNS = 4
"""Of so many ways one is taken."""

Way = TypeVar("Way")
Place = tuple[str | int, ...]


def dealt(ways: Sequence[Way], place: int, whole: bool) -> Sequence[Way]:
    """Return the ways that a place is spoilt in: all, or those whose turn it is."""
    return ways if whole else ways[place % TURNS :: TURNS]


def places(value: Any, first: int = 1, here: Place = ()) -> Iterator[Place]:
    """Yield the place of every value inside a document; of a list, its first entries stand for all."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:first])
        if isinstance(value, list)
        else ()
    )
    for key, item in inside:
        yield (*here, key)
        yield from places(item, first, (*here, key))


def holder_of(document: Any, place: Place) -> Any:
    """Return the object or list that directly holds a place."""
    for part in place[:-1]:
        document = document[part]
    return document


def mutants(document: Any, whole: bool) -> Iterator[Any]:
    """Yield copies of a document: each value deleted, replaced, and each object with one more key."""
    for number, place in enumerate(places(document)):
        for action in dealt(["delete", "add", *range(len(VALUES))], number, whole):
            changed = copy.deepcopy(document)
            holder = holder_of(changed, place)
            if action == "delete":
                del holder[place[-1]]
            elif action == "add":
                if not isinstance(holder, dict):
                    continue
                holder["unknown key"] = 1
            else:
                holder[place[-1]] = copy.deepcopy(VALUES[int(action)])
            yield changed


def spoilt_tables(columns: dict[str, list[Any]], whole: bool) -> Iterator[pa.Table]:
    """Yield tables with one column left out, renamed, of another type, or with one strange cell."""
    plain = {name: pa.array(column) for name, column in columns.items()}
    yield pa.table({name: column[:0] for name, column in plain.items()})
    yield pa.table({**plain, "extra": pa.array(range(len(next(iter(plain.values())))))})
    for number, (name, column) in enumerate(columns.items()):
        rest = {key: value for key, value in plain.items() if key != name}
        yield pa.table(rest)
        yield pa.table({**rest, f"{name}_": plain[name]})
        changes = [changed for cell in CELLS for changed in ([cell, *column[1:]], [cell] * len(column))]
        for changed in dealt(changes, number, whole):
            if any(isinstance(value, float) for value in changed):
                changed = [float(value) if type(value) is int else value for value in changed]
            try:
                yield pa.table({**plain, name: pa.array(changed)})
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                continue  # such a column cannot be written


def judge(path: Path, what: Any) -> Case | None:
    """Load a case and check that everything reported about it is well formed; return the case if it loads."""
    case, errors, warnings = check(path)
    assert (case is None) == bool(errors), what
    for problem in [*errors, *warnings]:
        assert problem.kind in (KINDS if problem in errors else WARNING_KINDS), what
        assert problem.message.endswith((".", "^")), problem.message  # a caret points into expressions
        assert problem.context["file"], what
        json.dumps(problem.as_dict(), allow_nan=False)
    return case
