"""The generator PCG XSL-RR 128/64: a 128-bit linear congruence whose output is folded to 64 bits.

``state = a * state + increment (mod 2^128)``, then the output is the xor of the two halves of the state,
rotated right by its top six bits. A generator is the tuple ``(state_hi, state_lo, inc_hi, inc_lo)`` of
uint64: it lives in registers, and each draw returns its value together with the next generator. These
functions are for nopython callers (a tuple that passes through Python comes back as plain ints).
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)

Generator: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

# Multiplier of the 128-bit congruence, 0x2360ED051FC65DA44385DF649FCCF645.
_A_HI = np.uint64(0x2360ED051FC65DA4)
_A_LO = np.uint64(0x4385DF649FCCF645)

# The 64-bit PCG that spreads a short seed over 256 bits.
_SEED_MULTIPLIER = np.uint64(6364136223846793005)
_SEED_INCREMENT = np.uint64(11634580027462260723)

_LOW_32 = np.uint64(0xFFFFFFFF)
_0 = np.uint64(0)
_1 = np.uint64(1)
_18 = np.uint64(18)
_27 = np.uint64(27)
_31 = np.uint64(31)
_32 = np.uint64(32)
_58 = np.uint64(58)
_59 = np.uint64(59)
_63 = np.uint64(63)
_64 = np.uint64(64)
_TWO_32 = np.uint64(1 << 32)


@njit(cache=True, nogil=True)
def _multiply_high(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper half of the 128-bit product."""
    a_lo = a & _LOW_32
    a_hi = a >> _32
    b_lo = b & _LOW_32
    b_hi = b >> _32
    middle = a_hi * b_lo + ((a_lo * b_lo) >> _32)
    carry = a_lo * b_hi + (middle & _LOW_32)
    return a_hi * b_hi + (middle >> _32) + (carry >> _32)


@njit(cache=True, nogil=True)
def _step(generator: Generator) -> Generator:
    hi, lo, inc_hi, inc_lo = generator
    new_lo = lo * _A_LO
    new_hi = _multiply_high(lo, _A_LO) + hi * _A_LO + lo * _A_HI
    sum_lo = new_lo + inc_lo
    carry = _1 if sum_lo < inc_lo else _0
    return new_hi + inc_hi + carry, sum_lo, inc_hi, inc_lo


@njit(cache=True, nogil=True)
def _seed_word(state: np.uint64) -> np.uint64:
    """Return 32 bits: the xorshifted state, rotated right by its top five bits."""
    word = (((state >> _18) ^ state) >> _27) & _LOW_32
    turn = state >> _59
    return ((word >> turn) | (word << ((_32 - turn) & _31))) & _LOW_32


@njit(cache=True, nogil=True)
def _seed_u64(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    state = state * _SEED_MULTIPLIER + _SEED_INCREMENT
    low = _seed_word(state)
    state = state * _SEED_MULTIPLIER + _SEED_INCREMENT
    return low | (_seed_word(state) << _32), state


@njit(cache=True, nogil=True)
def seed_generator(seed: np.uint64) -> Generator:
    """Return the generator that belongs to a seed of 64 bits."""
    spread = np.uint64(seed)
    lo, spread = _seed_u64(spread)
    hi, spread = _seed_u64(spread)
    inc_lo, spread = _seed_u64(spread)
    inc_hi, spread = _seed_u64(spread)
    inc_lo = inc_lo | _1
    sum_lo = lo + inc_lo
    carry = _1 if sum_lo < inc_lo else _0
    return _step((hi + inc_hi + carry, sum_lo, inc_hi, inc_lo))


@njit(cache=True, nogil=True)
def next_u64(generator: Generator) -> tuple[np.uint64, Generator]:
    """Return 64 random bits and the next generator (the state is stepped first, then read)."""
    generator = _step(generator)
    folded = generator[0] ^ generator[1]
    turn = generator[0] >> _58
    return (folded >> turn) | (folded << ((_64 - turn) & _63)), generator


@njit(cache=True, nogil=True)
def next_u32(generator: Generator) -> tuple[np.uint64, Generator]:
    """Return 32 random bits (the low half of 64, held in a uint64) and the next generator."""
    bits, generator = next_u64(generator)
    return bits & _LOW_32, generator


@njit(cache=True, nogil=True)
def below(generator: Generator, n: np.uint64) -> tuple[np.uint64, Generator]:
    """Return an integer in ``[0, n)`` and the next generator.

    The upper half of ``u32 * n``, with one more draw to settle the carry where the lower half leaves it
    open (Canon's method, one step: the bias is below ``n / 2^64``).

    Parameters
    ----------
    generator
        The generator to draw from.
    n
        Number of values, ``1 <= n < 2^32`` (not checked).
    """
    n = np.uint64(n)
    bits, generator = next_u32(generator)
    product = bits * n
    result = product >> _32
    fraction = product & _LOW_32
    if fraction > _TWO_32 - n:
        bits, generator = next_u32(generator)
        if fraction + ((bits * n) >> _32) >= _TWO_32:
            result = result + _1
    return result, generator
