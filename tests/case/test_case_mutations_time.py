"""Files of time, initial state and scenarios, spoilt value by value: problems, never another exception."""

import copy
import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from builders.base_case import PATHS, write_case
from builders.boundary_policy import write_boundary
from builders.spoilt import judge, mutants, spoilt_tables
from test_case_initial import FEBRUARY, JANUARY, POST, ahead, committed, post_study, release
from test_case_scenarios import (
    ANNUAL,
    AR,
    CORRELATION,
    HISTORY,
    NCS_STATS,
    NOISE,
    SOURCES,
    annual,
    coefficients,
    correlation,
    history,
    ncs_stats,
    openings,
)

from cobre.case import check

EXTERNAL_LOAD = "scenarios/external_load_scenarios.parquet"


def write_rich(path: Path, extra: dict[str, Any] | None = None) -> Path:
    """Write a case with seasons, nodes, external load, water under way and commitments ahead of time."""

    write_boundary(path.with_name(f"{path.name}-later"), 1, datetime.date(2024, 4, 1))

    def edit_config(file: dict) -> None:
        file["training"].update(
            selection={"method": "enumerated"},
            scenario_source={"seed": 1, "load": {"scheme": "external"}, "inflow": {"scheme": "in_sample"}},
            cut_selection=None,
            solver={"forward": {"presolve": "on"}},
        )
        file["policy"] = {"boundary": {"path": f"../{path.name}-later", "strict": False}}
        file["upper_bound_evaluation"] = {"enabled": True, "lipschitz": {"mode": "auto"}}
        file["estimation"] = {"max_order": 3}

    def edit_stages(file: dict) -> None:
        file["season_definitions"] = {
            "cycle_type": "custom",
            "seasons": [
                {"id": 0, "label": "A", "month_start": 1, "day_start": 1, "month_end": 1, "day_end": 31},
                {"id": 1, "label": "B", "month_start": 2, "day_start": 1, "month_end": 12, "day_end": 31},
            ],
        }
        span = {"start_date": "2023-12-01", "end_date": "2024-01-01"}
        file["pre_study_stages"] = [{"id": -1, "season_id": 1, **span}]
        file["policy_graph"].update(
            nodes=[
                {"id": 20, "stage_id": 1, "scenario_id": 0, "label": "dry"},
                {"id": 10, "stage_id": 0},
                {"id": 21, "stage_id": 1, "scenario_id": 1},
                {"id": 30, "stage_id": 2},
            ],
            transitions=[
                {"source_id": s, "target_id": t, "probability": p}
                for s, t, p in ((10, 20, 0.5), (10, 21, 0.5), (20, 30, 1), (21, 30, 1))
            ],
        )
        file["stages"][0].update(
            risk_measure={"cvar": {"alpha": 0.5, "lambda": 0.5}},
            block_mode="chronological",
            season_id=0,
            annual_discount_rate_override=0.1,
            state_variables={"storage": False, "inflow_lags": True},
        )
        del file["stages"][1]["num_openings"]

    def edit_inflow(table: dict) -> None:
        table["std_m3s"] = [4.0, 0.0, 4.2, 1.0, 0.0, 1.2]

    def edit_initial(file: dict) -> None:
        committed(JANUARY, FEBRUARY)(file)
        file["past_defluences"] = [release("2023-12-01", "2024-01-01")]
        file["recent_observations"] = [release("2023-12-01", "2024-01-01")]

    load = {
        "stage_id": [1, 1, 1, 1],
        "scenario_id": [0, 0, 1, 1],
        "bus_id": [0, 3, 0, 3],
        "value_mw": [1.0, 2.0, 3.0, 4.0],
    }
    return write_case(
        path,
        config=edit_config,
        stages=edit_stages,
        inflow=edit_inflow,
        initial=edit_initial,
        hydros=lambda f: f["hydros"][0].update(travel_time_hours=100),
        thermals=ahead(lead_stages=2),
        extra={
            POST: post_study((0, 60.0, 2.0, 30.0), (1, 61.0, 3.0, 31.0)),
            EXTERNAL_LOAD: load,
            NCS_STATS: ncs_stats(std=[0.1, 0.0, 0.2]),
            NOISE: openings(4),
            **SOURCES,
            **(extra or {}),
        },
    )


@pytest.mark.parametrize("name", [PATHS["config"], PATHS["stages"], PATHS["initial"], POST])
def test_mutations_of_a_rich_case(tmp_path: Path, name: str, whole_sweep: bool) -> None:
    path = write_rich(tmp_path)
    assert check(path)[1] == []
    document = json.loads((path / name).read_text())
    loaded = []
    for changed in mutants(document, whole_sweep):
        (path / name).write_text(json.dumps(changed))
        loaded.append(judge(path, changed) is not None)
    assert sum(loaded) < len(loaded) / 2


def test_mutations_of_correlation(tmp_path: Path, whole_sweep: bool) -> None:
    content = {**correlation(), "schedule": [{"stage_id": 0, "profile_name": "default"}]}
    path = write_rich(tmp_path, {CORRELATION: content})
    for changed in mutants(content, whole_sweep):
        (path / CORRELATION).write_text(json.dumps(changed))
        judge(path, changed)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        (AR, coefficients()),
        (ANNUAL, annual()),
        (HISTORY, history()),
        (NCS_STATS, ncs_stats()),
        (NOISE, openings(4)),
        (EXTERNAL_LOAD, None),
    ],
)
def test_mutations_of_tables(
    tmp_path: Path, name: str, table: dict[str, Any] | None, whole_sweep: bool
) -> None:
    path = write_rich(tmp_path, {} if table is None else {name: copy.deepcopy(table)})
    content = table or pq.read_table(path / name).to_pydict()
    loaded = []
    for changed in spoilt_tables(content, whole_sweep):
        pq.write_table(changed, path / name)
        loaded.append(judge(path, changed) is not None)
    assert sum(loaded) < len(loaded) * 2 / 3
