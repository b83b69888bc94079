"""The guide to the case format: its examples have the optima it states, and it leaves no key out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from builders.guide_cases import DOCS, EXAMPLES, write

import cobre.case
import cobre.sddp
from cobre.case.bounds import files as bound_files
from cobre.case.format import layout
from cobre.case.format.schema import (
    config,
    generic,
    initial,
    penalties,
    production,
    scenarios,
    stages,
    system,
)
from cobre.case.generic.catalogue import BY_NAME
from cobre.fields import FormatModel

GUIDE = (DOCS / "case-format.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_stated_optimum_is_found(name: str, tmp_path: Path) -> None:
    files, stated = EXAMPLES[name]
    result = cobre.sddp.train(cobre.case.load(write(tmp_path, files)))
    # Stated in whole $.
    assert result.lower_bound == pytest.approx(stated, abs=0.501)
    if name != "cvar":  # whose upper bound is a mean, not the risk measure
        assert result.upper_bound == pytest.approx(result.lower_bound, rel=1e-9)


def models() -> Iterator[type[FormatModel]]:
    for module in (config, generic, initial, penalties, production, scenarios, stages, system):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, FormatModel) and value is not FormatModel:
                yield value


# Options of another solver and of what is refused as a whole are named by their section.
NAMED_BY_SECTION = {
    "PhaseSolverProfile",
    "TrainingSolver",
    "CutSelection",
    "Level1",
    "LimitedMemoryLevel1",
    "Domination",
    "Dynamic",
    "Parallelism",
    "ByNode",
    "Checkpointing",
    "Exports",
    "Lipschitz",
    "UpperBoundEvaluation",
    "TimeLimit",
    "BoundStalling",
    "Gap",
    "SampledSimulation",
    "YearRange",
}


def is_named(key: str) -> bool:
    """Whether the guide has the key as a word of its own, in code or in an example."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(key)}(?![A-Za-z0-9_])", GUIDE) is not None


def test_every_key_is_in_the_guide() -> None:
    missing = {
        f"{model.__name__}.{field.alias or name}"
        for model in models()
        if model.__name__ not in NAMED_BY_SECTION
        for name, field in model.model_fields.items()
        if not is_named(field.alias or name)
    }
    assert missing == set()


def test_every_file_is_in_the_guide() -> None:
    files = [PurePosixPath(path) for path in layout.KNOWN]
    families = re.compile(r"(bounds|penalty_overrides_\w+|external_\w+_scenarios)$")
    missing = [
        str(path)
        for path in files
        if path.name not in GUIDE and path.stem not in GUIDE and not families.search(path.stem)
    ]
    assert missing == []


def test_every_variable_of_expressions_is_in_the_guide() -> None:
    assert [name for name in BY_NAME if not is_named(name)] == []


def test_every_column_of_bounds_is_in_the_guide() -> None:
    tables = [value for value in vars(bound_files).values() if isinstance(value, bound_files.BoundFile)]
    assert len(tables) == 11
    missing = {
        f"{PurePosixPath(table.path).stem}.{column.name}"
        for table in tables
        for column in table.columns
        if not is_named(column.name) and not is_named(column.name.removeprefix("min_").removeprefix("max_"))
    }
    assert missing == set()
