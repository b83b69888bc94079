"""Uncertainty as the files state it; :mod:`cobre.stochastic` makes noise of it.

Stage axes follow the study stages; a table that is absent is ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Statistics and scenarios.

    Attributes
    ----------
    inflow_mean_m3s, inflow_std_m3s
        Incremental inflow by (stage, hydro).
    load_mean_mw, load_std_mw
        Load by (stage, bus), before block factors.
    ncs_mean, ncs_std
        Availability as a share of the maximum, by (stage, source).
    ncs_has_stats
        Which sources have rows at all, (source,).
    external_inflow_m3s
        For each stage an array (scenario, hydro), or ``None``.
    external_load_mw
        For each stage an array (scenario, bus), or ``None``.
    external_ncs
        For each stage an array (scenario, source) of availability shares, or ``None``.
    """

    inflow_mean_m3s: FloatArray
    inflow_std_m3s: FloatArray
    load_mean_mw: FloatArray
    load_std_mw: FloatArray
    ncs_mean: FloatArray
    ncs_std: FloatArray
    ncs_has_stats: NDArray[np.bool_]
    external_inflow_m3s: tuple[FloatArray, ...] | None = None
    external_load_mw: tuple[FloatArray, ...] | None = None
    external_ncs: tuple[FloatArray, ...] | None = None

    def __repr__(self) -> str:
        stages, hydros = self.inflow_mean_m3s.shape
        given = {
            "inflow": self.external_inflow_m3s,
            "load": self.external_load_mw,
            "sources": self.external_ncs,
        }
        external = ", ".join(name for name, values in given.items() if values is not None)
        return f"Scenarios({stages} stages, {hydros} hydros; external: {external or 'none'})"
