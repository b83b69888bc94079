"""Tools that read cases: what there is, what is wrong with it, what it holds, how much work it is."""

from __future__ import annotations

import os
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from cobre.errors import CobreError
from cobre.mcp.case_files import case_contents, check_case, load_case
from cobre.mcp.contract import ROW_LIMIT, Answer, Arguments, Issue, Limit, Name, Place, Settings, Tool
from cobre.mcp.texts import plain

_DEEPEST: Final = 6
_MOST_FOUND: Final = 500

CasePlace = Annotated[
    Place, Field(description="The case directory (config.json, stages.json, system/, ...) below the root.")
]


class ListArguments(Arguments):
    """Arguments of ``cobre_list``."""

    directory: Annotated[Place, Field(description="Where to look; the root unless given.")] = "."


class Listed(Answer):
    """Cases and results below a directory."""

    cases: list[str]
    """Directories with a ``config.json``."""
    outputs: list[str]
    """Directories with results of a training or a simulation."""
    truncated: bool
    """Whether there are more."""

    def headline(self) -> str:
        """Return how many there are."""
        more = ", and more" if self.truncated else ""
        return f"{len(self.cases)} cases and {len(self.outputs)} outputs{more}."


def list_places(settings: Settings, arguments: ListArguments) -> Listed:
    """Find cases and outputs, not following links."""
    found: dict[str, list[str]] = {"cases": [], "outputs": []}
    truncated = False
    with settings.root.directory(arguments.directory) as descriptor:
        base = settings.root.inside(arguments.directory)
        for above, directories, files, _ in os.fwalk(".", dir_fd=descriptor):
            place = os.path.normpath(f"{base}/{above}")
            depth = 0 if above == "." else above.count("/")
            directories[:] = sorted(name for name in directories if not name.startswith("."))
            if depth >= _DEEPEST:
                truncated |= bool(directories)
                directories.clear()
            if "config.json" in files and "system" in directories:
                found["cases"].append(place)
                directories[:] = [name for name in directories if name not in ("system", "scenarios")]
            if {"training", "simulation"} & set(directories):
                found["outputs"].append(place)
                directories.clear()
            if sum(map(len, found.values())) >= _MOST_FOUND:
                truncated = True
                break
    return Listed(cases=sorted(found["cases"]), outputs=sorted(found["outputs"]), truncated=truncated)


class ValidateArguments(Arguments):
    """Arguments of ``cobre_validate``."""

    case: CasePlace


class Validation(Answer):
    """What is wrong with a case, and what is odd."""

    case: str
    valid: bool
    errors: list[Issue]
    """Every fault, by file, with a suggestion how to fix it."""
    warnings: list[Issue]
    balance: dict[str, Any] | None
    """Power and energy of the system against its load; null for a case with errors."""

    def headline(self) -> str:
        """Return whether it is valid."""
        state = "is valid" if self.valid else f"has {len(self.errors)} errors"
        return f"{self.case} {state}, warnings: {len(self.warnings)}."


def validate(settings: Settings, arguments: ValidateArguments) -> Validation:
    """Check a case as ``cobre validate`` does."""
    case, errors, warnings = check_case(settings.root, arguments.case)
    balance = None
    if case is not None:
        from cobre.case.balance import balance_warnings, energy_balance
        from cobre.lp.measure import measure_stages
        from cobre.lp.state import StateLayout

        layout = StateLayout(case)
        found = energy_balance(case, layout.inflow.mean_m3s)
        warnings += [*layout.inflow.notes, *balance_warnings(found, len(case.stages))]
        balance = plain(found.as_dict())
        try:
            warnings += measure_stages(case).problems
        except CobreError as error:
            errors, balance = list(error.problems), None
    hide = settings.hider.problem
    return Validation(
        case=arguments.case,
        valid=not errors,
        errors=[Issue(**hide(problem)) for problem in errors],
        warnings=[Issue(**hide(problem)) for problem in warnings],
        balance=balance,
    )


