"""A smallest case as plain data, to be changed by tests, and how to write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]
Row = tuple[int, int, float, float]
START = "2000-01-01"
INFLOW = "scenarios/inflow_seasonal_stats.parquet"
LOAD = "scenarios/load_seasonal_stats.parquet"


def write_case(directory: Path, files: Json) -> Path:
    """Write ``files`` (JSON by name; for the seasonal stats rows of id, stage id, mean, std)."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            entity, unit = ("hydro", "m3s") if name == INFLOW else ("bus", "mw")
            pq.write_table(_stats_table(content, entity, unit), path, compression="zstd")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return directory


def _stats_table(rows: list[Row], entity: str, unit: str) -> pa.Table:
    names = (f"{entity}_id", "stage_id", f"mean_{unit}", f"std_{unit}")
    types = (pa.int32(), pa.int32(), pa.float64(), pa.float64())
    columns = zip(names, types, range(4), strict=True)
    return pa.table({name: pa.array([row[i] for row in rows], kind) for name, kind, i in columns})


def smallest_case(inflow_m3s: list[float], load_mw: list[float]) -> Json:
    """One bus, one thermal plant (100 $/MWh), one reservoir (1 MW per m3/s), 1000 h a stage, no noise.

    1 m3/s for a stage is 3.6 hm3 and 1000 MWh. The reservoir starts empty.
    """
    n_stages = len(load_mw)
    return {
        "config.json": {
            "training": {
                "selection": {"method": "sampled", "forward_passes": 1},
                "stopping_rules": [{"type": "iteration_limit", "limit": 20}],
            },
            "modeling": {"inflow_non_negativity": {"method": "none"}},
        },
        "penalties.json": {
            "bus": {"deficit_segments": [{"depth_mw": None, "cost": 1000.0}], "excess_cost": 1.0},
            "line": {"exchange_cost": 1.0},
            "non_controllable_source": {"curtailment_cost": 0.01},
            "hydro": {
                "spillage_cost": 0.5,
                "diversion_cost": 0.5,
                "turbined_cost": 0.0,
                "storage_violation_below_cost": 5000.0,
                "filling_target_violation_cost": 5000.0,
                "turbined_violation_below_cost": 500.0,
                "outflow_violation_below_cost": 500.0,
                "outflow_violation_above_cost": 500.0,
                "generation_violation_below_cost": 500.0,
                "evaporation_violation_cost": 500.0,
                "water_withdrawal_violation_cost": 500.0,
            },
        },
        "stages.json": {
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.0},
            "stages": [
                {
                    "id": t,
                    "start_date": f"{2024 + 4 * t}-01-01",
                    "end_date": f"{2028 + 4 * t}-01-01",
                    "blocks": [{"id": 0, "name": "all", "hours": 1000.0}],
                    "num_openings": 1,
                }
                for t in range(n_stages)
            ],
        },
        "initial_conditions.json": {"storage": [{"hydro_id": 0, "value_hm3": 0.0}], "filling_storage": []},
        "system/buses.json": {"buses": [{"id": 0, "name": "bus", "operational_start_date": START}]},
        "system/lines.json": {"lines": []},
        "system/thermals.json": {
            "thermals": [
                {
                    "id": 0,
                    "name": "thermal",
                    "operational_start_date": START,
                    "bus_id": 0,
                    "cost_per_mwh": 100.0,
                    "generation": {"min_mw": 0.0, "max_mw": 100.0},
                }
            ]
        },
        "system/hydros.json": {"hydros": [plant()]},
        "system/hydro_production_models.json": {"production_models": [constant_productivity(0, 1.0)]},
        INFLOW: [(0, t, value, 0.0) for t, value in enumerate(inflow_m3s)],
        LOAD: [(0, t, value, 0.0) for t, value in enumerate(load_mw)],
    }


def plant() -> Json:
    """Entry of ``hydros.json``: 360 hm3, 50 MW at 50 m3/s, no minima."""
    return {
        "id": 0,
        "name": "hydro",
        "operational_start_date": START,
        "reservoir": {"min_storage_hm3": 0.0, "max_storage_hm3": 360.0},
        "outflow": {"min_outflow_m3s": 0.0},
        "generation": {"model": "constant_productivity", **limits(50.0, 50.0)},
        "unit_groups": [{"id": 0, "name": "units", "bus_id": 0, **limits(50.0, 50.0)}],
    }


def limits(max_mw: float, max_m3s: float, min_mw: float = 0.0, min_m3s: float = 0.0) -> Json:
    """Limits of a plant or unit group."""
    return {
        "min_generation_mw": min_mw,
        "max_generation_mw": max_mw,
        "min_turbined_m3s": min_m3s,
        "max_turbined_m3s": max_m3s,
    }


def constant_productivity(hydro_id: int, value: float) -> Json:
    """Entry of ``hydro_production_models.json`` for all stages."""
    part = {
        "start_stage_id": 0,
        "end_stage_id": None,
        "model": "constant_productivity",
        "productivity_mw_per_m3s": value,
    }
    return {"hydro_id": hydro_id, "selection_mode": "stage_ranges", "stage_ranges": [part]}
