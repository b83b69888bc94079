"""placeholder of the contract; replaced at merging."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case


@dataclass(frozen=True, eq=False)
class LagDynamics:
    """What each plant remembers."""

    names: tuple[str, ...]
    carry: NDArray[np.float64]
    gain: NDArray[np.float64]
    initial: NDArray[np.float64]
    needed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class InflowModel:
    """Inflow model."""

    base_m3s: NDArray[np.float64]
    psi: NDArray[np.float64]
    sigma_m3s: NDArray[np.float64]
    lags: LagDynamics


def inflow_model(case: Case) -> InflowModel:
    """Return white noise."""
    mean, std = case.scenarios.inflow_mean_m3s, case.scenarios.inflow_std_m3s
    stages, hydros = mean.shape
    return InflowModel(
        mean,
        np.zeros((stages, hydros, 0)),
        std,
        LagDynamics(
            (),
            np.zeros((stages, 0, 0)),
            np.zeros((stages, 0)),
            np.zeros((hydros, 0)),
            np.zeros((hydros, 0), np.bool_),
        ),
    )
