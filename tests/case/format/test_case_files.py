"""Files that are missing, unreadable, misplaced, unknown or not supported yet."""

import os
from pathlib import Path

import pytest
from builders.base_case import PATHS, errors_of, only, pick, warnings_of, write_case

from cobre.case import check
from cobre.case.format import layout
from cobre.case.problems import Reporter

JSON_NAMES = [name for name, path in PATHS.items() if path.endswith(".json")]
REQUIRED_NAMES = [name for name, path in PATHS.items() if path in layout.REQUIRED]


@pytest.mark.parametrize("name", REQUIRED_NAMES)
def test_missing_file(tmp_path: Path, name: str) -> None:
    problem = only(
        write_case(tmp_path, **{name: None}), "FileNotFound", file=PATHS[name], rule="structural.2"
    )
    assert PATHS[name] in problem.message
    assert problem.suggestion


def test_empty_directory_reports_the_eight_files(tmp_path: Path) -> None:
    problems = errors_of(tmp_path)
    assert [problem.context["file"] for problem in problems] == list(layout.REQUIRED)
    assert "cobre init" in (problems[0].suggestion or "")


def test_case_directory_does_not_exist(tmp_path: Path) -> None:
    problem = only(tmp_path / "nowhere", "FileNotFound", file=".")
    assert "nowhere" in problem.message
    assert "does not exist" in problem.message


def test_case_directory_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    assert "is not a directory" in only(tmp_path / "x", "FileNotFound").message


def test_a_file_of_a_case_leads_to_its_directory(tmp_path: Path) -> None:
    case = write_case(tmp_path / "mine")
    assert str(case) in (only(case / "config.json", "FileNotFound").suggestion or "")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_impossible_case_path(path: str) -> None:
    assert [problem.kind for problem in check(path)[1]] == ["FileNotFound"]


@pytest.mark.parametrize("name", JSON_NAMES)
def test_broken_json_gives_line_and_column(tmp_path: Path, name: str) -> None:
    path = write_case(tmp_path, **{name: '{\n  "a": 1,\n  "b" 2\n}'})
    problem = only(path, "ParseError", file=PATHS[name], line=3, column=7)
    assert "line 3, column 7" in problem.message


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        (b"", "ParseError", "empty"),
        (b" \n\t", "ParseError", "empty"),
        (b'{"name": "\xff\xfe"}', "ParseError", "UTF-8"),
        (b"[]", "SchemaViolation", "an array"),
        (b'"text"', "SchemaViolation", "a string"),
        (b"null", "SchemaViolation", "null"),
        (b"true", "SchemaViolation", "a boolean"),
        (b"12", "SchemaViolation", "a number"),
        (b'{"a": 1} // comment', "ParseError", "line 1"),
        (b"[" * 100_000, "ParseError", "nested too deeply"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "ParseError", "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "ParseError", "cannot be read"),
        (b'{"a": "\\ud800"}', "ParseError", "Unicode"),
    ],
)
def test_unreadable_json(tmp_path: Path, content: bytes, kind: str, text: str) -> None:
    assert text in only(write_case(tmp_path, lines=content), kind, file="system/lines.json").message


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert warnings_of(write_case(tmp_path, lines=b'\xef\xbb\xbf{"lines": []}')) == []


@pytest.mark.parametrize("name", ["config", "inflow"])
def test_directory_in_place_of_a_file(tmp_path: Path, name: str) -> None:
    path = write_case(tmp_path, **{name: None})
    (path / PATHS[name]).mkdir(parents=True)
    assert "directory" in only(path, "ParseError", file=PATHS[name]).message


@pytest.mark.parametrize("name", ["config", "load"])
def test_link_to_itself(tmp_path: Path, name: str) -> None:
    path = write_case(tmp_path, **{name: None})
    (path / PATHS[name]).symlink_to(path / PATHS[name])
    assert "cannot be read" in only(path, "ParseError", file=PATHS[name]).message


def test_pipe_in_place_of_a_file(tmp_path: Path) -> None:
    path = write_case(tmp_path, config=None)
    os.mkfifo(path / "config.json")
    assert "not a regular file" in only(path, "ParseError", file="config.json").message


@pytest.mark.parametrize("name", ["config", "load"])
def test_link_to_nothing(tmp_path: Path, name: str) -> None:
    path = write_case(tmp_path, **{name: None})
    (path / PATHS[name]).symlink_to(path / "gone")
    only(path, "FileNotFound", file=PATHS[name])


def test_file_in_place_of_a_directory(tmp_path: Path) -> None:
    path = write_case(tmp_path, inflow=None, load=None, load_factors=None)
    (path / "scenarios").write_text("")
    assert "must be a directory" in only(path, "SchemaViolation", file="scenarios").message


def test_repeated_key(tmp_path: Path) -> None:
    text = '{"buses": [{"id": 0, "id": 0, "name": "A", "operational_start_date": "1900-01-01"}], "buses": []}'
    problem = pick(
        errors_of(write_case(tmp_path, buses=text)),
        "SchemaViolation",
        file="system/buses.json",
        field="buses",
    )
    assert "more than once" in problem.message


