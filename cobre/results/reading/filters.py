"""Which rows of a table: by scenario, stage, block, entity, or a condition in words."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from cobre.errors import Problem, ValidationError

Ids = int | Sequence[int] | None
Entities = str | int | Sequence[str | int] | None

_OTHER_IDS: Final = frozenset({"scenario_id", "stage_id", "node_id", "block_id", "season_id", "worker_id"})

_CONDITION: Final = re.compile(r"\s*(\w+)\s*(==|=|!=|<=|>=|<|>)\s*('[^']*'|\"[^\"]*\"|[^\s'\"]+)\s*\Z")
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)


def entity_keys(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that identify entities; the first is of the entity whose row it is."""
    return tuple(name for name in columns if name.endswith("_id") and name not in _OTHER_IDS)


def fault(kind: str, message: str, field: str, value: Any, suggestion: str) -> ValidationError:
    """Return the error of a wrong argument."""
    context = {"argument": field, "field": field, "value": value}
    return ValidationError([Problem(kind, message, context, suggestion)], source="arguments")


def closest(name: str, names: Iterable[str], noun: str) -> str:
    """Return what else could have been meant."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    listed = ", ".join(near or names[:12]) + ("" if near or len(names) <= 12 else ", ...")
    return f"did you mean {listed}?" if near else f"{noun}: {listed or 'none'}"


def condition(text: str, schema: pa.Schema, table: str) -> ds.Expression:
    """Return the expression of conditions such as ``deficit_mw > 0 and bus_name = 'North'``.

    Raises
    ------
    ValidationError
        When it cannot be read, names no column of the table, or compares with a value of another type.
    """
    found: ds.Expression | None = None
    for part in _AND.split(text.strip()):
        match = _CONDITION.match(part)
        if match is None:
            raise fault(
                "InvalidValue",
                f"the condition {part!r} cannot be read",
                "where",
                text,
                "write COLUMN OPERATOR VALUE with one of = != < <= > >=, several joined by 'and'",
            )
        name, operator, value = match.groups()
        require_columns([name], schema, table, "where")
        one = _compared(ds.field(name), operator, _value(value, schema.field(name), text))
        found = one if found is None else found & one
    assert found is not None
    return found


def require_columns(columns: Iterable[str], schema: pa.Schema, table: str, argument: str = "columns") -> None:
    """Refuse columns that a table does not have."""
    for name in columns:
        if name not in schema.names:
            raise fault(
                "UnknownColumn",
                f"table {table} has no column {name!r}",
                argument,
                name,
                closest(name, schema.names, "its columns"),
            )


def _value(text: str, field: pa.Field, whole: str) -> Any:
    plain = text[1:-1] if text[:1] in "'\"" else text
    try:
        if pa.types.is_boolean(field.type):
            return {"true": True, "false": False}[plain.lower()]
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            return float(plain) if not re.fullmatch(r"[+-]?\d+", plain) else int(plain)
        if pa.types.is_date(field.type):
            return datetime.date.fromisoformat(plain)
    except (ValueError, KeyError) as error:
        message = f"{plain!r} is no value of column {field.name}, which is {field.type}"
        raise fault(
            "InvalidValue", message, "where", whole, "give a number, true or false, or a date as 2024-05-01"
        ) from error
    return plain


def _compared(column: ds.Expression, operator: str, value: Any) -> ds.Expression:
    if operator in ("=", "=="):
        return column == value
    if operator == "!=":
        return column != value
    if operator == "<":
        return column < value
    if operator == "<=":
        return column <= value
    return column > value if operator == ">" else column >= value


def listed(value: Any) -> list[Any]:
    """Return one value, or several, as a list."""
    return [value] if isinstance(value, (str, int)) or not hasattr(value, "__iter__") else list(value)