class InspectArguments(Arguments):
    """Arguments of ``cobre_inspect_case``."""

    case: CasePlace
    file: Annotated[
        Name | None,
        Field(
            description="A file of the case, such as system/thermals.json: its content, in place of a "
            "summary."
        ),
    ] = None
    limit: Limit = ROW_LIMIT
    offset: Annotated[int, Field(ge=0, le=2**31 - 1, description="Rows of a table to leave out.")] = 0


class Inspection(Answer):
    """A case in numbers, or one of its files."""

    case: str
    files: list[str]
    """All files of the format that it has."""
    case_sha256: str
    """Digest of all files; ``cobre_edit_case`` takes it as ``expected_sha256``."""
    summary: dict[str, Any] | None
    """Entities, stages, uncertainty, models; null where a file was asked for."""
    names: dict[str, dict[str, str]] | None
    """Names of entities by kind and id."""
    file: str | None
    document: Any = None
    """Content of a JSON file."""
    rows: list[dict[str, Any]] | None
    """Rows of a table."""
    rows_total: int | None

    def headline(self) -> str:
        """Return its size."""
        if self.file is not None:
            rows = "" if self.rows_total is None else f", {len(self.rows or ())} of {self.rows_total} rows"
            return f"{self.case}/{self.file}{rows}."
        counts = (self.summary or {}).get("entities", {})
        return (
            f"{self.case}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) + "."
        )


def inspect(settings: Settings, arguments: InspectArguments) -> Inspection:
    """Summarise a case, or return a file of it, also of one with errors."""
    from cobre.case.format import layout
    from cobre.case.problems import suggest_name
    from cobre.mcp.tools.documents import case_digest, decoded

    contents = case_contents(settings.root, arguments.case)
    files = [path for path in layout.KNOWN if path in contents]
    answer: dict[str, Any] = {
        "case": arguments.case,
        "files": files,
        "case_sha256": case_digest(contents),
        **dict.fromkeys(("summary", "names", "file", "rows", "rows_total")),
    }
    if arguments.file is None:
        case = load_case(settings.root, arguments.case)
        summary = plain(case.summary().as_dict())
        summary.pop("case")
        return Inspection(**{**answer, "summary": summary, "names": entity_names(case)})
    if arguments.file not in files:
        raise CobreError(
            "FileNotFound",
            f"{arguments.case!r} has no file {arguments.file!r}",
            {"file": arguments.file},
            suggest_name(arguments.file, files, "one of"),
        )
    content = decoded(arguments.file, contents[arguments.file])
    if isinstance(content, dict):
        return Inspection(**{**answer, "file": arguments.file, "document": content})
    rows = plain(content.slice(arguments.offset, arguments.limit).to_pylist())
    return Inspection(**{**answer, "file": arguments.file, "rows": rows, "rows_total": len(content)})


def entity_names(case: Any) -> dict[str, dict[str, str]]:
    """Return names of entities by kind and id."""
    kinds = ("buses", "lines", "thermals", "hydros", "non_controllables", "pumping_stations", "contracts")
    named = {kind: getattr(case, kind) for kind in kinds} | dict(case.extensions)
    return {
        kind: {str(entity.id): str(entity.name) for entity in items} for kind, items in named.items() if items
    }


class EstimateArguments(Arguments):
    """Arguments of ``cobre_estimate``."""

    case: CasePlace


class Estimate(Answer):
    """How large a study is before it runs: LPs are counted, time and memory estimated."""

    case: str
    stages: int
    state_components: int
    lp_rows: list[int]
    """Least and most of a stage LP."""
    lp_columns: list[int]
    iterations: int
    training_lps: int
    simulation_lps: int
    training_seconds: float | None
    """On one thread; may be off by ``uncertainty_factor``."""
    memory_bytes: int
    uncertainty_factor: float
    max_ranks: int
    """What this server allows for a job."""
    max_threads: int
    max_minutes: float

    def headline(self) -> str:
        """Return time and memory."""
        seconds = (
            "unknown"
            if self.training_seconds is None
            else f"about {self.training_seconds:.3g} s on one thread"
        )
        return (
            f"{self.case}: at most {self.training_lps:,} LPs in {self.iterations} iterations; time {seconds} "
            f"(estimate, within a factor of {self.uncertainty_factor:g}), memory about "
            f"{self.memory_bytes / 1e9:.1f} GB."
        )


