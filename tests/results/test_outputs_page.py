"""The page of outputs lists every table and column as they are."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from builders.paths import DOCS

from cobre.results.simulation.catalogue import TABLES


def make_outputs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_outputs", DOCS / "make_outputs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_made_from_the_tables() -> None:
    text = (DOCS / "outputs.md").read_text(encoding="utf-8")
    assert make_outputs().page(text) == text, "run: python docs/make_outputs.py"
    for spec in TABLES:
        assert f"### {spec.name}\n" in text
        for column in spec.columns:
            assert f"| `{column.name}` | {column.type}" in text
