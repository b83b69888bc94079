"""Its place on the import path gives all tests the helper modules beside it.

A run that leaves a process or a segment behind fails at its end.
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


@pytest.fixture
def only_cleaner_of_segments():
    """For tests that abandon segments, or remove abandoned ones: no other test does so meanwhile."""
    with only_cleaner():
        yield
