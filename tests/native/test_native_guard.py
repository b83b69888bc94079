"""Processes that start at once compile once."""

from __future__ import annotations

import numba
import pytest

from cobre.native import cache, compile_for, compile_guard, guard, kernel_cache_stats, package_stamp

KERNELS = """
from numba import njit
from cobre.native import compile_guard, kernel_cache_stats

@njit(cache=True)
def kernel(x):
    total = 0.0
    for i in range(10):
        total += x * i
    return total
"""
TOGETHER = """
import pathlib, time
from cobre.kernels import *
pathlib.Path("arrived-{name}").touch()
while len(list(pathlib.Path(".").glob("arrived-*"))) < {processes}:
    time.sleep(0.001)
with compile_guard("test"):
    kernel(1.0)
print(*kernel_cache_stats(kernel))
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COBRE_CACHE_DIR", str(tmp_path / "cache"))
    cache._resolve.cache_clear()
    yield
    cache._resolve.cache_clear()


def test_three_processes_compile_once(sandbox):
    sandbox.write("cobre/kernels.py", KERNELS)
    processes = [sandbox.start(TOGETHER.format(name=name, processes=3)) for name in "abc"]
    outputs = sorted(sandbox.finish(process) for process in processes)
    assert outputs == ["0 1", "1 0", "1 0"]


def test_a_killed_holder_does_not_leave_the_others_waiting(sandbox):
    sandbox.write("cobre/kernels.py", KERNELS)
    holder = sandbox.start(
        "from cobre.kernels import *\nimport time\n"
        "with compile_guard('test'):\n    print('inside', flush=True)\n    time.sleep(600)"
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "inside\n"
        waiting = sandbox.start(TOGETHER.format(name="only", processes=1))
    finally:
        holder.kill()
        holder.communicate()
    assert sandbox.finish(waiting) == "0 1"


def test_a_failure_inside_leaves_no_marker():
    with pytest.raises(RuntimeError), compile_guard("failing"):
        raise RuntimeError
    assert not guard.ready_marker("failing").exists()
    with compile_guard("failing"):
        pass
    assert guard.ready_marker("failing").exists()


def test_a_guard_inside_a_guard_does_not_wait_for_itself():
    with compile_guard("outer"), compile_guard("inner"):
        assert not guard.ready_marker("outer").exists()
    assert guard.ready_marker("outer").exists()
    assert guard.ready_marker("inner").exists()


def test_nobody_locks_once_the_marker_is_there():
    with compile_guard("first"):
        assert guard._holder_pid != 0
    with compile_guard("first"):
        assert guard._holder_pid == 0


def test_marker_names_everything_that_selects_other_code():
    marker = guard.ready_marker("tag")
    assert marker.name == f".ready-tag-{package_stamp()[:16]}-{guard.target_digest()}"
    assert numba.__version__ in marker.parent.name


@pytest.mark.parametrize("tag", ["", "a/b", "../x", "a b"])
def test_a_tag_that_is_no_file_name_is_refused(tag):
    with pytest.raises(ValueError, match="compile tag"), compile_guard(tag):
        pass


def test_without_the_jit_there_is_nothing_to_guard(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", True)
    with compile_guard("plain"):
        assert guard._holder_pid == 0
    compile_for(len, "plain", 1)
    assert not guard.ready_marker("plain").exists()
    assert kernel_cache_stats(len) == (0, 0)


def test_compile_for_compiles_without_running(sandbox):
    sandbox.write("cobre/kernels.py", KERNELS)
    code = (
        "from cobre.kernels import *\nfrom cobre.native import compile_for\ncompile_for(kernel, 't', 1.0)\n"
        "print(len(kernel.signatures), *kernel_cache_stats(kernel))"
    )
    assert sandbox.run(code) == "1 0 1"
    assert sandbox.run(code) == "1 1 0"
