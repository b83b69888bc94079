"""Write the example cases: ``python examples/make_examples.py [DIRECTORY]``.

Each case is described below as plain data; running the script again writes the same files. The
derivation of each optimum is in the README.md beside the case.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]
START = "2000-01-01"
"""``operational_start_date`` of every entity; it has no effect on dispatch."""


def write_case(directory: Path, files: dict[str, Json], tables: dict[str, pa.Table]) -> None:
    """Write JSON files and Parquet tables (zstd) of one case under ``directory``."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for name, table in tables.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")


def config(forward_passes: int, iterations: int, inflow_method: str = "none") -> Json:
    """``config.json``: how many forward passes and iterations."""
    return {
        "training": {
            "tree_seed": 42,
            "selection": {"method": "sampled", "forward_passes": forward_passes},
            "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
        },
        "modeling": {"inflow_non_negativity": {"method": inflow_method}},
    }


def penalties(deficit_segments: list[Json], exchange_cost: float = 1.0, outflow_below: float = 500.0) -> Json:
    """``penalties.json``: what unserved load and broken operating rules cost."""
    return {
        "bus": {"deficit_segments": deficit_segments, "excess_cost": 0.1},
        "line": {"exchange_cost": exchange_cost},
        "non_controllable_source": {"curtailment_cost": 0.01},
        "hydro": {
            "spillage_cost": 0.01,
            "diversion_cost": 0.01,
            "turbined_cost": 0.0,
            "storage_violation_below_cost": 10000.0,
            "filling_target_violation_cost": 10000.0,
            "turbined_violation_below_cost": 500.0,
            "outflow_violation_below_cost": outflow_below,
            "outflow_violation_above_cost": 500.0,
            "generation_violation_below_cost": 500.0,
            "evaporation_violation_cost": 5000.0,
            "water_withdrawal_violation_cost": 5000.0,
            "inflow_nonnegativity_cost": 5000.0,
        },
    }


def stages(
    dates: list[str], hours: dict[str, float], annual_discount_rate: float = 0.0, num_openings: int = 1
) -> Json:
    """``stages.json``: consecutive stages between ``dates``, all with the same blocks."""
    blocks = [{"id": k, "name": name, "hours": value} for k, (name, value) in enumerate(hours.items())]
    return {
        "policy_graph": {"type": "finite_horizon", "annual_discount_rate": annual_discount_rate},
        "stages": [
            {"id": t, "start_date": start, "end_date": end, "blocks": blocks, "num_openings": num_openings}
            for t, (start, end) in enumerate(itertools.pairwise(dates))
        ],
    }


def bus(bus_id: int, name: str) -> Json:
    """Return an entry of ``buses.json`` with the global deficit segments."""
    return {"id": bus_id, "name": name, "operational_start_date": START}


def thermal(
    plant_id: int, name: str, cost: float, max_mw: float, bus_id: int = 0, min_mw: float = 0.0
) -> Json:
    """Return an entry of ``thermals.json``."""
    return {
        "id": plant_id,
        "name": name,
        "operational_start_date": START,
        "bus_id": bus_id,
        "cost_per_mwh": cost,
        "generation": {"min_mw": min_mw, "max_mw": max_mw},
    }


def hydro(
    hydro_id: int,
    name: str,
    storage_hm3: tuple[float, float],
    groups: list[tuple[str, int, float, float]],
    downstream_id: int | None = None,
    min_outflow_m3s: float = 0.0,
) -> Json:
    """Return an entry of ``hydros.json``; a group is (name, bus, max MW, max m3/s)."""
    return {
        "id": hydro_id,
        "name": name,
        "operational_start_date": START,
        "downstream_id": downstream_id,
        "reservoir": {"min_storage_hm3": storage_hm3[0], "max_storage_hm3": storage_hm3[1]},
        "outflow": {"min_outflow_m3s": min_outflow_m3s, "max_outflow_m3s": None},
        "generation": {
            "model": "constant_productivity",
            "min_turbined_m3s": 0.0,
            "max_turbined_m3s": sum(group[3] for group in groups),
            "min_generation_mw": 0.0,
            "max_generation_mw": sum(group[2] for group in groups),
        },
        "unit_groups": [
            {
                "id": g,
                "name": group_name,
                "bus_id": bus_id,
                "min_generation_mw": 0.0,
                "max_generation_mw": max_mw,
                "min_turbined_m3s": 0.0,
                "max_turbined_m3s": max_m3s,
            }
            for g, (group_name, bus_id, max_mw, max_m3s) in enumerate(groups)
        ],
    }


def productivity(values: list[float]) -> Json:
    """``hydro_production_models.json``: one constant productivity for each plant."""
    return {
        "production_models": [
            {
                "hydro_id": h,
                "selection_mode": "stage_ranges",
                "stage_ranges": [
                    {
                        "start_stage_id": 0,
                        "end_stage_id": None,
                        "model": "constant_productivity",
                        "productivity_mw_per_m3s": value,
                    }
                ],
            }
            for h, value in enumerate(values)
        ]
    }


def initial_storage(values_hm3: list[float]) -> Json:
    """``initial_conditions.json``."""
    storage = [{"hydro_id": h, "value_hm3": value} for h, value in enumerate(values_hm3)]
    return {"storage": storage, "filling_storage": []}


def load_factors(factors: list[list[float]], n_stages: int) -> Json:
    """``load_factors.json``: for each bus one factor a block, the same in every stage."""
    return {
        "load_factors": [
            {
                "bus_id": b,
                "stage_id": t,
                "block_factors": [{"block_id": k, "factor": factor} for k, factor in enumerate(row)],
            }
            for b, row in enumerate(factors)
            for t in range(n_stages)
        ]
    }


def seasonal_stats(
    entity: str, unit: str, mean: list[list[float]], std: list[list[float]] | None = None
) -> pa.Table:
    """Return a table of means and standard deviations, given as one list of stages for each entity."""
    std = std or [[0.0] * len(row) for row in mean]
    rows = [(e, t, mean[e][t], std[e][t]) for e in range(len(mean)) for t in range(len(mean[e]))]
    ids, stage_ids, means, stds = zip(*rows, strict=True)
    return pa.table(
        {
            f"{entity}_id": pa.array(ids, pa.int32()),
            "stage_id": pa.array(stage_ids, pa.int32()),
            f"mean_{unit}": pa.array(means, pa.float64()),
            f"std_{unit}": pa.array(stds, pa.float64()),
        }
    )


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
        "system/lines.json": {
            "lines": [
                {
                    "id": 0,
                    "name": "North-South",
                    "operational_start_date": START,
                    "source_bus_id": 0,
                    "target_bus_id": 1,
                    "capacity": {"direct_mw": 40.0, "reverse_mw": 40.0},
                }
            ]
        },
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
        "system/hydro_production_models.json": productivity([0.8, 0.5]),
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
        "system/hydro_production_models.json": productivity([0.9, 0.4]),
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


EXAMPLES = {
    "thermal-merit-order": thermal_merit_order,
    "two-plant-cascade": two_plant_cascade,
    "random-inflow": random_inflow,
}


def main(directory: Path) -> None:
    """Write every example under ``directory``."""
    for name, write in EXAMPLES.items():
        write(directory / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
