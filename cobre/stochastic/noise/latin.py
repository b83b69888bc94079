"""Latin hypercube samples: in every dimension, one point in each of N equally likely strata.

All points of a stage together: for each dimension the points ``(k + U_k) / N``, ``k`` ascending, are dealt to
the openings by a random permutation. One point of N alone: stratum and place within it come from two
generators, of which the first is the same for all N points.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.stochastic.noise.pcg64 import Generator, below, next_u64, seed_generator
from cobre.stochastic.noise.quantile import normal_quantile

_12 = np.uint64(12)
_TWO_TO_MINUS_52 = 2.0**-52


@njit(cache=True, nogil=True)
def unit_interval(generator: Generator) -> tuple[float, Generator]:
    """Return a number in ``[0, 1)`` made of the top 52 bits, and the next generator."""
    bits, generator = next_u64(generator)
    return np.float64(bits >> _12) * _TWO_TO_MINUS_52, generator


@njit(cache=True, nogil=True)
def random_permutation(generator: Generator, out: NDArray[np.int64]) -> Generator:
    """Fill ``out`` with a random permutation of 0, 1, ...; return the next generator."""
    for i in range(out.shape[0]):
        out[i] = i
    for i in range(out.shape[0] - 1, 0, -1):
        j, generator = below(generator, np.uint64(i + 1))
        other = np.int64(j)
        out[i], out[other] = out[other], out[i]
    return generator


@njit(cache=True, nogil=True)
def fill_latin(seed: np.uint64, out: NDArray[np.float64]) -> None:
    """Fill the (point, dimension) normal numbers of one stage."""
    count = out.shape[0]
    order = np.empty(count, np.int64)
    samples = np.empty(count, np.float64)
    generator = seed_generator(seed)
    for dimension in range(out.shape[1]):
        for k in range(count):
            u, generator = unit_interval(generator)
            samples[k] = (np.float64(k) + u) / np.float64(count)
        generator = random_permutation(generator, order)
        for k in range(count):
            out[order[k], dimension] = normal_quantile(samples[k])


@njit(cache=True, nogil=True)
def fill_latin_strata(seed: np.uint64, count: int, first: int, out: NDArray[np.float64]) -> None:
    """Fill the (point, dimension) strata of the points ``first``, ``first + 1``, ... of ``count``."""
    order = np.empty(count, np.int64)
    generator = seed_generator(seed)
    for dimension in range(out.shape[1]):
        generator = random_permutation(generator, order)
        for row in range(out.shape[0]):
            out[row, dimension] = np.float64(order[first + row])


@njit(cache=True, nogil=True)
def finish_latin_point(seed: np.uint64, count: int, point: NDArray[np.float64]) -> None:
    """Turn the strata of one point into normal numbers, in place."""
    generator = seed_generator(seed)
    for dimension in range(point.shape[0]):
        u, generator = unit_interval(generator)
        point[dimension] = normal_quantile((point[dimension] + u) / np.float64(count))
