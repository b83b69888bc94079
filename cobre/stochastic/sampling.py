"""Which opening a forward pass draws at each stage.

In-sample: pass ``m`` of iteration ``k`` draws, at stage position ``t``, one of the ``n_t`` openings
of the tree with equal probability. The draw is a function of ``(tree seed, k, m, t)`` alone, so it is the
same on every rank, thread and backend, and nothing about it is communicated.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import numpy as np
from numba import njit

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.stochastic.noise.pcg64 import below, next_u64, seed_generator
from cobre.stochastic.noise.siphash import forward_seed


@njit(cache=True, nogil=True)
def sample_opening(tree_seed: np.uint64, iteration: int, scenario: int, stage: int, n_openings: int) -> int:
    """Return the position (int64) of the opening drawn, in ``[0, n_openings)``.

    Parameters
    ----------
    tree_seed
        Seed of the opening tree, any value of 64 bits.
    iteration
        Training iteration, from 1.
    scenario
        Forward pass, counted over all ranks, from 0.
    stage
        The stage's position (not its id), from 0.
    n_openings
        Number of openings of that stage, ``1 <= n_openings < 2^32`` (not checked).
    """
    generator = seed_generator(forward_seed(tree_seed, iteration, scenario, stage))
    opening, generator = below(generator, np.uint64(n_openings))
    return np.int64(opening)


_NODE_DRAWS = 2**31
"""Added to the stage, so that the draw of a node is not that of its opening."""
_HALF_ULP_BITS = np.uint64(11)
_UNIT = 2.0**-53


@njit(cache=True, nogil=True)
def sample_uniform(tree_seed: np.uint64, iteration: int, scenario: int, stage: int) -> float:
    """Return the number in ``[0, 1)`` by which a pass chooses its node at ``stage``."""
    generator = seed_generator(forward_seed(tree_seed, iteration, scenario, stage + _NODE_DRAWS))
    bits, generator = next_u64(generator)
    return (bits >> _HALF_ULP_BITS) * _UNIT
