"""The clock and the atomics, from nopython code and from Python."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numba import njit, prange
from numba.core.errors import TypingError

from cobre.native import atomic_fetch_add, monotonic_ns


@njit
def read_clock():
    return monotonic_ns()


@njit
def take(counter, index, value):
    return atomic_fetch_add(counter, index, value)


@njit(parallel=True)
def share(counter, done, workers):
    for _ in prange(workers):
        while True:
            i = atomic_fetch_add(counter, 0, 1)
            if i >= len(done):
                break
            done[i] += 1


def test_clock_is_the_same_in_both_worlds():
    read_clock()
    before, inside, after = time.monotonic_ns(), read_clock(), monotonic_ns()
    assert before <= inside <= after


@pytest.mark.parametrize("function", [take, atomic_fetch_add], ids=["nopython", "python"])
def test_fetch_add_returns_the_old_value(function):
    counter = np.array([5, 7], np.int64)
    assert function(counter, 1, 3) == 7
    assert function(counter, 1, -20) == 10
    assert counter.tolist() == [5, -10]


@pytest.mark.parametrize(
    "counter", [np.zeros(2, np.uint32), np.zeros((2, 2), np.int64), np.zeros(4, np.int64)[::2]]
)
def test_other_arrays_do_not_compile(counter):
    with pytest.raises(TypingError, match="1-D C-contiguous int32 or int64"):
        take(counter, 0, 1)


def test_threads_share_work_without_loss():
    counter = np.zeros(1, np.int64)
    done = np.zeros(200_000, np.int64)
    share(counter, done, 4)
    assert (done == 1).all()
    assert counter[0] == len(done) + 4


def test_both_are_cacheable_and_work_without_the_jit(sandbox):
    sandbox.write(
        "cobre/kernels.py",
        "import numpy as np\nfrom numba import njit\n"
        "from cobre.native import atomic_fetch_add, kernel_cache_stats, monotonic_ns\n"
        "@njit(cache=True)\ndef kernel(a):\n"
        "    start = monotonic_ns()\n    old = atomic_fetch_add(a, 0, 2)\n"
        "    return old if monotonic_ns() >= start else -1\n",
    )
    run = "from cobre.kernels import *; print(kernel(np.full(1, 4)), *kernel_cache_stats(kernel))"
    assert sandbox.run(run) == "4 0 1"
    assert sandbox.run(run) == "4 1 0"
    assert sandbox.run(run, NUMBA_DISABLE_JIT="1") == "4 0 0"
