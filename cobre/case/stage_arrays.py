"""Grids of limits and costs, cut into the :class:`~cobre.case.model.StageData` of each stage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.bounds.axes import StageAxis, stage_axis
from cobre.case.bounds.costs import resolve_costs
from cobre.case.bounds.limits import Grids, resolve_extension_limits
from cobre.case.bounds.tables import BoundTables
from cobre.case.catalogue import by_id
from cobre.case.format.schema.penalties import PenaltiesFile
from cobre.case.format.sources import Sources
from cobre.case.model import StageData
from cobre.case.scenarios.load_factors import resolve_load_factors
from cobre.case.scenarios.ncs_factors import resolve_ncs_factors
from cobre.case.service import hydro_status, in_service

_NOT_BLOCKS = frozenset({"hydro_penalty"})
"""Grids whose third axis is not that of blocks."""


def resolve_stage_data(
    sources: Sources, penalties: PenaltiesFile, tables: BoundTables, limits: Grids
) -> tuple[StageData, ...]:
    """Return the data of every study stage. Only for sources without errors.

    Parameters
    ----------
    limits
        From :func:`cobre.case.checks.limits.check_limits`.
    """
    stages = stage_axis(sources)
    if stages.ids is None:
        raise ValueError("resolve_stage_data() needs sources without errors")
    grids = {**limits, **resolve_costs(sources, penalties, tables, stages)}
    status = hydro_status(by_id(sources.hydros.items), stages.ids)
    served = in_service(by_id(sources.non_controllables.items), stages.ids)
    load, ncs = resolve_load_factors(sources), resolve_ncs_factors(sources)
    extended = resolve_extension_limits(sources, tables, stages)
    return tuple(
        StageData(
            **_cut(grids, stages, position),
            hydro_status=_frozen(status[position]),
            ncs_in_service=_frozen(served[position]),
            load_factor=_frozen(load[position]),
            ncs_factor=_frozen(ncs[position]),
            extensions=_cut(extended, stages, position),
        )
        for position in range(stages.ids.size)
    )


def _cut(grids: Grids, stages: StageAxis, position: int) -> dict[str, Any]:
    width = int(stages.blocks[position])
    return {
        name: _frozen(
            grid[position, :, :width] if grid.ndim == 3 and name not in _NOT_BLOCKS else grid[position]
        )
        for name, grid in grids.items()
    }


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    fixed = np.ascontiguousarray(array)
    fixed.setflags(write=False)
    return fixed
