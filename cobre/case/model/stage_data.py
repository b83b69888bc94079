"""Limits, costs and service of every entity at one stage, all overrides applied.

A value is resolved as: row of a block > row of the stage > entity > global default. Outside its service
window an entity's limits are zero here, except those of hydro plants, which have a :class:`HydroStatus`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class HydroStatus(IntEnum):
    """What a hydro plant does at a stage.

    ``OUT``: storage stays as it is, no water is turbined or spilt, inflow passes to the downstream plant.
    ``FILLING``: the dam exists and fills up; nothing is turbined.
    """

    OPERATING = 0
    OUT = 1
    FILLING = 2


HYDRO_PENALTIES: Final = (
    "spillage",
    "diversion",
    "turbined",
    "storage_violation_below",
    "filling_target_violation",
    "turbined_violation_below",
    "outflow_violation_below",
    "outflow_violation_above",
    "generation_violation_below",
    "evaporation_violation_pos",
    "evaporation_violation_neg",
    "water_withdrawal_violation_pos",
    "water_withdrawal_violation_neg",
    "inflow_nonnegativity",
)
"""Names of the hydro costs: flows in $/(m3/s.h), storage in $/hm3, generation in $/MWh."""


@dataclass(frozen=True, eq=False)
class StageData:
    """Resolved values of one stage; read-only arrays.

    Axes: ``h`` hydro, ``u`` unit group (all groups of all plants: plants in order, then groups by id),
    ``i`` thermal, ``l`` line, ``b`` bus, ``r`` non-controllable source, ``p`` pumping station,
    ``c`` contract, ``k`` block.
    """

    thermal_min_mw: FloatArray  # (i, k)
    thermal_max_mw: FloatArray  # (i, k)
    thermal_cost: FloatArray  # (i,) $/MWh
    hydro_status: NDArray[np.int8]  # (h,) HydroStatus
    storage_min_hm3: FloatArray  # (h,)
    storage_max_hm3: FloatArray  # (h,)
    turbined_min_m3s: FloatArray  # (h, k) of the plant
    turbined_max_m3s: FloatArray  # (h, k)
    generation_min_mw: FloatArray  # (h, k)
    generation_max_mw: FloatArray  # (h, k)
    outflow_min_m3s: FloatArray  # (h, k)
    outflow_max_m3s: FloatArray  # (h, k), inf = unbounded
    diversion_min_m3s: FloatArray  # (h, k)
    diversion_max_m3s: FloatArray  # (h, k), 0 without a channel
    withdrawal_m3s: FloatArray  # (h,), negative = return flow
    filling_min_rate_m3s: FloatArray  # (h,)
    group_turbined_min_m3s: FloatArray  # (u, k)
    group_turbined_max_m3s: FloatArray  # (u, k)
    group_generation_min_mw: FloatArray  # (u, k)
    group_generation_max_mw: FloatArray  # (u, k)
    hydro_penalty: FloatArray  # (h, len(HYDRO_PENALTIES))
    line_direct_mw: FloatArray  # (l, k)
    line_reverse_mw: FloatArray  # (l, k)
    exchange_cost: FloatArray  # (l,) $/MWh
    excess_cost: FloatArray  # (b,) $/MWh
    load_factor: FloatArray  # (b, k)
    pumping_min_m3s: FloatArray  # (p, k)
    pumping_max_m3s: FloatArray  # (p, k)
    contract_min_mw: FloatArray  # (c, k)
    contract_max_mw: FloatArray  # (c, k)
    contract_price: FloatArray  # (c, k) $/MWh
    ncs_available_mw: FloatArray  # (r,) where the source has no stats; 0 out of service
    ncs_in_service: NDArray[np.bool_]  # (r,)
    ncs_factor: FloatArray  # (r, k)
    curtailment_cost: FloatArray  # (r,) $/MWh
    extensions: Mapping[str, FloatArray] = field(default_factory=dict, metadata={"extension": True})
    """Limits of types that are extensions, (entity, block), by the names of :mod:`cobre.case.catalogue`."""

    def penalty(self, name: str) -> FloatArray:
        """Return one hydro cost (see :data:`HYDRO_PENALTIES`) of every plant."""
        return self.hydro_penalty[:, HYDRO_PENALTIES.index(name)]

    def __repr__(self) -> str:
        blocks = self.thermal_max_mw.shape[1]
        return (
            f"StageData({len(self.hydro_status)} hydros, {len(self.thermal_cost)} thermals, {blocks} blocks)"
        )
