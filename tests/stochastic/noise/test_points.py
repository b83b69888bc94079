"""Latin hypercubes, Sobol and Halton points against definitions in plain Python and against SciPy."""

from __future__ import annotations

import numpy as np
import oracle.noise as oracle
import pytest
from scipy.stats import kstest, norm, qmc

from cobre.stochastic.noise.halton import fill_halton, fill_owen_halton, first_primes
from cobre.stochastic.noise.latin import fill_latin, fill_latin_strata, finish_latin_point
from cobre.stochastic.noise.quantile import normal_quantile
from cobre.stochastic.noise.siphash import fresh_seed, stage_seed
from cobre.stochastic.noise.sobol import MAX_DIMENSION, directions, fill_owen_sobol, fill_sobol

SEED = np.uint64(0x9E3779B97F4A7C15)


def table(dimensions: int) -> np.ndarray:
    return np.array(directions(dimensions))


def primes(dimensions: int) -> np.ndarray:
    return np.array(first_primes(dimensions))


def sobol_bits(n: int, dim: int, *, gray: bool) -> list[list[int]]:
    """Points by XOR of SciPy's directions."""
    engine = qmc.Sobol(dim, scramble=False, bits=32)
    points = (engine.random_base2(int(np.ceil(np.log2(max(n, 2))))) * 2**32).astype(np.int64)
    # SciPy goes through the points in the order of the Gray code.
    order = {i ^ (i >> 1): i for i in range(len(points))}
    return [points[i if gray else order[i]].tolist() for i in range(n)]


@pytest.mark.parametrize(("base", "a", "b", "c"), [(42, 1, 2, 3), (2**64 - 1, 7, 2**32 - 1, 2**31)])
def test_seeds(base, a, b, c):
    assert int(stage_seed(np.uint64(base), c)) == oracle.stage_seed(base, c)
    assert int(fresh_seed(np.uint64(base), a, b, c)) == oracle.fresh_seed(base, a, b, c)


def test_quantile():
    p = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 5001), [1e-12, 1e-9, 0.08, 0.92, 1 - 1e-9]])
    found = np.array([normal_quantile(value) for value in p])
    assert np.abs(found - norm.ppf(p)).max() < 4e-9
    assert found.tolist() == [oracle.quantile(value) for value in p.tolist()]
    assert [normal_quantile(value) for value in (0.0, 1e-300, 1e-20)] == [-8.21] * 3
    assert 8.0 < normal_quantile(1.0) == -normal_quantile(2.0**-52) < 8.3


@pytest.mark.parametrize(("n", "dim"), [(1, 1), (10, 3), (33, 5)])
def test_latin_hypercube(n, dim):
    out = np.empty((n, dim))
    fill_latin(SEED, out)
    assert out.tolist() == oracle.latin(int(SEED), n, dim)
    strata = np.sort(np.floor(norm.cdf(out) * n).astype(int), axis=0)
    assert (strata == np.arange(n)[:, None]).all()


@pytest.mark.parametrize("first", [0, 4])
def test_latin_points_one_by_one(first):
    n, dim = 9, 4
    out = np.empty((n - first, dim))
    fill_latin_strata(SEED, n, first, out)
    for row in range(n - first):
        finish_latin_point(np.uint64(row + 100), n, out[row])
        expected = oracle.latin_point(int(SEED), row + 100, first + row, n, dim)
        assert out[row].tolist() == expected


def test_directions_are_those_of_joe_and_kuo():
    engine = qmc.Sobol(MAX_DIMENSION, scramble=False, bits=32)
    np.testing.assert_array_equal(table(MAX_DIMENSION), np.asarray(engine._sv)[:, :32])
    with pytest.raises(ValueError, match="21202"):
        directions(MAX_DIMENSION + 1)


@pytest.mark.parametrize("gray", [True, False])
@pytest.mark.parametrize(("n", "dim"), [(1, 1), (10, 3), (64, 40)])
def test_sobol_points(n, dim, gray):
    out = np.empty((n, dim))
    fill_sobol(SEED, table(dim), 0, gray, out)
    assert out.tolist() == oracle.sobol(int(SEED), sobol_bits(n, dim, gray=gray))
    if n > 4:
        part = np.empty((3, dim))
        fill_sobol(SEED, table(dim), 2, gray, part)
        np.testing.assert_array_equal(part, out[2:5])


