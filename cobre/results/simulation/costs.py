"""The table of costs: what each stage of each scenario is paid for."""

from __future__ import annotations

import numpy as np

from cobre.lp.cost_components import COMPONENTS, cost_map
from cobre.lp.index import IdArray
from cobre.lp.stage.build import FUTURE_COST
from cobre.results.simulation.catalogue import COSTS
from cobre.results.simulation.frame import FloatArray, StageFrame, StageValues
from cobre.results.simulation.maker import NO_ID, Columns, Maker

_CREDIT = "non_controllable_credit"
_OF_HYDROS = (
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "turbined_violation_cost",
    "generation_violation_cost",
    "evaporation_violation_cost",
    "withdrawal_violation_cost",
)
COMPONENT_COLUMNS = tuple(
    _CREDIT if part.name == _CREDIT else f"{part.name}_cost" for part in COMPONENTS if part.name != "future"
)
"""Columns that components of the LP's cost have; curtailment is taken out of the credit."""


class PricedColumns:
    """The columns of a stage with a cost, by component."""

    def __init__(self, frame: StageFrame) -> None:
        found = cost_map([frame.template])
        self.ids: list[IdArray] = []
        self.price: list[FloatArray] = []
        for number in range(len(COMPONENT_COLUMNS)):
            own = found.component == number
            self.ids.append(found.column[own])
            self.price.append(found.value[own])


def stage_costs(frame: StageFrame, found: StageValues) -> dict[str, FloatArray]:
    """Return the columns of costs of a stage, each (S,)."""
    priced = frame.once("priced columns", PricedColumns)
    columns: dict[str, FloatArray] = {
        name: (found.columns(ids) * price).sum(axis=1)
        for name, ids, price in zip(COMPONENT_COLUMNS, priced.ids, priced.price, strict=True)
    }
    immediate = np.zeros(found.scenarios)
    for values in columns.values():
        immediate += values
    curtailed = found.of("non_controllable_curtailment") * frame.hours
    curtailment = (curtailed * frame.data.curtailment_cost[:, None]).sum(axis=(1, 2))
    columns[_CREDIT] = columns[_CREDIT] - curtailment
    theta = frame.ids(FUTURE_COST)
    future = found.columns(theta.reshape(1))[:, 0] * frame.price[int(theta)]
    return {
        "total_cost": immediate + future,
        "immediate_cost": immediate,
        "future_cost": future,
        "discount_factor": found.discount,
        **columns,
        "hydro_violation_cost": sum((columns[name] for name in _OF_HYDROS), np.zeros(found.scenarios)),
        "curtailment_cost": curtailment,
        "pumping_cost": np.zeros(found.scenarios),
    }


def _values(frame: StageFrame, found: StageValues) -> Columns:
    return {name: values[:, None] for name, values in stage_costs(frame, found).items()}


COST_MAKER = Maker(
    COSTS,
    present=lambda study: True,
    keys=lambda frame: {"block_id": np.array([NO_ID], np.int32)},
    values=_values,
)
