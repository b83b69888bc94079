"""Whether tables of a simulation fit together: energy, water, costs, from the tables and the case alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cobre.case.format.schema.batteries import Battery
from cobre.case.model import Case
from cobre.units import HM3_PER_M3S_HOUR

Tables = Mapping[str, pa.Table]

CREDIT = "non_controllable_credit"
SUMS = ("total_cost", "immediate_cost", "future_cost", "hydro_violation_cost")
"""Columns of costs that are made of others."""


class Places:
    """Where the rows of a table belong: scenario, stage and block as positions."""

    def __init__(self, case: Case, tables: Tables) -> None:
        self.case, self.tables = case, tables
        self.scenarios = tables["scenario_summary"]["scenario_id"].to_numpy()
        self.stage_ids = np.array([stage.id for stage in case.stages])
        self.blocks = max(len(stage.blocks) for stage in case.stages)
        self.hours = np.zeros((len(case.stages), self.blocks))
        for place, stage in enumerate(case.stages):
            self.hours[place, : len(stage.blocks)] = [block.hours for block in stage.blocks]

    def grid(self, name: str, column: str, entities: tuple, key: str) -> np.ndarray:
        """Return a column by (scenario, stage, block, entity), summed where several rows have one place."""
        table = self.tables[name]
        values = np.zeros((len(self.scenarios), len(self.stage_ids), self.blocks, len(entities)))
        ids = np.array([entity.id for entity in entities])
        block = np.zeros(len(table), int)
        stage = np.searchsorted(self.stage_ids, table["stage_id"].to_numpy())
        for place, own in enumerate(self.case.stages):
            here = stage == place
            order = [part.id for part in own.blocks]
            block[here] = np.searchsorted(order, table["block_id"].to_numpy()[here])
        at = (
            table["scenario_id"].to_numpy() - self.scenarios[0],
            stage,
            block,
            np.searchsorted(ids, table[key].to_numpy()),
        )
        np.add.at(values, at, table[column].to_numpy())
        return values


def energy_residual(case: Case, tables: Tables) -> np.ndarray:
    """What is fed into each bus less what is taken, MW, by (scenario, stage, block, bus)."""
    at = Places(case, tables)
    place = {bus.id: number for number, bus in enumerate(case.buses)}

    def of_buses(column: str) -> np.ndarray:
        return at.grid("buses", column, case.buses, "bus_id")

    total = of_buses("deficit_mw") - of_buses("excess_mw") - of_buses("load_mw")
    if case.hydros:
        total += at.grid("hydro_bus_generation", "generation_mw", case.buses, "bus_id")

    def add(name: str, column: str, entities: tuple, key: str, sign: float = 1.0) -> None:
        if entities:
            power = at.grid(name, column, entities, key)
            for number, entity in enumerate(entities):
                own = sign if name != "contracts" or entity.kind == "import" else -sign
                total[..., place[entity.bus_id]] += own * power[..., number]

    add("thermals", "generation_mw", case.thermals, "thermal_id")
    add("non_controllables", "generation_mw", case.non_controllables, "non_controllable_id")
    add("contracts", "power_mw", case.contracts, "contract_id")
    add("pumping_stations", "power_consumption_mw", case.pumping_stations, "pumping_station_id", -1.0)
    add("batteries", "discharge_mw", case.entities(Battery), "battery_id")
    add("batteries", "charge_mw", case.entities(Battery), "battery_id", -1.0)
    if case.lines:
        flows = {
            column: at.grid("exchanges", column, case.lines, "line_id")
            for column in ("direct_flow_mw", "reverse_flow_mw")
        }
        for number, line in enumerate(case.lines):
            for column, sender, receiver in (
                ("direct_flow_mw", line.source_bus_id, line.target_bus_id),
                ("reverse_flow_mw", line.target_bus_id, line.source_bus_id),
            ):
                sent = flows[column][..., number]
                total[..., place[sender]] -= sent
                total[..., place[receiver]] += (1.0 - line.loss) * sent
    return total


def water_residual(case: Case, tables: Tables) -> np.ndarray:
    """What each plant holds less than what it received, hm3, by (scenario, stage, period, plant)."""
    at = Places(case, tables)
    place = {plant.id: number for number, plant in enumerate(case.hydros)}

    def of_hydros(column: str) -> np.ndarray:
        return at.grid("hydros", column, case.hydros, "hydro_id")

    outflow = of_hydros("outflow_m3s")
    net = sum(
        of_hydros(column)
        for column in (
            *("incremental_inflow_m3s", "diverted_inflow_m3s", "delayed_inflow_m3s"),
            "inflow_nonnegativity_slack_m3s",
        )
    )
    net = net - outflow - of_hydros("diverted_outflow_m3s") - of_hydros("evaporation_m3s")
    net -= of_hydros("water_withdrawal_m3s")
    for number, plant in enumerate(case.hydros):
        if plant.downstream_id is not None and plant.travel_time_hours == 0.0:
            net[..., place[plant.downstream_id]] += outflow[..., number]
    if case.pumping_stations:
        flow = at.grid("pumping_stations", "pumped_flow_m3s", case.pumping_stations, "pumping_station_id")
        for number, pump in enumerate(case.pumping_stations):
            net[..., place[pump.source_hydro_id]] -= flow[..., number]
            net[..., place[pump.destination_hydro_id]] += flow[..., number]
    received = net * HM3_PER_M3S_HOUR * at.hours[:, :, None]
    initial, final = of_hydros("storage_initial_hm3"), of_hydros("storage_final_hm3")
    residual = np.zeros_like(received)
    for stage, own in enumerate(case.stages):
        blocks = len(own.blocks)
        if own.block_mode == "chronological":
            residual[:, stage, :blocks] = (final - initial - received)[:, stage, :blocks]
        else:
            held = (final - initial)[:, stage, 0]
            residual[:, stage, 0] = held - received[:, stage].sum(axis=1)
    return residual


def storages_follow(case: Case, tables: Tables) -> np.ndarray:
    """Storage at the start of a stage or block less that at the end of the one before, hm3."""
    at = Places(case, tables)
    ends = [at.grid("hydros", f"storage_{end}_hm3", case.hydros, "hydro_id") for end in ("initial", "final")]
    gaps = []
    for stage, own in enumerate(case.stages):
        last = len(own.blocks) - 1
        if stage + 1 < len(case.stages):
            gaps.append(ends[0][:, stage + 1, 0] - ends[1][:, stage, last])
        if own.block_mode == "chronological":
            gaps += [ends[0][:, stage, k + 1] - ends[1][:, stage, k] for k in range(last)]
    return np.array(gaps)


def cost_residual(tables: Tables) -> np.ndarray:
    """Immediate cost less the sum of its components, relative, by row of costs."""
    costs = tables["costs"]
    parts = [
        name for name in costs.column_names if (name.endswith("_cost") and name not in SUMS) or name == CREDIT
    ]
    total = np.sum([costs[name].to_numpy() for name in parts], axis=0)
    immediate = costs["immediate_cost"].to_numpy()
    largest = np.max([np.abs(costs[name].to_numpy()) for name in parts], axis=0)
    return (immediate - total) / np.maximum(1.0, largest)


def entity_cost_residual(tables: Tables) -> dict[str, float]:
    """Largest difference between a component and the sum of its payers, relative, by component."""
    costs = tables["costs"]
    rows = list(zip(costs["scenario_id"].to_pylist(), costs["stage_id"].to_pylist(), strict=True))
    number = {row: place for place, row in enumerate(rows)}
    found = {}
    for component, name, column in (
        ("thermal_cost", "thermals", "generation_cost"),
        ("contract_cost", "contracts", "total_cost"),
        ("exchange_cost", "exchanges", "exchange_cost"),
        ("spillage_cost", "hydros", "spillage_cost"),
        ("curtailment_cost", "non_controllables", "curtailment_cost"),
        ("generic_violation_cost", "generic_violations", "slack_cost"),
        ("battery_cost", "batteries", "battery_cost"),
    ):
        total = np.zeros(len(rows))
        if name in tables:
            table = tables[name]
            at = [
                number[row]
                for row in zip(table["scenario_id"].to_pylist(), table["stage_id"].to_pylist(), strict=True)
            ]
            np.add.at(total, at, table[column].to_numpy())
        own = costs[component].to_numpy()
        found[component] = float(np.max(np.abs(own - total) / np.maximum(1.0, np.abs(own)), initial=0.0))
    return found
