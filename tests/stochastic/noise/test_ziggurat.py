from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from oracle.noise import Pcg64, Ziggurat
from oracle.noise import opening_seed as opening_seed_oracle

from cobre.stochastic.noise import ziggurat
from cobre.stochastic.noise.siphash import opening_seed
from cobre.stochastic.noise.ziggurat import fill_standard_normal

SIZE = 200_000
SEED = 20240101


@pytest.fixture(scope="module")
def normals() -> np.ndarray:
    out = np.zeros(SIZE)
    fill_standard_normal(np.uint64(SEED), out)
    return out


def test_tables_are_pinned_bit_for_bit():
    # A libm that rounds exp, log or sqrt otherwise would change every opening tree; it shows here first.
    assert hashlib.sha256(ziggurat._X.astype("<f8").tobytes()).hexdigest() == (
        "7bc388aa829fd6869fb9b705f4b6d2879d0b220b3bc1cb7e7c1a4d1bfb0dfbb2"
    )
    assert hashlib.sha256(ziggurat._F.astype("<f8").tobytes()).hexdigest() == (
        "cbce58dfa577bcd3c28186b603071fcf3bdbea24c32db14811133312ce7697f9"
    )
    # Entries of the table that the Rust crate rand_distr prints, with 18 decimals.
    assert f"{ziggurat._X[0]:.18f} {ziggurat._F[0]:.18f}" == "3.910757959537090045 0.000477467764586655"
    assert f"{ziggurat._X[128]:.18f} {ziggurat._F[128]:.18f}" == "1.535342571438843118 0.307697412505553769"
    assert f"{ziggurat._X[255]:.18f} {ziggurat._F[255]:.18f}" == "0.215241895913273806 0.977101701282731328"


def test_layers_have_equal_area_and_cover_the_density():
    x, f = ziggurat._X, ziggurat._F
    assert len(x) == len(f) == ziggurat.LAYERS + 1
    assert (np.diff(x) < 0.0).all()
    np.testing.assert_allclose(f, np.exp(-(x**2) / 2.0), rtol=2e-15)
    np.testing.assert_allclose(x[1:-1] * np.diff(f[1:]), 0.00492867323399, rtol=1e-9)
    tail = math.sqrt(math.pi / 2.0) * math.erfc(x[1] / math.sqrt(2.0))
    assert x[1] * f[1] + tail == pytest.approx(0.00492867323399, rel=1e-9)


@pytest.mark.parametrize(
    ("opening", "eta"), [(0, 0.40098936496495646), (1, -1.3954121776085244), (2, 0.8337031709056368)]
)
def test_first_openings_of_the_toy_case(opening, eta):
    out = np.zeros(1)
    fill_standard_normal(np.uint64(opening_seed(42, opening, 0)), out)
    assert out[0] == eta


def test_every_number_equals_the_plain_python_oracle(normals):
    oracle = Ziggurat(ziggurat._X.tolist(), ziggurat._F.tolist())
    rng = Pcg64(SEED)
    expected = np.array([oracle.draw(rng) for _ in range(SIZE)])
    assert all(count > 10 for count in oracle.ways.values()), oracle.ways
    np.testing.assert_array_equal(normals, expected)


def test_moments_and_distribution(normals):
    # Bounds of about four standard errors; the stream is fixed, so the outcome is too.
    assert abs(normals.mean()) < 4.0 / math.sqrt(SIZE)
    assert abs(normals.var() - 1.0) < 4.0 * math.sqrt(2.0 / SIZE)
    assert abs((normals**3).mean()) < 4.0 * math.sqrt(15.0 / SIZE)
    assert abs((normals**4).mean() - 3.0) < 4.0 * math.sqrt(96.0 / SIZE)
    ranked = np.sort(normals)
    cumulative = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in ranked])
    distance = np.abs(cumulative - (np.arange(SIZE) + 0.5) / SIZE).max()
    assert distance < 1.95 / math.sqrt(SIZE)  # Kolmogorov-Smirnov, 99.9 % point


def test_tails_happen_on_both_sides_as_often_as_they_should(normals):
    edge = ziggurat._X[1]
    expected = SIZE * math.erfc(edge / math.sqrt(2.0)) / 2.0
    for side in ((normals > edge).sum(), (normals < -edge).sum()):
        assert abs(side - expected) < 4.0 * math.sqrt(expected)


def test_an_empty_vector_is_allowed_and_lengths_agree_on_their_common_part():
    fill_standard_normal(np.uint64(5), np.zeros(0))
    short, long = np.zeros(3), np.zeros(30)
    fill_standard_normal(np.uint64(5), short)
    fill_standard_normal(np.uint64(5), long)
    np.testing.assert_array_equal(short, long[:3])


def test_seed_chain_equals_the_oracle():
    oracle = Ziggurat(ziggurat._X.tolist(), ziggurat._F.tolist())
    out = np.zeros(4)
    for opening in range(20):
        fill_standard_normal(np.uint64(opening_seed(42, opening, 3)), out)
        rng = Pcg64(opening_seed_oracle(42, opening, 3))
        assert out.tolist() == [oracle.draw(rng) for _ in range(4)]
