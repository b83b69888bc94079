"""Memory of a rank: what is given back, and that everything still works afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from cobre.sddp.ranks.memory import FileMemory, memory_bytes, return_unused_memory

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


def test_arrays_in_files_take_no_memory_and_come_back():
    given = np.arange(1_000_000.0).reshape(1000, 1000)
    files = FileMemory()
    kept = files.keep(given)
    unread = _bytes_of_files()
    np.testing.assert_array_equal(kept, given, strict=True)
    assert _bytes_of_files() > unread + given.nbytes / 2
    files.unmap()
    assert _bytes_of_files() < unread + given.nbytes / 2
    assert kept[-1, -1] == 999_999.0


def test_arrays_stay_in_memory_where_there_is_no_room_for_a_file(monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    files, given = FileMemory(), np.ones(3)
    assert files.keep(given) is given
    assert files.keep(np.zeros(0)).size == 0
    files.unmap()


def test_several_threads_give_back_memory_while_another_loads_libraries():
    program = (
        "import sys, threading, _ctypes, ctypes.util\n"
        "sys.setswitchinterval(1e-6)\n"
        "from cobre.sddp.ranks.memory import return_unused_memory\n"
        "return_unused_memory()\n"
        "library = ctypes.util.find_library('m')\n"
        "def load():\n"
        "    for _ in range(2000): _ctypes.dlclose(_ctypes.dlopen(library, 2))\n"
        "def give_back():\n"
        "    for _ in range(200): return_unused_memory()\n"
        "threads = [threading.Thread(target=part) for part in 2 * (load, give_back)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
