"""How far past inflows can push the inflow of a stage, over everything that the opening tree can bring.

Truncated inflow ``max(0, y)`` is not linear in the state, so cuts need to know between which values y can
lie. Bounds of the memory m of every plant are carried from stage to stage by interval arithmetic:

    y = e + psi . m,   z = y, or max(0, y) where it is truncated,   m' = carry m + gain z

with e between its least and largest value over the openings of the stage.

Intervals by lag ignore that several lags contain the same inflow. Where inflow is truncated, the range
of y is narrowed by its joint extremes: with ``z_s = e_s + psi . m + tau_s``, tau_s >= 0 what truncation adds,
y is linear in all earlier e and tau, each of which enters with one weight, the response of y to it.
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
    joint = _JointExtremes(model, np.asarray(model.lags.initial, np.float64)) if truncated.any() else None
    for stage, nodes in enumerate(nodes_by_stage):
        low, high = memory_lower[stage], memory_upper[stage]
        lower[stage], upper[stage] = _span(model.psi[stage], low, high)
        if joint is not None:
            lower[stage], upper[stage] = joint.narrowed(stage, lower[stage], upper[stage])
        values = np.concatenate([tree.inflow_m3s[tree.rows(node)] for node in nodes])
        least = values.min(axis=0) + lower[stage]
        most = values.max(axis=0) + upper[stage]
        if joint is not None:
            added = np.where(truncated[stage], np.maximum(-least, 0.0), 0.0)
            joint.advance(stage, values.min(axis=0), values.max(axis=0), added)
        least, most = (np.where(truncated[stage], np.maximum(bound, 0.0), bound) for bound in (least, most))
        carry, gain = model.lags.carry[stage], model.lags.gain[stage]
        for lane in range(lanes):
            below, above = _span(carry[lane], low, high)
            ends = np.stack([gain[lane] * least, gain[lane] * most])
            memory_lower[stage + 1, :, lane] = below + ends.min(axis=0)
            memory_upper[stage + 1, :, lane] = above + ends.max(axis=0)
    return PastInflow(lower, upper, memory_lower, memory_upper, truncated)


class _JointExtremes:
    """Least and largest ``psi . m`` over everything that noise and truncation can bring together.

    Holds the memory without any noise, and for each stage so far the memory that 1 m3/s of it leaves.
    """

    def __init__(self, model: InflowModel, initial: FloatArray) -> None:
        self._model = model
        self._quiet = initial
        self._response = np.zeros((0, *initial.shape))
        self._least = np.zeros((0, initial.shape[0]))
        self._most = np.zeros((0, initial.shape[0]))

    def narrowed(self, stage: int, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tighter of these bounds of ``psi . m`` and of the joint ones."""
        psi = self._model.psi[stage]
        quiet = (psi * self._quiet).sum(axis=-1)
        weight = (self._response * psi).sum(axis=-1)
        ends = np.stack([weight * self._least, weight * self._most])
        return (
            np.maximum(lower, quiet + ends.min(axis=0).sum(axis=0)),
            np.minimum(upper, quiet + ends.max(axis=0).sum(axis=0)),
        )

    def advance(self, stage: int, least: FloatArray, most: FloatArray, added: FloatArray) -> None:
        """Go on to the next stage: noise between these ends, and up to ``added`` by truncation."""
        psi, carry = self._model.psi[stage], self._model.lags.carry[stage]
        gain = self._model.lags.gain[stage]

        def after(memory: FloatArray, inflow: FloatArray) -> FloatArray:
            carried: FloatArray = np.einsum("...hk,lk->...hl", memory, carry)
            after_gain: FloatArray = carried + inflow[..., np.newaxis] * gain
            return after_gain

        response = after(self._response, (self._response * psi).sum(axis=-1))
        self._quiet = after(self._quiet, (self._quiet * psi).sum(axis=-1))
        one = after(np.zeros_like(self._quiet), np.ones(len(least)))
        self._response = np.concatenate([response, one[np.newaxis]])
        self._least = np.concatenate([self._least, least[np.newaxis]])
        self._most = np.concatenate([self._most, (most + added)[np.newaxis]])


def _span(weights: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and largest ``weights . m`` over the box from ``low`` to ``high``, by plant."""
    positive, negative = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
    least: FloatArray = (positive * low + negative * high).sum(axis=-1)
    most: FloatArray = (positive * high + negative * low).sum(axis=-1)
    return least, most
