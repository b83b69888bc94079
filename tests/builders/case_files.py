"""A smallest case as plain data that features are added to, and how to write it.

Contents are JSON by file name; a Parquet file is a list of rows or a dict of columns, whose types follow from
their names, or a pyarrow table. Text and bytes are written as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from oracle import Cut, Opening

Json = dict[str, Any]
Files = dict[str, Any]
START = "2000-01-01"
INFLOW = "scenarios/inflow_seasonal_stats.parquet"
LOAD = "scenarios/load_seasonal_stats.parquet"


@dataclass(frozen=True)
class Feature:
    """A case with what is known about it.

    Attributes
    ----------
    files
        The case.
    hand
        Optimum derived by hand ($); ``None`` where the extensive form alone is the judge.
    openings
        Equally likely realisations by stage id, where there are several that the files state.
    drawn
        The openings are noise that the package draws.
    fitted
        Production planes are fitted to geometry by the package.
    boundary
        Cuts that value the final state (of the extensive form alone).
    """

    files: Files
    hand: float | None = None
    openings: dict[int, list[Opening]] = field(default_factory=dict)
    drawn: bool = False
    fitted: bool = False
    boundary: tuple[Cut, ...] = ()


Builder = Callable[[], Feature]


def write_files(directory: Path, files: Files) -> Path:
    """Write a case and return its directory."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith(".parquet"):
            rows = content if isinstance(content, pa.Table) else table(content)
            pq.write_table(rows, path, compression="zstd")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return directory


def table(content: list[Json] | Mapping[str, Any]) -> pa.Table:
    """Rows or columns as a table; a key that a row lacks is null there."""
    if isinstance(content, Mapping):
        return pa.table({name: pa.array(column, _type(name)) for name, column in content.items()})
    names = list(dict.fromkeys(name for row in content for name in row))
    return pa.table({name: pa.array([row.get(name) for row in content], _type(name)) for name in names})


def _type(name: str) -> pa.DataType:
    if name in ("opening_index", "entity_index"):
        return pa.uint32()
    if name.endswith("_date"):
        return pa.date32()
    return pa.int32() if name.endswith("_id") or name == "lag" else pa.float64()


def smallest(loads_mw: list[float], inflow_m3s: list[float] | None = None) -> Files:
    """One bus, one thermal plant (100 MW, 100 $/MWh), one run-of-river plant, 1000 h a stage, no noise.

    1 m3/s for a stage is 3.6 hm3 and gives 1000 MWh; a MW of the thermal plant for a stage costs 100,000 $.
    """
    stages = range(len(loads_mw))
    inflow = inflow_m3s or [0.0 for _ in stages]
    return {
        "config.json": {
            "training": {
                "selection": {"method": "sampled", "forward_passes": 2},
                "stopping_rules": [{"type": "iteration_limit", "limit": 25}],
            },
            "modeling": {"inflow_non_negativity": {"method": "none"}},
        },
        "penalties.json": {
            "bus": {"deficit_segments": [{"depth_mw": None, "cost": 1000.0}], "excess_cost": 1.0},
            "line": {"exchange_cost": 1.0},
            "non_controllable_source": {"curtailment_cost": 0.01},
            "hydro": {
                "spillage_cost": 0.5,
                "diversion_cost": 0.25,
                "turbined_cost": 0.0,
                "storage_violation_below_cost": 60000.0,
                "filling_target_violation_cost": 50000.0,
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
                for t in stages
            ],
        },
        "initial_conditions.json": {"storage": [{"hydro_id": 0, "value_hm3": 0.0}], "filling_storage": []},
        "system/buses.json": {"buses": [bus(0)]},
        "system/lines.json": {"lines": []},
        "system/thermals.json": {"thermals": [thermal(0, 100.0)]},
        "system/hydros.json": {"hydros": [plant(0)]},
        "system/hydro_production_models.json": {"production_models": [productivity(0)]},
        INFLOW: [inflow_row(0, t, value) for t, value in enumerate(inflow)],
        LOAD: [load_row(0, t, value) for t, value in enumerate(loads_mw)],
    }


def bus(number: int) -> Json:
    """A bus."""
    return {"id": number, "name": f"bus {number}", "operational_start_date": START}


def thermal(number: int, cost: float, most_mw: float = 100.0, **more: Any) -> Json:
    """A thermal plant at bus 0."""
    return {
        "id": number,
        "name": f"thermal {number}",
        "operational_start_date": START,
        "bus_id": 0,
        "cost_per_mwh": cost,
        "generation": {"min_mw": 0.0, "max_mw": most_mw},
        **more,
    }


