"""A small stand-in for the package in a temporary directory, to be run in fresh processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cobre

PACKAGE = Path(cobre.__file__).parent


class Sandbox:
    """A copy of ``cobre.errors`` and ``cobre.native`` beside which a test may write and edit modules."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "cache"
        package = root / "cobre"
        package.mkdir()
        (package / "__init__.py").touch()
        shutil.copy(PACKAGE / "errors.py", package)
        shutil.copytree(PACKAGE / "native", package / "native", ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, path: str, text: str) -> None:
        """Write a module; the path is relative to the sandbox."""
        (self.root / path).write_text(text)

    def start(self, code: str, **environment: str) -> subprocess.Popen[str]:
        """Start a fresh interpreter that runs the code with the sandbox first on its path."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        variables |= {"PYTHONPATH": str(self.root), "COBRE_CACHE_DIR": str(self.cache), **environment}
        return subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=self.root,
            env=variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, code: str, **environment: str) -> str:
        """Run the code in a fresh interpreter; return what it printed."""
        return self.finish(self.start(code, **environment))

    @staticmethod
    def finish(process: subprocess.Popen[str]) -> str:
        """Wait for a process; return what it printed."""
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return output.strip()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)
