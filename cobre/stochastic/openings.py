"""The noise of one stage's openings, by the stage's sampling method.

Independent openings (``saa``) have a generator each, whose seed is the hash of (tree seed, opening,
stage id); the other methods make all openings of a stage together, from the hash of (tree seed, stage id).
``historical_residuals`` takes the residuals of a window of the history, chosen by the opening's hash; load
and sources are at their mean there.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.case.model import SamplingMethod, Stage
from cobre.errors import Problem, ValidationError
from cobre.stochastic.noise.halton import fill_halton, fill_owen_halton, first_primes
from cobre.stochastic.noise.latin import fill_latin
from cobre.stochastic.noise.siphash import opening_seed, stage_seed
from cobre.stochastic.noise.sobol import MAX_DIMENSION, directions, fill_owen_sobol, fill_sobol
from cobre.stochastic.noise.ziggurat import fill_standard_normal

FloatArray = NDArray[np.float64]

SAA, LHS, QMC_SOBOL, QMC_HALTON, OWEN_SOBOL, OWEN_HALTON = range(6)
METHODS: dict[SamplingMethod, int] = {
    "saa": SAA,
    "lhs": LHS,
    "qmc_sobol": QMC_SOBOL,
    "qmc_halton": QMC_HALTON,
    "owen_sobol": OWEN_SOBOL,
    "owen_halton": OWEN_HALTON,
    "historical_residuals": SAA,
}
"""Numbers of the methods in kernels; forward passes draw fresh noise independently instead of residuals."""


def fill_openings(seed: int, stage: Stage, windows: FloatArray, out: FloatArray) -> None:
    """Fill the independent noise of all openings of a stage.

    Parameters
    ----------
    seed
        Seed of the tree.
    windows
        For ``historical_residuals``: noise of the stage by (window, hydro), hydros in the order of noise.
    out
        By (opening, place in the noise vector), C-contiguous.

    Raises
    ------
    ValidationError
        If there are more entities with noise than dimensions of Sobol points.
    """
    base, method = np.uint64(seed), stage.sampling_method
    together = np.uint64(stage_seed(base, stage.id))
    if method == "saa":
        fill_one_by_one(base, stage.id, out)
    elif method == "historical_residuals":
        _fill_residuals(base, stage.id, windows, out)
    elif method == "lhs":
        fill_latin(together, out)
    elif method in ("qmc_sobol", "owen_sobol"):
        table = sobol_table(out.shape[1])
        if method == "qmc_sobol":
            fill_sobol(together, table, 0, True, out)
        else:
            fill_owen_sobol(together, table, 0, out)
    elif method == "qmc_halton":
        fill_halton(together, halton_bases(out.shape[1]), len(out), 0, out)
    else:
        fill_owen_halton(together, halton_bases(out.shape[1]), len(out), 0, out)


def sobol_table(dimensions: int) -> NDArray[np.uint32]:
    """Return the directions of Sobol points, for kernels.

    Raises
    ------
    ValidationError
        If there are not as many dimensions.
    """
    if dimensions > MAX_DIMENSION:
        raise ValidationError(
            [
                Problem(
                    "DimensionMismatch",
                    f"stages.json: Sobol points have up to {MAX_DIMENSION} dimensions, but {dimensions} "
                    "entities have noise.",
                    {"file": "stages.json", "field": "sampling_method", "value": dimensions},
                    "Use another sampling method.",
                )
            ],
            source="the opening tree",
        )
    return np.array(directions(dimensions))


def halton_bases(dimensions: int) -> NDArray[np.int64]:
    """Return the bases of Halton points, for kernels."""
    return np.array(first_primes(dimensions))


@njit(cache=True, nogil=True)
def fill_one_by_one(seed: np.uint64, stage_id: int, out: FloatArray) -> None:
    """Fill independent noise by (opening, place), with a generator for each opening."""
    for opening in range(out.shape[0]):
        fill_standard_normal(opening_seed(seed, opening, stage_id), out[opening])


@njit(cache=True, nogil=True)
def _fill_residuals(seed: np.uint64, stage_id: int, windows: FloatArray, out: FloatArray) -> None:
    hydros = windows.shape[1]
    for opening in range(out.shape[0]):
        window = np.int64(opening_seed(seed, opening, stage_id) % np.uint64(windows.shape[0]))
        for place in range(out.shape[1]):
            out[opening, place] = windows[window, place] if place < hydros else 0.0
