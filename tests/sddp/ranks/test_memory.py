"""Memory of a rank: what is given back, and that everything still works afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from cobre.sddp.ranks.memory import memory_bytes, return_unused_memory

_KIB = 1024


def _bytes_of_files() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * _KIB for line in lines if line.startswith("RssFile"))


def test_code_of_libraries_is_unmapped_and_comes_back():
    matrix = np.arange(10_000.0).reshape(100, 100) + np.eye(100) * 1e6
    before = np.linalg.solve(matrix, np.ones(100))
    mapped = _bytes_of_files()
    return_unused_memory()
    assert _bytes_of_files() < mapped / 2
    assert np.linalg.solve(matrix, np.ones(100)).tobytes() == before.tobytes()
    assert pa.array([1, 2]).cast(pa.float64()).to_pylist() == [1.0, 2.0]


def test_freed_tables_are_given_back():
    table = pa.table({"x": np.ones(8_000_000)})
    held, _ = memory_bytes()
    copied = pa.concat_tables([table, table]).combine_chunks()
    assert memory_bytes()[0] > held
    del copied, table
    return_unused_memory()
    assert memory_bytes()[0] < held
