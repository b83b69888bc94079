"""The case with everything in it, varied at random: other numbers, blocks, risk measures, files left out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from builders.case_files import INFLOW, LOAD, Files, stages_of, write_files
from builders.realisations import drawn_openings, fitted_planes
from builders.rich_case import rich_files
from oracle import optimum
from test_features import OPTIONAL

import cobre.case
import cobre.sddp


def varied(seed: int) -> Files:
    """The rich case changed as the seed tells."""
    rng = random.Random(seed)
    files = rich_files()

    def number(value: float) -> float:
        return round(value * rng.uniform(0.6, 1.5), 3)

    for table, names in ((INFLOW, ("mean_m3s",)), (LOAD, ("mean_mw",))):
        for row in files[table]:
            row.update({name: number(row[name]) for name in names})
    for plant in files["system/thermals.json"]["thermals"]:
        plant["cost_per_mwh"] = number(plant["cost_per_mwh"])
    for costs in (files["penalties.json"]["hydro"], files["system/energy_contracts.json"]["contracts"][0]):
        costs.update(
            {name: number(value) for name, value in costs.items() if name.endswith(("_cost", "_mwh"))}
        )
    for row in files["initial_conditions.json"]["storage"]:
        row["value_hm3"] = number(row["value_hm3"])
    upper = files["system/hydros.json"]["hydros"][0]
    upper["travel_time_hours"] = rng.choice([30.0, 120.0, 288.0])
    for t, stage in enumerate(stages_of(files)):
        stage["blocks"][0]["hours"] = number(200.0)
        # Evaporation of a block is constrained in stage 1, which takes time in order.
        stage["block_mode"] = "chronological" if t == 1 else rng.choice(["parallel", "chronological"])
        if rng.random() < 0.4:
            stage["risk_measure"] = {
                "cvar": {"alpha": rng.choice([0.3, 0.6]), "lambda": rng.choice([0.2, 0.8])}
            }
    for name in OPTIONAL:
        referred = name.startswith("system/") or name == "scenarios/non_controllable_stats.parquet"
        if not referred and rng.random() < 0.15:
            del files[name]
    if "constraints/generic_constraint_bounds.parquet" not in files:
        del files["constraints/generic_constraints.json"], files["constraints/generic_parameters.json"]
    files["config.json"]["training"].update(
        tree_seed=seed, stopping_rules=[{"type": "iteration_limit", "limit": 120}]
    )
    return files


@pytest.mark.parametrize("seed", range(6))
def test_training_equals_the_extensive_form(tmp_path: Path, seed: int) -> None:
    path = write_files(tmp_path, varied(seed))
    case = cobre.case.load(path)
    best = optimum(path, drawn_openings(case), planes=fitted_planes(case))
    result = cobre.sddp.train(case)
    assert result.lower_bound == pytest.approx(best, rel=1e-8)
    assert max(record.lower_bound for record in result.history) <= best + 1e-9 * abs(best)
