"""How far past inflows can push the inflow of a stage, over everything that the opening tree can bring.

Truncated inflow ``max(0, y)`` is not linear in the state, so cuts need to know between which values y can
lie. Bounds of the memory m of every plant are carried from stage to stage by interval arithmetic:

    y = e + psi . m,   z = y, or max(0, y) where it is truncated,   m' = carry m + gain z

with e between its least and largest value over the openings of the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.stochastic import OpeningTree
from cobre.stochastic.par import InflowModel

FloatArray = NDArray[np.float64]

_TRUNCATING = ("truncation", "truncation_with_penalty")


@dataclass(frozen=True, eq=False)
class PastInflow:
    """Bounds by stage; T stages, H plants, K lanes.

    Attributes
    ----------
    lower, upper
        float64[T, H]: bounds of ``psi . m`` with the memory that enters each stage.
    memory_lower, memory_upper
        float64[T + 1, H, K]: bounds of the memory that enters each stage, and of what is left at the end.
    truncated
        bool[T, H]: whether a negative inflow becomes 0; only noise makes an inflow negative that way.
    """

    lower: FloatArray
    upper: FloatArray
    memory_lower: FloatArray
    memory_upper: FloatArray
    truncated: NDArray[np.bool_]


def past_inflow(
    case: Case, model: InflowModel, tree: OpeningTree, nodes_by_stage: Sequence[Sequence[int]]
) -> PastInflow:
    """Return the bounds of a study."""
    stages, hydros, lanes = model.psi.shape
    truncated = (model.sigma_m3s > 0.0) & (case.training.inflow_method in _TRUNCATING)
    memory_lower = np.zeros((stages + 1, hydros, lanes))
    memory_upper = np.zeros((stages + 1, hydros, lanes))
    memory_lower[0] = memory_upper[0] = model.lags.initial
    lower, upper = np.zeros((stages, hydros)), np.zeros((stages, hydros))
    for stage, nodes in enumerate(nodes_by_stage):
        low, high = memory_lower[stage], memory_upper[stage]
        lower[stage], upper[stage] = _span(model.psi[stage], low, high)
        values = np.concatenate([tree.inflow_m3s[tree.rows(node)] for node in nodes])
        least = values.min(axis=0) + lower[stage]
        most = values.max(axis=0) + upper[stage]
        least, most = (np.where(truncated[stage], np.maximum(bound, 0.0), bound) for bound in (least, most))
        carry, gain = model.lags.carry[stage], model.lags.gain[stage]
        for lane in range(lanes):
            below, above = _span(carry[lane], low, high)
            ends = np.stack([gain[lane] * least, gain[lane] * most])
            memory_lower[stage + 1, :, lane] = below + ends.min(axis=0)
            memory_upper[stage + 1, :, lane] = above + ends.max(axis=0)
    return PastInflow(lower, upper, memory_lower, memory_upper, truncated)


def _span(weights: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and largest ``weights . m`` over the box from ``low`` to ``high``, by plant."""
    positive, negative = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
    least: FloatArray = (positive * low + negative * high).sum(axis=-1)
    most: FloatArray = (positive * high + negative * low).sum(axis=-1)
    return least, most
