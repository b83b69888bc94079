"""Templates of ``cobre init``: valid, without warnings, described truly, trained in seconds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.json_schema import faults

import cobre.case
import cobre.sddp
from cobre.case.format import describe, layout
from cobre.results.files import write_json, write_parquet
from cobre.templates import TEMPLATES


def write(name: str, directory: Path) -> Path:
    for path, content in TEMPLATES[name].build().items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (write_json if isinstance(content, dict) else write_parquet)(directory / path, content)
    return directory


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_is_valid_and_trains_to_the_stated_bound(name: str, tmp_path: Path) -> None:
    case, errors, warnings = cobre.case.check(write(name, tmp_path))
    assert errors == []
    assert warnings == []
    assert case is not None
    stated = re.search(
        r"In its (\d+) iterations the lower bound .* rises to ([0-9.]+) million \$", TEMPLATES[name].readme()
    )
    assert stated, name
    result = cobre.sddp.train(case)
    assert len(result.history) == int(stated[1])
    assert result.lower_bound / 1e6 == pytest.approx(float(stated[2]), rel=5e-4)


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_fits_the_schemas(name: str) -> None:
    contents = TEMPLATES[name].build()
    assert set(layout.REQUIRED) <= set(contents) <= set(layout.KNOWN)
    for path, content in contents.items():
        document = describe(path)
        if isinstance(content, dict):
            assert faults(content, document, document) == [], path
        else:
            types = {entry["name"]: entry["type"] for entry in document["columns"]}
            arrow = {"int32": "int32", "float64": "double"}
            assert {field.name: str(field.type) for field in content.schema} == {
                column: arrow[types[column]] for column in content.schema.names
            }


def test_templates_show_what_they_say() -> None:
    files = {name: set(template.build()) for name, template in TEMPLATES.items()}
    assert {layout.GEOMETRY, layout.PRODUCTION_MODELS} <= files["cascade"]
    assert {layout.GENERIC_CONSTRAINTS, layout.CONTRACTS, layout.NCS_STATS} <= files["four-region"]
    assert {layout.PUMPING_STATIONS, layout.POST_STUDY} <= files["weekly"]
    summaries = [template.summary for template in TEMPLATES.values()]
    assert len(set(summaries)) == len(summaries)
