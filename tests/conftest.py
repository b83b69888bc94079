"""Its place on the import path gives all tests ``builders``, ``oracle`` and the modules beside it.

A run that leaves a process or a segment behind fails at its end. Long sweeps run in part, the same part every
time; ``--sweep`` runs them whole.
"""

from __future__ import annotations

import sys

import pytest
from leftovers import abandoned_segments, end_leftovers, mark_session, only_cleaner


class _LeftoverCheck:
    """Fails a run, whose workers have ended, if something of it is left."""

    def __init__(self) -> None:
        self._mark = mark_session()
        self._segments = abandoned_segments()
        self._left: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._left = end_leftovers(self._mark, self._segments)
        if self._left and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left:
            terminalreporter.section("left behind", red=True)
            terminalreporter.write_line("\n".join(self._left))


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "linux" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_LeftoverCheck(), "leftovers")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sweep", action="store_true", help="run long sweeps whole, not in part")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--sweep"):
        left_out = [item for item in items if item.get_closest_marker("sweep")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]


@pytest.fixture
def whole_sweep(request: pytest.FixtureRequest) -> bool:
    """Whether a sweep inside a test runs whole."""
    return bool(request.config.getoption("--sweep"))


@pytest.fixture
def only_cleaner_of_segments():
    """For tests that abandon segments, or remove abandoned ones: no other test does so meanwhile."""
    with only_cleaner():
        yield
