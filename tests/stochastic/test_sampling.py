from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from oracle.noise import Pcg64, forward_seed

from cobre.stochastic import sample_opening


@njit
def _sample_all(tree_seed, n_openings, out):
    for k in range(out.shape[0]):
        for m in range(out.shape[1]):
            for t in range(out.shape[2]):
                out[k, m, t] = sample_opening(tree_seed, k + 1, m, t, n_openings)


@pytest.mark.parametrize("tree_seed", [0, 42, 2**64 - 1])
@pytest.mark.parametrize("n_openings", [1, 3, 10, 200])
def test_draw_is_below_n_of_the_step_seed(tree_seed, n_openings):
    for step in [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (128, 191, 119)]:
        expected = Pcg64(forward_seed(tree_seed, *step)).below(n_openings)[0]
        assert sample_opening(np.uint64(tree_seed), *step, n_openings) == expected


def test_draws_in_a_kernel_are_int64_in_range_and_uniform():
    out = np.full((40, 25, 30), -1, dtype=np.int64)
    _sample_all(np.uint64(42), 10, out)
    counts = np.bincount(out.ravel(), minlength=10)
    assert len(counts) == 10
    expected = out.size / 10
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # 99.9 % point of 9 degrees of freedom
    for k, m, t in [(0, 0, 0), (39, 24, 29), (7, 0, 12)]:
        assert out[k, m, t] == Pcg64(forward_seed(42, k + 1, m, t)).below(10)[0]


def test_iteration_scenario_and_stage_each_change_the_draw():
    out = np.zeros((6, 7, 8), dtype=np.int64)
    _sample_all(np.uint64(42), 1000, out)
    assert np.unique(out).size > 250  # 336 draws from 1000 values: 285 distinct ones on average
    for axis in range(3):
        assert (np.diff(out, axis=axis) != 0).mean() > 0.95


def test_python_callers_get_an_int():
    drawn = sample_opening(42, 1, 0, 0, 10)
    assert isinstance(drawn, int)
    assert drawn == sample_opening(np.uint64(42), np.int64(1), np.int32(0), np.uint32(0), np.int64(10))
