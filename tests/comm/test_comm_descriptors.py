"""File descriptors that run out are named before anything is opened."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from cobre.comm.descriptors import require_descriptors
from cobre.comm.errors import InitializationFailed
try:
    require_descriptors("tcp", 200, "rank 0 of 101 ranks")
except InitializationFailed as error:
    print(error)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def limits(soft: int, hard: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(soft=soft, hard=hard)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_enough_is_left_alone():
    assert limits(1000, 1000) == ["1000"]


def test_the_own_limit_is_raised_as_far_as_needed():
    (soft,) = limits(100, 1000)
    assert 200 < int(soft) < 1000


@pytest.mark.parametrize("hard", [100, 220])
def test_too_few_are_named(hard):
    message, soft = limits(100, hard)
    assert "file descriptors run out: rank 0 of 101 ranks takes 200" in message
    assert f"this process may have {hard}" in message
    assert "ulimit -n" in message
    assert soft == "100"
