"""Tables of simulations: columns of cobre-rs, balances that close, values found by hand and by cobre-rs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from builders.balances import (
    cost_residual,
    energy_residual,
    entity_cost_residual,
    storages_follow,
    water_residual,
)
from builders.case_files import write_files
from builders.paths import EXAMPLES
from builders.random_case import write_random_case
from builders.rich_case import rich_files
from builders.shared_cases import shared_cases, shared_system
from builders.simulated_blocks import Simulated, simulate
from builders.small_studies import DEFICIT, HOURS, plant, small_study

import cobre.case
from cobre.case.model import HYDRO_PENALTIES, Case, HydroStatus, Line, Thermal
from cobre.lp.cost_components import component_names
from cobre.results.simulation import SimulationTables
from cobre.results.simulation.catalogue import COSTS, TABLES
from cobre.results.simulation.costs import COMPONENT_COLUMNS
from cobre.sddp import train
from cobre.templates import TEMPLATES

CLOSES = 1e-6

PEER_COLUMNS = {
    "costs": "scenario_id stage_id node_id block_id total_cost immediate_cost future_cost discount_factor "
    "thermal_cost anticipated_thermal_cost contract_cost deficit_cost excess_cost storage_violation_cost "
    "filling_target_cost hydro_violation_cost outflow_violation_below_cost outflow_violation_above_cost "
    "turbined_violation_cost generation_violation_cost evaporation_violation_cost withdrawal_violation_cost "
    "inflow_penalty_cost generic_violation_cost spillage_cost turbined_cost curtailment_cost exchange_cost "
    "pumping_cost",
    "hydros": "scenario_id stage_id node_id block_id hydro_id turbined_m3s spillage_m3s outflow_m3s "
    "evaporation_m3s diverted_inflow_m3s diverted_outflow_m3s incremental_inflow_m3s inflow_m3s "
    "storage_initial_hm3 storage_final_hm3 generation_mw generation_mwh equivalent_productivity_mw_per_m3s "
    "accumulated_productivity_mw_per_m3s incremental_inflow_energy_mw stored_energy_initial_mwh "
    "stored_energy_final_mwh spillage_cost water_value_per_hm3 storage_binding_code operative_state_code "
    "turbined_slack_m3s outflow_slack_below_m3s outflow_slack_above_m3s generation_slack_mw "
    "storage_violation_below_hm3 filling_target_violation_hm3 evaporation_violation_pos_m3s "
    "evaporation_violation_neg_m3s inflow_nonnegativity_slack_m3s water_withdrawal_violation_pos_m3s "
    "water_withdrawal_violation_neg_m3s integrated_equivalent_productivity_mw_per_m3s "
    "integrated_accumulated_productivity_mw_per_m3s stored_energy_initial_mw stored_energy_final_mw",
    "hydro_bus_generation": "scenario_id stage_id node_id block_id hydro_id bus_id turbined_m3s "
    "generation_mw generation_mwh",
    "thermals": "scenario_id stage_id node_id block_id thermal_id generation_mw generation_mwh "
    "generation_cost is_anticipated anticipated_committed_mw anticipated_decision_mw operative_state_code",
    "exchanges": "scenario_id stage_id node_id block_id line_id direct_flow_mw reverse_flow_mw net_flow_mw "
    "net_flow_mwh losses_mw losses_mwh exchange_cost operative_state_code",
    "buses": "scenario_id stage_id node_id block_id bus_id load_mw load_mwh deficit_mw deficit_mwh excess_mw "
    "excess_mwh spot_price",
    "pumping_stations": "scenario_id stage_id node_id block_id pumping_station_id pumped_flow_m3s "
    "pumped_volume_hm3 power_consumption_mw energy_consumption_mwh pumping_cost operative_state_code",
    "contracts": "scenario_id stage_id node_id block_id contract_id power_mw energy_mwh price_per_mwh "
    "total_cost operative_state_code",
    "non_controllables": "scenario_id stage_id node_id block_id non_controllable_id generation_mw "
    "generation_mwh available_mw curtailment_mw curtailment_mwh curtailment_cost operative_state_code",
    "inflow_lags": "scenario_id stage_id node_id hydro_id lag_index inflow_m3s",
    "in_transit": "scenario_id stage_id node_id hydro_id lag in_transit_volume_hm3 delayed_arrival_hm3",
    "transit_seed": "scenario_id hydro_id start_date end_date value_m3s",
    "anticipated_lanes": "scenario_id stage_id node_id thermal_id delivery_date deposited_decision_mw "
    "carried_committed_mw",
    "generic_violations": "scenario_id stage_id node_id block_id constraint_id slack_value slack_cost",
    "paths": "scenario_id stage_id node_id",
    "scenario_summary": "scenario_id probability discounted_immediate_cost",
}
"""Columns that cobre-rs 0.18.0 writes, in its order."""

PEER_CODES = ("storage_binding_code", "operative_state_code")
NULLABLE = {
    *("block_id", "evaporation_m3s", "diverted_inflow_m3s", "diverted_outflow_m3s", "probability"),
    *("anticipated_committed_mw", "anticipated_decision_mw"),
}


def tables_of(simulated: Simulated) -> dict[str, pa.Table]:
    maker = SimulationTables(simulated.case, simulated.templates, simulated.layout)
    tables, schemas = maker.tables(simulated.block), maker.schemas()
    assert list(schemas) == [spec.name for spec in TABLES if spec.name in schemas]
    assert set(tables) == set(schemas)
    for name, table in tables.items():
        table.validate(full=True)
        assert table.schema.equals(schemas[name])
        for field in table.schema:
            assert field.nullable or table[field.name].null_count == 0
    return tables


def only_row(table: pa.Table, **place: int) -> dict:
    (row,) = [row for row in table.to_pylist() if all(row[name] == value for name, value in place.items())]
    return row


# -- columns -------------------------------------------------------------------------------------------


def test_columns_begin_as_those_of_cobre_rs() -> None:
    kinds = {"id": "i32", "index": "i32", "lag": "i32", "delivery_date": "i32", "is_anticipated": "bool"}
    kinds |= {"start_date": "date32", "end_date": "date32"} | dict.fromkeys(PEER_CODES, "i8")
    specs = {spec.name: spec for spec in TABLES}
    assert set(specs) == {*PEER_COLUMNS, "batteries"}
    for name, listed in PEER_COLUMNS.items():
        names = listed.split()
        columns = specs[name].columns
        assert [column.name for column in columns[: len(names)]] == names
        for column in columns[: len(names)]:
            last = column.name.rsplit("_", 1)[-1]
            assert column.type == kinds.get(column.name, kinds.get(last, "f64")), column
            assert column.nullable == (column.name in NULLABLE), column


def test_every_component_of_the_cost_has_a_column() -> None:
    names = {column.name for column in COSTS.columns}
    assert set(COMPONENT_COLUMNS) <= names
    assert len(COMPONENT_COLUMNS) == len(component_names()) - 1  # the future cost is no component


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_units_of_columns_are_those_in_their_names(spec) -> None:
    ends = {
        "_per_m3s": "MW/(m3/s)",
        "_per_hm3": "$/hm3",
        "_per_mwh": "$/MWh",
        "_m3s": "m3/s",
        "_hm3": "hm3",
        "_mwh": "MWh",
        "_mw": "MW",
        "_cost": "$",
    }
    for column in spec.columns:
        assert column.description
        assert not column.description.endswith(".")
        for end, unit in ends.items():
            if column.name.endswith(end):
                assert column.unit == unit, column
                break


# -- balances --------------------------------------------------------------------------------------------


def random_system(seed: int) -> Callable[[Path], Path]:
    return lambda directory: write_random_case(directory, seed)


def template(name: str) -> Callable[[Path], Path]:
    return lambda directory: write_files(directory, TEMPLATES[name].build())


SYSTEMS = (
    {
        f"example {path.name}": lambda _, path=path: path
        for path in EXAMPLES.iterdir()
        if (path / "config.json").is_file()
    }
    | {f"template {name}": template(name) for name in TEMPLATES}
    | {"a file of nearly every kind": lambda directory: write_files(directory, rich_files())}
    | {f"random {seed}": random_system(seed) for seed in range(12)}
    | {
        f"system {name}": lambda _, name=name: shared_system(name)
        for name in ("net-rain", "not-yet-built", "truncated-par", "brazil-2018-14-stages")
    }
)


def assert_tables_balance(case: Case, tables: dict[str, pa.Table], simulated: Simulated) -> None:
    assert np.abs(energy_residual(case, tables)).max() < CLOSES
    if case.hydros:
        assert np.abs(water_residual(case, tables)).max() < CLOSES
        assert np.abs(storages_follow(case, tables)).max(initial=0.0) < CLOSES
    assert np.abs(cost_residual(tables)).max() < 1e-12
    assert max(entity_cost_residual(tables).values()) < 1e-12
    costs = tables["costs"]
    by_stage = costs["total_cost"].to_numpy().reshape(-1, len(case.stages))
    for position, stage in enumerate(simulated.block.stages):
        lp = simulated.templates[stage.node[0]]
        objective = stage.columns @ (lp.cost * lp.cost_scale)
        np.testing.assert_allclose(by_stage[:, position], objective, rtol=1e-9, atol=1e-6)
    weighted = costs["discount_factor"].to_numpy() * costs["immediate_cost"].to_numpy()
    np.testing.assert_allclose(
        tables["scenario_summary"]["discounted_immediate_cost"].to_numpy(),
        weighted.reshape(by_stage.shape).sum(axis=1),
        rtol=1e-12,
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_tables_balance(name: str, tmp_path: Path) -> None:
    case = cobre.case.load(SYSTEMS[name](tmp_path))
    simulated = simulate(case, scenarios=2)
    assert_tables_balance(case, tables_of(simulated), simulated)


def test_tables_of_public_cases_balance() -> None:
    for path in sorted(shared_cases().iterdir()):
        if path.is_dir():
            case = cobre.case.load(path)
            simulated = simulate(case, scenarios=2)
            assert_tables_balance(case, tables_of(simulated), simulated)


def test_rows_go_by_scenario_stage_entity_and_block(tmp_path: Path) -> None:
    case = cobre.case.load(template("four-region")(tmp_path))
    simulated = simulate(case, scenarios=2, first=7)
    tables = tables_of(simulated)
    for name, key in (("hydros", "hydro_id"), ("buses", "bus_id"), ("thermals", "thermal_id")):
        table = tables[name]
        order = [
            tuple(row[column] for column in ("scenario_id", "stage_id", key, "block_id"))
            for row in table.select(["scenario_id", "stage_id", key, "block_id"]).to_pylist()
        ]
        assert order == sorted(order)
        assert {place[0] for place in order} == {7, 8}
    names = {plant.id: plant.name for plant in case.hydros}
    assert all(names[row["hydro_id"]] == row["hydro_name"] for row in tables["hydros"].to_pylist())
    starts = {stage.id: stage.start_date for stage in case.stages}
    assert all(starts[row["stage_id"]] == row["start_date"] for row in tables["costs"].to_pylist())
    by_bus = tables["hydro_bus_generation"].to_pylist()
    assert sum(row["generation_mwh"] for row in by_bus) == pytest.approx(
        sum(tables["hydros"]["generation_mwh"].to_pylist()), rel=1e-12
    )


def test_a_scenario_alone_has_the_rows_it_has_in_a_block(tmp_path: Path) -> None:
    case = cobre.case.load(template("cascade")(tmp_path))
    together, alone = simulate(case, scenarios=3), simulate(case, scenarios=1, first=2)
    whole, part = tables_of(together), tables_of(alone)
    for name, table in part.items():
        last = whole[name].filter(pa.compute.equal(whole[name]["scenario_id"], 2))
        assert last.equals(table), name


# -- by hand ---------------------------------------------------------------------------------------------


def test_prices_and_values_of_a_plant_and_a_thermal_by_hand() -> None:
    # 30 hm3 of inflow and 20 of storage make 50 MW of a load of 80; gas at 10 $/MWh makes the rest. One more
    # hm3 saves a MW for all hours, and the dam's 20 hm3 are worth HOURS MWh each.
    case = small_study(
        hydros=(plant(3, initial_storage_hm3=20.0),),
        thermals=(Thermal(5, "gas", 0),),
        load=80.0,
        inflow=30.0,
        data={"thermal_cost": 10.0, "thermal_max_mw": 100.0},
    )
    tables = tables_of(simulate(case, scenarios=1))
    hydro = only_row(tables["hydros"], hydro_id=3)
    assert hydro["turbined_m3s"] == pytest.approx(50.0)
    assert hydro["generation_mwh"] == pytest.approx(50.0 * HOURS)
    assert hydro["water_value_per_hm3"] == pytest.approx(-10.0 * HOURS)
    assert hydro["stored_energy_initial_mwh"] == pytest.approx(20.0 / 0.0036)
    assert hydro["stored_energy_initial_mw"] == pytest.approx(20.0)
    assert hydro["incremental_inflow_energy_mw"] == pytest.approx(30.0)
    assert (hydro["storage_initial_hm3"], hydro["storage_final_hm3"]) == (20.0, 0.0)
    assert (hydro["storage_binding_code"], hydro["operative_state_code"]) == (1, 2)
    thermal = only_row(tables["thermals"], thermal_id=5)
    assert thermal["generation_cost"] == pytest.approx(30.0 * 10.0 * HOURS)
    assert thermal["thermal_name"] == "gas"
    assert (thermal["is_anticipated"], thermal["anticipated_committed_mw"]) == (False, None)
    assert only_row(tables["buses"])["spot_price"] == pytest.approx(10.0)
    costs = only_row(tables["costs"])
    assert costs["block_id"] is None
    assert costs["total_cost"] == costs["thermal_cost"] == pytest.approx(300.0 * HOURS)


def test_prices_are_by_mwh_in_blocks_of_any_length() -> None:
    case = small_study(
        hours=((2.0, 30.0),),
        thermals=(Thermal(0, "gas", 0),),
        load=80.0,
        data={"thermal_cost": 10.0, "thermal_max_mw": np.array([[50.0, 100.0]])},
    )
    peak, base = tables_of(simulate(case, scenarios=1))["buses"].to_pylist()
    assert (peak["deficit_mw"], peak["deficit_mwh"]) == pytest.approx((30.0, 60.0))
    assert (peak["spot_price"], base["spot_price"]) == pytest.approx((DEFICIT, 10.0))


def test_codes_are_true_states() -> None:
    status = np.array([HydroStatus.OUT, HydroStatus.OPERATING, HydroStatus.OPERATING], np.int8)
    most = np.array([[100.0], [0.0], [40.0]])
    penalty = np.zeros((3, len(HYDRO_PENALTIES)))
    penalty[:, HYDRO_PENALTIES.index("spillage")] = 0.01
    case = small_study(
        hydros=[plant(h, initial_storage_hm3=50.0) for h in range(3)],
        thermals=[Thermal(i, f"thermal {i}", 0) for i in range(3)],
        lines=(Line(0, "line", 0, 1),),
        buses=2,
        load=[100.0, 30.0],
        data={
            "hydro_status": status,
            "hydro_penalty": penalty,
            "turbined_max_m3s": most,
            "group_turbined_max_m3s": most,
            "storage_max_hm3": np.array([1000.0, 50.0, 1000.0]),
            "storage_min_hm3": np.array([0.0, 50.0, 0.0]),
            "thermal_cost": np.array([1.0, 2.0, 3.0]),
            "thermal_max_mw": np.array([[60.0], [0.0], [200.0]]),
            "line_direct_mw": 20.0,
            "line_reverse_mw": 0.0,
        },
    )
    tables = tables_of(simulate(case, scenarios=1))
    assert tables["hydros"]["operative_state_code"].to_pylist() == [0, 1, 3]
    # The second one is held at both limits, the third keeps 10 of its 50 hm3.
    assert tables["hydros"]["storage_binding_code"].to_pylist() == [0, 3, 0]
    assert tables["thermals"]["operative_state_code"].to_pylist() == [3, 1, 2]
    assert tables["exchanges"]["operative_state_code"].to_pylist() == [3]
    assert tables["buses"]["deficit_mw"].to_pylist() == pytest.approx([0.0, 10.0])


def test_entities_out_of_service_are_deactivated(tmp_path: Path) -> None:
    case = cobre.case.load(EXAMPLES / "thermal-merit-order")
    editor = case.edit()
    first, second = case.stages[0].id, case.stages[1].id
    editor["system/thermals.json"]["thermals"][0]["entry_stage_id"] = second
    tables = tables_of(simulate(editor.build(), scenarios=1))
    own = tables["thermals"].filter(pa.compute.equal(tables["thermals"]["thermal_id"], case.thermals[0].id))
    states = {stage: set() for stage in (first, second)}
    for row in own.to_pylist():
        states.setdefault(row["stage_id"], set()).add(row["operative_state_code"])
    assert states[first] == {0}
    assert 0 not in states[second]


# -- as cobre-rs has them --------------------------------------------------------------------------------


def trained(name: str, scenarios: int = 1) -> dict[str, pa.Table]:
    case = cobre.case.load(shared_cases() / name)
    return tables_of(simulate(case, train(case, threads=1).policy, scenarios))


@pytest.mark.parametrize(
    ("name", "table", "stage", "expected"),
    [
        (
            "d08-evaporation",
            "hydros",
            0,
            {
                "storage_final_hm3": 73.62835057260821,
                "evaporation_m3s": 0.03487421133630229,
                "water_value_per_hm3": -13881.841890506686,
                "stored_energy_initial_mwh": 27777.777777777777,
                "stored_energy_final_mwh": 20452.31960350228,
                "stored_energy_final_mw": 28.016876169181206,
            },
        ),
        (
            "d06-fpha-variable-head",
            "hydros",
            0,
            {
                "turbined_m3s": 38.05175038051751,
                "storage_final_hm3": 105.12,
                "generation_mw": 30.646520304414015,
                "water_value_per_hm3": -11111.111111111111,
                "stored_energy_final_mwh": 29200.0,
            },
        ),
        ("d06-fpha-variable-head", "costs", 0, {"thermal_cost": 1801402.0089, "future_cost": 1456163.12}),
        (
            "d20-operational-violations",
            "hydros",
            0,
            {
                "turbined_slack_m3s": 6.194824961948234,
                "outflow_slack_below_m3s": 16.19482496194824,
                "water_value_per_hm3": -3055555.5555555555,
            },
        ),
        (
            "d20-operational-violations",
            "costs",
            0,
            {
                "deficit_cost": 41022222.222222,
                "hydro_violation_cost": 81722222.2222,
                "outflow_violation_below_cost": 59111111.1111,
                "turbined_violation_cost": 22611111.1111,
                "total_cost": 195744444.4444,
            },
        ),
        (
            "d15-non-controllable-source",
            "costs",
            0,
            {
                "total_cost": 437927.0,
                "immediate_cost": 218963.5,
                "thermal_cost": 219000.0,
                "curtailment_cost": 0.0,
            },
        ),
    ],
)
def test_values_are_those_of_cobre_rs(name: str, table: str, stage: int, expected: dict) -> None:
    row = only_row(trained(name)[table], stage_id=stage)
    assert {key: row[key] for key in expected} == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_probabilities_are_those_of_the_block() -> None:
    simulated = simulate(small_study(thermals=(Thermal(0, "gas", 0),), load=1.0), scenarios=2)
    simulated = replace(simulated, block=replace(simulated.block, probability=np.array([0.25, 0.75])))
    assert tables_of(simulated)["scenario_summary"]["probability"].to_pylist() == [0.25, 0.75]
