"""Means, quantiles and tails over scenarios."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.distribution import cvar, distribution_of, expectation, quantiles


def test_values_that_scenarios_do_not_have_do_not_count():
    values = np.array([[1.0, np.nan], [3.0, 8.0], [5.0, 10.0]])
    np.testing.assert_array_equal(expectation(values), [3.0, 9.0])
    np.testing.assert_array_equal(quantiles(values, [0.5]), [[3.0, 9.0]])
    weights = np.array([0.5, 0.25, 0.25])
    np.testing.assert_array_equal(expectation(values, weights), [2.5, 9.0])
    np.testing.assert_array_equal(quantiles(values, [0.5, 1.0], weights), [[1.0, 8.0], [5.0, 10.0]])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.floats(0.0, 0.99))
def test_the_tail_of_a_sample_is_the_mean_of_its_dearest(cost, level):
    values = np.array(cost)
    tail = cvar(values, level=level)
    assert values.mean() - 1e-6 <= tail <= values.max() + 1e-6


def test_probabilities_that_are_equal_are_a_sample_of_whole_scenarios():
    cost = np.arange(40.0)
    equal = np.full(40, 1 / 40)
    assert cvar(cost, equal) == pytest.approx(cvar(cost)) == 38.5
    assert distribution_of(cost, equal).mean == pytest.approx(distribution_of(cost).mean)


def test_a_single_scenario():
    found = distribution_of(np.array([7.0]))
    assert (found.mean, found.std, found.ci_95, found.cvar_95) == (7.0, 0.0, 0.0, 7.0)
