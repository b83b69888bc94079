"""Files of time, initial state and scenarios that go with :mod:`builders.base_case`."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from builders.base_case import write_case
from builders.boundary_policy import write_boundary

MONTHS = [{"id": n, "label": f"M{n + 1}", "month_start": n + 1} for n in range(12)]
POST = "post_study_stages.json"
JANUARY = ("2024-01-01", "2024-02-01", 12.0)
FEBRUARY = ("2024-02-01", "2024-03-01", 13.0)
AR = "scenarios/inflow_ar_coefficients.parquet"
ANNUAL = "scenarios/inflow_annual_component.parquet"
HISTORY = "scenarios/inflow_history.parquet"
CORRELATION = "scenarios/correlation.json"
NOISE = "scenarios/noise_openings.parquet"
NCS_STATS = "scenarios/non_controllable_stats.parquet"
SOURCES = {
    "system/non_controllable_sources.json": {
        "non_controllable_sources": [
            {
                "id": number,
                "name": f"W{number}",
                "operational_start_date": "1900-01-01",
                "bus_id": 0,
                "max_generation_mw": 10.0,
            }
            for number in (7, 5)
        ]
    }
}
EXTERNAL_LOAD = "scenarios/external_load_scenarios.parquet"


def release(start: str, end: str, value: float = 10.0, hydro: int = 1) -> dict[str, Any]:
    return {"hydro_id": hydro, "start_date": start, "end_date": end, "value_m3s": value}


def ahead(**config: Any) -> Any:
    return lambda f: f["thermals"][0].update(anticipated_config=config)


def committed(*windows: tuple[str, str, float]) -> Any:
    entries = [{"thermal_id": 0, "start_date": s, "end_date": e, "value_mw": v} for s, e, v in windows]
    return lambda f: f.update(past_anticipated_commitments=entries)


def post_study(*bounds: tuple[int, float, float, float], count: int = 2) -> dict[str, Any]:
    starts = ["2024-04-01", "2024-05-01", "2024-06-01"][:count]
    hours = [720.0, 744.0, 720.0]
    rows = [
        {"thermal_id": 0, "post_study_stage_index": i, "cost_per_mwh": c, "min_mw": low, "max_mw": high}
        for i, c, low, high in bounds
    ]
    stages = [{"start_date": s, "duration_hours": h} for s, h in zip(starts, hours, strict=False)]
    return {"stages": stages, "thermal_bounds": rows}


def coefficients(**columns: Any) -> dict[str, Any]:
    table = {"hydro_id": [1, 4, 4], "stage_id": [0, 1, 1], "lag": [1, 1, 2], "coefficient": [0.5, 0.5, 0.3]}
    return {**table, **columns}


def annual(**columns: Any) -> dict[str, Any]:
    table = {
        "hydro_id": [1, 4],
        "stage_id": [0, 1],
        "annual_coefficient": [0.2, 0.3],
        "annual_mean_m3s": [10.0, 11.0],
        "annual_std_m3s": [2.0, 3.0],
    }
    return {**table, **columns}


def history(**columns: Any) -> dict[str, Any]:
    first, second = datetime.date(2023, 1, 1), datetime.date(2023, 2, 1)
    table = {
        "hydro_id": [1, 1, 4],
        "start_date": [first, second, first],
        "end_date": [second, datetime.date(2023, 3, 1), second],
        "value_m3s": [1.0, 2.0, 3.0],
    }
    return {**table, **columns}


def correlation(off: float = 0.5, **group: Any) -> dict[str, Any]:
    entities = [{"type": "inflow", "id": 1}, {"type": "inflow", "id": 4}]
    content = {"name": "g", "entities": entities, "matrix": [[1.0, off], [off, 1.0]], **group}
    return {"method": "spectral", "profiles": {"default": {"correlation_groups": [content]}}}


def openings(dimension: int = 3, **columns: Any) -> dict[str, Any]:
    """Return noise for 1, 4 and 4 openings of two hydros and one bus."""
    cells = [(s, o, e) for s, n in ((0, 1), (1, 4), (2, 4)) for o in range(n) for e in range(dimension)]
    stage, opening, entity = (list(column) for column in zip(*cells, strict=True))
    table = {"stage_id": stage, "opening_index": opening, "entity_index": entity, "value": [0.0] * len(cells)}
    return {**table, **columns}


def ncs_stats(**columns: Any) -> dict[str, Any]:
    table = {"ncs_id": [7, 7, 7], "stage_id": [0, 1, 2], "mean": [0.5, 0.6, 1.0], "std": [0.1, 0.0, 0.2]}
    return {**table, **columns}


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
