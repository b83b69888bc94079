"""A run of a small study with deficits, as it lies on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import cobre
from builders.paths import EXAMPLES


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of training and 50 scenarios of random-inflow with a quarter less thermal capacity."""
    editor = cobre.load_case(EXAMPLES / "random-inflow").edit()
    for thermal in editor["system/thermals.json"]["thermals"]:
        thermal["generation"]["max_mw"] *= 0.75
    output = tmp_path_factory.mktemp("report") / "results"
    cobre.Study(editor.build()).run(iterations=6, scenarios=50, output=output)
    return output
