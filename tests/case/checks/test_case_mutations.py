"""Every value of every JSON file, spoilt in turn: problems, never another exception."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from builders.base_case import PATHS, base_files, write_case
from builders.base_case_extras import registries, rich_files, tables
from builders.spoilt import judge, mutants, spoilt_tables

from cobre.case import check
from cobre.case.format.schema.config import ConfigFile

JSON_NAMES = [name for name, path in PATHS.items() if path.endswith(".json")]


def full_files() -> dict[str, Any]:
    """Return the base case with as many optional keys as can be given."""
    files = base_files()
    config = files["config"]
    config["training"].update(
        cut_selection={"row_activity_tolerance": 0.0, "selection": None},
        parallelism={"backward_scheduler": {"method": "by_scenario"}},
        scenario_source={"seed": 1, "inflow": {"scheme": "in_sample"}, "openings": {"source": "generated"}},
        solver={"retry_max_attempts": 5, "forward": {"presolve": None}},
    )
    config["simulation"] = {"selection": {"method": "sampled", "num_scenarios": 3}, "scenario_source": {}}
    config["simulation"]["scenario_source"].update(
        inflow={"scheme": "historical"}, historical_years={"from": 1, "to": 2}
    )
    config["policy"] = {"mode": "fresh", "checkpointing": {"enabled": False}}
    files["stages"]["policy_graph"]["transitions"] = [
        {"source_id": n, "target_id": n + 1, "probability": 1, "annual_discount_rate_override": None}
        for n in (0, 1)
    ]
    files["stages"]["stages"][0].update(risk_measure="expectation", state_variables={"storage": True})
    # One entity of each kind is enough here.
    files["stages"]["stages"][1]["blocks"].pop()
    files["load_factors"]["load_factors"][0]["block_factors"][0]["block_id"] = 0
    files["hydros"]["hydros"][0].update(
        penalties={"spillage_cost": 0.5},
        travel_time_hours=0,
        exit_stage_id=None,
        tailrace={"type": "piecewise", "points": [{"outflow_m3s": 0.0, "height_m": 1.0}]},
        hydraulic_losses={"type": "constant", "value_m": 0.5},
        efficiency={"type": "constant", "value": 0.9},
        diversion={"downstream_id": 4, "max_flow_m3s": 5.0},
        filling={"start_stage_id": 0, "filling_min_rate_m3s": 4.0},
        entry_stage_id=2,
        specific_productivity_mw_per_m3s_per_m=0.009,
    )
    files["initial"].update(
        storage=[{"hydro_id": 4, "value_hm3": 60.0}], filling_storage=[{"hydro_id": 1, "value_hm3": 2.0}]
    )
    files["lines"]["lines"][0].update(losses_percent=2.5, entry_stage_id=0)
    return files


@pytest.mark.parametrize("name", JSON_NAMES)
def test_mutations_give_problems_only(tmp_path: Path, name: str, whole_sweep: bool) -> None:
    files = full_files()
    path = write_case(tmp_path, **{key: files[key] for key in JSON_NAMES})
    assert check(path)[1] == []
    loaded = []
    for changed in mutants(files[name], whole_sweep):
        (path / PATHS[name]).write_text(json.dumps(changed))
        loaded.append(judge(path, changed) is not None)
    assert sum(loaded) < len(loaded) / 2


@pytest.mark.parametrize("name", sorted(registries()))
def test_mutations_of_optional_registries(tmp_path: Path, name: str, whole_sweep: bool) -> None:
    extra = registries()
    path = write_case(tmp_path, extra=extra)
    assert check(path)[1] == []
    for changed in mutants(extra[name], whole_sweep):
        (path / name).write_text(json.dumps(changed))
        judge(path, changed)


@pytest.mark.parametrize("name", sorted(tables()))
def test_mutations_of_bounds(tmp_path: Path, name: str, whole_sweep: bool) -> None:
    extra = rich_files()
    path = write_case(tmp_path, extra=extra)
    assert check(path)[1] == []
    for changed in spoilt_tables(extra[name], whole_sweep):
        pq.write_table(changed, path / name)
        judge(path, changed)


def test_every_section_of_config_is_known() -> None:
    sections = set(ConfigFile.model_fields) - {"json_schema"}
    assert sections == {
        "training",
        "simulation",
        "modeling",
        "policy",
        "exports",
        "estimation",
        "upper_bound_evaluation",
    }
