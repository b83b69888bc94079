"""Tools that read results: rows of tables, convergence, scenarios, comparisons, exports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from cobre.errors import CobreError
from cobre.mcp.contract import ROW_LIMIT, Answer, Arguments, Id, Limit, Name, Place, Settings, Tool
from cobre.mcp.output_files import opened_results
from cobre.mcp.paths import by_descriptor, clean
from cobre.mcp.texts import plain
from cobre.mcp.tools.editing import refuse_private

OutputPlace = Annotated[
    Place, Field(description="The output directory of a run below the root, such as CASE/output.")
]
Columns = Annotated[
    list[Name] | None, Field(max_length=200, description="Only these columns; all unless given.")
]
Chosen = Annotated[list[Id] | None, Field(max_length=1_000)]


class RowChoice(Arguments):
    """Which rows of a table."""

    output: OutputPlace
    columns: Columns = None
    entity: Annotated[
        list[Name | Id] | None, Field(max_length=1_000, description="Names or ids of entities.")
    ] = None
    stage: Chosen = None
    scenario: Chosen = None
    block: Chosen = None
    where: Annotated[
        str | None,
        Field(
            max_length=2_000,
            description="Such as: deficit_mw > 0 and bus_name = 'North'. Operators = != < <= > >=.",
        ),
    ] = None

    @property
    def rows(self) -> dict[str, Any]:
        """Which rows, as arguments of :meth:`cobre.results.Table.to_arrow`."""
        chosen = {name: getattr(self, name) for name in ("entity", "stage", "scenario", "block", "where")}
        return {name: value for name, value in chosen.items() if value}


class QueryArguments(RowChoice):
    """Arguments of ``cobre_query_results``."""

    table: Annotated[
        Name | None,
        Field(description="Such as hydros, buses, thermals, costs; without it a list of all tables."),
    ] = None
    quantiles: Annotated[
        bool, Field(description="Mean and quantiles over scenarios of the columns, in place of rows.")
    ] = False
    describe: Annotated[
        bool, Field(description="What the columns mean, with types and units, in place of rows.")
    ] = False
    limit: Limit = ROW_LIMIT
    offset: Annotated[int, Field(ge=0, le=2**31 - 1, description="Rows to leave out.")] = 0


class Rows(Answer):
    """Rows of a table."""

    output: str
    table: str | None
    columns: list[str]
    units: dict[str, str]
    """By column, where it has one."""
    rows: list[dict[str, Any]]
    rows_total: int
    """Rows that fit, of which ``rows`` may be a part."""
    truncated: bool

    def headline(self) -> str:
        """Return how many rows there are."""
        what = self.table or "tables"
        return f"{self.output}, {what}: {len(self.rows):,} of {self.rows_total:,} rows."


def query(settings: Settings, arguments: QueryArguments) -> Rows:
    """Return rows of a table, what its columns mean, quantiles, or the list of tables."""
    with opened_results(settings.root, arguments.output) as results:
        if arguments.table is None:
            return _tables(arguments, results)
        table = results[arguments.table]
        if arguments.describe:
            return _answer(arguments, table.describe().to_pylist(), {})
        if arguments.quantiles:
            return _quantiles(arguments, results, table)
        columns = list(table.columns) if arguments.columns is None else arguments.columns
        total = table.count(**arguments.rows)
        end = arguments.offset + arguments.limit
        found = table.head(min(end, total), columns, **arguments.rows).slice(arguments.offset)
        units = {name: table.unit(name) for name in columns}
        rows = plain(found.to_pylist())
        return _rows(arguments, columns, rows, total, units)


def _tables(arguments: QueryArguments, results: Any) -> Rows:
    rows = [
        {"table": name, "rows": len(table), "columns": ", ".join(table.columns)}
        for name, table in results.tables.items()
    ]
    return _answer(arguments, rows, {})


def _quantiles(arguments: QueryArguments, results: Any, table: Any) -> Rows:
    from cobre.results.metrics import LEVELS

    if arguments.table not in results.simulation or not arguments.columns:
        raise CobreError(
            "InvalidArgument",
            "quantiles need a table of a simulation and the columns to take them of",
            {"table": arguments.table},
            "give columns such as ['storage_final_hm3']",
        )
    found = results.simulation.metrics.quantiles(table, arguments.columns, LEVELS, **arguments.rows)
    units = {name: found.unit(name) for name in found.columns}
    return _answer(arguments, found.rows(), units)


def _answer(arguments: QueryArguments, rows: list[dict[str, Any]], units: dict[str, str]) -> Rows:
    part = plain(rows[arguments.offset : arguments.offset + arguments.limit])
    return _rows(arguments, list(rows[0]) if rows else [], part, len(rows), units)


def _rows(
    arguments: QueryArguments, columns: list[str], rows: list[Any], total: int, units: dict[str, str]
) -> Rows:
    return Rows(
        output=arguments.output,
        table=arguments.table,
        columns=columns,
        units={name: unit for name, unit in units.items() if unit},
        rows=rows,
        rows_total=total,
        truncated=arguments.offset + len(rows) < total,
    )


class ConvergenceArguments(Arguments):
    """Arguments of ``cobre_query_convergence``."""

    output: OutputPlace
    first_iteration: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    limit: Limit = ROW_LIMIT


class Convergence(Answer):
    """Bounds by iteration, and what a training has shown."""

    output: str
    status: str
    iterations: int
    termination_reason: str | None
    verdict: dict[str, Any] | None
    """What is proven (bounds and gap), what is likely, and what to do next; null for older runs."""
    rows: list[dict[str, Any]]
    """A row for each iteration; upper_bound is the mean cost of forward passes."""
    truncated: bool

    def headline(self) -> str:
        """Return the last bounds."""
        verdict = self.verdict or {}
        gap = verdict.get("gap_percent")
        shown = "no proven gap" if gap is None else f"proven gap {gap:.3g} %"
        bound, kind = _shown(verdict.get("lower_bound")), verdict.get("lower_bound_kind", "unknown")
        return (
            f"{self.output}: {self.status}, {self.iterations} iterations, "
            f"lower bound {bound} $ ({kind}), {shown}; conclusion: {verdict.get('conclusion', 'unknown')}."
        )


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.7g}"


def convergence(settings: Settings, arguments: ConvergenceArguments) -> Convergence:
    """Return bounds by iteration with the verdict of a training."""
    with opened_results(settings.root, arguments.output) as results:
        metadata = results.training.metadata
        table = results.training["convergence"]
        where = f"iteration >= {arguments.first_iteration}"
        total = table.count(where=where)
        rows = plain(table.head(arguments.limit, where=where).to_pylist())
        verdict = metadata.get("verdict")
        return Convergence(
            output=arguments.output,
            status=str(metadata.get("status", "unknown")),
            iterations=len(table),
            termination_reason=(metadata.get("convergence") or {}).get("termination_reason"),
            verdict=plain(verdict) if isinstance(verdict, dict) else None,
            rows=rows,
            truncated=len(rows) < total,
        )


class ScenarioArguments(Arguments):
    """Arguments of ``cobre_list_scenarios``."""

    output: OutputPlace
    order: Annotated[
        Literal["id", "cost", "-cost"], Field(description="By id, or the cheapest or dearest first.")
    ] = "id"
    limit: Limit = ROW_LIMIT
    offset: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class Scenario(Answer):
    """A scenario of a simulation."""

    scenario_id: int
    probability: float | None
    cost: float | None
    """Of all stages, discounted to the first, $."""
    terminal_cost: float | None
    """Value of the final state by the policy, discounted to the first stage, $."""


class Scenarios(Answer):
    """Scenarios of a simulation with their costs, and what they amount to."""

    output: str
    scenarios: list[Scenario]
    scenarios_total: int
    mean_cost: float | None
    ci_95: float | None
    """Half width of the 95 % confidence interval of the mean."""
    cvar_95: float | None
    truncated: bool

    def headline(self) -> str:
        """Return the expected cost."""
        return (
            f"{self.output}: {self.scenarios_total:,} scenarios, expected cost {self.mean_cost} ± "
            f"{self.ci_95} $ (95 %), CVaR 95 % {_shown(self.cvar_95)} $."
        )


def scenarios(settings: Settings, arguments: ScenarioArguments) -> Scenarios:
    """Return the scenarios of a simulation."""
    with opened_results(settings.root, arguments.output) as results:
        cost = results.simulation.metrics.cost
        names = ["scenario_id", "probability", "discounted_immediate_cost", "terminal_cost"]
        rows = results.simulation["scenario_summary"].to_arrow(names).to_pylist()
        key = "scenario_id" if arguments.order == "id" else "discounted_immediate_cost"
        rows.sort(key=lambda row: row[key], reverse=arguments.order == "-cost")
        part = plain(rows[arguments.offset : arguments.offset + arguments.limit])
        return Scenarios(
            output=arguments.output,
            scenarios=[
                Scenario(
                    scenario_id=row["scenario_id"],
                    probability=row["probability"],
                    cost=row["discounted_immediate_cost"],
                    terminal_cost=row["terminal_cost"],
                )
                for row in part
            ],
            scenarios_total=len(rows),
            mean_cost=plain(cost.mean),
            ci_95=plain(cost.ci_95),
            cvar_95=plain(results.simulation.metrics.cvar()),
            truncated=arguments.offset + len(part) < len(rows),
        )


class CompareArguments(Arguments):
    """Arguments of ``cobre_compare_results``."""

    a: OutputPlace
    b: OutputPlace
    all: Annotated[bool, Field(description="Also what is the same in both.")] = False
    tolerance: Annotated[
        float, Field(ge=0.0, le=1.0, description="Relative difference that counts as none.")
    ] = 1e-9
    limit: Limit = ROW_LIMIT


class ComparedQuantity(Answer):
    """One quantity of two runs."""

    topic: str
    item: str
    stage_id: int | None
    unit: str
    a: float | str | None
    b: float | str | None
    difference: float | None
    """B less A."""
    percent: float | None
    ci_95: float | None
    """Half width of the 95 % confidence interval of the difference, where it is known."""


class ComparedResults(Answer):
    """What two runs differ in."""

    a: str
    b: str
    equal: bool
    same_scenarios: bool
    """Whether both simulated the same scenarios, so that differences are by scenario."""
    notes: list[str]
    """What could not be compared, and in what the studies differ."""
    quantities: list[ComparedQuantity]
    compared: int
    different: int
    truncated: bool

    def headline(self) -> str:
        """Return what differs most."""
        if self.equal:
            return f"{self.a} and {self.b} are the same in all {self.compared} quantities."
        cost = [row for row in self.quantities if (row.topic, row.item) == ("cost", "expected")]
        text = ""
        if cost and cost[0].difference is not None:
            uncertainty = f" ± {cost[0].ci_95:.6g}" if cost[0].ci_95 is not None else ""
            text = f" Expected cost of B less A: {cost[0].difference:.6g}{uncertainty} $."
        return f"{self.different} of {self.compared} quantities differ between {self.a} and {self.b}.{text}"


def compare(settings: Settings, arguments: CompareArguments) -> ComparedResults:
    """Compare two runs as ``cobre compare`` does."""
    from cobre.results.comparison import compare as compare_runs

    with (
        opened_results(settings.root, arguments.a) as one,
        opened_results(settings.root, arguments.b) as other,
    ):
        found = compare_runs(one, other)
    differing = found.differences(arguments.tolerance)
    chosen = found.rows if arguments.all else differing
    rows = plain([row.as_dict() for row in chosen[: arguments.limit]])
    return ComparedResults(
        a=arguments.a,
        b=arguments.b,
        equal=not differing and not found.notes,
        same_scenarios=found.paired,
        notes=[settings.hider.text(note) for note in found.notes],
        quantities=[ComparedQuantity(**row) for row in rows],
        compared=len(found.rows),
        different=len(differing),
        truncated=len(rows) < len(chosen),
    )


class ExportArguments(RowChoice):
    """Arguments of ``cobre_export_results``."""

    table: Annotated[Name, Field(description="Such as hydros, buses, thermals, costs, convergence.")]
    file: Annotated[
        Place,
        Field(description="The file to write below the root: .csv, .json (a list of rows) or .parquet."),
    ]
    overwrite: Annotated[bool, Field(description="Replace a file that is there.")] = False


class Exported(Answer):
    """A file of rows."""

    file: str
    rows: int
    bytes: int

    def headline(self) -> str:
        """Return what was written."""
        return f"Wrote {self.rows:,} rows to {self.file} ({self.bytes:,} bytes)."


def export(settings: Settings, arguments: ExportArguments) -> Exported:
    """Write rows of a table to a file below the root."""
    from cobre.durable import atomic_write

    place = clean(arguments.file)
    folder, _, name = place.rpartition("/")
    ending = PurePosixPath(name).suffix
    if ending not in (".csv", ".json", ".parquet"):
        raise CobreError(
            "InvalidArgument", f"{place!r} has none of the endings .csv, .json, .parquet", {"file": place}
        )
    refuse_private(place)
    if not arguments.overwrite and settings.root.exists(place):
        raise CobreError(
            "OutputExists",
            f"{place!r} is there already",
            {"file": place},
            "give overwrite = true, or another name",
        )
    with opened_results(settings.root, arguments.output) as results:
        found = results[arguments.table].to_arrow(arguments.columns, **arguments.rows)
    content = _encoded(found, ending)
    with settings.root.directory(folder or ".", create=True) as directory:
        atomic_write(by_descriptor(directory) / name, lambda file: _write_all(file, content))
    return Exported(file=place, rows=len(found), bytes=len(content))


def _write_all(file: Any, content: bytes) -> None:
    file.write(content)


def _encoded(table: Any, ending: str) -> bytes:
    if ending == ".parquet":
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()
    rows = plain(table.to_pylist())
    if ending == ".json":
        return json.dumps(rows, allow_nan=False).encode()
    text = io.StringIO()
    writer = csv.DictWriter(text, table.column_names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


TOOLS: Final = (
    Tool(
        "cobre_query_results",
        "Query results",
        "Rows of a table of results, chosen by entity, stage, scenario, block or a condition; without a "
        "table the list of tables; with describe the meaning and units of columns; with quantiles their "
        "distribution over scenarios.",
        QueryArguments,
        Rows,
        query,
    ),
    Tool(
        "cobre_query_convergence",
        "Query convergence",
        "Bounds of a training by iteration, and its verdict: what is proven, what is likely, what to do "
        "next.",
        ConvergenceArguments,
        Convergence,
        convergence,
    ),
    Tool(
        "cobre_list_scenarios",
        "List scenarios",
        "Scenarios of a simulation with their costs, by id or the dearest first, and expected cost and CVaR.",
        ScenarioArguments,
        Scenarios,
        scenarios,
    ),
    Tool(
        "cobre_compare_results",
        "Compare studies",
        "What two runs differ in: bounds, expected cost with its uncertainty, cost by component, "
        "deficit, energy, prices.",
        CompareArguments,
        ComparedResults,
        compare,
    ),
    Tool(
        "cobre_export_results",
        "Export results",
        "Write rows of a table to a file below the root. Needs a server that may write.",
        ExportArguments,
        Exported,
        export,
        writes=True,
        destructive=True,
    ),
)
