"""Halton points, scrambled in two ways. Dimension d uses the d-th prime as its base.

*By digit*: each digit position of a dimension has one random permutation of the digits, and only the digits
that a point's index has are permuted. The first point keeps the coordinate 0 in all dimensions, and others
may come there too; their normal numbers are -8.21. This reproduces cobre-rs.
*Owen*: nested uniform scrambling. A digit has a random permutation of its own for each value of the digits
before it, and once no two points share their digits the rest is uniform; so no coordinate is ever 0, and each
is uniform.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.stochastic.noise.latin import random_permutation
from cobre.stochastic.noise.pcg64 import next_u64, seed_generator
from cobre.stochastic.noise.quantile import normal_quantile

_12 = np.uint64(12)
_TWO_TO_MINUS_52 = 2.0**-52
_TWO_TO_MINUS_53 = 2.0**-53


@cache
def first_primes(count: int) -> NDArray[np.int64]:
    """Return the first ``count`` primes, ascending; read-only."""
    limit = 30
    while True:
        sieve = np.ones(limit, np.bool_)
        sieve[:2] = False
        for number in range(2, int(limit**0.5) + 1):
            if sieve[number]:
                sieve[number * number :: number] = False
        found = np.flatnonzero(sieve)
        if found.size >= count:
            primes = found[:count].astype(np.int64)
            primes.setflags(write=False)
            return primes
        limit *= 2


@njit(cache=True, nogil=True)
def _digits(largest: int, base: int) -> int:
    """Return how many digits a number has, at least 1."""
    count = 0
    while largest > 0:
        largest //= base
        count += 1
    return max(count, 1)


@njit(cache=True, nogil=True)
def fill_halton(
    seed: np.uint64, primes: NDArray[np.int64], count: int, first: int, out: NDArray[np.float64]
) -> None:
    """Fill (point, dimension) normal numbers with points ``first``, ``first + 1``, ... of ``count``."""
    generator = seed_generator(seed)
    rows = out.shape[0]
    for dimension in range(out.shape[1]):
        base = primes[dimension]
        permutation = np.empty(base, np.int64)
        for row in range(rows):
            out[row, dimension] = 0.0
        divisor = 1
        weight = 1.0 / np.float64(base)
        for _ in range(_digits(count - 1, base)):
            generator = random_permutation(generator, permutation)
            for row in range(rows):
                remaining = (first + row) // divisor
                if remaining > 0:
                    out[row, dimension] += np.float64(permutation[remaining % base]) * weight
            divisor *= base
            weight /= np.float64(base)
        for row in range(rows):
            out[row, dimension] = normal_quantile(out[row, dimension])


@njit(cache=True, nogil=True)
def fill_owen_halton(
    seed: np.uint64, primes: NDArray[np.int64], count: int, first: int, out: NDArray[np.float64]
) -> None:
    """Fill (point, dimension) normal numbers with points ``first``, ``first + 1``, ... of ``count``."""
    generator = seed_generator(seed)
    rows = out.shape[0]
    for dimension in range(out.shape[1]):
        base = primes[dimension]
        permutation = np.empty(base, np.int64)
        for row in range(rows):
            out[row, dimension] = 0.0
        prefixes = 1
        weight = 1.0 / np.float64(base)
        for _ in range(_digits(count - 1, base)):
            for prefix in range(min(prefixes, count)):
                generator = random_permutation(generator, permutation)
                row = (prefix - first) % prefixes
                while row < rows:
                    digit = ((first + row) // prefixes) % base
                    out[row, dimension] += np.float64(permutation[digit]) * weight
                    row += prefixes
            prefixes *= base
            weight /= np.float64(base)
        cell = weight * np.float64(base)
        for point in range(count):
            bits, generator = next_u64(generator)
            if first <= point < first + rows:
                fraction = np.float64(bits >> _12) * _TWO_TO_MINUS_52 + _TWO_TO_MINUS_53
                row = point - first
                out[row, dimension] = normal_quantile(out[row, dimension] + fraction * cell)
