"""Checks of tables that share their shape: ids that exist, finite numbers, rows that repeat.

Problems count rows from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.case.format.tables import MAX_LISTED, Columns
from cobre.case.problems import Reporter, known_ids, name_entity, short_ids


class Rows:
    """The rows of one Parquet file whose entities are called ``word``.

    Attributes
    ----------
    clean
        Whether no error has been found yet.
    """

    def __init__(
        self,
        table: Columns,
        path: str,
        word: str,
        id_column: str,
        names: Mapping[int, str],
        reporter: Reporter,
    ) -> None:
        self.table = table
        self.path = path
        self.word = word
        self.id_column = id_column
        self.names = names
        self.clean = True
        self._reporter = reporter

    def entity(self, row: int) -> str:
        """Return what the entity of a row is called."""
        number = int(self.table[self.id_column][row])
        return name_entity(self.word, number, self.names.get(number))

    def error(self, kind: str, message: str, suggestion: str | None = None, **context: object) -> None:
        """Report an error of this file."""
        self.clean = False
        self._reporter.error(
            kind, f"{self.path}: {message}", file=self.path, suggestion=suggestion, **context
        )

    def cells(self, bad: NDArray[np.bool_], column: str, wanted: str, rule: str | None = None) -> None:
        """Report the cells of ``column`` that are marked as bad."""
        rows = np.flatnonzero(bad)
        for row in rows[:MAX_LISTED].tolist():
            cell = self.table[column][row]
            value = str(cell) if np.issubdtype(cell.dtype, np.datetime64) else float(cell)
            shown = "NaN or null" if isinstance(value, float) and np.isnan(value) else value
            self.error(
                "InvalidValue",
                f"{column} in row {row} ({self.entity(row)}) must be {wanted}, but is {shown}.",
                entity=self.entity(row),
                field=f"{column}[row {row}]",
                value=value,
                rule=rule,
                suggestion=f"Give a value that is {wanted}.",
            )
        if rows.size > MAX_LISTED:
            rest = rows[MAX_LISTED:].tolist()
            self.error(
                "InvalidValue",
                f"{column} must be {wanted} in {len(rest)} more rows: {short_ids(rest)}.",
                field=column,
                rule=rule,
            )

    def finite(self, *columns: str) -> None:
        """Check that every cell of the columns is a finite number."""
        for column in columns:
            self.cells(~np.isfinite(self.table[column]), column, "a finite number")

    def known(
        self, column: str, ids: Collection[int] | None, word: str, rule: str = "referential.1"
    ) -> NDArray[np.bool_]:
        """Report ids that do not exist (unless it is not known which do); return which rows are good."""
        values = self.table[column]
        if ids is None:
            return np.ones(values.size, np.bool_)
        good: NDArray[np.bool_] = np.isin(values, np.array(sorted(ids), np.int64))
        numbers = np.unique(values[~good])
        for number in numbers[:MAX_LISTED].tolist():
            rows = np.flatnonzero(values == number).tolist()
            self.error(
                "InvalidReference",
                f"{column} {number} in row {short_ids(rows)} is no {word} id.",
                entity=name_entity(word, number),
                field=column,
                value=number,
                rule=rule,
                suggestion=known_ids(sorted(ids), word),
            )
        if numbers.size > MAX_LISTED:
            rest = short_ids(numbers[MAX_LISTED:].tolist())
            self.error(
                "InvalidReference",
                f"{column} names more ids that do not exist: {rest}.",
                field=column,
                value=rest,
                rule=rule,
            )
        return good

    def ignored_stages(self, ids: Collection[int] | None) -> NDArray[np.bool_]:
        """Warn of rows whose stage does not exist; return which rows belong to one that does."""
        values = self.table["stage_id"]
        if ids is None:
            return np.ones(values.size, np.bool_)
        good: NDArray[np.bool_] = np.isin(values, np.array(sorted(ids), np.int64))
        if not good.all():
            extra = short_ids(np.unique(values[~good]).tolist())
            self._reporter.warning(
                "SemanticAmbiguity",
                f"{self.path}: rows of stage {extra} are ignored, there is no such stage.",
                file=self.path,
                field="stage_id",
                value=extra,
                suggestion=known_ids(sorted(ids), "stage"),
            )
        return good

    def unique(self, *columns: str) -> None:
        """Report each combination of ids that occurs in more than one row."""
        codes = _codes([self.table[column] for column in columns])
        ordered = np.sort(codes)
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        for code in repeated[:MAX_LISTED].tolist():
            rows = np.flatnonzero(codes == code).tolist()
            key = [int(self.table[column][rows[0]]) for column in columns]
            place = ", ".join(f"{column} {value}" for column, value in zip(columns, key, strict=True))
            self.error(
                "DuplicateId",
                f"rows {short_ids(rows)} are all for {place}.",
                entity=self.entity(rows[0]),
                field=columns[-1],
                value=key[-1],
                suggestion="Keep one of them.",
            )
        if repeated.size > MAX_LISTED:
            self.error("DuplicateId", f"{repeated.size - MAX_LISTED} more rows repeat others.")


def _codes(columns: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return one number for each row, the same exactly where all columns agree."""
    codes = np.zeros(columns[0].size, np.int64)
    size = 1
    for column in columns:
        if not column.size:
            break
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        part = column.astype(np.int64) - low
        if size * span >= 2**62:
            # Wide ranges of ids: number what occurs instead, which is never more than the rows.
            codes, part = (np.unique(values, return_inverse=True)[1] for values in (codes, part))
            size, span = int(codes.max()) + 1, int(part.max()) + 1
        codes = codes * span + part
        size *= span
    return codes
