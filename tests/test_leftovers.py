"""A run of the suite that leaves a process or a segment behind fails, and ends and removes it."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc and /dev/shm"),
    pytest.mark.xdist_group("leftovers"),  # one leaves on purpose what another must not find
]

LEAVES = """
import subprocess, sys
from pathlib import Path
def test_leaves():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    Path("/dev/shm/{segment}").touch()
"""


def run_tests(folder: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a test file with the suite's own conftest."""
    shutil.copy(HERE / "conftest.py", folder)
    (folder / "leftovers.py").write_text(
        (HERE / "leftovers.py").read_text().replace("GRACE_S = 10.0", "GRACE_S = 0.5")
    )
    (folder / "test_it.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_is_left_behind_fails_the_run(tmp_path, workers, only_cleaner_of_segments):
    segment = f"cobre_left_{secrets.token_hex(8)}"
    done = run_tests(tmp_path, LEAVES.format(segment=segment), "-n", workers)
    assert done.returncode == 1, done.stdout
    assert "1 passed" in done.stdout
    (process,) = (line.split()[1].rstrip(":") for line in done.stdout.splitlines() if "time.sleep" in line)
    assert f"segment /dev/shm/{segment}" in done.stdout
    assert not Path(f"/proc/{process}/exe").exists()
    assert not Path(f"/dev/shm/{segment}").exists()


def test_a_clean_run_passes(tmp_path):
    assert run_tests(tmp_path, "def test_nothing():\n    pass\n", "-n", "0").returncode == 0