def estimate(settings: Settings, arguments: EstimateArguments) -> Estimate:
    """Count the LPs of a study, and estimate time and memory."""
    from cobre.lp.measure import measure_stages
    from cobre.lp.state import StateLayout
    from cobre.sddp.effort import UNCERTAINTY, estimate_effort

    case = load_case(settings.root, arguments.case)
    parts = measure_stages(case).stages
    states = len(StateLayout(case).components)
    rows, columns = [part.num_rows for part in parts], [part.num_cols for part in parts]
    effort = estimate_effort(case, states, rows, columns)
    return Estimate(
        case=arguments.case,
        stages=len(case.stages),
        state_components=states,
        lp_rows=[min(rows), max(rows)],
        lp_columns=[min(columns), max(columns)],
        iterations=effort.iterations,
        training_lps=effort.training_lps,
        simulation_lps=effort.simulation_lps,
        training_seconds=effort.training_seconds,
        memory_bytes=effort.memory_bytes,
        uncertainty_factor=UNCERTAINTY,
        max_ranks=settings.max_ranks,
        max_threads=settings.max_threads,
        max_minutes=settings.max_minutes,
    )


class SchemaArguments(Arguments):
    """Arguments of ``cobre_get_config_schema``."""

    file: Annotated[
        Name, Field(description="A file of the case format, such as config.json or system/hydros.json.")
    ] = "config.json"


class Schema(Answer):
    """What a file of a case may hold."""

    file: str
    kind: Literal["json-schema", "parquet-columns"]
    document: dict[str, Any] = Field(alias="schema")
    files: list[str]
    """All files of the format."""

    def headline(self) -> str:
        """Return what it describes."""
        return f"What {self.file} may hold."


def schema(settings: Settings, arguments: SchemaArguments) -> Schema:
    """Return the schema of a file."""
    del settings
    from cobre.case.format import describe, schema_paths
    from cobre.case.problems import suggest_name

    files = list(schema_paths())
    if arguments.file not in files:
        raise CobreError(
            "UnknownFile",
            f"the case format has no file {arguments.file!r}",
            {"file": arguments.file},
            suggest_name(arguments.file, files, "one of"),
        )
    kind: Any = "parquet-columns" if arguments.file.endswith(".parquet") else "json-schema"
    return Schema(file=arguments.file, kind=kind, schema=plain(describe(arguments.file)), files=files)


TOOLS: Final = (
    Tool(
        "cobre_list",
        "List cases and results",
        "List the case directories and output directories below the root of this server. Start here.",
        ListArguments,
        Listed,
        list_places,
    ),
    Tool(
        "cobre_validate",
        "Validate a case",
        "Check a case: every error and warning with file, entity, field, value and a suggestion how to fix "
        "it, and the energy balance of the system. Nothing is written.",
        ValidateArguments,
        Validation,
        validate,
    ),
    Tool(
        "cobre_inspect_case",
        "Describe a case",
        "Describe a case (entities with their names, stages, uncertainty, models), or return one of its "
        "files: a JSON document, or the rows of a table.",
        InspectArguments,
        Inspection,
        inspect,
    ),
    Tool(
        "cobre_estimate",
        "Estimate the work of a study",
        "Count the LPs of a study, and estimate time and memory of training, before running it; with the "
        "limits of this server.",
        EstimateArguments,
        Estimate,
        estimate,
    ),
    Tool(
        "cobre_get_config_schema",
        "Get the schema of a case file",
        "Return the JSON Schema of a JSON file of the case format, or the columns, types and units of a "
        "table.",
        SchemaArguments,
        Schema,
        schema,
    ),
)
