"""Where the public cases lie: ``shared/cases`` beside the repository, or beside a directory above it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.paths import ROOT


def shared_cases() -> Path:
    """Directory of the public cases; the calling test is skipped where there is none."""
    for directory in ROOT.parents:
        candidate = directory / "shared" / "cases"
        if (candidate / "reference.json").is_file():
            return candidate
    pytest.skip("the shared cases are not here")


def reference_bound(name: str) -> float:
    """Final lower bound of a public case as published with it."""
    content = json.loads((shared_cases() / "reference.json").read_text(encoding="utf-8"))
    return float(content[name]["0.18.0"]["lower_bound"])


def shared_system(name: str) -> Path:
    """Directory of a case of ``shared/systems``; the calling test is skipped where there is none."""
    for directory in ROOT.parents:
        candidate = directory / "shared" / "systems" / name
        if candidate.is_dir():
            return candidate
    pytest.skip(f"the shared system {name} is not here")
