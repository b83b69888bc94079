"""``docs/validation.md`` is what its command makes; rows marked as slow are not made here."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from builders.paths import DOCS


@pytest.fixture(scope="module")
def validation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_validation", DOCS / "make_validation.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_validation"] = module
    spec.loader.exec_module(module)
    return module


def rows_by_title(text: str) -> dict[str, list[str]]:
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    return {
        title: [line for line in body.splitlines() if line.startswith("| ") and " † |" not in line][1:]
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.sweep
def test_page_is_what_the_command_makes(validation: ModuleType) -> None:
    page = rows_by_title((DOCS / "validation.md").read_text(encoding="utf-8"))
    sections = validation.sections()
    assert list(page) == [section.title for section in sections]
    here = validation.shared_is_there()
    for section in sections:
        if section.shared and not here:
            continue
        rows = validation.made(section, fast=True)
        assert [row.text() for row in rows if not row.is_as_expected()] == []
        assert page[section.title] == [row.text() for row in rows], "run: python docs/make_validation.py"


def test_nothing_is_written_without_the_shared_cases(
    validation: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "validation.md"
    monkeypatch.setattr(validation, "PAGE", page)
    monkeypatch.setattr(validation, "ROOT", tmp_path)
    assert validation.main([]) == 1
    assert not page.exists()
    lacking = capsys.readouterr().err
    assert all((section.title in lacking) == section.shared for section in validation.sections())


def test_a_number_that_is_not_as_expected_is_noticed(validation: ModuleType) -> None:
    def holds(theirs: float, ours: float, expected: str) -> bool:
        return bool(validation.Row("case", "what", "source", theirs, ours, expected, 1e-6).is_as_expected())

    assert holds(100.0, 100.00001, validation.SAME)
    assert not holds(100.0, 100.001, validation.SAME)
    assert holds(100.0, 99.99999, validation.BELOW)
    assert not holds(100.0, 99.0, validation.BELOW)
    assert not holds(100.0, 100.00001, validation.BELOW)
    assert holds(100.0, 100.00001, validation.ABOVE)
    assert not holds(100.0, 99.99999, validation.ABOVE)
    assert holds(100.0, 101.0, validation.DIFFERS)
    assert not holds(100.0, 100.0, validation.DIFFERS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2_626_111.1111111, "2,626,111.111"),
        (0.0, "0"),
        (-6_862_000.0, "-6,862,000"),
        (1.2e12, "1,200,000,000,000"),
    ],
)
def test_numbers_have_ten_digits(validation: ModuleType, value: float, text: str) -> None:
    assert validation.number(value) == text