def test_repeated_key_inside(tmp_path: Path) -> None:
    text = '{"lines": [], "$schema": "a", "$schema": "b"}'
    only(write_case(tmp_path, lines=text), "SchemaViolation", field="$schema", value="b")
    text = '{"lines": [{"id": 0, "capacity": {"direct_mw": 1, "direct_mw": 2}}]}'
    pick(
        errors_of(write_case(tmp_path, lines=text)),
        "SchemaViolation",
        field="lines[0].capacity.direct_mw",
        value=2,
    )


@pytest.mark.parametrize("file", sorted(layout.RETIRED))
def test_retired_files(tmp_path: Path, file: str) -> None:
    only(write_case(tmp_path, extra={file: "{}"}), "BusinessRuleViolation", file=file, rule="structural.1")


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("scenarios/inflow_seasonal_stat.parquet", "inflow_seasonal_stats.parquet"),
        ("scenarios/whatever.json", "Files in scenarios"),
        ("constraints/line_bound.parquet", "line_bounds.parquet"),
        ("system/storage.json", "Files in system"),
        ("configs.json", "config.json"),
        ("config.parquet", "config.json"),
        ("Config.json", "config.json"),
        ("hydros.json", "system/hydros.json is there as well"),
        ("system/correlation.json", "Move it to scenarios/correlation.json"),
    ],
)
def test_unknown_files(tmp_path: Path, file: str, hint: str) -> None:
    problem = only(write_case(tmp_path, extra={file: "{}"}), "SchemaViolation", file=file)
    assert hint in (problem.suggestion or "")


def judged(*paths: str, directories: tuple[str, ...] = ()) -> Reporter:
    """Report on a case of the required files and some more."""
    reporter = Reporter()
    layout.judge(frozenset({*layout.REQUIRED, *paths, *directories}), frozenset(directories), reporter)
    return reporter


@pytest.mark.parametrize("meant", layout.OPTIONAL)
def test_no_file_of_the_format_is_passed_over_under_another_name(meant: str) -> None:
    folder, _, name = meant.rpartition("/")
    stem, _, suffix = name.partition(".")
    places = [folder, "", "data", *layout.DIRECTORIES, f"{folder or 'system'}/2024"]
    names = [f"{stem}{ending}" for ending in (".csv", ".CSV", ".pq", ".yaml", ".xlsx", "", f".{suffix}.gz")]
    names += [f"{stem}.{'parquet' if suffix == 'json' else 'json'}", f"{stem}.{suffix.upper()}"]
    names += [name, name.upper(), name.capitalize(), name.replace("_", "-"), name.replace("_", " ")]
    for path in {f"{place}/{other}".lstrip("/") for place in places for other in names} - {meant}:
        (error,) = judged(path).errors
        assert path in error.message
        assert meant in f"{error.message} {error.suggestion}", path
        beside = judged(path, meant)
        assert len(beside.errors) + len(beside.warnings) == 1, path
    for path in (meant.partition(".")[0], f"data/{stem}"):
        (error,) = judged(directories=(path,)).errors
        assert meant in error.message
        assert not judged(meant, directories=(path,)).errors


def test_backups_and_pictures_of_files_are_no_errors() -> None:
    assert judged("scenarios/correlation.png", "stages.md", "system/hydros.pdf").warnings == []
    backup = judged("constraints/hydro_bounds.parquet.bak")
    assert backup.errors == []
    assert "constraints/hydro_bounds.parquet" in backup.warnings[0].message


def test_folders_are_searched_for_misplaced_files(tmp_path: Path) -> None:
    names = ("data/line_bounds.parquet", "scenarios/2024/stats/inflow_history.parquet")
    kept = ("output/correlation.json", "stochastic/correlation.json", "results/stochastic/correlation.json")
    path = write_case(tmp_path, extra=dict.fromkeys((*names, *kept, "data/other.parquet"), "{}"))
    assert {problem.context["file"] for problem in errors_of(path)} == set(names)


@pytest.mark.parametrize("file", ["constraints/hydro_bounds.parquet", "scenarios/correlation.json"])
def test_a_folder_in_place_of_a_file(tmp_path: Path, file: str) -> None:
    path = write_case(tmp_path)
    (path / file).mkdir(parents=True)
    assert errors_of(path)[0].context["file"] == file


def test_misspelt_required_file_is_named(tmp_path: Path) -> None:
    errors = errors_of(write_case(tmp_path, config=None, extra={"confg.json": "{}"}))
    assert "confg.json" in (pick(errors, "FileNotFound", file="config.json").suggestion or "")
    pick(errors, "SchemaViolation", file="confg.json")


def test_misspelt_directory(tmp_path: Path) -> None:
    path = write_case(tmp_path)
    (path / "constraint").mkdir()
    assert "constraints" in (only(path, "SchemaViolation", file="constraint").suggestion or "")


def test_other_files_at_the_root(tmp_path: Path) -> None:
    extra = {
        "reference.json": "{}",
        "README.md": "x",
        ".hidden.json": "x",
        "output/config.json": "x",
        "system/notes.txt": "x",
    }
    warnings = warnings_of(write_case(tmp_path, extra=extra))
    assert [(w.kind, w.context["file"]) for w in warnings] == [("SemanticAmbiguity", "reference.json")]
