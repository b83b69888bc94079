"""``cobre init``: a new case, never over something that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import check_envelope, snapshot, strict_json

from cobre.cli import main
from cobre.cli.choices import TemplateName
from cobre.templates import TEMPLATES


def test_the_options_are_the_templates() -> None:
    assert [item.value for item in TemplateName] == list(TEMPLATES)


@pytest.mark.parametrize("name", TEMPLATES)
def test_new_case_validates(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = tmp_path / "new" / "case"
    assert main(["init", str(case), "--template", name]) == 0
    told = capsys.readouterr().out
    assert "cobre run" in told
    assert TEMPLATES[name].title in (case / "README.md").read_text(encoding="utf-8")
    assert main(["validate", str(case), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    assert envelope["warnings"] == []


def test_json_lists_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "case"), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "init", 0)
    assert envelope["data"]["template"] == "toy"
    written = [path for path, content in snapshot(tmp_path / "case").items() if content is not None]
    assert sorted(envelope["data"]["files"]) == sorted(written)
    assert envelope["summary"] == {"file_count": len(written)}


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--list"]) == 0
    assert all(name in capsys.readouterr().out.split() for name in ("toy",))
    assert main(["init", "--list", "--output-format", "json"]) == 0
    templates = strict_json(capsys.readouterr().out)["data"]["templates"]
    assert {entry["name"]: entry["summary"] for entry in templates} == {
        name: template.summary for name, template in TEMPLATES.items()
    }


def test_an_empty_directory_is_used(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "config.json").is_file()


def test_a_directory_with_something_in_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    before = snapshot(tmp_path)
    assert main(["init", str(tmp_path), "--output-format", "json"]) == 2
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "init", 2)
    assert envelope["errors"][0]["kind"] == "DirectoryNotEmpty"
    assert "notes.txt" in envelope["errors"][0]["message"]
    assert snapshot(tmp_path) == before


def test_force_replaces_its_own_files_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--template", "weekly", "--quiet"]) == 0
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    capsys.readouterr()
    assert main(["init", str(tmp_path), "--force", "--output-format", "json"]) == 0
    warned = {item["context"]["file"] for item in strict_json(capsys.readouterr().out)["warnings"]}
    assert warned == set(TEMPLATES["weekly"].build()) - set(TEMPLATES["toy"].build())
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert config == TEMPLATES["toy"].build()["config.json"]


def test_places_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["init", str(tmp_path / "file")]) == 2
    assert "it is a file" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "file" / "below")]) == 2
    assert main(["init"]) == 1
    assert "give the directory" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "case"), "--template", "nothing"]) == 1
    assert not (tmp_path / "case").exists()


def test_a_synthetic_case_of_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--size",
        "mid",
        "--hydros",
        "7",
        "--stages",
        "3",
        "--blocks",
        "2",
        "--openings",
        "4",
        "--seed",
        "5",
    ]
    case = tmp_path / "case"
    assert main(["init", str(case), "--template", "synthetic", *options, "--quiet"]) == 0
    assert main(["validate", str(case), "--output-format", "json"]) == 0
    # Seven plants of the 30 that the buses and loads are made for cannot serve all of them.
    warnings = strict_json(capsys.readouterr().out)["warnings"]
    assert all("above all that can reach it" in warning["message"] for warning in warnings), warnings
    hydros = json.loads((case / "system/hydros.json").read_text(encoding="utf-8"))["hydros"]
    stages = json.loads((case / "stages.json").read_text(encoding="utf-8"))["stages"]
    assert (len(hydros), len(stages), len(stages[0]["blocks"]), stages[0]["num_openings"]) == (7, 3, 2, 4)
    again = tmp_path / "again"
    told = (case / "README.md").read_text(encoding="utf-8")
    command = next(text for text in told.splitlines() if "cobre init DIR" in text).split()[3:]
    assert main(["init", str(again), *command, "--quiet"]) == 0
    assert snapshot(again) == snapshot(case)


@pytest.mark.parametrize(
    "options",
    [
        ["--hydros", "5"],
        ["--template", "cascade", "--size", "mid"],
        ["--template", "synthetic", "--hydros", "0"],
        ["--template", "synthetic", "--order", "13"],
        ["--template", "synthetic", "--fpha-share", "1.5"],
    ],
)
def test_options_that_do_not_fit_the_template(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "case"), *options]) == 1
    assert next(word for word in reversed(options) if word.startswith("--")) in capsys.readouterr().err
    assert not (tmp_path / "case").exists()
