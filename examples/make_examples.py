"""Write the example cases: ``python examples/make_examples.py [DIRECTORY]``.

Each case is described below as plain data; running the script again writes the same files. The
derivation of each optimum is in the README.md beside the case.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.templates.parts import (
    Json,
    bus,
    config,
    entity,
    hydro,
    initial_storage,
    line,
    load_factors,
    penalties,
    production,
    seasonal_stats,
    stages,
    table,
    thermal,
)


def write_case(directory: Path, files: dict[str, Json], tables: dict[str, pa.Table]) -> None:
    """Write JSON files and Parquet tables (zstd) of one case under ``directory``."""
    for name, document in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for name, content in tables.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(content, path, compression="zstd")


def thermal_merit_order(directory: Path) -> None:
    """No water at all: merit order, a must-run unit, rationing in two steps, discount."""
    periods = ["2024-01-01", "2028-01-01", "2032-01-01", "2036-01-01"]
    files = {
        "config.json": config(forward_passes=1, iterations=5),
        "penalties.json": penalties([{"depth_mw": 50.0, "cost": 600.0}, {"depth_mw": None, "cost": 4000.0}]),
        "stages.json": stages(periods, {"peak": 5844.0, "off-peak": 29220.0}, annual_discount_rate=0.10),
        "initial_conditions.json": initial_storage([]),
        "system/buses.json": {"buses": [bus(0, "Island")]},
        "system/lines.json": {"lines": []},
        "system/hydros.json": {"hydros": []},
        "system/thermals.json": {
            "thermals": [
                thermal(0, "Harbour coal", cost=30.0, max_mw=400.0),
                thermal(1, "Airport gas", cost=65.0, max_mw=300.0),
                thermal(2, "Old town diesel", cost=180.0, max_mw=120.0, min_mw=10.0),
            ]
        },
        "scenarios/load_factors.json": load_factors([[1.25, 0.95]], n_stages=3),
    }
    tables = {
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[600.0, 680.0, 760.0]]),
    }
    write_case(directory, files, tables)


def two_plant_cascade(directory: Path) -> None:
    """Two plants on one river, two buses: water values across stages, blocks and buses."""
    months = ["2024-06-01", "2024-07-01", "2024-07-31", "2024-08-30"]
    files = {
        "config.json": config(forward_passes=1, iterations=15),
        "penalties.json": penalties([{"depth_mw": None, "cost": 1000.0}], outflow_below=25.0),
        "stages.json": stages(months, {"peak": 120.0, "base": 600.0}),
        "initial_conditions.json": initial_storage([40.0, 20.0]),
        "system/buses.json": {"buses": [bus(0, "North"), bus(1, "South")]},
        "system/lines.json": {"lines": [line(0, "North-South", (0, 1), (40.0, 40.0))]},
        "system/hydros.json": {
            "hydros": [
                hydro(
                    0,
                    "Alto",
                    (40.0, 169.6),
                    [("Alto", 0, 60.0, 75.0)],
                    downstream_id=1,
                    min_outflow_m3s=30.0,
                ),
                hydro(
                    1,
                    "Baixo",
                    (20.0, 20.0),
                    [("Baixo left bank", 0, 20.0, 40.0), ("Baixo right bank", 1, 30.0, 60.0)],
                ),
            ]
        },
        "system/hydro_production_models.json": production([0.8, 0.5]),
        "system/thermals.json": {
            "thermals": [
                thermal(0, "North gas", cost=50.0, max_mw=60.0, bus_id=0),
                thermal(1, "South oil", cost=120.0, max_mw=120.0, bus_id=1),
            ]
        },
        "scenarios/load_factors.json": load_factors([[1.2, 0.96], [1.3, 0.94]], n_stages=3),
    }
    tables = {
        "scenarios/inflow_seasonal_stats.parquet": seasonal_stats(
            "hydro", "m3s", [[20.0, 90.0, 10.0], [10.0, 15.0, 5.0]]
        ),
        "scenarios/load_seasonal_stats.parquet": seasonal_stats(
            "bus", "mw", [[50.0, 50.0, 140.0], [100.0, 100.0, 100.0]]
        ),
    }
    write_case(directory, files, tables)


def random_inflow(directory: Path) -> None:
    """Uncertain inflow: a scenario tree, several forward passes, convergence to the true optimum."""
    months = ["2024-05-01", "2024-06-01", "2024-07-01", "2024-08-01", "2024-09-01"]
    files = {
        "config.json": config(forward_passes=4, iterations=40, inflow_method="truncation"),
        "penalties.json": penalties([{"depth_mw": 20.0, "cost": 800.0}, {"depth_mw": None, "cost": 3000.0}]),
        "stages.json": stages(months, {"month": 730.0}, annual_discount_rate=0.08, num_openings=4),
        "initial_conditions.json": initial_storage([180.0, 5.0]),
        "system/buses.json": {"buses": [bus(0, "Valley")]},
        "system/lines.json": {"lines": []},
        "system/hydros.json": {
            "hydros": [
                hydro(0, "Serra", (50.0, 400.0), [("Serra", 0, 90.0, 100.0)], downstream_id=1),
                hydro(1, "Vale", (5.0, 5.0), [("Vale", 0, 52.0, 130.0)], min_outflow_m3s=15.0),
            ]
        },
        "system/hydro_production_models.json": production([0.9, 0.4]),
        "system/thermals.json": {
            "thermals": [
                thermal(0, "Gas", cost=55.0, max_mw=40.0),
                thermal(1, "Fuel oil", cost=140.0, max_mw=30.0),
                thermal(2, "Diesel", cost=260.0, max_mw=15.0),
            ]
        },
    }
    tables = {
        "scenarios/inflow_seasonal_stats.parquet": seasonal_stats(
            "hydro",
            "m3s",
            [[55.0, 40.0, 30.0, 25.0], [20.0, 15.0, 12.0, 10.0]],
            [[20.0, 18.0, 15.0, 12.0], [8.0, 6.0, 5.0, 4.0]],
        ),
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[130.0, 135.0, 140.0, 135.0]]),
    }
    write_case(directory, files, tables)


def head_effect(directory: Path) -> None:
    """A plant whose generation depends on storage, by given planes: when to draw the reservoir down."""
    months = ["2024-04-01", "2024-05-01", "2024-05-31"]
    files = {
        "config.json": config(forward_passes=1, iterations=15),
        "penalties.json": penalties([{"depth_mw": None, "cost": 1000.0}]),
        "stages.json": stages(months, {"month": 720.0}),
        "initial_conditions.json": initial_storage([200.0]),
        "system/buses.json": {"buses": [bus(0, "Plain")]},
        "system/lines.json": {"lines": []},
        "system/hydros.json": {
            "hydros": [hydro(0, "Dam", (100.0, 400.0), [("Dam", 0, 60.0, 100.0)], model="fpha")]
        },
        "system/hydro_production_models.json": production(
            [{"model": "fpha", "fpha_config": {"source": "precomputed"}}]
        ),
        "system/thermals.json": {"thermals": [thermal(0, "Gas", cost=50.0, max_mw=200.0)]},
    }
    tables = {
        "system/fpha_hyperplanes.parquet": table(
            hydro_id=[0, 0],
            plane_id=[0, 1],
            gamma_0=[0.0, 5.0],
            gamma_v=[0.0, 0.05],
            gamma_q=[0.6, 0.4],
            gamma_s=[0.0, 0.0],
        ),
        "system/hydro_energy_productivity.parquet": table(
            hydro_id=[0, 0],
            stage_id=[0, 1],
            equivalent_productivity_mw_per_m3s=[0.58, 0.58],
            reference_outflow_m3s=[None, None],
            specific_productivity_mw_per_m3s_per_m=[None, None],
        ),
        "scenarios/inflow_seasonal_stats.parquet": seasonal_stats("hydro", "m3s", [[50.0, 50.0]]),
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[150.0, 150.0]]),
    }
    write_case(directory, files, tables)


def pumped_storage(directory: Path) -> None:
    """Chronological blocks: water must be pumped up before it can be turbined."""
    days = ["2024-07-01", "2024-07-02", "2024-07-03"]
    files = {
        "config.json": config(forward_passes=1, iterations=10),
        "penalties.json": penalties([{"depth_mw": None, "cost": 1000.0}]),
        "stages.json": stages(days, {"day": 16.0, "night": 8.0}, block_mode="chronological"),
        "initial_conditions.json": initial_storage([0.0, 1.152]),
        "system/buses.json": {"buses": [bus(0, "Town")]},
        "system/lines.json": {"lines": []},
        "system/hydros.json": {
            "hydros": [
                hydro(0, "Upper", (0.0, 5.0), [("Upper", 0, 100.0, 50.0)], downstream_id=1),
                hydro(1, "Lower", (0.0, 5.0), [("Lower", 0, 0.0, 0.0)]),
            ]
        },
        "system/hydro_production_models.json": production([2.0, 1.0]),
        "system/pumping_stations.json": {
            "pumping_stations": [
                entity(
                    0,
                    "Pump",
                    bus_id=0,
                    source_hydro_id=1,
                    destination_hydro_id=0,
                    consumption_mw_per_m3s=2.5,
                    flow={"min_m3s": 0.0, "max_m3s": 40.0},
                )
            ]
        },
        "system/thermals.json": {
            "thermals": [
                thermal(0, "Coal", cost=20.0, max_mw=200.0),
                thermal(1, "Peaker", cost=100.0, max_mw=200.0),
            ]
        },
        "scenarios/load_factors.json": load_factors([[1.5, 0.5]], n_stages=2),
    }
    tables = {
        "scenarios/inflow_seasonal_stats.parquet": seasonal_stats("hydro", "m3s", [[0.0, 0.0], [0.0, 0.0]]),
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[200.0, 200.0]]),
    }
    write_case(directory, files, tables)


def battery(directory: Path) -> None:
    """Energy is stored in one night and used on the next day: a state other than water."""
    days = ["2024-07-01", "2024-07-02", "2024-07-03"]
    files = {
        "config.json": config(forward_passes=1, iterations=10),
        "penalties.json": penalties([{"depth_mw": None, "cost": 1000.0}]),
        "stages.json": stages(days, {"day": 16.0, "night": 8.0}, block_mode="chronological"),
        "initial_conditions.json": initial_storage([]),
        "system/buses.json": {"buses": [bus(0, "Town")]},
        "system/lines.json": {"lines": []},
        "system/hydros.json": {"hydros": []},
        "system/batteries.json": {
            "batteries": [
                entity(
                    0,
                    "Cellar",
                    bus_id=0,
                    max_charge_mw=40.0,
                    max_discharge_mw=40.0,
                    max_energy_mwh=400.0,
                    initial_energy_mwh=100.0,
                    charge_efficiency=0.9,
                    discharge_efficiency=0.9,
                )
            ]
        },
        "system/thermals.json": {
            "thermals": [
                thermal(0, "Coal", cost=20.0, max_mw=200.0),
                thermal(1, "Peaker", cost=100.0, max_mw=200.0),
            ]
        },
        "scenarios/load_factors.json": load_factors([[1.5, 0.5]], n_stages=2),
    }
    tables = {
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[200.0, 200.0]]),
    }
    write_case(directory, files, tables)


def ordered_ahead(directory: Path) -> None:
    """A thermal plant whose fuel is ordered a stage ahead, and the blocks that share the order."""
    months = ["2024-06-01", "2024-07-01", "2024-07-31", "2024-08-30"]
    ordered = {"thermal_id": 0, "start_date": "2024-06-01", "end_date": "2024-07-01", "value_mw": 50.0}
    files = {
        "config.json": config(forward_passes=1, iterations=15),
        "penalties.json": penalties([{"depth_mw": None, "cost": 1000.0}]),
        "stages.json": stages(months, {"peak": 120.0, "base": 600.0}),
        "initial_conditions.json": initial_storage([], past_anticipated_commitments=[ordered]),
        "system/buses.json": {"buses": [bus(0, "Port")]},
        "system/lines.json": {"lines": []},
        "system/hydros.json": {"hydros": []},
        "system/thermals.json": {
            "thermals": [
                thermal(0, "LNG", cost=40.0, max_mw=100.0, anticipated_config={"lead_stages": 1}),
                thermal(1, "Gas", cost=60.0, max_mw=100.0),
                thermal(2, "Diesel", cost=300.0, max_mw=50.0),
            ]
        },
        "scenarios/load_factors.json": load_factors([[2.0, 0.8]], n_stages=3),
        "post_study_stages.json": {
            "stages": [{"start_date": "2024-08-30", "duration_hours": 720.0}],
            "thermal_bounds": [
                {
                    "thermal_id": 0,
                    "post_study_stage_index": 0,
                    "cost_per_mwh": 40.0,
                    "min_mw": 10.0,
                    "max_mw": 100.0,
                }
            ],
        },
    }
    tables = {
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[115.0, 115.0, 100.0]]),
        "constraints/thermal_bounds.parquet": table(
            thermal_id=[0],
            stage_id=[2],
            min_generation_mw=[None],
            max_generation_mw=[60.0],
            cost_per_mwh=[45.0],
        ),
    }
    write_case(directory, files, tables)


def secure_import(directory: Path) -> None:
    """A generic constraint with a parameter, a named expression and a price for breaking it."""
    months = ["2024-06-01", "2024-07-01", "2024-07-31"]
    files = {
        "config.json": config(forward_passes=1, iterations=5),
        "penalties.json": penalties([{"depth_mw": None, "cost": 1000.0}]),
        "stages.json": stages(months, {"month": 720.0}),
        "initial_conditions.json": initial_storage([]),
        "system/buses.json": {"buses": [bus(0, "Mines"), bus(1, "City")]},
        "system/lines.json": {"lines": [line(0, "Mines-City", (0, 1), (100.0, 100.0))]},
        "system/hydros.json": {"hydros": []},
        "system/thermals.json": {
            "thermals": [
                thermal(0, "Mines coal", cost=20.0, max_mw=300.0, bus_id=0),
                thermal(1, "City gas", cost=80.0, max_mw=150.0, bus_id=1),
            ]
        },
        "constraints/generic_parameters.json": {
            "scalar_parameters": [{"id": 0, "name": "share", "kind": "constant", "value": 0.5}]
        },
        "constraints/generic_constraints.json": {
            "constraints": [
                {
                    "id": 0,
                    "name": "City import",
                    "description": "At most 20 MW and half of what runs in the city may come over the line.",
                    "expression": "line_exchange(0) - @spinning <= 20",
                    "slack": {"enabled": True, "penalty": 500.0},
                }
            ],
            "expressions": [{"name": "spinning", "expression": "@share * thermal_generation(1)"}],
        },
    }
    tables = {
        "scenarios/load_seasonal_stats.parquet": seasonal_stats("bus", "mw", [[50.0, 50.0], [120.0, 300.0]]),
        "constraints/generic_constraint_bounds.parquet": table(
            constraint_id=[0, 0],
            stage_id=[0, 1],
            block_id=[None, None],
            bound_lower=[None, None],
            bound_upper=[0.0, 0.0],
        ),
    }
    write_case(directory, files, tables)


EXAMPLES = {
    "thermal-merit-order": thermal_merit_order,
    "two-plant-cascade": two_plant_cascade,
    "random-inflow": random_inflow,
    "head-effect": head_effect,
    "pumped-storage": pumped_storage,
    "battery": battery,
    "ordered-ahead": ordered_ahead,
    "secure-import": secure_import,
}


def main(directory: Path) -> None:
    """Write every example under ``directory``."""
    for name, write in EXAMPLES.items():
        write(directory / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
