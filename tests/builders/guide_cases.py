"""The base case of the guide to the case format, and how to change and write it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from builders.paths import DOCS


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNER = _load(DOCS / "run_examples.py")
EXAMPLES = RUNNER.examples()
change, write = RUNNER.change, RUNNER.write
