"""The catalogue of cost components: what each column of a stage LP with a cost is paid for, and by whom.

A component sums up families of columns (:class:`cobre.lp.index.Family`); a payer is one member of the first
axis of a family (a plant, a bus, a constraint) and one component. With the future cost of the last stage the
components add up to the cost of a forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.lp.entities import PARTS
from cobre.lp.index import ABSENT
from cobre.lp.parts import CostComponent
from cobre.lp.stage.build import FUTURE_COST
from cobre.lp.template import StageTemplate

COMPONENTS = (
    CostComponent("thermal", ("thermal_generation",)),
    CostComponent("anticipated_thermal", ("anticipated_decision",)),
    CostComponent("contract", ("contract_power",)),
    CostComponent("deficit", ("bus_deficit",), violation=True),
    CostComponent("excess", ("bus_excess",), violation=True),
    CostComponent("storage_violation", ("hydro_storage_below",), violation=True),
    CostComponent(
        "filling_target", ("hydro_filling_rate_violation", "hydro_filling_target_violation"), violation=True
    ),
    CostComponent("outflow_violation_below", ("hydro_outflow_min_violation",), violation=True),
    CostComponent("outflow_violation_above", ("hydro_outflow_max_violation",), violation=True),
    CostComponent(
        "turbined_violation",
        ("hydro_turbined_min_violation", "hydro_plant_turbined_min_violation"),
        violation=True,
    ),
    CostComponent(
        "generation_violation",
        ("hydro_generation_min_violation", "hydro_plant_generation_min_violation"),
        violation=True,
    ),
    CostComponent(
        "evaporation_violation", ("hydro_evaporation_below", "hydro_evaporation_above"), violation=True
    ),
    CostComponent(
        "withdrawal_violation", ("hydro_withdrawal_below", "hydro_withdrawal_above"), violation=True
    ),
    CostComponent("inflow_penalty", ("hydro_inflow_slack",), violation=True),
    CostComponent("generic_violation", ("generic_below", "generic_above"), violation=True),
    CostComponent("spillage", ("hydro_spillage",)),
    CostComponent("turbined", ("hydro_turbined",)),
    CostComponent("diversion", ("hydro_diversion",)),
    CostComponent("exchange", ("line_direct", "line_reverse")),
    # The LP rewards generation instead of charging curtailment; the two differ by a constant.
    CostComponent("non_controllable_credit", ("non_controllable_generation",)),
    *(component for part in PARTS for component in part.costs),
    CostComponent("future", (FUTURE_COST,)),
)
"""All components; the last one is the value that the final state has in the last stage."""

_COMPONENT_OF = {kind: place for place, part in enumerate(COMPONENTS) for kind in part.kinds}


def component_names() -> tuple[str, ...]:
    """Return the names of all components."""
    return tuple(part.name for part in COMPONENTS)


@dataclass(frozen=True, eq=False)
class CostMap:
    """The columns with a cost of all nodes, without the future cost, node after node.

    Attributes
    ----------
    start
        int64[N + 1]: first entry of each node.
    column, value
        The column, and what a unit of it in the LP costs, $.
    component, payer
        Positions in :data:`COMPONENTS` and in ``payers``.
    payers
        Position of the component and name of the entity.
    """

    start: NDArray[np.int64]
    column: NDArray[np.int32]
    value: NDArray[np.float64]
    component: NDArray[np.int32]
    payer: NDArray[np.int32]
    payers: tuple[tuple[int, str], ...]


def cost_map(templates: Sequence[StageTemplate]) -> CostMap:
    """Return what the columns of the templates of all nodes are paid for.

    Raises
    ------
    KeyError
        When a family of columns with a cost belongs to no component.
    """
    payers: dict[tuple[int, str], int] = {}
    columns, values, components, paid_by = [], [], [], []
    counts = [0]
    for template in templates:
        found = 0
        for kind, family in template.index.columns.items():
            present = family.ids != ABSENT
            ids = family.ids[present]
            priced = template.cost[ids] != 0.0
            if kind == FUTURE_COST or not priced.any():
                continue
            component = _COMPONENT_OF[kind]
            member = np.nonzero(present)[0][priced]
            place = np.zeros(len(family.axes[0]), np.int32)
            for position in np.unique(member):
                place[position] = payers.setdefault((component, family.axes[0][position]), len(payers))
            columns.append(ids[priced])
            values.append(template.cost[ids[priced]] * template.cost_scale)
            components.append(np.full(int(priced.sum()), component, np.int32))
            paid_by.append(place[member])
            found += len(columns[-1])
        counts.append(found)
    return CostMap(
        start=np.cumsum(counts).astype(np.int64),
        column=_joined(columns, np.int32),
        value=_joined(values, np.float64),
        component=_joined(components, np.int32),
        payer=_joined(paid_by, np.int32),
        payers=tuple(payers),
    )


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts], dtype=dtype, casting="same_kind")
