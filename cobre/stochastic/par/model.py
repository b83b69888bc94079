"""The inflow model of a study: white noise around the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LagDynamics:
    """What each hydro plant remembers of past inflows: K numbers, the same meaning for all plants.

    After stage t with inflow z (m3/s): ``memory = carry[t] @ memory + gain[t] * z``.

    Attributes
    ----------
    names
        What the K numbers are.
    carry, gain
        By (stage, K, K) and (stage, K).
    initial
        Memory that enters the first stage, by (hydro, K).
    needed
        Which components a plant must carry at all, by (hydro, K).
    """

    names: tuple[str, ...]
    carry: FloatArray
    gain: FloatArray
    initial: FloatArray
    needed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class InflowModel:
    """``z_t = base[t] + sum_k psi[t, h, k] memory[h, k] + sigma[t] * eta`` (m3/s).

    Attributes
    ----------
    base_m3s, sigma_m3s
        By (stage, hydro).
    psi
        By (stage, hydro, K).
    lags
        How the memory moves on.
    """

    base_m3s: FloatArray
    psi: FloatArray
    sigma_m3s: FloatArray
    lags: LagDynamics


def inflow_model(case: Case) -> InflowModel:
    """Return the inflow model of a study."""
    stages, hydros = case.scenarios.inflow_mean_m3s.shape
    return InflowModel(
        base_m3s=case.scenarios.inflow_mean_m3s,
        psi=np.zeros((stages, hydros, 0)),
        sigma_m3s=case.scenarios.inflow_std_m3s,
        lags=LagDynamics(
            (),
            np.zeros((stages, 0, 0)),
            np.zeros((stages, 0)),
            np.zeros((hydros, 0)),
            np.zeros((hydros, 0), np.bool_),
        ),
    )
