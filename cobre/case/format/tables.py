"""Parquet files to NumPy columns; every fault of a file, column or cell becomes a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.case.format.documents import CaseDocuments, report_unreadable
from cobre.case.problems import Reporter, short_ids, show, suggest_name
from cobre.fields import EARLIEST_DATE, LARGEST_NUMBER

ColumnType = Literal["id", "nullable_id", "value", "date"]
Columns = dict[str, NDArray[Any]]

_ARROW_TYPES: Mapping[ColumnType, Any] = {
    "id": pa.int32(),
    "nullable_id": pa.int32(),
    "value": pa.float64(),
    "date": pa.date32(),
}
NO_ID = np.iinfo(np.int64).min
"""What a null becomes in a column of nullable ids."""
MAX_LISTED = 20
"""Faulty cells of one column that get a problem each; the rest share one."""


def read_table(
    files: CaseDocuments,
    path: str,
    columns: Mapping[str, ColumnType],
    reporter: Reporter,
    optional: Mapping[str, ColumnType] | None = None,
) -> Columns | None:
    """Read the named columns of a Parquet file.

    Ids come as int32, nullable ids as int64 with :data:`NO_ID` for null and values as float64 with NaN for
    null, from any integer or floating-point column that converts without loss; dates come as datetime64[D],
    also from timestamps at midnight. Null in a column of type ``id`` or ``date`` is reported here, and so are
    values beyond :data:`~cobre.fields.LARGEST_NUMBER` and NaN in an optional column of
    values: it is not null, and must not pass for "not given".

    Parameters
    ----------
    columns
        Columns that must be there.
    optional
        Columns that may be absent; then they come as if every cell was null.

    Returns
    -------
    dict or None
        One array for each column, all of the same length; ``None`` when the file or a column cannot be used
        (problems state why).
    """
    optional = optional or {}
    opened = files.open_table(path, reporter)
    if opened is None or not _check_names(opened.schema.names, path, columns, optional, reporter):
        return None
    # A column of nulls only has no type of its own.
    given = [field.name for field in opened.schema if not pa.types.is_null(field.type)]
    wanted = {**columns, **{name: kind for name, kind in optional.items() if name in given}}
    try:
        table = opened.read(list(wanted))
    except (pa.ArrowException, OSError, ValueError) as error:
        report_unreadable(path, error, reporter)
        return None
    read = {name: _convert(table.column(name), name, kind, path, reporter) for name, kind in wanted.items()}
    usable = {name: array for name, array in read.items() if array is not None}
    if len(usable) < len(wanted) or not _check_magnitudes(usable, wanted, path, reporter):
        return None
    keys = {name: usable[name] for name, kind in columns.items() if kind == "id"}
    for name in optional:
        if name in usable and wanted[name] == "value":
            _report_nan(table.column(name), name, usable[name], keys, path, reporter)
    for name, kind in optional.items():
        if name not in usable:
            empty = np.full(table.num_rows, np.nan) if kind == "value" else np.full(table.num_rows, NO_ID)
            usable[name] = empty
    return usable


def _check_magnitudes(table: Columns, kinds: Mapping[str, ColumnType], path: str, reporter: Reporter) -> bool:
    ids = [name for name, kind in kinds.items() if kind in ("id", "nullable_id")]
    usable = True
    for name in (name for name, kind in kinds.items() if kind == "value"):
        values = table[name]
        # Infinity is left to the checks of each file, some of which accept it.
        large = np.flatnonzero(np.isfinite(values) & (np.abs(values) > LARGEST_NUMBER))
        for row in large[:MAX_LISTED]:
            usable = False
            entity = ", ".join(f"{key} {table[key][row]}" for key in ids if table[key][row] != NO_ID)
            reporter.error(
                "InvalidValue",
                f"{path}: {name} in row {row} ({entity or 'no ids'}) must be at most {LARGEST_NUMBER:.0e} in "
                f"magnitude, but is {show(float(values[row]))}"
                + (f"; {len(large)} rows are like it." if len(large) > 1 else "."),
                file=path,
                entity=entity or None,
                field=name,
                value=float(values[row]),
                suggestion="Look at the unit of the value; leave a limit out where there is none.",
            )
    return usable


def _check_names(
    names: list[str],
    path: str,
    columns: Mapping[str, ColumnType],
    optional: Mapping[str, ColumnType],
    reporter: Reporter,
) -> bool:
    usable = True
    extra = sorted(set(names) - set(columns) - set(optional))
    for name in (*columns, *optional):
        count = names.count(name)
        if count == 1 or (count == 0 and name in optional):
            continue
        usable = False
        found = "is missing" if count == 0 else f"occurs {count} times"
        reporter.error(
            "SchemaViolation",
            f"{path}: the column '{name}' {found}.",
            file=path,
            field=name,
            suggestion=_suggest_column(name, count, extra),
        )
    if extra:
        reporter.warning(
            "SemanticAmbiguity",
            f"{path}: columns that are not part of the format are ignored: {', '.join(extra)}.",
            file=path,
            field=", ".join(extra),
            suggestion=f"The columns of this file are {', '.join((*columns, *optional))}.",
        )
    return usable


def _suggest_column(name: str, count: int, extra: list[str]) -> str:
    if count:
        return f"Keep one column '{name}'."
    return suggest_name(name, extra, "one of the other columns") if extra else f"Add the column '{name}'."


def _convert(column: Any, name: str, kind: ColumnType, path: str, reporter: Reporter) -> NDArray[Any] | None:
    target = _ARROW_TYPES[kind]
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    dated = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    if not (dated if kind == "date" else numeric):
        _report_type(column, name, kind, path, "", reporter)
        return None
    if kind in ("id", "date") and column.null_count:
        rows = np.flatnonzero(column.is_null().to_numpy())
        reporter.error(
            "InvalidValue",
            f"{path}: the column '{name}' has no value in row {short_ids(rows.tolist())}.",
            file=path,
            field=name,
            value=None,
            suggestion=f"Give {'an id' if kind == 'id' else 'a date'} in every row.",
        )
        return None
    try:
        converted = column.cast(target, safe=True)
    except pa.ArrowInvalid as error:
        _report_type(column, name, kind, path, str(error).splitlines()[0], reporter)
        return None
    if kind == "nullable_id":
        converted = converted.cast(pa.int64()).fill_null(NO_ID)
    array: NDArray[Any] = converted.to_numpy()
    if kind == "date" and (array < np.datetime64(EARLIEST_DATE)).any():
        row = int(np.argmax(array < np.datetime64(EARLIEST_DATE)))
        reporter.error(
            "InvalidValue",
            f"{path}: {name} is {array[row]} in row {row}, before {EARLIEST_DATE}.",
            file=path,
            field=f"{name}[row {row}]",
            value=str(array[row]),
            suggestion="Give a date with all four digits of its year.",
        )
        return None
    return array


def _report_nan(
    column: Any, name: str, values: NDArray[Any], keys: Columns, path: str, reporter: Reporter
) -> None:
    if column.null_count == np.count_nonzero(np.isnan(values)):
        return
    rows = np.flatnonzero(np.isnan(values) & ~column.is_null().to_numpy())
    for row in rows[:MAX_LISTED].tolist():
        place = ", ".join(f"{key} {ids[row]}" for key, ids in keys.items())
        reporter.error(
            "InvalidValue",
            f"{path}: {name} in row {row} ({place}) is NaN, which is neither a number nor null.",
            file=path,
            entity=place.split(",")[0].replace("_id", "").replace("_", " "),
            field=f"{name}[row {row}]",
            value=float("nan"),
            suggestion="Give a finite number, or null where there is none.",
        )
    if rows.size > MAX_LISTED:
        rest = rows[MAX_LISTED:].tolist()
        reporter.error(
            "InvalidValue",
            f"{path}: {name} is NaN in {len(rest)} more rows: {short_ids(rest)}.",
            file=path,
            field=name,
            suggestion="Give finite numbers, or null where there are none.",
        )


def _report_type(column: Any, name: str, kind: ColumnType, path: str, why: str, reporter: Reporter) -> None:
    target = _ARROW_TYPES[kind]
    detail = f" without loss ({why})" if why else ""
    reporter.error(
        "SchemaViolation",
        f"{path}: the column '{name}' has type {column.type}, which does not convert to {target}{detail}.",
        file=path,
        field=name,
        value=str(column.type),
        suggestion=f"Write the column as {target}.",
    )
