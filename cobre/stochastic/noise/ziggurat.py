"""Standard normal numbers by the ziggurat method with 256 layers.

Under ``f(x) = exp(-x^2 / 2)`` lie 256 layers of equal area ``V``: layer ``i >= 1`` is the rectangle of
width ``X[i]`` between the heights ``F[i] = f(X[i])`` and ``F[i+1]``; layer 0 is the rectangle of width
``R = X[1]`` with the tail beyond it, drawn as if it were ``X[0] = V / f(R)`` wide. A point of a layer is
accepted at once when ``|x| < X[i+1]``, otherwise by comparing heights, or drawn from the tail (layer 0).
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.stochastic.noise.pcg64 import Generator, next_u64, seed_generator

LAYERS = 256

_R = 3.654152885361008796
_V = 0.00492867323399

# The table other programs print (18 decimals, another libm) differs from f(X) in the last bits here only.
# Using its values makes the numbers equal to theirs bit for bit.
_F_AS_PRINTED = {0: 0.000477467764586655, 3: 0.004037972593371872, 94: 0.2064054063986793}


def _density(x: float) -> float:
    return math.exp(-x * x / 2.0)


def _tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = [_V / _density(_R), _R]
    for i in range(2, LAYERS):
        x.append(math.sqrt(-2.0 * math.log(_V / x[i - 1] + _density(x[i - 1]))))
    x.append(0.0)
    f = [_F_AS_PRINTED.get(i, _density(edge)) for i, edge in enumerate(x)]
    return np.array(x, dtype=np.float64), np.array(f, dtype=np.float64)


_X, _F = _tables()

_LAYER_MASK = np.uint64(LAYERS - 1)
_11 = np.uint64(11)
_12 = np.uint64(12)
_TWO_TO_MINUS_51 = 2.0**-51
_TWO_TO_MINUS_52 = 2.0**-52
_TWO_TO_MINUS_53 = 2.0**-53


@njit(cache=True, nogil=True)
def _symmetric(bits: np.uint64) -> float:
    """Map the top 52 bits to [-1, 1), exactly."""
    return np.float64(bits >> _12) * _TWO_TO_MINUS_51 - 1.0


@njit(cache=True, nogil=True)
def _open_unit(bits: np.uint64) -> float:
    """Map the top 52 bits to the middles of 2^52 cells of (0, 1), exactly."""
    return np.float64(bits >> _12) * _TWO_TO_MINUS_52 + _TWO_TO_MINUS_53


@njit(cache=True, nogil=True)
def _unit(bits: np.uint64) -> float:
    """Map the top 53 bits to [0, 1), exactly."""
    return np.float64(bits >> _11) * _TWO_TO_MINUS_53


@njit(cache=True, nogil=True)
def _tail(generator: Generator) -> tuple[float, Generator]:
    """Draw from the normal beyond R (Marsaglia): R plus an exponential, accepted by a second one."""
    x = 1.0
    y = 0.0
    while -2.0 * y < x * x:
        bits, generator = next_u64(generator)
        x = math.log(_open_unit(bits)) / _R
        bits, generator = next_u64(generator)
        y = math.log(_open_unit(bits))
    return _R - x, generator


@njit(cache=True, nogil=True)
def standard_normal(generator: Generator) -> tuple[float, Generator]:
    """Return a standard normal number and the next generator."""
    while True:
        bits, generator = next_u64(generator)
        layer = np.int64(bits & _LAYER_MASK)
        u = _symmetric(bits)
        x = u * _X[layer]
        if abs(x) < _X[layer + 1]:
            return x, generator
        if layer == 0:
            beyond, generator = _tail(generator)
            return (-beyond if u < 0.0 else beyond), generator
        bits, generator = next_u64(generator)
        height = _F[layer + 1] + (_F[layer] - _F[layer + 1]) * _unit(bits)
        if height < math.exp(-x * x / 2.0):
            return x, generator


@njit(cache=True, nogil=True)
def fill_standard_normal(seed: np.uint64, out: NDArray[np.float64]) -> None:
    """Fill a float64 vector with standard normal numbers of a fresh generator, in order.

    Parameters
    ----------
    seed
        Seed of 64 bits of the generator.
    out
        Vector to fill; any length, also 0.
    """
    generator = seed_generator(seed)
    for i in range(out.shape[0]):
        x, generator = standard_normal(generator)
        out[i] = x
