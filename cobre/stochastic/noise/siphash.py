"""Seeds as a function of what they are for: SipHash-1-3 with the zero key over little-endian integers.

A message of 64-bit words ``m`` (the last one holds the leftover bytes and, in its top byte, the length)
updates four words ``v``: ``v3 ^= m``, one round, ``v0 ^= m``; after the last word ``v2 ^= 0xff``, three
rounds, and the hash is ``v0 ^ v1 ^ v2 ^ v3``. All messages here have a fixed length, so they are put
together from integers without any byte array.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import numpy as np
from numba import njit

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)

# Initial state of SipHash ("somepseudorandomlygeneratedbytes") under the key (0, 0).
_V0 = np.uint64(0x736F6D6570736575)
_V1 = np.uint64(0x646F72616E646F6D)
_V2 = np.uint64(0x6C7967656E657261)
_V3 = np.uint64(0x7465646279746573)

_FINAL = np.uint64(0xFF)
_LENGTH_12 = np.uint64(12 << 56)
_LENGTH_16 = np.uint64(16 << 56)
_LENGTH_20 = np.uint64(20 << 56)
_LENGTH_21 = np.uint64(21 << 56)
_FRESH = np.uint64(1)
"""First byte of the message of a fresh draw, which keeps it apart from the draws of openings."""
_LOW_32 = np.uint64(0xFFFFFFFF)

_8 = np.uint64(8)
_13 = np.uint64(13)
_16 = np.uint64(16)
_17 = np.uint64(17)
_21 = np.uint64(21)
_24 = np.uint64(24)
_32 = np.uint64(32)
_40 = np.uint64(40)
_56 = np.uint64(56)
_64 = np.uint64(64)


@njit(cache=True, nogil=True)
def _rotate_left(word: np.uint64, bits: np.uint64) -> np.uint64:
    return (word << bits) | (word >> (_64 - bits))


@njit(cache=True, nogil=True)
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0 = v0 + v1
    v1 = _rotate_left(v1, _13) ^ v0
    v0 = _rotate_left(v0, _32)
    v2 = v2 + v3
    v3 = _rotate_left(v3, _16) ^ v2
    v0 = v0 + v3
    v3 = _rotate_left(v3, _21) ^ v0
    v2 = v2 + v1
    v1 = _rotate_left(v1, _17) ^ v2
    v2 = _rotate_left(v2, _32)
    return v0, v1, v2, v3


@njit(cache=True, nogil=True)
def _hash_three_words(m0: np.uint64, m1: np.uint64, m2: np.uint64) -> np.uint64:
    v0, v1, v2, v3 = _V0, _V1, _V2, _V3
    for m in (m0, m1, m2):
        v3 = v3 ^ m
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 = v0 ^ m
    return _finish(v0, v1, v2, v3)


@njit(cache=True, nogil=True)
def _hash_two_words(m0: np.uint64, m1: np.uint64) -> np.uint64:
    v0, v1, v2, v3 = _V0, _V1, _V2, _V3
    for m in (m0, m1):
        v3 = v3 ^ m
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 = v0 ^ m
    return _finish(v0, v1, v2, v3)


@njit(cache=True, nogil=True)
def _finish(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> np.uint64:
    v2 = v2 ^ _FINAL
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@njit(cache=True, nogil=True)
def _pair(low: np.uint32, high: np.uint32) -> np.uint64:
    """Two little-endian u32 side by side are one u64."""
    return (np.uint64(low) & _LOW_32) | ((np.uint64(high) & _LOW_32) << _32)


@njit(cache=True, nogil=True)
def opening_seed(base: np.uint64, opening: np.uint32, stage_id: np.uint32) -> np.uint64:
    """Return the seed of one opening of the tree (TRN-09, 16 bytes).

    Parameters
    ----------
    base
        Seed of the tree, any value of 64 bits.
    opening
        Position of the opening within its stage, from 0.
    stage_id
        The stage's *id*, not its position. Any integer type; the low 32 bits count.
    """
    return _hash_three_words(np.uint64(base), _pair(opening, stage_id), _LENGTH_16)


@njit(cache=True, nogil=True)
def forward_seed(base: np.uint64, iteration: np.uint32, scenario: np.uint32, stage: np.uint32) -> np.uint64:
    """Return the seed of one step of a forward pass (TRN-09, 20 bytes).

    Parameters
    ----------
    base
        Seed of the tree, any value of 64 bits.
    iteration
        Training iteration, from 1.
    scenario
        Forward pass, counted over all ranks, from 0.
    stage
        The stage's *position*, not its id. Any integer type; the low 32 bits count.
    """
    last = (np.uint64(stage) & _LOW_32) | _LENGTH_20
    return _hash_three_words(np.uint64(base), _pair(iteration, scenario), last)


@njit(cache=True, nogil=True)
def stage_seed(base: np.uint64, stage_id: np.uint32) -> np.uint64:
    """Return the seed of all openings of a stage together (12 bytes).

    Parameters
    ----------
    base
        Seed of the tree, any value of 64 bits.
    stage_id
        The stage's *id*. Any integer type; the low 32 bits count.
    """
    return _hash_two_words(np.uint64(base), (np.uint64(stage_id) & _LOW_32) | _LENGTH_12)


@njit(cache=True, nogil=True)
def fresh_seed(base: np.uint64, iteration: np.uint32, scenario: np.uint32, group: np.uint32) -> np.uint64:
    """Return the seed of fresh noise of one step of a forward pass (21 bytes, the first of them 1).

    Parameters
    ----------
    base
        Seed of forward sampling, any value of 64 bits.
    iteration, scenario
        As in :func:`forward_seed`.
    group
        The stage's noise group. Any integer type; the low 32 bits count.
    """
    seed = np.uint64(base)
    pass_ = np.uint64(scenario) & _LOW_32
    first = _FRESH | (seed << _8)
    second = (seed >> _56) | ((np.uint64(iteration) & _LOW_32) << _8) | (pass_ << _40)
    third = (pass_ >> _24) | ((np.uint64(group) & _LOW_32) << _8) | _LENGTH_21
    return _hash_three_words(first, second, third)
