"""What an inflow model is, once it is made: coefficients by stage, and what plants remember."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import EstimationPath
from cobre.errors import Problem
from cobre.stochastic.par.fit import InflowFit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LagDynamics:
    """What each hydro plant remembers of past inflows: K numbers, with the same meaning for all plants.

    After a stage ``t`` with inflow ``z`` (m3/s): ``memory' = carry[t] @ memory + gain[t] * z``.

    Attributes
    ----------
    names
        One label for each component: ``lag 1``, ``lag 2``, ..., ``month so far``.
    carry
        float64 ``(T, K, K)``.
    gain
        float64 ``(T, K)``.
    initial
        float64 ``(H, K)``: memory (m3/s) that enters the first stage, from observations.
    needed
        bool ``(H, K)``: which components a plant must carry; the others are never read, neither by its model
        nor through ``carry``.
    """

    names: tuple[str, ...]
    carry: FloatArray
    gain: FloatArray
    initial: FloatArray
    needed: NDArray[np.bool_]

    def __repr__(self) -> str:
        stages, components = self.gain.shape
        return f"LagDynamics({stages} stages, {components} components: {', '.join(self.names) or 'none'})"


@dataclass(frozen=True, eq=False)
class InflowModel:
    """Inflow of every plant: ``z_t = base[t] + sum_k psi[t, :, k] memory[:, k] + sigma[t] * eta`` (m3/s).

    Attributes
    ----------
    base_m3s
        float64 ``(T, H)``.
    psi
        float64 ``(T, H, K)`` in original units; K = 0 without autoregression.
    sigma_m3s
        float64 ``(T, H)``: standard deviation of the noise.
    lags
        What ``memory`` is.
    path
        Where the model comes from.
    mean_m3s, std_m3s
        float64 ``(T, H)``: mean and standard deviation of the inflow that the model describes.
    order
        int64 ``(T, H)``: autoregressive order, the annual component not counted.
    fit
        What estimation found; ``None`` for a model that is given.
    notes
        What looked odd while the model was made but is not wrong.
    """

    base_m3s: FloatArray
    psi: FloatArray
    sigma_m3s: FloatArray
    lags: LagDynamics
    path: EstimationPath
    mean_m3s: FloatArray
    std_m3s: FloatArray
    order: NDArray[np.int64]
    fit: InflowFit | None = None
    notes: tuple[Problem, ...] = field(default=())

    def __repr__(self) -> str:
        stages, hydros = self.base_m3s.shape
        most = int(self.order.max(initial=0))
        return f"InflowModel({self.path}: {stages} stages, {hydros} hydros, largest order {most})"
