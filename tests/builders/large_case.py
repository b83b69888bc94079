"""A synthetic case of any size with a file of nearly every kind, for measurements.

``PYTHONPATH=tests python -m builders.large_case DIR --hydros 1000 --stages 120`` writes one; then
``cobre validate DIR``.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from builders.case_files import write_files

SINCE = "1900-01-01"
BLOCKS = (("PEAK", 0.15), ("DAY", 0.45), ("NIGHT", 0.4))
CASCADE = 8
"""Plants of one river."""


def large_documents(
    hydros: int = 1000, stages: int = 120, *, buses: int = 20, seed: int = 0
) -> dict[str, Any]:
    """Return the documents of a case: rivers of 8 plants, half of them with planes fitted from geometry."""
    thermals, sources = max(1, hydros // 3), max(1, hydros // 5)
    random = np.random.default_rng(seed)
    calendar = _calendar(stages)
    documents: dict[str, Any] = {
        "config.json": {
            "training": {
                "tree_seed": 1,
                "selection": {"method": "sampled", "forward_passes": 20},
                "stopping_rules": [{"type": "iteration_limit", "limit": 100}],
            }
        },
        "penalties.json": _penalties(),
        "stages.json": {
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.1},
            "stages": calendar,
        },
        "initial_conditions.json": {
            "storage": [{"hydro_id": h, "value_hm3": 400.0} for h in range(hydros)],
            "filling_storage": [],
        },
        "system/buses.json": {"buses": [_named(b, "B") for b in range(buses)]},
        "system/lines.json": {
            "lines": [
                {
                    **_named(b, "L"),
                    "source_bus_id": b,
                    "target_bus_id": (b + 1) % buses,
                    "capacity": {"direct_mw": 900.0, "reverse_mw": 800.0},
                    "losses_percent": 2.0,
                }
                for b in range(buses)
            ]
        },
        "system/thermals.json": {
            "thermals": [
                {
                    **_named(t, "T"),
                    "bus_id": t % buses,
                    "cost_per_mwh": float(50 + t),
                    "generation": {"min_mw": 0.0, "max_mw": 100.0},
                }
                for t in range(thermals)
            ]
        },
        "system/hydros.json": {"hydros": [_hydro(h, hydros, buses) for h in range(hydros)]},
        "system/non_controllable_sources.json": {
            "non_controllable_sources": [
                {**_named(r, "W"), "bus_id": r % buses, "max_generation_mw": 30.0} for r in range(sources)
            ]
        },
        "system/hydro_production_models.json": {"production_models": [_production(h) for h in range(hydros)]},
        "scenarios/load_factors.json": {
            "load_factors": [
                {
                    "bus_id": b,
                    "stage_id": t,
                    "block_factors": [{"block_id": k, "factor": 1.2 - 0.2 * k} for k in range(len(BLOCKS))],
                }
                for b in range(buses)
                for t in range(stages)
            ]
        },
        "constraints/generic_constraints.json": {
            "constraints": [
                {
                    "id": c,
                    "name": f"C{c}",
                    "expression": " + ".join(f"hydro_generation({h})" for h in range(c, hydros, 50)),
                    "slack": {"enabled": True, "penalty": 500.0},
                }
                for c in range(min(50, hydros))
            ]
        },
    }
    documents |= _tables(hydros, thermals, sources, buses, stages, random)
    return documents


def _tables(
    hydros: int, thermals: int, sources: int, buses: int, stages: int, random: np.random.Generator
) -> dict[str, Any]:
    def grid(name: str, count: int, blocks: int = 0) -> dict[str, Any]:
        axes = [np.arange(count), np.arange(stages), *([np.arange(blocks)] if blocks else [])]
        mesh = [axis.ravel().astype(np.int32) for axis in np.meshgrid(*axes, indexing="ij")]
        return dict(zip((name, "stage_id", "block_id"), mesh, strict=False))

    inflow, load, wind = grid("hydro_id", hydros), grid("bus_id", buses), grid("ncs_id", sources)
    plant, unit = grid("hydro_id", hydros, len(BLOCKS)), grid("thermal_id", thermals, len(BLOCKS))
    bound = grid("constraint_id", min(50, hydros), len(BLOCKS))
    levels = np.linspace(0.0, 1.0, 12)
    geometry = {
        "hydro_id": np.repeat(np.arange(hydros, dtype=np.int32), len(levels)),
        "volume_hm3": np.tile(1000.0 * levels, hydros),
        "height_m": np.tile(400.0 + 60.0 * levels**0.7, hydros),
        "area_km2": np.tile(5.0 + 40.0 * levels, hydros),
    }
    rows = len(inflow["hydro_id"])
    tables = {
        "system/hydro_geometry.parquet": geometry,
        "scenarios/inflow_seasonal_stats.parquet": {
            **inflow,
            "mean_m3s": random.uniform(20.0, 200.0, rows),
            "std_m3s": random.uniform(0.0, 5.0, rows),
        },
        "scenarios/load_seasonal_stats.parquet": {
            **load,
            "mean_mw": random.uniform(500.0, 4000.0, len(load["bus_id"])),
            "std_mw": np.full(len(load["bus_id"]), 10.0),
        },
        "scenarios/non_controllable_stats.parquet": {
            **wind,
            "mean": random.uniform(0.2, 0.6, len(wind["ncs_id"])),
            "std": np.full(len(wind["ncs_id"]), 0.1),
        },
        "constraints/hydro_bounds.parquet": {
            **plant,
            "min_turbined_m3s": random.uniform(0.0, 5.0, len(plant["hydro_id"])),
            "max_turbined_m3s": random.uniform(250.0, 300.0, len(plant["hydro_id"])),
            "min_outflow_m3s": random.uniform(0.0, 10.0, len(plant["hydro_id"])),
        },
        "constraints/thermal_bounds.parquet": {
            **unit,
            "max_generation_mw": random.uniform(60.0, 100.0, len(unit["thermal_id"])),
        },
        "constraints/penalty_overrides_hydro.parquet": {
            **inflow,
            "spillage_cost": random.uniform(0.001, 0.01, rows),
        },
        "constraints/generic_constraint_bounds.parquet": {
            **bound,
            "bound_lower": np.full(len(bound["stage_id"]), 10.0),
            "bound_upper": np.full(len(bound["stage_id"]), 1.0e5),
        },
    }
    return {path: pa.table(columns) for path, columns in tables.items()}


def _named(number: int, letter: str) -> dict[str, Any]:
    return {"id": number, "name": f"{letter}{number}", "operational_start_date": SINCE}


def _calendar(stages: int) -> list[dict[str, Any]]:
    first = [datetime.date(2024 + month // 12, 1 + month % 12, 1) for month in range(stages + 1)]
    return [
        {
            "id": t,
            "start_date": first[t].isoformat(),
            "end_date": first[t + 1].isoformat(),
            "blocks": [
                {"id": k, "name": name, "hours": (first[t + 1] - first[t]).days * 24.0 * share}
                for k, (name, share) in enumerate(BLOCKS)
            ],
            "num_openings": 20,
        }
        for t in range(stages)
    ]


def _hydro(number: int, count: int, buses: int) -> dict[str, Any]:
    last = number % CASCADE == CASCADE - 1 or number == count - 1
    limits = {
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": 300.0,
        "min_generation_mw": 0.0,
        "max_generation_mw": 400.0,
    }
    half = {key: value / 2.0 for key, value in limits.items()}
    return {
        **_named(number, "H"),
        "downstream_id": None if last else number + 1,
        "travel_time_hours": 0,
        "reservoir": {"min_storage_hm3": 100.0, "max_storage_hm3": 1000.0},
        "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": None},
        "generation": {"model": _model(number), **limits},
        "unit_groups": [{"id": g, "name": f"G{g}", "bus_id": (number + g) % buses, **half} for g in range(2)],
        "tailrace": {"type": "polynomial", "coefficients": [300.0 + number % 37, 0.01]},
        "hydraulic_losses": {"type": "factor", "value": 0.03},
        "efficiency": {"type": "constant", "value": 0.92},
        "evaporation": {"coefficients_mm": [60.0 + month for month in range(12)]},
    }


def _model(number: int) -> str:
    return "fpha" if number % 2 else "constant_productivity"


def _production(number: int) -> dict[str, Any]:
    part: dict[str, Any] = {"start_stage_id": 0, "end_stage_id": None, "model": _model(number)}
    if number % 2:
        part["fpha_config"] = {"source": "computed"}
    else:
        part["productivity_mw_per_m3s"] = 0.9
    return {"hydro_id": number, "selection_mode": "stage_ranges", "stage_ranges": [part]}


def _penalties() -> dict[str, Any]:
    violations = ("storage_violation_below", "filling_target_violation", "turbined_violation_below")
    violations += ("outflow_violation_below", "outflow_violation_above", "generation_violation_below")
    violations += ("evaporation_violation", "water_withdrawal_violation")
    return {
        "bus": {"deficit_segments": [{"depth_mw": None, "cost": 5000.0}], "excess_cost": 0.5},
        "line": {"exchange_cost": 0.25},
        "hydro": {
            "spillage_cost": 0.01,
            "diversion_cost": 0.1,
            "turbined_cost": 0.0,
            **{f"{name}_cost": 1000.0 for name in violations},
        },
        "non_controllable_source": {"curtailment_cost": 0.005},
    }


def write_large(path: Path, **size: Any) -> Path:
    """Write such a case and return its directory."""
    return write_files(path, large_documents(**size))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hydros", type=int, default=1000)
    parser.add_argument("--stages", type=int, default=120)
    given = parser.parse_args()
    write_large(given.directory, hydros=given.hydros, stages=given.stages)
