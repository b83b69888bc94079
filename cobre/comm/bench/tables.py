"""The figures as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from cobre.comm.bench.plan import OPERATIONS, Result


def as_json(results: Sequence[Result], about: dict[str, Any]) -> str:
    """Return the figures, and what is known of the machine, as one JSON document."""
    return json.dumps({"about": about, "results": [asdict(result) for result in results]}, indent=2)


Figures = dict[tuple[str, str], float]


def as_text(results: Sequence[Result]) -> str:
    """Return one table of times for each number of ranks, and those of ratios below it."""
    parts: list[str] = []
    for ranks in sorted({result.ranks for result in results}):
        parts += _tables(ranks, [result for result in results if result.ranks == ranks])
    return "\n\n".join(parts)


def _tables(ranks: int, results: Sequence[Result]) -> list[str]:
    columns = list(dict.fromkeys(result.column for result in results))
    figures = {(result.operation, result.column): result.median_us for result in results}
    known = [operation.name for operation in OPERATIONS]
    rows = sorted({result.operation for result in results}, key=known.index)
    base, *others = [column for column in columns if column != "memcpy"] or columns
    title = f"{ranks} ranks, microseconds per call (median):\n"
    tables = [title + _table(rows, columns, lambda row, column: _number(figures.get((row, column))))]
    if others:
        title = f"{ranks} ranks, time divided by that of {base} (above 1: {base} is faster):\n"
        tables.append(
            title + _table(rows, others, lambda row, column: _ratio(figures, (row, column), (row, base)))
        )
        gathers = _gathers(row for row in rows if (row, base) in figures)
        if gathers:

            def against_region(row: str, column: str) -> str:
                return _ratio(figures, (row, column), (gathers[row], base))

            title = f"{ranks} ranks, allgatherv divided by {base}'s gather of that size into a region:\n"
            tables.append(title + _table(list(gathers), others, against_region))
    pairs = [column for column in columns if f"{column} mpi4py" in columns]
    if pairs:

        def against_python(row: str, column: str) -> str:
            return _ratio(figures, (row, column), (row, f"{column} mpi4py"))

        title = f"{ranks} ranks, MPI from nopython code divided by mpi4py from Python:\n"
        tables.append(title + _table(rows, pairs, against_python))
    return tables


def _gathers(rows: Iterable[str]) -> dict[str, str]:
    """Return, for rows that are gathers into a shared region, by the row of the plain gather of that size."""
    known = {operation.name: operation for operation in OPERATIONS}
    plain = {item.count: item.name for item in OPERATIONS if item.kind == "allgatherv"}
    return {plain[known[row].count]: row for row in rows if known[row].kind == "gather_shared"}


def _ratio(figures: Figures, above: tuple[str, str], below: tuple[str, str]) -> str:
    if above not in figures or below not in figures:
        return "-"
    return f"{figures[above] / figures[below]:.2f}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _table(rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], str]) -> str:
    lines = [["", *columns], *([row, *(cell(row, column) for column in columns)] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns) + 1)]
    texts = []
    for line in lines:
        cells = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
        texts.append("  ".join([line[0].ljust(widths[0]), *cells[1:]]))
    return "\n".join(texts)
