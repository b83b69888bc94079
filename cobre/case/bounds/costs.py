"""Costs by stage: override of the stage, then the entity's own, then ``penalties.json``.

Costs of a violation with a direction (``_pos``, ``_neg``) are taken from the first of: stage override of
that direction, stage override of both, the plant's own of both, global of that direction, global of both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.bounds.axes import StageAxis
from cobre.case.bounds.limits import Grids, lay_stages
from cobre.case.bounds.rows import BoundRows
from cobre.case.bounds.tables import BoundTables
from cobre.case.catalogue import by_id
from cobre.case.format.schema.penalties import GlobalHydroPenalties, HydroPenaltyOverrides, PenaltiesFile
from cobre.case.format.sources import Sources
from cobre.case.model import HYDRO_PENALTIES

DEFAULT_INFLOW_NONNEGATIVITY_COST = 1000.0
"""$/(m3/s.h), where no file gives one."""


def resolve_costs(
    sources: Sources, penalties: PenaltiesFile, tables: BoundTables, stages: StageAxis
) -> Grids:
    """Return the grids of all costs that may be overridden. Only for sources without errors."""

    def own(value: float | None, common: float) -> float:
        return common if value is None else value

    exchange = [own(line.exchange_cost, penalties.line.exchange_cost) for line in by_id(sources.lines.items)]
    common = penalties.non_controllable_source.curtailment_cost
    curtailment = [own(item.curtailment_cost, common) for item in by_id(sources.non_controllables.items)]
    excess = [penalties.bus.excess_cost] * len(sources.buses.items)
    return {
        "excess_cost": lay_stages(excess, tables.bus_costs, "excess_cost", stages),
        "exchange_cost": lay_stages(exchange, tables.line_costs, "exchange_cost", stages),
        "curtailment_cost": lay_stages(curtailment, tables.ncs_costs, "curtailment_cost", stages),
        "hydro_penalty": _hydro_penalties(sources, penalties.hydro, tables.hydro_costs, stages),
    }


def _symmetric(name: str) -> str:
    return name.removesuffix("_pos").removesuffix("_neg")


def _hydro_penalties(
    sources: Sources, common: GlobalHydroPenalties, rows: BoundRows, stages: StageAxis
) -> NDArray[np.float64]:
    """Return the costs by (stage, hydro, cost), the last in the order of HYDRO_PENALTIES."""
    hydros = by_id(sources.hydros.items)
    costs = np.zeros((stages.blocks.size, len(hydros), len(HYDRO_PENALTIES)))
    for index, name in enumerate(HYDRO_PENALTIES):
        costs[:, :, index] = [_declared(name, common, hydro.penalties) for hydro in hydros]
        # The override of one direction comes last, so that it prevails.
        for column in dict.fromkeys((f"{_symmetric(name)}_cost", f"{name}_cost")):
            values = rows.values[column]
            given = ~np.isnan(values)
            costs[rows.stage[given], rows.entity[given], index] = values[given]
    return costs


def _declared(name: str, common: GlobalHydroPenalties, own: HydroPenaltyOverrides | None) -> float:
    values = (
        getattr(own, f"{_symmetric(name)}_cost", None),
        getattr(common, f"{name}_cost", None),
        getattr(common, f"{_symmetric(name)}_cost", None),
    )
    found = next((float(value) for value in values if value is not None), None)
    if found is not None:
        return found
    if name == "inflow_nonnegativity":
        return DEFAULT_INFLOW_NONNEGATIVITY_COST
    raise ValueError(f"no cost of {name}")
