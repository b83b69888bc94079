import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from cobre.sddp.risk import outcome_weights


@njit
def weigh(values, probability, risk_weight, risk_tail):
    order = np.zeros(len(values), np.int64)
    weights = np.zeros(len(values))
    outcome_weights(values, probability, len(values), risk_weight, risk_tail, order, weights)
    return weights


def test_expectation_keeps_the_probabilities():
    probability = np.array([0.2, 0.5, 0.3])
    assert weigh(np.array([3.0, 1.0, 2.0]), probability, 0.0, 0.5).tolist() == probability.tolist()
    assert weigh(np.array([3.0, 1.0, 2.0]), probability, 0.7, 1.0).tolist() == probability.tolist()


def test_worst_outcomes_get_as_much_as_they_may():
    values, probability = np.array([10.0, 40.0, 20.0, 30.0]), np.full(4, 0.25)
    # The tail is the two worst with half of its weight each; the other half of the measure is the mean.
    np.testing.assert_allclose(weigh(values, probability, 0.5, 0.5), [0.125, 0.375, 0.125, 0.375])
    # the worst case alone
    np.testing.assert_allclose(weigh(values, probability, 1.0, 0.25), [0.0, 1.0, 0.0, 0.0])


def test_equal_outcomes_keep_their_order():
    weights = weigh(np.array([5.0, 5.0, 5.0]), np.full(3, 1.0 / 3.0), 1.0, 1.0 / 3.0)
    np.testing.assert_allclose(weights, [1.0, 0.0, 0.0])


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12),
    st.floats(0.0, 1.0),
    st.floats(0.01, 1.0),
)
def test_the_measure_is_the_mix_of_mean_and_tail_mean(costs, risk_weight, risk_tail):
    values = np.array(costs)
    probability = np.full(len(values), 1.0 / len(values))
    weights = weigh(values, probability, risk_weight, risk_tail)
    assert weights.sum() == pytest.approx(1.0)
    # CVaR by its definition: the smallest of c + E[max(Z - c, 0)] / tail, attained at an outcome.
    cvar = min(c + np.maximum(values - c, 0.0).mean() / risk_tail for c in values)
    expected = (1.0 - risk_weight) * values.mean() + risk_weight * cvar
    assert weights @ values == pytest.approx(expected, rel=1e-9, abs=1e-6)
