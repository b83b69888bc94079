"""Results that are small enough to compute everything by hand: two stages, two buses, four scenarios."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.results.dictionaries import VARIABLE_COLUMNS, variable_rows, write_csv
from cobre.results.simulation.catalogue import (
    BUSES,
    COSTS,
    HYDROS,
    PATHS,
    SCENARIO_SUMMARY,
    TABLES,
    THERMALS,
)

SCENARIOS = 4
HOURS = {(1, 0): 100.0, (1, 1): 300.0, (2, 0): 200.0}
"""By stage and block."""

DATES = {1: datetime.date(2024, 1, 1), 2: datetime.date(2024, 2, 1)}
_EMPTY = {"i8": 0, "i32": 0, "f64": 0.0, "bool": False, "string": "", "date32": datetime.date(2024, 1, 1)}


def write_simulation(output: Path, probability: Sequence[float] | None = None, factor: float = 1.0) -> Path:
    """Write ``output/simulation`` in two parts, and return ``output``.

    Costs are 100, 200, 300 and 400 $ (times ``factor``); the North has 300 MWh of deficit in scenario 2 in
    stage 1, and 1000 MWh in scenario 3 in stage 2.
    """
    place = output / "simulation"
    for part, scenarios in enumerate(([0, 1, 2], [3])):
        for spec, rows in (
            (BUSES, _buses),
            (HYDROS, _hydros),
            (THERMALS, _thermals),
            (COSTS, lambda chosen: _costs(chosen, factor)),
        ):
            directory = place / spec.name
            directory.mkdir(parents=True, exist_ok=True)
            pq.write_table(_table(spec, rows(scenarios)), directory / f"part-{part:05d}.parquet")
    every = range(SCENARIOS)
    summary = [
        {
            "scenario_id": s,
            "probability": None if probability is None else probability[s],
            "discounted_immediate_cost": factor * (100.0 + 100.0 * s),
        }
        for s in every
    ]
    pq.write_table(_table(SCENARIO_SUMMARY, summary), place / "scenario_summary.parquet")
    paths = [{"scenario_id": s, "stage_id": t, "start_date": DATES[t]} for s in every for t in DATES]
    pq.write_table(_table(PATHS, paths), place / "paths.parquet")
    (place / "dictionaries").mkdir(exist_ok=True)
    write_csv(place / "dictionaries" / "variables.csv", VARIABLE_COLUMNS, variable_rows(TABLES))
    (place / "metadata.json").write_text(json.dumps({"status": "complete"}))
    (place / "_SUCCESS").touch()
    return output


def _table(spec: Any, rows: list[dict[str, Any]]) -> pa.Table:
    empty = {part.name: None if part.nullable else _EMPTY[part.type] for part in spec.columns}
    return pa.Table.from_pylist([{**empty, **row} for row in rows], schema=spec.schema)


def _blocks(scenarios: Sequence[int]) -> Iterator[tuple[dict[str, Any], int, int, int, float]]:
    for s in scenarios:
        for (t, b), hours in HOURS.items():
            ids = {"scenario_id": s, "stage_id": t, "node_id": t - 1, "block_id": b, "start_date": DATES[t]}
            yield ids, s, t, b, hours


def _buses(scenarios: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for ids, s, t, b, hours in _blocks(scenarios):
        deficit = {(2, 1, 1): 1.0, (3, 2, 0): 5.0}.get((s, t, b), 0.0)
        price = {(1, 0): 100.0, (1, 1): 20.0}.get((t, b), 10.0 + 10.0 * s)
        north = {
            "load_mw": 10.0,
            "load_mwh": 10.0 * hours,
            "deficit_mw": deficit,
            "deficit_mwh": deficit * hours,
        }
        rows.append({**ids, "bus_id": 0, "bus_name": "North", "spot_price": price, **north})
        rows.append({**ids, "bus_id": 1, "bus_name": "South", "spot_price": 7.0})
    return rows


def _hydros(scenarios: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for ids, s, t, b, hours in _blocks(scenarios):
        first, second = {(1, 0): (50.0, 5.0), (1, 1): (30.0 + s, 7.0), (2, 0): (10.0 * s, 0.0)}[t, b]
        inflow = {(1, 0): 2.0, (1, 1): 6.0, (2, 0): 4.0}[t, b]
        generation = {"generation_mw": 3.0, "generation_mwh": 3.0 * hours}
        rows.append(
            {
                **ids,
                "hydro_id": 4,
                "hydro_name": "Serra",
                "storage_final_hm3": 100.0 + s,
                "stored_energy_final_mwh": first,
                "incremental_inflow_energy_mw": inflow,
                **generation,
            }
        )
        rows.append(
            {
                **ids,
                "hydro_id": 9,
                "hydro_name": "Vale",
                "storage_final_hm3": 10.0,
                "stored_energy_final_mwh": second,
                "incremental_inflow_energy_mw": 1.0,
            }
        )
    return rows


def _thermals(scenarios: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            **ids,
            "thermal_id": 0,
            "thermal_name": "Gas",
            "generation_mw": 7.0,
            "generation_mwh": 7.0 * hours,
            "operative_state_code": 2,
        }
        for ids, _, _, _, hours in _blocks(scenarios)
    ]


def _costs(scenarios: Sequence[int], factor: float) -> list[dict[str, Any]]:
    rows = []
    for s in scenarios:
        for t, thermal, violation in ((1, 60.0, 40.0), (2, 200.0 * s, 0.0)):
            immediate = factor * (thermal + violation)
            rows.append(
                {
                    "scenario_id": s,
                    "stage_id": t,
                    "node_id": t - 1,
                    "start_date": DATES[t],
                    "discount_factor": 1.0 if t == 1 else 0.5,
                    "thermal_cost": factor * thermal,
                    "outflow_violation_below_cost": factor * violation,
                    "hydro_violation_cost": factor * violation,
                    "immediate_cost": immediate,
                    "total_cost": immediate + 1.0,
                    "future_cost": 1.0,
                }
            )
    return rows
