"""A root with a case and a run of it, made once for all tests that only read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mcp_helpers import copy_case, environment


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root: ``plan`` with ``plan/output`` of a run, and ``other``; nobody writes there."""
    root = tmp_path_factory.mktemp("finished")
    case = copy_case(root)
    copy_case(root, "ordered-ahead", "other")
    options = ("--iterations", "10", "--scenarios", "8", "--output", str(case / "output"), "--quiet")
    subprocess.run(
        [sys.executable, "-m", "cobre", "run", str(case), *options],
        env=environment(),
        check=True,
        timeout=280,
    )
    return root
