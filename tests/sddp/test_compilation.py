"""The other process that compiles the LP engine: when it is started, and that it ends."""

import subprocess

import pytest

from cobre.sddp import compilation
from cobre.sddp.compilation import compiling_engine_ahead


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What is started in place of a compiler, with a kernel cache that has nothing."""
    processes = []

    class Started(subprocess.Popen):
        def __init__(self, command, **options):
            assert command[-1] == compilation._PROGRAM
            super().__init__(["sleep", "30" if processes else "0"], **options)
            processes.append(self)

    monkeypatch.setattr(compilation.subprocess, "Popen", Started)
    monkeypatch.setattr(compilation, "ready_marker", lambda tag: tmp_path / tag)
    monkeypatch.setattr(compilation, "usable_cpus", lambda: 2)
    return processes


def test_the_engine_is_compiled_by_a_process_that_has_ended_afterwards(started):
    with compiling_engine_ahead():
        assert len(started) == 1
    assert started[0].returncode == 0


def test_the_process_ends_with_a_block_that_fails(started):
    with compiling_engine_ahead():
        pass
    with pytest.raises(ValueError, match="no study"), compiling_engine_ahead():
        raise ValueError("no study")
    assert started[1].returncode < 0


@pytest.mark.parametrize("reason", ["compiled", "one processor", "another rank does"])
def test_no_process_is_started_without_need(started, monkeypatch, tmp_path, reason):
    if reason == "compiled":
        (tmp_path / compilation.ENGINE_TAG).touch()
    if reason == "one processor":
        monkeypatch.setattr(compilation, "usable_cpus", lambda: 1)
    with compiling_engine_ahead(reason != "another rank does"):
        pass
    assert not started
