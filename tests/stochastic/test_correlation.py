"""Correlated noise: roots, repairs, profiles, and what comes out of the tree."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders.scenario_studies import make_case, make_stage
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from cobre.case.model import Case, Correlation, CorrelationGroup
from cobre.stochastic import build_opening_tree
from cobre.stochastic.correlation import symmetric_root


def random_correlation(size: int, seed: int, rank: int | None = None) -> np.ndarray:
    factor = np.random.default_rng(seed).normal(size=(size, size + 2 if rank is None else rank))
    covariance = factor @ factor.T
    scale = np.sqrt(np.diagonal(covariance))
    matrix = covariance / np.outer(scale, scale)
    matrix = (matrix + matrix.T) / 2.0
    np.fill_diagonal(matrix, 1.0)
    return matrix


def correlated(case: Case, groups: dict[str, list[CorrelationGroup]], of_stage: tuple[str, ...]) -> Case:
    correlation = Correlation({name: tuple(found) for name, found in groups.items()}, of_stage)
    return dataclasses.replace(case, scenarios=dataclasses.replace(case.scenarios, correlation=correlation))


def inflow_group(members: list[int], matrix: np.ndarray) -> CorrelationGroup:
    return CorrelationGroup("rivers", "inflow", np.array(members), matrix)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 60])
def test_root_is_the_symmetric_square_root(size):
    matrix = random_correlation(size, size)
    root = symmetric_root(matrix)
    np.testing.assert_allclose(root, root.T, atol=1e-13)
    np.testing.assert_allclose(root @ root, matrix, atol=1e-12)
    np.testing.assert_allclose(root, np.real(sqrtm(matrix)), atol=1e-9)


def test_root_of_a_singular_matrix_needs_no_repair():
    matrix = random_correlation(6, 1, rank=2)
    np.testing.assert_allclose(symmetric_root(matrix) @ symmetric_root(matrix), matrix, atol=1e-12)
    ones = np.ones((4, 4))
    np.testing.assert_allclose(symmetric_root(ones), np.full((4, 4), 0.5), atol=1e-12)


def test_impossible_correlations_are_repaired_to_unit_variances():
    matrix = np.full((3, 3), -0.9)
    np.fill_diagonal(matrix, 1.0)
    root = symmetric_root(matrix)
    made = root @ root.T
    # Without its negative eigenvalue the matrix is that of three numbers that sum to 0.
    expected = np.full((3, 3), -0.5)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(made, expected, atol=1e-12)


def test_noise_is_the_root_times_independent_noise():
    stages = [make_stage(0, 4), make_stage(1, 4, month=2)]
    matrix = random_correlation(3, 4)
    plain = make_case(stages, hydro_ids=(1, 2, 5, 9), bus_ids=(0, 1, 2), load_std=1.0)
    loads = np.array([[1.0, 0.4], [0.4, 1.0]])
    groups = {
        "default": [inflow_group([0, 1, 3], matrix)],
        "other": [CorrelationGroup("loads", "load", np.array([0, 2]), loads)],
    }
    independent = build_opening_tree(plain)
    tree = build_opening_tree(correlated(plain, groups, ("default", "other")))
    first, second = independent.rows(0), independent.rows(1)
    expected = independent.noise.copy()
    rows = np.arange(4)[:, None]
    expected[rows, [0, 1, 3]] = independent.noise[first][:, [0, 1, 3]] @ symmetric_root(matrix).T
    expected[rows + 4, [4, 6]] = independent.noise[second][:, [4, 6]] @ symmetric_root(loads).T
    np.testing.assert_allclose(tree.noise, expected, rtol=1e-13, atol=1e-14)
    untouched = [2, 4, 5, 6]
    np.testing.assert_array_equal(tree.noise[first][:, untouched], independent.noise[first][:, untouched])
    np.testing.assert_array_equal(tree.inflow_m3s, 100.0 + 10.0 * tree.noise[:, :4])


def test_members_without_noise_are_left_out():
    case = make_case([make_stage(0, 50)], bus_ids=(0, 1, 2), load_std=[1.0, 0.0, 1.0])
    matrix = random_correlation(3, 8)
    group = CorrelationGroup("loads", "load", np.array([0, 1, 2]), matrix)
    tree = build_opening_tree(correlated(case, {"default": [group]}, ("default",)))
    plain = build_opening_tree(case)
    part = symmetric_root(np.ascontiguousarray(matrix[np.ix_([0, 2], [0, 2])]))
    np.testing.assert_allclose(tree.noise[:, 1:], plain.noise[:, 1:] @ part.T, rtol=1e-13, atol=1e-14)


def test_sample_correlations_are_those_asked_for():
    """Fisher's z of each pair over 4000 openings, and the variances, within 4.5 standard errors."""
    count, size = 4000, 5
    matrix = random_correlation(size, 21)
    case = make_case([make_stage(0, count)], hydro_ids=range(size))
    tree = build_opening_tree(
        correlated(case, {"default": [inflow_group(list(range(size)), matrix)]}, ("default",))
    )
    pairs = np.triu_indices(size, 1)
    sample = np.corrcoef(tree.noise.T)
    z = (np.arctanh(sample[pairs]) - np.arctanh(matrix[pairs])) * np.sqrt(count - 3)
    assert np.abs(z).max() < 4.5
    assert np.abs(tree.noise.var(axis=0) - 1.0).max() < 4.5 * np.sqrt(2.0 / count)
    assert np.abs(tree.noise.mean(axis=0)).max() < 4.5 / np.sqrt(count)


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(4)), listed=st.permutations(range(4)))
def test_order_of_entities_and_members_does_not_matter(order, listed):
    ids, matrix = np.array([3, 5, 8, 11]), random_correlation(4, 2)
    stages = [
        dataclasses.replace(make_stage(0, 5), sampling_method="owen_halton"),
        dataclasses.replace(make_stage(1, 4, month=2), sampling_method="lhs"),
    ]
    mean = np.array([10.0, 20.0, 30.0, 40.0])

    def tree_of(order, listed):
        case = make_case(stages, hydro_ids=ids[list(order)], inflow_mean=mean[list(order)])
        where = [list(order).index(member) for member in listed]
        group = inflow_group(where, matrix[np.ix_(listed, listed)])
        return build_opening_tree(correlated(case, {"default": [group]}, ("default",) * 2))

    usual, other = tree_of(range(4), range(4)), tree_of(order, listed)
    np.testing.assert_array_equal(other.noise, usual.noise)
    np.testing.assert_array_equal(other.inflow_m3s, usual.inflow_m3s[:, list(order)])
