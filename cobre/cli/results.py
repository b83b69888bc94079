"""``cobre show`` and ``cobre compare``: results as tables, and two runs side by side."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.cli.problems import printable
from cobre.errors import Problem
from cobre.machine import check_process

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.results.comparison import Compared, Comparison
    from cobre.results.reading import Results, Table

_LIMITS: Final = {"human": 40, "json": 10_000}
_IDS: Final = ("iteration", "scenario_id", "stage_id", "start_date", "block_id")
_NAMES: Final = frozenset({*_IDS, "name", "column", "quantity", "lag"})
_HIDDEN: Final = frozenset({"node_id"})
_STAGED: Final = 3
_LISTED: Final = ("table", "rows", "columns", "file")


@dataclass(frozen=True)
class ShowRequest:
    """What ``cobre show`` is asked for; see its options."""

    directory: Path
    table: str | None
    entities: tuple[str, ...]
    stages: tuple[int, ...]
    scenarios: tuple[int, ...]
    where: str | None
    columns: tuple[str, ...] | None
    quantiles: bool
    levels: tuple[float, ...] | None
    describe: bool
    limit: int | None
    format: str

    @property
    def needs_table(self) -> bool:
        """Whether it asks for something that only a table has."""
        chosen = (self.entities, self.stages, self.scenarios, self.where, self.columns)
        return any(chosen) or self.quantiles or self.describe

    @property
    def rows(self) -> dict[str, Any]:
        """Which rows, as arguments of :meth:`cobre.results.Table.to_arrow`."""
        chosen = {
            "entity": list(self.entities),
            "stage": list(self.stages),
            "scenario": list(self.scenarios),
            "where": self.where,
        }
        return {name: value for name, value in chosen.items() if value}

    @property
    def most(self) -> int | None:
        """How many rows are printed at most; ``None`` = all."""
        return self.limit if self.limit is not None else _LIMITS.get(self.format)


def show_command(request: ShowRequest, outcome: Outcome) -> None:
    """Carry out ``cobre show``."""
    check_process()
    from cobre.results.reading import load

    results = load(request.directory)
    if request.table is None:
        _list_tables(results, request, outcome)
        return
    table = results[request.table]
    if request.describe:
        rows = table.describe().to_pylist()
        _put(request, outcome, table.name, list(rows[0]), rows, len(rows))
    elif request.quantiles:
        _show_quantiles(results, table, request, outcome)
    elif request.format == "csv":
        _stream(table, request)
    else:
        columns = _chosen(table, request.columns)
        total = table.count(**request.rows)
        if total == 0:
            _require_ids(table, request)
        most = total if request.most is None else request.most
        rows = table.head(most, columns, **request.rows).to_pylist()
        _put(request, outcome, table.name, columns, rows, total, table)


def _require_ids(table: Table, request: ShowRequest) -> None:
    """Refuse stages and scenarios that a table does not have: no rows would look as if nothing happened."""
    from cobre.results.reading.filters import fault

    for argument, chosen in (("stage", request.stages), ("scenario", request.scenarios)):
        column = f"{argument}_id"
        known = table.to_arrow([column])[column].unique().to_pylist() if chosen else []
        for value in chosen:
            if known and value not in known:
                raise fault(
                    "UnknownId",
                    f"table {table.name} has no {argument} {value}",
                    argument,
                    value,
                    f"there are: {min(known)} to {max(known)}",
                )


def _list_tables(results: Results, request: ShowRequest, outcome: Outcome) -> None:
    rows = [
        {"table": name, "rows": len(table), "columns": len(table.columns), "file": str(table.path)}
        for name, table in results.tables.items()
    ]
    states = {
        "training": results.training.exists and results.training.complete,
        "simulation": results.simulation.exists and results.simulation.complete,
    }
    if not results.simulation.exists:
        outcome.warnings.append(
            Problem(
                "NoSimulation",
                f"there is no simulation in {results.directory}",
                {"file": str(results.simulation.directory)},
                f"cobre simulate CASE --output {results.directory}",
            )
        )
    if not results.simulates_policy:
        outcome.warnings.append(
            Problem(
                "OtherPolicySimulated",
                f"the simulation in {results.directory} is not of the policy that training left",
                {"file": str(results.simulation.directory)},
                f"cobre simulate CASE --output {results.directory}",
            )
        )
    if request.format == "csv":
        _write_csv(_LISTED, rows)
        return
    outcome.data = {"directory": str(results.directory.absolute()), "complete": states, "tables": rows}
    outcome.summary = {"tables": len(rows)}
    shown = [{**row, "file": _beside(row["file"], results.directory)} for row in rows]
    outcome.show = lambda console: _print(console, f"Results in {results.directory}", _LISTED, shown)


def _beside(path: Any, directory: Path) -> str:
    return str(Path(path).relative_to(directory))


def _chosen(table: Table, columns: Sequence[str] | None) -> list[str]:
    """Return ids, entities and dates, then the columns asked for; all columns unless some are asked for."""
    if columns is None:
        return list(table.columns)
    key = table.entity_key
    name = f"{key.removesuffix('_id')}_name" if key else ""
    ids = [item for item in (*_IDS, key, name) if item in table.columns]
    return list(dict.fromkeys([*ids, *columns]))


def _show_quantiles(results: Results, table: Table, request: ShowRequest, outcome: Outcome) -> None:
    from cobre.results.metrics import LEVELS
    from cobre.results.reading.filters import fault

    if results.simulation.get(table.name) is not table:
        raise fault(
            "InvalidValue",
            f"table {table.name} is not of a simulation",
            "quantiles",
            table.name,
            "show its rows, without --quantiles",
        )
    if request.columns is None:
        numbers = [field.name for field in table.dataset.schema if str(field.type) == "double"]
        raise fault(
            "MissingArgument",
            f"quantiles of which columns of {table.name}?",
            "columns",
            "",
            f"choose by --columns from {', '.join(numbers)}",
        )
    found = results.simulation.metrics.quantiles(
        table, list(request.columns), request.levels or LEVELS, **request.rows
    )
    rows = found.rows()
    most = len(rows) if request.most is None else request.most
    _put(request, outcome, f"{table.name}, over scenarios", list(found.columns), rows[:most], len(rows))


def _stream(table: Table, request: ShowRequest) -> None:
    """Print a table as CSV, piece by piece."""
    columns = _chosen(table, request.columns)
    left = request.limit
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for batch in table.batches(columns, **request.rows):
        piece = batch if left is None else batch.slice(0, left)
        writer.writerows(zip(*(column.to_pylist() for column in piece.columns), strict=True))
        if left is not None:
            left -= len(piece)
            if left <= 0:
                return


def _write_csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    names = list(columns)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([row[name] for name in names] for row in rows)


def _put(
    request: ShowRequest,
    outcome: Outcome,
    name: str,
    columns: list[str],
    rows: list[dict[str, Any]],
    total: int,
    table: Table | None = None,
) -> None:
    """Print rows as the request wants them."""
    if request.format == "csv":
        _write_csv(columns, rows)
        return
    units = {} if table is None else {column: table.unit(column) for column in columns}
    outcome.data = {"table": name, "rows_total": total, "units": units, "rows": rows}
    outcome.summary = {"rows": len(rows), "rows_total": total}
    note = f", the first {len(rows):,} of {total:,} rows (--limit)" if len(rows) < total else ""
    title = f"{name}{note}" if note else f"{name}, {total:,} row{'' if total == 1 else 's'}"
    hide = bool(rows) and request.columns is None and not (request.describe or request.quantiles)
    shown = [item for item in columns if not hide or _is_shown(item, rows, columns)]
    hidden = [item for item in columns if item not in shown and item not in _HIDDEN]

    def show(console: Console) -> None:
        _print(console, title, shown, rows, units)
        if hidden:
            names = ", ".join(hidden[:6]) + (", ..." if len(hidden) > 6 else "")
            text = f"hidden, as they are 0 or empty in these rows or repeat a name: {names}; see --columns"
            console.print(text, soft_wrap=True)

    outcome.show = show


def _is_shown(column: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bool:
    """Whether people see a column: ids without names, dates, and what is not 0 or empty everywhere."""
    if column in _HIDDEN or f"{column.removesuffix('_id')}_name" in columns:
        return False
    return column in _IDS or not rows or any(row[column] not in (None, 0, 0.0, False, "") for row in rows)


def _print(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    units: Mapping[str, str] | None = None,
) -> None:
    """Print a table with aligned columns; one too wide for a terminal in pieces below each other."""
    units = units or {}
    console.print(title, style="bold", soft_wrap=True)
    cells = {
        name: [
            name,
            *([units.get(name, "")] if any(units.values()) else []),
            *(_cell(row[name]) for row in rows),
        ]
        for name in columns
    }
    heads = 2 if any(units.values()) else 1
    right = {name: all(not isinstance(row[name], str) for row in rows) for name in columns}
    widths = {name: max(map(len, column)) for name, column in cells.items()}
    fixed = [name for name in columns if name in _NAMES or name.endswith(("_name", "_id"))]
    room = console.width if console.is_terminal else 10**9
    for part in _parts(columns, fixed, widths, room):
        for line in range(heads + len(rows)):
            text = "  ".join(
                cells[name][line].rjust(widths[name])
                if right[name]
                else cells[name][line].ljust(widths[name])
                for name in part
            )
            console.print(printable(text.rstrip()), soft_wrap=True, style="bold" if line < heads else None)


def _parts(
    columns: Sequence[str], fixed: Sequence[str], widths: Mapping[str, int], room: int
) -> Iterator[list[str]]:
    """Yield columns in pieces that fit; each begins with the fixed ones."""
    part, used = list(fixed), sum(widths[name] + 2 for name in fixed)
    start = used
    for name in columns:
        if name in fixed:
            continue
        if used + widths[name] > room and len(part) > len(fixed):
            yield part
            part, used = list(fixed), start
        part.append(name)
        used += widths[name] + 2
    yield part


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    if value == 0.0:
        return "0"
    if abs(value) >= 1e5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:.6g}"


def compare_command(
    one: Path, other: Path, outcome: Outcome, *, every: bool, tolerance: float, exit_code: bool
) -> None:
    """Carry out ``cobre compare``."""
    check_process()
    from cobre.results.comparison import compare

    found = compare(one, other)
    differing = found.differences(tolerance)
    same = not differing and not found.notes
    outcome.data = {**found.as_dict(), "equal": same}
    outcome.summary = {
        "differences": len(differing),
        "compared": len(found.rows),
        "topics": list(dict.fromkeys(row.topic for row in differing)),
    }
    outcome.show = lambda console: _show_comparison(console, found, differing, every)
    if exit_code and not same:
        message = f"{one} and {other} differ"
        topics = outcome.summary["topics"]
        outcome.fail(ExitCode.DIFFERENT, [Problem("ResultsDiffer", message, {"topics": topics})])


def _show_comparison(console: Console, found: Comparison, differing: Sequence[Compared], every: bool) -> None:
    for name, directory in zip("AB", found.directories, strict=True):
        console.print(f"{name}  {printable(directory)}", soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {printable(note)}", soft_wrap=True)
    if not differing and not every:
        console.print(f"The same in all {len(found.rows)} quantities", soft_wrap=True)
        return
    for topic in found.topics:
        rows = [row for row in (found.rows if every else differing) if row.topic == topic]
        shown = rows if every else _largest(rows)
        if not shown:
            continue
        more = len(rows) - len(shown)
        title = topic + (f", the largest {len(shown)} of {len(rows)} differences (--all)" if more else "")
        lines = [_line(row) for row in shown]
        columns = [name for name in lines[0] if any(line[name] for line in lines)]
        _print(console, title.capitalize(), columns, lines)
    if any(row.ci_95 for row in differing):
        how = "of the same scenarios" if found.paired else "of independent samples"
        console.print(f"± is the 95 % confidence interval of the difference, {how}", soft_wrap=True)


def _largest(rows: Sequence[Compared]) -> list[Compared]:
    """Return differences of the whole study, and the largest of those of stages."""
    staged = [row for row in rows if row.stage_id is not None]
    if len(staged) <= _STAGED:
        return list(rows)
    chosen = sorted(staged, key=lambda row: -abs(row.difference or 0.0))[:_STAGED]
    return [row for row in rows if row.stage_id is None or row in chosen]


def _line(row: Compared) -> dict[str, str]:
    difference, percent = row.difference, row.percent
    uncertainty = f" ± {_number(row.ci_95)}" if row.ci_95 else ""
    return {
        "quantity": row.item.replace("_", " "),
        "A": _compared(row.a),
        "B": _compared(row.b),
        "unit": row.unit,
        "B - A": "" if difference is None else f"{_number(difference)}{uncertainty}",
        "%": "" if percent is None else f"{percent:+.3g} %",
    }


def _compared(value: Any) -> str:
    return "-" if value is None else _cell(value)