def limits(
    most_mw: float = 50.0, most_m3s: float = 50.0, least_mw: float = 0.0, least_m3s: float = 0.0
) -> Json:
    """Limits of a plant or unit group."""
    return {
        "min_generation_mw": least_mw,
        "max_generation_mw": most_mw,
        "min_turbined_m3s": least_m3s,
        "max_turbined_m3s": most_m3s,
    }


def plant(number: int, most_hm3: float = 0.0, least_hm3: float = 0.0, **more: Any) -> Json:
    """A hydro plant of 50 MW and 50 m3/s at bus 0."""
    return {
        "id": number,
        "name": f"hydro {number}",
        "operational_start_date": START,
        "reservoir": {"min_storage_hm3": least_hm3, "max_storage_hm3": most_hm3},
        "outflow": {"min_outflow_m3s": 0.0},
        "generation": {"model": "constant_productivity", **limits()},
        "unit_groups": [{"id": 0, "name": "units", "bus_id": 0, **limits()}],
        **more,
    }


def productivity(number: int, value: float | None = 1.0, model: str = "constant_productivity") -> Json:
    """Production model of a plant for all stages."""
    part: Json = {"start_stage_id": 0, "end_stage_id": None, "model": model}
    if value is not None:
        part["productivity_mw_per_m3s"] = value
    return {"hydro_id": number, "selection_mode": "stage_ranges", "stage_ranges": [part]}


def line(number: int, source: int, target: int, most_mw: float, **more: Any) -> Json:
    """A line of the same capacity in both directions."""
    return {
        "id": number,
        "name": f"line {number}",
        "operational_start_date": START,
        "source_bus_id": source,
        "target_bus_id": target,
        "capacity": {"direct_mw": most_mw, "reverse_mw": most_mw},
        **more,
    }


def inflow_row(hydro_id: int, stage_id: int, mean: float, std: float = 0.0) -> Json:
    """Row of the inflow statistics."""
    return {"hydro_id": hydro_id, "stage_id": stage_id, "mean_m3s": mean, "std_m3s": std}


def load_row(bus_id: int, stage_id: int, mean: float, std: float = 0.0) -> Json:
    """Row of the load statistics."""
    return {"bus_id": bus_id, "stage_id": stage_id, "mean_mw": mean, "std_mw": std}


def stages_of(files: Files) -> list[Json]:
    """Stages of a case, to be changed in place."""
    found: list[Json] = files["stages.json"]["stages"]
    return found


def hydros_of(files: Files) -> list[Json]:
    """Hydro plants of a case, to be changed in place."""
    found: list[Json] = files["system/hydros.json"]["hydros"]
    return found


def set_blocks(files: Files, hours: list[float], mode: str = "parallel") -> None:
    """Give every stage these blocks."""
    for stage in stages_of(files):
        stage["blocks"] = [{"id": k, "name": f"block {k}", "hours": value} for k, value in enumerate(hours)]
        stage["block_mode"] = mode


def set_load_factors(files: Files, factors: list[float], bus_id: int = 0) -> None:
    """Multiply the load of a bus in each block of every stage."""
    document = files.setdefault("scenarios/load_factors.json", {"load_factors": []})
    document["load_factors"] += [
        {
            "bus_id": bus_id,
            "stage_id": stage["id"],
            "block_factors": [{"block_id": k, "factor": value} for k, value in enumerate(factors)],
        }
        for stage in stages_of(files)
    ]


def add_plant(files: Files, entry: Json, inflow_m3s: list[float] | None = None, value: float = 1.0) -> None:
    """Add a hydro plant with constant productivity, empty at the start."""
    hydros_of(files).append(entry)
    files["system/hydro_production_models.json"]["production_models"].append(productivity(entry["id"], value))
    stages = stages_of(files)
    inflow = inflow_m3s or [0.0 for _ in stages]
    files[INFLOW] += [
        inflow_row(entry["id"], stage["id"], natural) for stage, natural in zip(stages, inflow, strict=True)
    ]
    initial = "filling_storage" if entry.get("filling") else "storage"
    files["initial_conditions.json"][initial].append({"hydro_id": entry["id"], "value_hm3": 0.0})


def add_bus(files: Files, number: int, load_mw: list[float]) -> None:
    """Add a bus with its loads."""
    files["system/buses.json"]["buses"].append(bus(number))
    files[LOAD] += [
        load_row(number, stage["id"], value) for stage, value in zip(stages_of(files), load_mw, strict=True)
    ]


def add_battery(files: Files, **keys: Any) -> None:
    """Add a battery at bus 0."""
    batteries = files.setdefault("system/batteries.json", {"batteries": []})["batteries"]
    number = len(batteries)
    name = {"id": number, "name": f"battery {number}", "operational_start_date": START}
    batteries.append({**name, "bus_id": 0, **keys})
