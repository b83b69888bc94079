"""The examples in docstrings of public modules run and print what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MODULES = (
    "cobre",
    "cobre.case.format.editing",
    "cobre.case.generic.parser",
    "cobre.case.loader",
    "cobre.case.model.case",
    "cobre.case.problems",
    "cobre.display",
    "cobre.distribution",
    "cobre.errors",
    "cobre.hydro.energy",
    "cobre.hydro.evaporation",
    "cobre.hydro.geometry",
    "cobre.hydro.head",
    "cobre.hydro.hull",
    "cobre.hydro.linear_head",
    "cobre.hydro.tailrace",
    "cobre.lp.shared_arrays",
    "cobre.mcp.catalogue",
    "cobre.mcp.paths",
    "cobre.mcp.resources",
    "cobre.mcp.texts",
    "cobre.members",
    "cobre.policy.digest",
    "cobre.policy.evaluate",
    "cobre.policy.loading",
    "cobre.policy.model",
    "cobre.policy.validity",
    "cobre.results.pages.texts",
    "cobre.sddp.pass_schedule",
    "cobre.sddp.progress",
    "cobre.sddp.ranks.pool",
    "cobre.sddp.study",
    "cobre.stochastic.entities",
    "cobre.units",
)
"""Every module with examples; none of them compiles a kernel."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # examples name the directory of a case as seen from the root
    failed, attempted = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert attempted > 0
    assert failed == 0


def test_no_module_with_examples_is_forgotten() -> None:
    sources = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "cobre").rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    }
    assert sources == set(MODULES)
