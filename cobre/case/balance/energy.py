"""Energy in inflow and storage: water times the productivity of every plant that it still passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, HydroStatus
from cobre.hydro.energy import accumulate
from cobre.units import HM3_PER_M3S_HOUR

FloatArray = NDArray[np.float64]


def inflow_energy_mw(case: Case, inflow_m3s: FloatArray) -> FloatArray:
    """Return the power that the inflow of each stage has on its way to the last plant, MW.

    Parameters
    ----------
    inflow_m3s
        Incremental inflow by (stage, hydro).
    """
    power: FloatArray = (inflow_m3s * accumulate(_productivity(case, "equivalent"), _downstream(case))).sum(
        axis=1
    )
    return power


def stored_energy_mwh(case: Case) -> tuple[float, float]:
    """Return the energy in full reservoirs and in those at the start, above the least storages of stage 1."""
    worth = accumulate(_productivity(case, "integrated")[:1], _downstream(case))[0] / HM3_PER_M3S_HOUR
    first = case.stage_data[0]
    range_hm3 = np.maximum(first.storage_max_hm3 - first.storage_min_hm3, 0.0)
    initial = np.array([hydro.initial_storage_hm3 for hydro in case.hydros], np.float64)
    above = np.clip(initial - first.storage_min_hm3, 0.0, range_hm3)
    return float(worth @ range_hm3), float(worth @ above)


def _downstream(case: Case) -> NDArray[np.intp]:
    place = {hydro.id: number for number, hydro in enumerate(case.hydros)}
    return np.array(
        [-1 if hydro.downstream_id is None else place[hydro.downstream_id] for hydro in case.hydros], np.intp
    )


def _productivity(case: Case, name: str) -> FloatArray:
    """Return MW/(m3/s) by (stage, hydro), 0 where a plant does not operate."""
    if case.energy is not None:
        own: FloatArray = getattr(case.energy, name)
    else:
        own = np.array([[model.productivity_mw_per_m3s for model in models] for models in case.production])
        own = own.reshape(len(case.stages), len(case.hydros))
    status = np.stack([data.hydro_status for data in case.stage_data])
    return np.where(status == HydroStatus.OPERATING, np.nan_to_num(own), 0.0)
