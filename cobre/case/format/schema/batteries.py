"""``system/batteries.json``: the batteries of the system, an extension of the format."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cobre.case.format.schema.system import Served
from cobre.fields import Id, NonNegative, RootModel

Efficiency = Annotated[float, Field(gt=0, le=1)]


class Battery(Served):
    """Stores energy at a bus from one block or stage to later ones."""

    bus_id: Id
    """Where it charges from and discharges to."""
    max_charge_mw: NonNegative
    """Most power taken from the bus, MW."""
    max_discharge_mw: NonNegative
    """Most power fed into the bus, MW."""
    min_energy_mwh: NonNegative = 0.0
    """Least stored energy, MWh; 0 unless given."""
    max_energy_mwh: NonNegative
    """Most stored energy, MWh."""
    initial_energy_mwh: NonNegative
    """Stored energy at the start of the study, MWh; kept until the battery enters service."""
    charge_efficiency: Efficiency = 1.0
    """Energy stored for each MWh taken from the bus; 1 unless given."""
    discharge_efficiency: Efficiency = 1.0
    """Energy fed into the bus for each MWh taken from the store; 1 unless given."""
    charge_cost_per_mwh: NonNegative = 0.0
    """Cost of each MWh taken from the bus, $/MWh; 0 unless given."""
    discharge_cost_per_mwh: NonNegative = 0.0
    """Cost of each MWh fed into the bus, $/MWh; 0 unless given."""


class BatteriesFile(RootModel):
    """``system/batteries.json``: the batteries of the system."""

    batteries: list[Battery]
    """All batteries; may be empty."""
