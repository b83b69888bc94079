"""Bad input: exit code 3, all problems at once with their place, nothing written."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_helpers import check_envelope, copy_example, edit_json, run, snapshot, strict_json

from cobre.cli import main

HYDROS = "system/hydros.json"
THERMALS = "system/thermals.json"
INFLOW = "scenarios/inflow_seasonal_stats.parquet"


def missing_file(case: Path) -> None:
    (case / "penalties.json").unlink()


def broken_json(case: Path) -> None:
    (case / THERMALS).write_text('{"thermals": [', encoding="utf-8")


def unknown_key(case: Path) -> None:
    edit_json(case / "config.json", lambda content: content["training"].update(tree_sed=1))


def dangling_id(case: Path) -> None:
    edit_json(case / THERMALS, lambda content: content["thermals"][0].update(bus_id=99))


def negative_capacity(case: Path) -> None:
    edit_json(case / THERMALS, lambda content: content["thermals"][0]["generation"].update(max_mw=-5.0))


def nan_in_parquet(case: Path) -> None:
    table = pq.read_table(case / INFLOW)
    position = table.schema.get_field_index("mean_m3s")
    values = table.column("mean_m3s").to_pylist()
    values[0] = math.nan
    pq.write_table(table.set_column(position, "mean_m3s", pa.array(values)), case / INFLOW)


def empty_stages(case: Path) -> None:
    edit_json(case / "stages.json", lambda content: content.update(stages=[]))


FAULTS: list[tuple[Callable[[Path], None], str, list[str]]] = [
    (missing_file, "penalties.json", []),
    (broken_json, THERMALS, ["line", "column"]),
    (unknown_key, "config.json", ["field"]),
    (dangling_id, THERMALS, ["entity", "field", "value"]),
    (negative_capacity, THERMALS, ["entity", "field", "value"]),
    (nan_in_parquet, INFLOW, ["field", "value"]),
    (empty_stages, "stages.json", ["field"]),
]
BY_NAME = [pytest.param(*fault, id=fault[0].__name__) for fault in FAULTS]


@pytest.mark.parametrize("command", ["validate", "train"])
@pytest.mark.parametrize(("spoil", "file", "keys"), BY_NAME)
def test_each_fault_as_json(tmp_path, monkeypatch, capsys, command, spoil, file, keys):
    case = copy_example(tmp_path)
    spoil(case)
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    assert main([command, str(case), "--output-format", "json"]) == 3
    captured = capsys.readouterr()
    envelope = strict_json(captured.out)
    check_envelope(envelope, command, 3)
    assert captured.err == ""
    places = [problem["context"] for problem in envelope["errors"] if problem["context"]["file"] == file]
    assert any(all(key in place for key in keys) for place in places), envelope["errors"]
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(("spoil", "file", "keys"), BY_NAME)
def test_each_fault_for_people(tmp_path, capsys, spoil, file, keys):
    case = copy_example(tmp_path)
    spoil(case)
    assert main(["train", str(case)]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert file in captured.err
    assert "error: [" in captured.err


def test_all_faults_are_listed_at_once(tmp_path, capsys):
    case = copy_example(tmp_path)
    missing_file(case)
    unknown_key(case)
    nan_in_parquet(case)
    edit_json(case / THERMALS, lambda content: content["thermals"][0]["generation"].update(max_mw=-5.0))
    assert main(["validate", str(case), "--output-format", "json"]) == 3
    envelope = strict_json(capsys.readouterr().out)
    files = {problem["context"]["file"] for problem in envelope["errors"]}
    assert {"penalties.json", "config.json", INFLOW, THERMALS} <= files
    assert envelope["summary"]["error_count"] == len(envelope["errors"])


def test_text_shows_entity_field_value_and_suggestion(tmp_path, capsys):
    case = copy_example(tmp_path)
    negative_capacity(case)
    assert main(["validate", str(case), "--output-format", "json"]) == 3
    (problem, *_) = strict_json(capsys.readouterr().out)["errors"]
    assert main(["validate", str(case)]) == 3
    text = capsys.readouterr().err
    context = problem["context"]
    assert str(context["entity"]) in text
    assert f"{context['field']} = {context['value']}" in text
    assert problem["message"] in text
    assert problem["suggestion"] in text


@pytest.mark.parametrize("command", ["validate", "train"])
def test_missing_case_directory(tmp_path, capsys, command):
    assert main([command, str(tmp_path / "nowhere"), "--output-format", "json"]) == 3
    check_envelope(strict_json(capsys.readouterr().out), command, 3)
    assert list(tmp_path.iterdir()) == []


def test_bad_input_as_json_lines(tmp_path, capsys):
    assert main(["train", str(tmp_path / "nowhere"), "--output-format", "json-lines"]) == 3
    lines = [strict_json(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == ["started", "terminated", "result"]
    assert lines[1]["reason"] == "error"


def test_valid_case(tmp_path, capsys):
    case = copy_example(tmp_path)
    before = snapshot(tmp_path)
    assert main(["validate", str(case), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "validate", 0)
    assert envelope["data"]["stages"] == 4
    assert main(["validate", str(case)]) == 0
    assert "Valid case" in capsys.readouterr().out
    assert snapshot(tmp_path) == before


def test_errors_come_before_compiled_code_is_loaded(tmp_path):
    """A wrong case is answered without Numba's second of import."""
    done = run("validate", tmp_path, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 3
    assert "numba" not in done.stderr
