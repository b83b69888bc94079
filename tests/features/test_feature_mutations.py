"""Mutated copies of the case with everything in it: problems, never another exception.

The number of copies is ``COBRE_TEST_MUTATIONS`` (300 unless it is set).
"""

import contextlib
import json
import math
import os

import pyarrow as pa
import pytest
from builders.case_files import table
from builders.rich_case import rich_files
from mutations import Documents, Mutant, random_mutants

from cobre.case import Case, build
from cobre.case.format.columns import PARQUET_FILES
from cobre.errors import CobreError, Problem, ValidationError
from cobre.lp import measure_stages

COUNT = int(os.environ.get("COBRE_TEST_MUTATIONS", "300"))
PARTS = 4
KINDS = {
    "FileNotFound",
    "ParseError",
    "SchemaViolation",
    "InvalidReference",
    "DuplicateId",
    "InvalidValue",
    "CycleDetected",
    "DimensionMismatch",
    "BusinessRuleViolation",
    "NotImplemented",
}
WARNING_KINDS = {"UnusedEntity", "ModelQuality", "SemanticAmbiguity"}


def rich_documents() -> Documents:
    return {
        path: table(content) if isinstance(content, list) else content
        for path, content in rich_files().items()
    }


def outcome(documents: Documents) -> tuple[Case | None, list[Problem]]:
    """Return the case or the errors."""
    try:
        return build(documents), []
    except ValidationError as error:
        return None, list(error.problems)


def assert_well_formed(problems: list[Problem], kinds: set[str], what: str) -> None:
    for problem in problems:
        assert problem.kind in kinds, (what, problem)
        assert problem.message.endswith((".", "^")), (what, problem)  # a caret points into expressions
        assert problem.context["file"], (what, problem)
        json.dumps(problem.as_dict(), allow_nan=False)


def judge(mutant: Mutant) -> bool:
    """Check what is said about a mutant, and that an accepted one has stage LPs; return whether it is."""
    case, errors = outcome(mutant.documents)
    assert (case is None) == bool(errors), mutant.what
    assert_well_formed(errors, KINDS, mutant.what)
    if case is None:
        return False
    assert_well_formed(list(case.warnings), WARNING_KINDS, mutant.what)
    case.to_arrow()
    case.summary()
    with contextlib.suppress(CobreError):  # a reward without limit, say
        measure_stages(case)
    return True


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_cases_give_problems_only(part: int) -> None:
    documents = rich_documents()
    assert outcome(documents)[1] == []
    accepted = sum(judge(mutant) for mutant in random_mutants(documents, COUNT // PARTS, seed=part))
    assert 0 < accepted < COUNT // PARTS


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_column_of_values_takes_what_is_no_number(bad: float) -> None:
    """Null in an optional column means "not given"; NaN and infinity are refused, by row and entity."""
    documents = rich_documents()
    spoilt: list[tuple[str, str]] = []
    for path, file in PARQUET_FILES.items():
        if path not in documents:
            continue
        for column in file.columns:
            if column.type == "float64":
                documents[path] = _with_first_cell(documents[path], column.name, bad)
                spoilt.append((path, column.name))
    errors = outcome(documents)[1]
    assert len(spoilt) > 60
    for path, name in spoilt:
        found = [
            problem
            for problem in errors
            if problem.context["file"] == path
            and f": {name} " in problem.message
            and " in row 0 " in problem.message
        ]
        assert found, (path, name)
        assert all(problem.context["entity"] and problem.suggestion for problem in found), (path, name)


def _with_first_cell(content: pa.Table, name: str, value: float) -> pa.Table:
    """Return the table with another first cell in a column, which is added where it is absent."""
    given = content.column(name).to_pylist() if name in content.column_names else [None] * content.num_rows
    rest = content.drop_columns([name]) if name in content.column_names else content
    return rest.append_column(name, pa.array([value, *given[1:]], pa.float64()))
