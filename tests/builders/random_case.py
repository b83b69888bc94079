"""Random small systems: cascades, lines, blocks, unit groups, floors, discount, noise.

Every system is feasible whatever the noise: load has deficit and excess, limits on flows have slacks, and
negative inflow is either bought, truncated or too unlikely to occur (method ``none``: small deviations).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from builders.case_files import (
    INFLOW,
    LOAD,
    START,
    Files,
    Json,
    bus,
    inflow_row,
    limits,
    line,
    load_row,
    smallest,
    thermal,
    write_files,
)


def write_random_case(directory: Path, seed: int) -> Path:
    """Write the system of ``seed`` (a function of the seed alone)."""
    return write_files(directory, random_case_files(seed))


def random_case_files(seed: int) -> Files:
    """Return the files of the system of ``seed``."""
    draw = _Draw(seed)
    rng = draw.rng
    stages = _stages(draw)
    stage_ids = [stage["id"] for stage in stages]
    bus_ids = draw.ids(int(rng.integers(1, 4)))
    hydro_ids = draw.ids(int(rng.integers(1, 5)))
    method = str(rng.choice(["none", "penalty", "truncation", "truncation_with_penalty"]))
    hydros = _hydros(draw, hydro_ids, bus_ids)

    files = smallest([])
    files["config.json"]["training"] = {
        "tree_seed": int(rng.integers(1, 10_000)),
        "selection": {"method": "sampled", "forward_passes": 6},
        "stopping_rules": [{"type": "iteration_limit", "limit": 60}],
    }
    files["config.json"]["modeling"]["inflow_non_negativity"]["method"] = method
    files["penalties.json"]["hydro"].update(
        diversion_cost=0.5,
        turbined_cost=draw.number(0.0, 0.2),
        storage_violation_below_cost=5000.0,
        filling_target_violation_cost=5000.0,
        outflow_violation_below_cost=draw.number(5.0, 300.0),
    )
    files["stages.json"] = {"policy_graph": _policy_graph(draw, stage_ids), "stages": draw.shuffled(stages)}
    files["initial_conditions.json"]["storage"] = [_initial(draw, hydro) for hydro in hydros]
    files["system/buses.json"]["buses"] = [_bus(draw, bus_id) for bus_id in bus_ids]
    files["system/lines.json"]["lines"] = _lines(draw, bus_ids)
    files["system/thermals.json"]["thermals"] = _thermals(draw, bus_ids)
    files["system/hydros.json"]["hydros"] = hydros
    models = [_production(draw, hydro_id, stage_ids) for hydro_id in hydro_ids]
    files["system/hydro_production_models.json"]["production_models"] = models
    deviation = 0.12 if method == "none" else 1.2
    files[INFLOW] = draw.stats(inflow_row, hydro_ids, stage_ids, (2.0, 50.0), deviation)
    files[LOAD] = draw.stats(load_row, bus_ids, stage_ids, (10.0, 110.0), 0.5 if draw.maybe(0.4) else 0.0)
    if draw.maybe(0.6):
        files["scenarios/load_factors.json"] = {"load_factors": _load_factors(draw, bus_ids, stages)}
    return files


class _Draw:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def number(self, low: float, high: float) -> float:
        return round(float(self.rng.uniform(low, high)), 3)

    def maybe(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def ids(self, count: int) -> list[int]:
        return [int(value) for value in self.rng.choice(20, size=count, replace=False)]

    def shuffled(self, rows: list[Json]) -> list[Json]:
        return [rows[i] for i in self.rng.permutation(len(rows))]

    def stats(
        self,
        row: Callable[[int, int, float, float], Json],
        ids: list[int],
        stage_ids: list[int],
        mean: tuple[float, float],
        deviation: float,
    ) -> list[Json]:
        rows = []
        for entity in ids:
            for stage in stage_ids:
                value = self.number(*mean)
                std = round(value * deviation * float(self.rng.random()), 3)
                rows.append(row(entity, stage, value, std))
        return self.shuffled(rows)


def _stages(draw: _Draw) -> list[Json]:
    count = 2 if draw.maybe(0.2) else 3
    stage_ids = sorted(draw.ids(count))
    openings = [int(value) for value in draw.rng.choice([1, 2, 3], p=[0.2, 0.4, 0.4], size=count)]
    day = np.datetime64("2024-03-01")
    stages: list[Json] = []
    for stage_id, num_openings in zip(stage_ids, openings, strict=True):
        end = day + np.timedelta64(int(draw.rng.integers(7, 120)), "D")
        hours = [draw.number(60.0, 500.0) for _ in range(int(draw.rng.integers(1, 4)))]
        blocks = [{"id": k, "name": f"block {k}", "hours": value} for k, value in enumerate(hours)]
        stage: Json = {
            "id": stage_id,
            "start_date": str(day),
            "end_date": str(end),
            "blocks": draw.shuffled(blocks),
            "num_openings": num_openings,
        }
        if draw.maybe(0.2):
            stage["annual_discount_rate_override"] = draw.number(0.0, 0.5)
        stages.append(stage)
        day = end
    return stages


def _policy_graph(draw: _Draw, stage_ids: list[int]) -> Json:
    rate = draw.number(0.0, 0.3) if draw.maybe(0.7) else 0.0
    graph: Json = {"type": "finite_horizon", "annual_discount_rate": rate}
    if draw.maybe(0.4):
        graph["transitions"] = [
            {"source_id": source, "target_id": target, "probability": 1.0}
            for source, target in itertools.pairwise(stage_ids)
        ]
        graph["transitions"][0]["annual_discount_rate_override"] = draw.number(0.0, 0.5)
    return graph


def _bus(draw: _Draw, bus_id: int) -> Json:
    entry = bus(bus_id)
    if draw.maybe(0.5):
        first = draw.number(200.0, 500.0)
        entry["deficit_segments"] = [
            {"depth_mw": draw.number(2.0, 15.0), "cost": first},
            {"depth_mw": None, "cost": first + draw.number(100.0, 2000.0)},
        ]
    return entry


def _lines(draw: _Draw, bus_ids: list[int]) -> list[Json]:
    lines: list[Json] = []
    for source in bus_ids:
        for target in bus_ids:
            if source == target or not draw.maybe(0.6):
                continue
            capacity = {"direct_mw": draw.number(0.0, 60.0), "reverse_mw": draw.number(0.0, 60.0)}
            entry = line(len(lines), source, target, 0.0, capacity=capacity)
            if draw.maybe(0.5):
                entry["exchange_cost"] = draw.number(0.1, 5.0)
            lines.append(entry)
    return draw.shuffled(lines)


def _thermals(draw: _Draw, bus_ids: list[int]) -> list[Json]:
    return [
        thermal(
            plant_id,
            bus_id=int(draw.rng.choice(bus_ids)),
            cost=draw.number(10.0, 190.0),
            generation={
                "min_mw": draw.number(0.0, 5.0) if draw.maybe(0.3) else 0.0,
                "max_mw": draw.number(5.0, 60.0),
            },
        )
        for plant_id in draw.ids(int(draw.rng.integers(2, 7)))
    ]


def _hydros(draw: _Draw, hydro_ids: list[int], bus_ids: list[int]) -> list[Json]:
    hydros: list[Json] = []
    for position, hydro_id in enumerate(hydro_ids):
        groups: list[Json] = []
        for group_id in range(int(draw.rng.integers(1, 4))):
            max_mw, max_m3s = draw.number(5.0, 40.0), draw.number(8.0, 50.0)
            min_mw = draw.number(0.0, 5.0) if draw.maybe(0.2) else 0.0
            min_m3s = draw.number(0.0, 8.0) if draw.maybe(0.2) else 0.0
            group: Json = {
                "id": group_id,
                "name": f"group {group_id}",
                "bus_id": int(draw.rng.choice(bus_ids)),
            }
            groups.append({**group, **limits(max_mw, max_m3s, min_mw, min_m3s)})
        total = {key: sum(group[key] for group in groups) for key in limits()}
        low = draw.number(0.0, 40.0) if draw.maybe(0.5) else 0.0
        size = 0.0 if draw.maybe(0.25) else draw.number(20.0, 300.0)
        outflow: Json = {"min_outflow_m3s": draw.number(1.0, 25.0) if draw.maybe(0.4) else 0.0}
        if draw.maybe(0.3):
            outflow["max_outflow_m3s"] = draw.number(30.0, 90.0)
        later = hydro_ids[position + 1 :]
        hydro: Json = {
            "id": hydro_id,
            "name": f"hydro {hydro_id}",
            "operational_start_date": START,
            # Only plants that come later in the list: the cascade has no cycle.
            "downstream_id": int(draw.rng.choice(later)) if later and draw.maybe(0.7) else None,
            "reservoir": {"min_storage_hm3": low, "max_storage_hm3": low + size},
            "outflow": outflow,
            "generation": {"model": "constant_productivity", **total},
            "unit_groups": groups,
        }
        if draw.maybe(0.3):
            hydro["penalties"] = {"spillage_cost": draw.number(0.01, 2.0), "inflow_nonnegativity_cost": 700.0}
        hydros.append(hydro)
    return hydros


def _initial(draw: _Draw, hydro: Json) -> Json:
    low, high = hydro["reservoir"]["min_storage_hm3"], hydro["reservoir"]["max_storage_hm3"]
    if low > 0 and draw.maybe(0.3):
        value = draw.number(0.0, low)
    elif draw.maybe(0.1):
        value = high + draw.number(1.0, 20.0)
    else:
        value = draw.number(low, high)
    return {"hydro_id": hydro["id"], "value_hm3": value}


def _production(draw: _Draw, hydro_id: int, stage_ids: list[int]) -> Json:
    def part(start: int, end: int | None) -> Json:
        return {
            "start_stage_id": start,
            "end_stage_id": end,
            "model": "constant_productivity",
            "productivity_mw_per_m3s": draw.number(0.2, 1.5),
        }

    ranges = [part(0, None)]
    if draw.maybe(0.4):
        # The first matching range wins.
        ranges.insert(0, part(stage_ids[0], stage_ids[0]))
    return {"hydro_id": hydro_id, "selection_mode": "stage_ranges", "stage_ranges": ranges}


def _load_factors(draw: _Draw, bus_ids: list[int], stages: list[Json]) -> list[Json]:
    rows: list[Json] = []
    for bus_id in bus_ids:
        for stage in stages:
            factors = [
                {"block_id": block["id"], "factor": draw.number(0.5, 1.6)}
                for block in stage["blocks"]
                if draw.maybe(0.8)
            ]
            if factors:
                rows.append({"bus_id": bus_id, "stage_id": stage["id"], "block_factors": factors})
    return rows
