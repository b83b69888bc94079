"""Reads the raw files of a case directory for the extensive form, with ``json`` and ``pyarrow`` only.

Nothing of the package is used, so that a fault of the loader can't hide behind itself. The reader
trusts its input (the cases of the tests are valid) but refuses what the extensive form does not model.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

Json = dict[str, Any]
Array = NDArray[np.float64]

KNOWN_FILES = {
    "config.json",
    "penalties.json",
    "stages.json",
    "initial_conditions.json",
    "system/buses.json",
    "system/lines.json",
    "system/hydros.json",
    "system/thermals.json",
    "system/hydro_production_models.json",
    "scenarios/inflow_seasonal_stats.parquet",
    "scenarios/load_seasonal_stats.parquet",
    "scenarios/load_factors.json",
}
NOT_MODELLED = {
    "stages": ("season_definitions", "pre_study_stages"),
    "stage": (),
    "hydro": (
        "travel_time_hours",
        "evaporation",
        "diversion",
        "filling",
        "entry_stage_id",
        "exit_stage_id",
    ),
    "thermal": ("anticipated_config", "entry_stage_id", "exit_stage_id"),
    "line": ("losses_percent", "entry_stage_id", "exit_stage_id"),
}


@dataclass(frozen=True)
class RawCase:
    """The parsed files, entities and stages sorted by id; arrays are (stage, entity)."""

    penalties: Json
    stages: list[Json]
    buses: list[Json]
    lines: list[Json]
    thermals: list[Json]
    hydros: list[Json]
    inflow_method: str
    initial_hm3: list[float]
    productivity: Array
    discount: Array
    """Factor from the start of the study to each stage."""
    inflow_mean: Array
    load_mean: Array
    load_factor: dict[tuple[int, int, int], float]
    """By (stage id, bus id, block id); 1 where absent."""


def read_raw_case(case_dir: Path) -> RawCase:
    """Parse the case in ``case_dir``; ``NotImplementedError`` where the extensive form would be wrong."""
    case_dir = Path(case_dir)
    for file in case_dir.rglob("*"):
        name = file.relative_to(case_dir).as_posix()
        if (
            file.suffix in {".json", ".parquet"}
            and not name.startswith("output/")
            and name not in KNOWN_FILES
        ):
            raise NotImplementedError(f"{name} is not part of the extensive form")
    graph = _load(case_dir / "stages.json")
    _refuse(graph, "stages")
    stages = _by_id(graph["stages"], "stage")
    for stage in stages:
        stage["blocks"] = sorted(stage["blocks"], key=lambda block: block["id"])
        if stage.get("block_mode", "parallel") != "parallel":
            raise NotImplementedError("chronological blocks")
        if stage.get("risk_measure", "expectation") != "expectation":
            raise NotImplementedError("risk measures")
    hydros = _by_id(_load(case_dir / "system/hydros.json")["hydros"], "hydro")
    buses = _by_id(_load(case_dir / "system/buses.json")["buses"], "bus")
    initial = {
        row["hydro_id"]: row["value_hm3"] for row in _load(case_dir / "initial_conditions.json")["storage"]
    }
    modeling = _load(case_dir / "config.json").get("modeling") or {}
    return RawCase(
        penalties=_load(case_dir / "penalties.json"),
        stages=stages,
        buses=buses,
        lines=_by_id(_load(case_dir / "system/lines.json")["lines"], "line"),
        thermals=_by_id(_load(case_dir / "system/thermals.json")["thermals"], "thermal"),
        hydros=hydros,
        inflow_method=(modeling.get("inflow_non_negativity") or {}).get("method", "penalty"),
        initial_hm3=[initial.get(hydro["id"], hydro["reservoir"]["min_storage_hm3"]) for hydro in hydros],
        productivity=_productivity(case_dir, stages, hydros),
        discount=_discount(graph["policy_graph"], stages),
        inflow_mean=_stats(
            case_dir / "scenarios/inflow_seasonal_stats.parquet", "hydro_id", "mean_m3s", stages, hydros
        ),
        load_mean=_stats(
            case_dir / "scenarios/load_seasonal_stats.parquet", "bus_id", "mean_mw", stages, buses
        ),
        load_factor=_load_factors(case_dir / "scenarios/load_factors.json"),
    )


def _load(path: Path) -> Json:
    content: Json = json.loads(path.read_text(encoding="utf-8"))
    return content


def _by_id(rows: list[Json], kind: str) -> list[Json]:
    for row in rows:
        _refuse(row, kind)
    return sorted(rows, key=lambda row: int(row["id"]))


def _refuse(row: Json, kind: str) -> None:
    for key in NOT_MODELLED.get(kind, ()):
        if row.get(key):
            raise NotImplementedError(f"{key} of a {kind}")


def _stats(path: Path, id_column: str, value_column: str, stages: list[Json], entities: list[Json]) -> Array:
    mean = np.zeros((len(stages), len(entities)))
    if path.exists():
        rows = pq.read_table(path).to_pylist()
        by_key = {(row["stage_id"], row[id_column]): row[value_column] for row in rows}
        for t, stage in enumerate(stages):
            for e, entity in enumerate(entities):
                mean[t, e] = by_key[stage["id"], entity["id"]]
    return mean


def _load_factors(path: Path) -> dict[tuple[int, int, int], float]:
    if not path.exists():
        return {}
    return {
        (row["stage_id"], row["bus_id"], block["block_id"]): block["factor"]
        for row in _load(path)["load_factors"]
        for block in row["block_factors"]
    }


def _productivity(case_dir: Path, stages: list[Json], hydros: list[Json]) -> Array:
    rho = np.zeros((len(stages), len(hydros)))
    if not hydros:
        return rho
    models = _load(case_dir / "system/hydro_production_models.json")["production_models"]
    by_hydro = {model["hydro_id"]: model for model in models}
    for h, hydro in enumerate(hydros):
        model = by_hydro[hydro["id"]]
        if model["selection_mode"] != "stage_ranges":
            raise NotImplementedError("seasonal production models")
        for t, stage in enumerate(stages):
            matching = (
                part
                for part in model["stage_ranges"]
                if part["start_stage_id"] <= stage["id"]
                and (part.get("end_stage_id") is None or stage["id"] <= part["end_stage_id"])
            )
            rho[t, h] = next(matching)["productivity_mw_per_m3s"]
    return rho


def _discount(policy_graph: Json, stages: list[Json]) -> Array:
    by_source = {
        transition["source_id"]: transition.get("annual_discount_rate_override")
        for transition in policy_graph.get("transitions") or []
    }
    factor = np.ones(len(stages))
    for t, stage in enumerate(stages[:-1]):
        candidates = (
            stage.get("annual_discount_rate_override"),
            by_source.get(stage["id"]),
            policy_graph["annual_discount_rate"],
        )
        rate = next(value for value in candidates if value is not None)
        start = datetime.date.fromisoformat(stage["start_date"])
        end = datetime.date.fromisoformat(stage["end_date"])
        factor[t + 1] = factor[t] * (1.0 + rate) ** (-(end - start).days / 365.25)
    return factor
