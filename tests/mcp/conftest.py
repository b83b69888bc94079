"""A root with a case and a run of it, made once for all tests that only read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mcp_helpers import copy_case, environment

_HERE = Path(__file__).parent
_TIMEOUT_S = 900
"""Of a test: the first one compiles kernels, on a machine that may do other things meanwhile."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


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
        timeout=_TIMEOUT_S,
    )
    return root
