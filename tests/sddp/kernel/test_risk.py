import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from cobre.sddp.kernel.risk import compiled_measure

cvar_weights, entropic_weights, spectral_weights, worst_case_weights = map(
    compiled_measure, ("cvar", "entropic", "spectral", "worst_case")
)


@njit
def weigh(values, probability, risk_weight, risk_tail):
    order = np.zeros(len(values), np.int64)
    weights = np.zeros(len(values))
    parameters = np.array([risk_weight, risk_tail])
    cvar_weights(values, probability, len(values), parameters, order, weights)
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


@njit
def entropic(values, probability, gamma):
    order = np.zeros(len(values), np.int64)
    weights = np.zeros(len(values))
    parameters = np.array([gamma])
    penalty = entropic_weights(values, probability, len(values), parameters, order, weights)
    return weights, penalty


@njit
def spectral(values, probability, spectrum):
    order = np.zeros(len(values), np.int64)
    weights = np.zeros(len(values))
    spectral_weights(values, probability, len(values), spectrum, order, weights)
    return weights


@njit
def worst_case(values, probability):
    order = np.zeros(len(values), np.int64)
    weights = np.zeros(len(values))
    worst_case_weights(values, probability, len(values), np.zeros(0), order, weights)
    return weights


def test_worst_case_is_the_first_of_the_worst_that_are_possible():
    probability = np.array([0.5, 0.0, 0.25, 0.25])
    assert worst_case(np.array([1.0, 9.0, 4.0, 4.0]), probability).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert worst_case(np.full(4, -1.0), probability).tolist() == [1.0, 0.0, 0.0, 0.0]


outcomes = st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.integers(1, 9), st.floats(-1e5, 1e5)), min_size=1, max_size=12
)


@settings(deadline=None)
@given(outcomes, st.floats(1e-9, 1e-2))
def test_entropic_value_and_validity_of_its_cut(drawn, gamma):
    values, shares, moves = (np.array(column, float) for column in zip(*drawn, strict=True))
    probability = shares / shares.sum()

    def measure(costs):
        return costs.max() + np.log(probability @ np.exp(gamma * (costs - costs.max()))) / gamma

    weights, penalty = entropic(values, probability, gamma)
    assert weights.sum() == pytest.approx(1.0)
    # log1p-like cancellation for small gamma limits what the formula itself can tell.
    slack = 1e-12 / gamma + 1e-6
    assert weights @ values - penalty == pytest.approx(measure(values), rel=1e-9, abs=slack)
    assert weights @ (values + moves) - penalty <= measure(values + moves) + 1e-9 * 1e6 + slack


@settings(deadline=None)
@given(outcomes, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_spectral_weights_integrate_the_spectrum(drawn, steps):
    values, shares, moves = (np.array(column, float) for column in zip(*drawn, strict=True))
    probability = shares / shares.sum()
    spectrum = np.sort(np.array(steps) + 0.01)[::-1]
    spectrum /= spectrum.sum()

    def weights_by_integration(costs):
        order = np.argsort(-costs, kind="stable")
        ends = np.concatenate([[0.0], np.cumsum(probability[order])])
        grid = np.linspace(0.0, 1.0, len(spectrum) + 1)
        mass = np.interp(ends, grid, np.concatenate([[0.0], np.cumsum(spectrum)]))
        weights = np.zeros(len(costs))
        weights[order] = np.diff(mass)
        return weights

    weights = spectral(values, probability, spectrum)
    np.testing.assert_allclose(weights, weights_by_integration(values), atol=1e-12)
    assert weights.sum() == pytest.approx(1.0)
    # Coherent: no other order of outcomes gives more.
    moved = values + moves
    assert weights @ moved <= weights_by_integration(moved) @ moved + 1e-6


def test_a_spectrum_of_tail_and_mean_is_the_mix():
    values, probability = np.array([10.0, 40.0, 20.0, 30.0]), np.full(4, 0.25)
    expected = weigh(values, probability, 0.5, 0.5)
    np.testing.assert_allclose(spectral(values, probability, np.array([0.75, 0.25])), expected)


@pytest.mark.parametrize("gamma", [1e-320, 1e-25, 1e-18, 1e-16, 1e-14, 1e-12, 1e-10])
def test_entropic_measure_of_tiny_gamma_is_next_to_the_expectation(gamma):
    values = np.array([2.0e6, 8.6e6, 5.5e6, 3.1e6])
    probability = np.array([0.1, 0.2, 0.3, 0.4])
    mean = probability @ values
    weights, penalty = entropic(values, probability, gamma)
    # The series in gamma to its second term.
    expected = mean + 0.5 * gamma * (probability @ (values - mean) ** 2)
    assert weights @ values - penalty == pytest.approx(expected, rel=5e-15 + (gamma * np.ptp(values)) ** 2)
    assert weights.sum() == pytest.approx(1.0, rel=1e-15)
    assert penalty >= -1e-15 * mean