@pytest.mark.parametrize(("n", "dim"), [(1, 1), (10, 1), (10, 6), (50, 30)])
def test_halton_points(n, dim):
    out = np.empty((n, dim))
    fill_halton(SEED, primes(dim), n, 0, out)
    assert out.tolist() == oracle.halton(int(SEED), n, first_primes(dim).tolist())
    assert (out[0] == -8.21).all()
    if n > 4:
        part = np.empty((3, dim))
        fill_halton(SEED, primes(dim), n, 2, part)
        np.testing.assert_array_equal(part, out[2:5])


def test_primes():
    assert first_primes(10).tolist() == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    assert first_primes(1000)[-1] == 7919
    assert first_primes(0).size == 0


def owen_sobol(n: int, dim: int, seed: int, first: int = 0, rows: int | None = None) -> np.ndarray:
    out = np.empty((n if rows is None else rows, dim))
    fill_owen_sobol(np.uint64(seed), table(dim), first, out)
    return out


def owen_halton(n: int, dim: int, seed: int, first: int = 0, rows: int | None = None) -> np.ndarray:
    out = np.empty((n if rows is None else rows, dim))
    fill_owen_halton(np.uint64(seed), primes(dim), n, first, out)
    return out


def test_owen_sobol_points_stay_a_net():
    """Every elementary interval of area 1/64 of the first two dimensions holds one of 64 points."""
    u = norm.cdf(owen_sobol(64, 2, 5))
    for a in range(7):
        cells = np.floor(u[:, 0] * 2**a) * 64 + np.floor(u[:, 1] * 2 ** (6 - a))
        assert np.unique(cells).size == 64
    for dimension in range(2):
        assert sorted(np.floor(u[:, dimension] * 64)) == list(range(64))


def test_owen_halton_points_stay_stratified():
    u = norm.cdf(owen_halton(30 * 35, 4, 5))
    for dimension, base in enumerate((2, 3, 5, 7)):
        counts = np.bincount(np.floor(u[:, dimension] * base).astype(int), minlength=base)
        assert (counts == 1050 // base).all()
    cells = np.floor(u[:, 0] * 2) * 3 + np.floor(u[:, 1] * 3)
    assert (np.bincount(cells.astype(int)) == 175).all()


@pytest.mark.parametrize("make", [owen_sobol, owen_halton])
def test_owen_points_are_uniform_one_by_one(make):
    """The same point over many scramblings, also the first one, which plain points have at 0."""
    for index in (0, 1, 5):
        u = norm.cdf(np.array([make(8, 3, seed)[index] for seed in range(1500)]))
        for dimension in range(3):
            assert kstest(u[:, dimension], "uniform").pvalue > 1e-4
        pairs = np.corrcoef(u.T)[np.triu_indices(3, 1)]
        assert np.abs(pairs).max() < 4.5 / np.sqrt(1500)


@pytest.mark.parametrize("make", [owen_sobol, owen_halton])
def test_owen_points_do_not_depend_on_who_makes_them(make):
    whole = make(20, 5, 9)
    np.testing.assert_array_equal(make(20, 5, 9, first=7, rows=6), whole[7:13])
    assert np.isfinite(whole).all()
    assert np.abs(whole).max() < 8.0
    assert not np.array_equal(whole, make(20, 5, 10))


@pytest.mark.parametrize("make", [owen_sobol, owen_halton])
def test_owen_points_integrate_better_than_random_ones(make):
    """Mean of a smooth function over 256 points, 40 scramblings: variance below a tenth of sampling's."""
    means = [np.prod(1.0 + 0.5 * (norm.cdf(make(256, 3, seed)) - 0.5), axis=1).mean() for seed in range(40)]
    variance = (1.0 + 0.25 / 12) ** 3 - 1.0
    assert abs(np.mean(means) - 1.0) < 5 * np.sqrt(variance / 256 / 40)
    assert np.var(means) < 0.1 * variance / 256
