"""Cases with one opening a stage, their inflow model replaced by the inflows that it gives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import cobre.case
from cobre.stochastic import build_opening_tree
from cobre.stochastic.par import inflow_model

MODEL_FILES = ("inflow_ar_coefficients", "inflow_history", "inflow_seasonal_stats")


def follow(path: Path) -> NDArray[np.float64]:
    """Return the inflow by (stage, hydro) along the only path of openings."""
    case = cobre.case.load(path)
    model, tree = inflow_model(case), build_opening_tree(case)
    memory = model.lags.initial.copy()
    found = []
    for stage in range(len(case.stages)):
        eta = tree.noise[tree.rows(stage)][0, : len(case.hydros)]
        pull = (model.psi[stage] * memory).sum(axis=1)
        inflow = model.base_m3s[stage] + pull + model.sigma_m3s[stage] * eta
        memory = memory @ model.lags.carry[stage].T + np.outer(inflow, model.lags.gain[stage])
        found.append(inflow)
    return np.array(found)


def with_inflows(path: Path, target: Path, inflow: NDArray[np.float64]) -> Path:
    """Copy a case, with known inflows in place of its model."""
    shutil.copytree(path, target)
    for name in MODEL_FILES:
        (target / f"scenarios/{name}.parquet").unlink(missing_ok=True)
    stages = json.loads((target / "stages.json").read_text())
    for key in ("season_definitions", "pre_study_stages"):
        stages.pop(key, None)
    for stage in stages["stages"]:
        stage.pop("season_id", None)
        stage.pop("state_variables", None)
    (target / "stages.json").write_text(json.dumps(stages))
    initial = json.loads((target / "initial_conditions.json").read_text())
    initial.pop("recent_observations", None)
    (target / "initial_conditions.json").write_text(json.dumps(initial))
    case = cobre.case.load(path)
    pairs = [(hydro.id, stage.id) for stage in case.stages for hydro in case.hydros]
    table = pa.table(
        {
            "hydro_id": pa.array([pair[0] for pair in pairs], pa.int32()),
            "stage_id": pa.array([pair[1] for pair in pairs], pa.int32()),
            "mean_m3s": inflow.ravel(),
            "std_m3s": np.zeros(inflow.size),
        }
    )
    pq.write_table(table, target / "scenarios/inflow_seasonal_stats.parquet", compression="zstd")
    return target
