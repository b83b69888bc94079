"""Energy that water is worth on its way to the sea.

With rho_h the productivity of plant h, MW/(m3/s), and d(h) the plant downstream of it:

* accumulated productivity: ``P_h = rho_h + P_d(h)`` (the last plant: ``P_h = rho_h``);
* maximum of stored energy: ``P_h * (V_max - V_min)`` with the accumulated productivity of the mean head, in
  MW/(m3/s).hm3 (times 1e6/3600: MWh);
* reference volume, unless one is given: ``V_min + 0.65 * (V_max - V_min)``.

V_min and V_max are the limits of the reservoir itself, never those of a stage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DEFAULT_REFERENCE_FRACTION = 0.65
"""Share of the useful range at which a plant without a reference volume is judged."""


def reference_volume(storage_min_hm3: FloatArray, storage_max_hm3: FloatArray) -> FloatArray:
    """Return the default reference volume, hm3."""
    return storage_min_hm3 + DEFAULT_REFERENCE_FRACTION * (storage_max_hm3 - storage_min_hm3)


def accumulated_productivity(productivity: FloatArray, downstream: NDArray[np.int64]) -> FloatArray:
    """Return the productivity of each plant plus that of all plants downstream of it.

    Parameters
    ----------
    productivity
        Shape (..., hydro), MW/(m3/s).
    downstream
        Position of the next plant, or -1; without cycles.
    """
    accumulated = np.array(productivity, dtype=np.float64)
    done = np.zeros(downstream.size, dtype=np.bool_)
    for start in range(downstream.size):
        path = []
        here = start
        while here >= 0 and not done[here]:
            path.append(here)
            here = int(downstream[here])
        for hydro in reversed(path):
            if downstream[hydro] >= 0:
                accumulated[..., hydro] += accumulated[..., downstream[hydro]]
            done[hydro] = True
    return accumulated


def max_stored_energy(
    accumulated: FloatArray, storage_min_hm3: FloatArray, storage_max_hm3: FloatArray
) -> FloatArray:
    """Return the energy of a full reservoir above its dead volume, MW/(m3/s).hm3."""
    return accumulated * (storage_max_hm3 - storage_min_hm3)
