"""The table of batteries."""

from __future__ import annotations

from typing import Final

import numpy as np

from cobre.case.format.schema.batteries import Battery
from cobre.results.columns import code, identifier, number, table, text
from cobre.results.simulation.frame import StageFrame, StageValues, operative_state
from cobre.results.simulation.maker import Columns, Maker, entity_keys, names_of
from cobre.results.simulation.shared_columns import BLOCK, START

COSTS: Final = (number("battery_cost", "$", "Charging and discharging of batteries"),)

TABLE: Final = table(
    "batteries",
    "a battery in a block",
    BLOCK,
    identifier("battery_id", "Battery"),
    number("charge_mw", "MW", "Power taken from the bus"),
    number("charge_mwh", "MWh", "Energy taken from the bus"),
    number("discharge_mw", "MW", "Power fed into the bus"),
    number("discharge_mwh", "MWh", "Energy fed into the bus"),
    number(
        "energy_initial_mwh",
        "MWh",
        "Stored energy at the start of the block where blocks are chronological, else of the stage",
    ),
    number(
        "energy_final_mwh",
        "MWh",
        "Stored energy at the end of the block where blocks are chronological, else of the stage",
    ),
    number("battery_cost", "$", "Cost of charging and discharging"),
    number(
        "energy_value_per_mwh",
        "$/MWh",
        "Dual of the energy balance: change of the cost for one more MWh stored, so negative where it is "
        "worth money; not discounted",
    ),
    code(
        "operative_state_code",
        "0 out of service, 1 in service without capacity, 2 operating, 3 charging or discharging at its "
        "largest",
    ),
    text("battery_name", "Name of the battery"),
    START,
)


def _batteries(frame: StageFrame, found: StageValues) -> Columns:
    from cobre.lp.entities.battery import ENERGY  # loads the compiler, which a simulation has done already

    charge, discharge = found.of("battery_charge"), found.of("battery_discharge")
    count = charge.shape[1]
    served = frame.study.service.at("battery", frame.position)
    limits = frame.data.extensions
    charging = operative_state(served, limits["battery_charge_max_mw"], charge)
    discharging = operative_state(served, limits["battery_discharge_max_mw"], discharge)
    initial = found.state(frame.study.layout.first[ENERGY], count)[:, :, None]
    interior, final = found.of("battery_energy_block"), found.of("battery_energy_final")[:, :, None]
    return {
        "charge_mw": charge,
        "charge_mwh": charge * frame.hours,
        "discharge_mw": discharge,
        "discharge_mwh": discharge * frame.hours,
        "energy_initial_mwh": np.concatenate([initial, interior], axis=2)[:, :, frame.period],
        "energy_final_mwh": np.concatenate([interior, final], axis=2)[:, :, frame.period],
        "battery_cost": found.cost("battery_charge") + found.cost("battery_discharge"),
        "energy_value_per_mwh": found.duals(frame.in_blocks(frame.rows("battery_balance"))),
        # With capacity in one direction, at its largest in one: the higher of both codes.
        "operative_state_code": np.maximum(charging, discharging),
    }


MAKER = Maker(
    TABLE,
    present=lambda study: bool(study.case.entities(Battery)),
    keys=lambda frame: entity_keys(frame, "battery", frame.study.case.entities(Battery)),
    values=_batteries,
    names={"battery_name": names_of("batteries")},
)
