"""A communicator of another distribution, installed beside the package, without a line changed in it.

``examples/third-party-communicator`` is built and installed by pip into a directory of its own; from there it
passes rows of the conformance suite, and trains a case on three ranks to the same bytes as one process does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cobre.sddp import train

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "third-party-communicator"
CASE = ROOT / "examples" / "random-inflow"
PIP = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target")
ROWS = (
    *("allgatherv_heterogeneous", "allreduce_sum", "broadcast_root_last", "same_function"),
    *("divergence_count", "barrier_timeout", "second_thread_is_refused"),
    *("rank_1_dies_inside_a_collective", "rank_0_dies_at_close"),
)
CONFORMANCE = """
import sys
from cobre.comm.conformance import run_conformance, targets_named
from cobre.comm.conformance.catalogue import check_named
report = run_conformance(*targets_named("files"), 3, checks=[check_named(name) for name in sys.argv[1:]])
print(*report.lines(only_faults=True), sep="\\n")
sys.exit(not report.passed)
"""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the example calls the C library of Linux"),
    pytest.mark.xdist_group("third-party"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Variables of a process that finds the example installed, with a temporary directory of its own."""
    base = tmp_path_factory.mktemp("third-party")
    source, site, left = base / "source", base / "site", base / "left"
    shutil.copytree(EXAMPLE, source)  # building leaves files beside the sources
    left.mkdir()
    built = subprocess.run([sys.executable, *PIP, site, source], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"pip cannot build the example here: {built.stderr.strip().splitlines()[-1]}")
    return {**os.environ, "PYTHONPATH": str(site), "TMPDIR": str(left)}


def run(environment: dict[str, str], *arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(Path(environment["TMPDIR"]).glob("cobre-files-*")) == []
    return done.stdout


def test_it_keeps_the_contract(environment):
    run(environment, "-c", CONFORMANCE, *ROWS)


def test_three_ranks_train_to_the_bytes_of_one_process_and_the_kernel_is_kept_on_disk(environment, tmp_path):
    output = ("--iterations", 3, "--output", tmp_path / "results", "--output-format", "json")
    trained = run(environment, "-m", "cobre", "train", CASE, "--ranks", 3, "--backend", "files", *output)
    data = json.loads(trained)["data"]
    assert (data["backend"], data["ranks"]) == ("files", 3)
    assert data["policy_sha256"] == train(CASE, iterations=3).policy_sha256
    warmed = run(environment, "-m", "cobre", "warmup", "--backend", "files", "--output-format", "json")
    warm = json.loads(warmed)["data"]
    assert (warm["cache_hits"], warm["cache_misses"]) == (1, 0)


def test_its_own_tests_pass(environment):
    options = ("-q", "-n", 0, "-p", "no:cacheprovider", "-c", os.devnull)
    run(environment, "-m", "pytest", *options, EXAMPLE / "tests")
