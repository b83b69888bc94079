"""``cobre schema``: one document for each file of the format."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import check_envelope, snapshot, strict_json

from cobre.case.format import describe, schema_paths
from cobre.cli import main


def test_documents_are_written_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "schemas"
    assert main(["schema", str(directory), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "schema", 0)
    listed = {entry["describes"]: entry["path"] for entry in envelope["data"]["files"]}
    assert listed == schema_paths()
    written = [path for path, content in snapshot(directory).items() if content is not None]
    assert sorted(written) == sorted(listed.values())
    for described, path in listed.items():
        assert strict_json((directory / path).read_text(encoding="utf-8")) == describe(described)
    before = snapshot(directory)
    assert main(["schema", str(directory)]) == 0
    assert "system/hydros.schema.json" in capsys.readouterr().out
    assert snapshot(directory) == before


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["schema", str(tmp_path / "file"), "--output-format", "json"]) == 2
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "schema", 2)
    assert envelope["errors"][0]["kind"] == "OutputNotWritable"
