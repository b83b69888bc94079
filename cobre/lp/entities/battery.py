"""Batteries: energy stored at a bus.

With charge c and discharge d (MW) in block k of tau_k hours, efficiencies eta, and stored energy e (MWh)

    e' = e + sum_k tau_k (eta_c c_k - d_k / eta_d),    least <= e' <= most

over the stage where blocks are parallel, over each block where they are chronological. e is a component of
the state. Out of service c = d = 0, and e stays as it is. Since doing nothing is always possible, every state
is feasible.

Nothing forbids to charge and to discharge at once. It loses energy, so it pays only where energy is worth
less than nothing, such as at a bus whose excess has a cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cobre.case.format.schema.batteries import Battery
from cobre.lp.index import IdArray
from cobre.lp.parts import CostComponent, StagePart

if TYPE_CHECKING:
    from cobre.lp.stage.context import StageContext

ENERGY = "battery_energy"


def _add(stage: StageContext) -> IdArray:
    lp, labels, blocks = stage.lp, stage.topology.extension_labels["battery"], stage.block_labels
    batteries = stage.case.entities(Battery)
    charge_cost, discharge_cost, charged, discharged, least, most = (
        np.array([getattr(battery, name) for battery in batteries])[:, None]
        for name in (
            *("charge_cost_per_mwh", "discharge_cost_per_mwh", "charge_efficiency", "discharge_efficiency"),
            *("min_energy_mwh", "max_energy_mwh"),
        )
    )
    limits = stage.data.extensions
    charge = lp.add_columns(
        "battery_charge",
        (labels, blocks),
        cost=charge_cost * stage.hours,
        upper=limits["battery_charge_max_mw"],
    )
    discharge = lp.add_columns(
        "battery_discharge",
        (labels, blocks),
        cost=discharge_cost * stage.hours,
        upper=limits["battery_discharge_max_mw"],
    )
    final = lp.add_columns("battery_energy_final", (labels,), lower=least[:, 0], upper=most[:, 0])
    interior = lp.add_columns(
        "battery_energy_block", (labels, blocks[: stage.periods - 1]), lower=least, upper=most
    )
    balance = stage.ids_by_period(lp.add_equations("battery_balance", stage.period_axes(labels)))
    lp.put(balance, np.concatenate([interior, final[:, None]], axis=1), 1.0)
    lp.put(balance[:, 1:], interior, -1.0)
    lp.put_state(balance[:, 0], stage.layout.first[ENERGY] + np.arange(len(batteries)), 1.0)
    lp.put(balance[:, stage.period], charge, -charged * stage.hours)
    lp.put(balance[:, stage.period], discharge, stage.hours / discharged)
    bus = np.array([stage.topology.place["bus"][battery.bus_id] for battery in batteries])
    lp.put(stage.load[bus], discharge, 1.0)
    lp.put(stage.load[bus], charge, -1.0)
    return final


PART = StagePart(
    entry=Battery,
    add=_add,
    state_kind=ENERGY,
    initial=lambda battery: battery.initial_energy_mwh,
    costs=(CostComponent("battery", ("battery_charge", "battery_discharge")),),
)
