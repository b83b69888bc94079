"""Schema documents: complete, with a description of everything, and in step with what the loader takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.base_case import write_case
from builders.base_case_extras import rich_files
from builders.json_schema import faults
from builders.paths import EXAMPLES

import cobre.case
from cobre.case.format import PARQUET_FILES, describe, layout, schema_paths
from cobre.case.format.descriptions import JSON_FILES
from cobre.fields import FormatModel

UNITS = {
    "_mw": "MW", "_m3s": "m3/s", "_hm3": "hm3", "_m": "m", "_km2": "km2", "_per_mwh": "$/MWh",
    "_mw_per_m3s": "MW/(m3/s)",
}  # fmt: skip


def subclasses(model: type[FormatModel]) -> Iterator[type[FormatModel]]:
    for child in model.__subclasses__():
        yield child
        yield from subclasses(child)


def properties(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property of a schema, at any depth."""
    if isinstance(schema, dict):
        for key, part in schema.get("properties", {}).items():
            yield f"{place}.{key}", part
        for key, part in schema.items():
            yield from properties(part, f"{place}.{key}")
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part, place)


def test_every_file_of_the_format_has_a_document() -> None:
    assert {*JSON_FILES, *PARQUET_FILES} == set(layout.KNOWN)
    assert list(schema_paths()) == list(layout.KNOWN)
    assert len(set(schema_paths().values())) == len(layout.KNOWN)
    with pytest.raises(KeyError):
        describe("system/nothing.json")


def test_every_field_is_described() -> None:
    models = {model for model in subclasses(FormatModel) if model.__module__.startswith("cobre.")}
    assert len(models) > 80
    bare = [
        f"{model.__name__}.{name}"
        for model in models
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert bare == []


@pytest.mark.parametrize("path", JSON_FILES)
def test_every_property_of_a_schema_is_described(path: str) -> None:
    schema = json.loads(json.dumps(describe(path)))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == path
    assert path in schema["description"]
    found = dict(properties(schema))
    assert found
    assert [place for place, part in found.items() if not part.get("description")] == []


@pytest.mark.parametrize("path", JSON_FILES)
def test_units_are_told(path: str) -> None:
    """The name of a quantity ends in its unit; the description says it in words."""
    for place, part in properties(describe(path)):
        name = place.rpartition(".")[2]
        unit = next((UNITS[end] for end in sorted(UNITS, key=len, reverse=True) if name.endswith(end)), None)
        if unit is not None and "anyOf" not in part and part.get("type") == "number":
            assert unit in part["description"], place


@pytest.mark.parametrize("path", PARQUET_FILES)
def test_columns_are_those_the_loader_reads(path: str, tmp_path: Path) -> None:
    """A file with none of its columns: the loader names all that it needs and all that it knows."""
    file = PARQUET_FILES[path]
    case = write_case(tmp_path / "case", extra=rich_files())
    (case / path).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"bogus": pa.array([1], pa.int32())}), case / path)
    _, errors, warnings = cobre.case.check(case)
    about = [problem for problem in (*errors, *warnings) if problem.context.get("file") == path]
    missing = {
        str(problem.context["field"]) for problem in about if problem.message.endswith("' is missing.")
    }
    assert missing == {column.name for column in file.columns if column.required}
    (listing,) = [str(problem.suggestion) for problem in about if problem.context.get("field") == "bogus"]
    known = listing.removeprefix("The columns of this file are ").removesuffix(".").split(", ")
    assert sorted(known) == sorted(column.name for column in file.columns)


@pytest.mark.parametrize("path", PARQUET_FILES)
def test_columns_are_described(path: str) -> None:
    file = PARQUET_FILES[path]
    names = [column.name for column in file.columns]
    assert len(set(names)) == len(names)
    assert set(file.key) <= set(names)
    for column in file.columns:
        assert column.description.endswith("."), column
        endings = sorted((end for end in UNITS if column.name.endswith(end)), key=len)
        if endings and column.type == "float64":
            assert column.unit, column
    document = json.loads(json.dumps(describe(path)))
    assert [entry["name"] for entry in document["columns"]] == names
    assert {entry["type"] for entry in document["columns"]} <= {"int32", "float64", "date32"}


def json_files(case: Path) -> dict[str, Any]:
    return {
        path: json.loads((case / path).read_text(encoding="utf-8"))
        for path in JSON_FILES
        if (case / path).exists()
    }


def test_valid_files_pass_their_schema(tmp_path: Path) -> None:
    cases = [write_case(tmp_path / "rich", extra=rich_files())]
    cases += [path.parent for path in EXAMPLES.glob("*/config.json")]
    for case in cases:
        for path, content in json_files(case).items():
            schema = describe(path)
            assert faults(content, schema, schema) == [], (case.name, path)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("config.json", lambda file: file["training"].update(tree_sed=1)),
        ("config.json", lambda file: file["training"]["stopping_rules"][0].update(limit=0)),
        ("stages.json", lambda file: file["stages"][0].pop("start_date")),
        ("stages.json", lambda file: file["stages"][0].update(risk_measure={"cvar": {"alpha": 0.5}})),
        ("stages.json", lambda file: file["stages"][0].update(block_mode="sequential")),
        ("system/thermals.json", lambda file: file["thermals"][0].update(cost_per_mwh="50")),
        ("system/thermals.json", lambda file: file["thermals"][0]["generation"].update(max_mw=-1.0)),
        ("system/hydros.json", lambda file: file["hydros"][0].update(unit_groups=[])),
        ("system/hydros.json", lambda file: file["hydros"][0].update(tailrace={"type": "unknown"})),
        ("penalties.json", lambda file: file["hydro"].update(spillage_cost=0)),
    ],
)
def test_schema_and_loader_refuse_the_same(path: str, change: Any, tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    content = json_files(case)[path]
    change(content)
    (case / path).write_text(json.dumps(content), encoding="utf-8")
    schema = describe(path)
    assert faults(content, schema, schema)
    _, errors, _ = cobre.case.check(case)
    assert {problem.context.get("file") for problem in errors} == {path}


def test_values_without_effect_are_marked() -> None:
    exports = describe("config.json")["$defs"]["Exports"]["properties"]
    assert {name: part.get("x-honoured") for name, part in exports.items()} == {
        "states": [False],
        "stochastic": None,
        "fpha_deviation_points": [False],
    }
