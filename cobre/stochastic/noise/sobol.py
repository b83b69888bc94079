"""Sobol points, scrambled in two ways.

Directions are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", SIAM J. Sci. Comput. 30 (2008), table new-joe-kuo-6.21201: for each of 21,201 dimensions a
primitive polynomial over GF(2) and its first direction numbers. ``data/joe_kuo_6_21201.npz`` holds them
packed: ``step``, the differences of the polynomials (as integers, ascending), and ``packed``, bits of the
direction numbers: for j = 2 ... 18 those m_j of all dimensions that have one, without the last bit, which
is 1, lowest bit first.

*Linear*: ``a x + b`` modulo 2^32 with a random odd ``a`` and a random ``b`` for each dimension.
*Owen*: nested uniform scrambling. Bit k of a coordinate is flipped or not by a random bit of its own for each
value of the k bits above it, and the bits below the 32nd are random; so points keep the net's balance, no
coordinate is ever 0, and each is uniform.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.stochastic.noise.pcg64 import next_u32, next_u64, seed_generator
from cobre.stochastic.noise.quantile import normal_quantile

MAX_DIMENSION = 21201
BITS = 32

_TABLE = "joe_kuo_6_21201.npz"
_LOW_32 = np.uint64(0xFFFFFFFF)
_1 = np.uint64(1)
_12 = np.uint64(12)
_27 = np.uint64(27)
_30 = np.uint64(30)
_31 = np.uint64(31)
_TWO_TO_MINUS_32 = 2.0**-32
_TWO_TO_MINUS_52 = 2.0**-52
_TWO_TO_MINUS_53 = 2.0**-53
# The finaliser of SplitMix64: every input bit moves every output bit.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@cache
def _table() -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the polynomials and the first direction numbers by (dimension, j), 0 where there is none."""
    with (
        files("cobre.stochastic").joinpath("data").joinpath(_TABLE).open("rb") as file,
        np.load(file, allow_pickle=False) as data,
    ):
        polynomial = np.cumsum(data["step"].astype(np.int64))
        bits = np.unpackbits(data["packed"])
    degree = np.array([int(value).bit_length() - 1 for value in polynomial.tolist()])
    initial = np.zeros((polynomial.size, int(degree.max())), np.uint32)
    initial[:, 0] = 1
    start = 0
    for j in range(1, initial.shape[1]):
        rows = np.flatnonzero(degree > j)
        part = bits[start : start + rows.size * j].reshape(rows.size, j).astype(np.uint32)
        initial[rows, j] = 2 * (part << np.arange(j, dtype=np.uint32)).sum(axis=1, dtype=np.uint32) + 1
        start += rows.size * j
    return polynomial, initial


@cache
def directions(dimensions: int) -> NDArray[np.uint32]:
    """Return the directions by (dimension, bit), the highest bit of a coordinate first; read-only.

    Parameters
    ----------
    dimensions
        Up to :data:`MAX_DIMENSION`.
    """
    polynomial, initial = _table()
    if not 0 <= dimensions <= MAX_DIMENSION:
        raise ValueError(f"Sobol points have 0 to {MAX_DIMENSION} dimensions, not {dimensions}")
    table = np.empty((dimensions, BITS), np.uint32)
    for dimension in range(dimensions):
        table[dimension] = _directions_of(int(polynomial[dimension]), initial[dimension])
    table.setflags(write=False)
    return table


def _directions_of(polynomial: int, initial: NDArray[np.uint32]) -> list[int]:
    degree = polynomial.bit_length() - 1
    if degree == 0:  # the first dimension: van der Corput points
        return [1 << (BITS - 1 - bit) for bit in range(BITS)]
    found = [int(initial[bit]) << (BITS - 1 - bit) for bit in range(degree)]
    for bit in range(degree, BITS):
        value = found[bit - degree] ^ (found[bit - degree] >> degree)
        for back in range(1, degree):
            if polynomial >> (degree - back) & 1:
                value ^= found[bit - back]
        found.append(value)
    return found


@njit(cache=True, nogil=True)
def _coordinate(table: NDArray[np.uint32], dimension: int, index: int) -> np.uint64:
    """Return the 32 bits of a coordinate of the point with this (binary) index."""
    value = np.uint64(0)
    bit = 0
    while index >> bit:
        if (index >> bit) & 1:
            value = value ^ np.uint64(table[dimension, bit])
        bit += 1
    return value


@njit(cache=True, nogil=True)
def fill_sobol(
    seed: np.uint64, table: NDArray[np.uint32], first: int, gray: bool, out: NDArray[np.float64]
) -> None:
    """Fill (point, dimension) normal numbers with linearly scrambled points ``first``, ``first + 1``, ...

    Parameters
    ----------
    table
        Directions of at least as many dimensions.
    gray
        Whether the points come in the order of the Gray code, else in that of their binary indices.
    """
    generator = seed_generator(seed)
    for dimension in range(out.shape[1]):
        factor, generator = next_u32(generator)
        factor = factor | _1
        shift, generator = next_u32(generator)
        for row in range(out.shape[0]):
            index = first + row
            if gray:
                index = index ^ (index >> 1)
            bits = (factor * _coordinate(table, dimension, index) + shift) & _LOW_32
            out[row, dimension] = normal_quantile(np.float64(bits) * _TWO_TO_MINUS_32)


@njit(cache=True, nogil=True)
def _mix(key: np.uint64) -> np.uint64:
    key = (key ^ (key >> _30)) * _MIX_1
    key = (key ^ (key >> _27)) * _MIX_2
    return key ^ (key >> _31)


@njit(cache=True, nogil=True)
def _scramble(key: np.uint64, value: np.uint64) -> np.uint64:
    """Return the coordinate with each bit flipped by a random bit that depends on the bits above it."""
    result = np.uint64(0)
    for bit in range(BITS):
        place = np.uint64(BITS - 1 - bit)
        # A leading 1 keeps prefixes of different length apart.
        prefix = (value | np.uint64(1 << BITS)) >> (place + _1)
        flip = _mix(_mix(key + prefix * _GOLDEN)) & _1
        result = result | ((((value >> place) & _1) ^ flip) << place)
    return result


@njit(cache=True, nogil=True)
def fill_owen_sobol(seed: np.uint64, table: NDArray[np.uint32], first: int, out: NDArray[np.float64]) -> None:
    """Fill (point, dimension) normal numbers with nested uniformly scrambled points ``first``, ..."""
    generator = seed_generator(seed)
    for dimension in range(out.shape[1]):
        key, generator = next_u64(generator)
        lower, generator = next_u64(generator)
        for row in range(out.shape[0]):
            index = first + row
            bits = _scramble(key, _coordinate(table, dimension, index))
            rest = _mix(_mix(lower + np.uint64(index + 1) * _GOLDEN))
            fraction = np.float64(rest >> _12) * _TWO_TO_MINUS_52 + _TWO_TO_MINUS_53
            out[row, dimension] = normal_quantile((np.float64(bits) + fraction) * _TWO_TO_MINUS_32)
