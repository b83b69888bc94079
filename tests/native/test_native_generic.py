"""Functions over a jitclass: cached for each, and compiled anew when its sources change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from numba import types
from numba.experimental import jitclass

from cobre.errors import CobreError
from cobre.native import function_over

KERNEL = """
from numba import types
from cobre.native import stable_jitclass
from foreign.factor import FACTOR

@stable_jitclass([("_x", types.int64)])
class Foreign:
    def __init__(self, x):
        self._x = x
    def barrier(self):
        return self._x * FACTOR
"""
CALL = """
from foreign.kernel import Foreign
from cobre.comm.owner import entries_over
from cobre.native import kernel_cache_stats
barrier = entries_over(Foreign).barrier
print(barrier((7,)), *kernel_cache_stats(barrier))
"""


def test_a_class_of_another_package_is_cached_and_an_edit_beside_it_noticed(tmp_path):
    package = tmp_path / "foreign"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernel.py").write_text(KERNEL)

    def outcome(factor: int) -> str:
        (package / "factor.py").write_text(f"FACTOR = {factor}\n")
        environment = {
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "COBRE_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", CALL]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert [outcome(1), outcome(1), outcome(3)] == ["7 0 1\n", "7 1 0\n", "21 0 1\n"]
    assert not list(package.glob("__pycache__/*.nb?")), "it belongs into the private cache"


def test_a_class_whose_name_changes_with_the_process_is_refused():
    @jitclass([("_x", types.int64)])
    class Ordinary:
        def __init__(self, x):
            self._x = x

    with pytest.raises(CobreError, match=r"Ordinary .* cannot be kept") as caught:
        function_over(lambda x: x, Ordinary)
    assert "stable_jitclass" in caught.value.suggestion
