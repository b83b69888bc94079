"""How water becomes energy, and how it evaporates, at one plant and stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ProductionKind = Literal["constant_productivity", "linearized_head", "fpha"]


@dataclass(frozen=True)
class FitQuality:
    """How far fitted planes lie from the exact production function, over the grid of the fit.

    Attributes
    ----------
    alpha
        The least-squares factor on the concave hull.
    max_deviation_mw, mean_deviation_mw
        Of the planes, in absolute value.
    mean_power_mw
        Mean of the exact function.
    """

    alpha: float
    max_deviation_mw: float
    mean_deviation_mw: float
    mean_power_mw: float


@dataclass(frozen=True, eq=False)
class ProductionModel:
    """Generation G (MW) from turbined flow q (m3/s), spillage s (m3/s) and mean storage v (hm3).

    Attributes
    ----------
    kind
        ``constant_productivity``: G = productivity * q. Else G is at most every plane.
    productivity_mw_per_m3s
        Of constant productivity; for the other kinds the equivalent one, used by reports and by
        generic parameters only.
    planes
        float64 (planes, 4): ``G <= p0 + pv * v + pq * q + ps * s``; empty for constant productivity.
    quality
        Of planes that were fitted here, else ``None``.
    """

    kind: ProductionKind
    productivity_mw_per_m3s: float
    planes: NDArray[np.float64]
    quality: FitQuality | None = None

    def __repr__(self) -> str:
        planes = f", {len(self.planes)} planes" if len(self.planes) else ""
        fit = f", {self.quality}" if self.quality is not None else ""
        return f"ProductionModel({self.kind!r}, {self.productivity_mw_per_m3s:g} MW/(m3/s){planes}{fit})"


@dataclass(frozen=True)
class EvaporationModel:
    """Evaporation (m3/s) = ``intercept + slope * v`` with v the mean storage (hm3) of the period."""

    intercept_m3s: float
    slope_m3s_per_hm3: float
    reference_volume_hm3: float
