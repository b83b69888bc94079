"""When entities are in service, and what hydro plants do at each stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.case.format.schema.system import HydroEntry, Served
from cobre.case.model import HydroStatus


def in_service(entities: Sequence[Served], stage_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each entity is in service, by (stage, entity): entry <= stage < exit."""
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    entry = np.array([lowest if e.entry_stage_id is None else e.entry_stage_id for e in entities], np.int64)
    leave = np.array([highest if e.exit_stage_id is None else e.exit_stage_id for e in entities], np.int64)
    served: NDArray[np.bool_] = (stage_ids[:, None] >= entry) & (stage_ids[:, None] < leave)
    return served


def hydro_status(hydros: Sequence[HydroEntry], stage_ids: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the status of each plant by (stage, hydro); a plant with filling fills up until its entry."""
    served = in_service(hydros, stage_ids)
    status = np.where(served, HydroStatus.OPERATING, HydroStatus.OUT).astype(np.int8)
    for position, hydro in enumerate(hydros):
        if hydro.filling is not None and hydro.entry_stage_id is not None:
            filling = (stage_ids >= hydro.filling.start_stage_id) & (stage_ids < hydro.entry_stage_id)
            status[filling, position] = HydroStatus.FILLING
    return status
