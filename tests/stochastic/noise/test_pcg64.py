from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numba import njit
from oracle.noise import MASK_64, Pcg64

from cobre.stochastic.noise.pcg64 import below, next_u32, next_u64, seed_generator

SEEDS = [0, 1, 42, 2**63, MASK_64, 0x0123456789ABCDEF]


@njit
def _state(seed, out):
    generator = seed_generator(seed)
    for i in range(4):
        out[i] = generator[i]


@njit
def _fill_u64(seed, out):
    generator = seed_generator(seed)
    for i in range(out.shape[0]):
        out[i], generator = next_u64(generator)


@njit
def _fill_u32(seed, out):
    generator = seed_generator(seed)
    for i in range(out.shape[0]):
        out[i], generator = next_u32(generator)


@njit
def _fill_below(seed, n, out):
    generator = seed_generator(seed)
    for i in range(out.shape[0]):
        out[i], generator = below(generator, n)


def run(kernel, seed, *arguments, size):
    out = np.zeros(size, dtype=np.uint64)
    kernel(np.uint64(seed), *arguments, out)
    return out


def random_bits_of_numpy(seed: int, size: int) -> np.ndarray:
    """The stream of NumPy's PCG64, started from our seeded state."""
    hi, lo, inc_hi, inc_lo = (int(word) for word in run(_state, seed, size=4))
    generator = np.random.PCG64()
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": (hi << 64) | lo, "inc": (inc_hi << 64) | inc_lo},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return generator.random_raw(size)


@pytest.mark.parametrize("seed", SEEDS)
def test_seeding_and_stream_equal_big_integers(seed):
    oracle = Pcg64(seed)
    hi, lo, inc_hi, inc_lo = (int(word) for word in run(_state, seed, size=4))
    assert (hi << 64) | lo == oracle.state
    assert (inc_hi << 64) | inc_lo == oracle.inc
    assert run(_fill_u64, seed, size=500).tolist() == [oracle.u64() for _ in range(500)]


@pytest.mark.parametrize("seed", SEEDS)
def test_stream_equals_numpy_from_the_same_state(seed):
    np.testing.assert_array_equal(run(_fill_u64, seed, size=10_000), random_bits_of_numpy(seed, 10_000))


def test_u32_is_the_low_half_and_uses_one_step():
    wide = run(_fill_u64, 42, size=1000)
    np.testing.assert_array_equal(run(_fill_u32, 42, size=1000), wide & np.uint64(2**32 - 1))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 2**16, 2**31, 2**31 + 1, 3_000_000_000, 2**32 - 1])
def test_below_equals_big_integers_and_stays_in_range(n):
    oracle = Pcg64(7)
    expected = [oracle.below(n)[0] for _ in range(3000)]
    drawn = run(_fill_below, 7, np.uint64(n), size=3000)
    assert drawn.tolist() == expected
    assert drawn.max() < n


def test_below_takes_the_second_draw_and_its_carry():
    # Only a wide range leaves the carry open often enough to see all ways; the stream must stay aligned.
    n = 3_000_000_000
    oracle = Pcg64(11)
    drawn, ways = zip(*(oracle.below(n) for _ in range(2000)), strict=True)
    assert set(ways) == {"plain", "kept", "carried"}
    assert run(_fill_below, 11, np.uint64(n), size=2000).tolist() == list(drawn)
    without_carry = [value - (way == "carried") for value, way in zip(drawn, ways, strict=True)]
    assert without_carry != list(drawn)


def test_below_is_uniform():
    n, size = 10, 100_000
    counts = Counter(run(_fill_below, 2024, np.uint64(n), size=size).tolist())
    chi_square = sum((counts[k] - size / n) ** 2 / (size / n) for k in range(n))
    assert chi_square < 27.9  # 99.9 % point of 9 degrees of freedom
