"""Public cases with inflow that follows earlier inflow, varied: what cobre-rs was run on for comparison."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.shared_cases import shared_cases

ITERATIONS = 5

PUBLISHED = {"pacf": 19_105_598.586261712, "pacf_annual": 18_014_770.75561944, "given": 1_243_617.5353650171}
"""Lower bounds of cobre-rs 0.18.0 for :func:`estimated` by order selection, and for :func:`given`."""


def edit_json(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def edit_rows(path: Path, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    table = pq.read_table(path)
    rows = edit(table.to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path, compression="zstd")


def variation(name: str, target: Path, openings: int) -> Path:
    """Copy a public case, with few iterations, several openings a stage, and inflow as the model has it."""
    shutil.copytree(shared_cases() / name, target)

    def edit(config: dict[str, Any]) -> None:
        config["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": ITERATIONS}]
        config["modeling"]["inflow_non_negativity"] = {"method": "none"}

    def more_openings(file: dict[str, Any]) -> None:
        for stage in file["stages"]:
            stage["num_openings"] = openings

    edit_json(target / "config.json", edit)
    edit_json(target / "stages.json", more_openings)
    return target


def month(number: int) -> str:
    """Return the first day of a month, counted from January 2023."""
    return f"{2023 + number // 12}-{number % 12 + 1:02d}-01"


def estimated(target: Path, order_selection: str) -> Path:
    """d26 with four months, three openings each, and the whole year before as pre-study stages."""
    variation("d26-estimated-par2", target, openings=3)

    def edit(file: dict[str, Any]) -> None:
        file["stages"] = file["stages"][:4]
        file["pre_study_stages"] = [
            {"id": at - 12, "start_date": month(at), "end_date": month(at + 1), "season_id": at}
            for at in range(12)
        ]

    def observe(file: dict[str, Any]) -> None:
        file["recent_observations"] = [
            {"hydro_id": 0, "start_date": month(at), "end_date": month(at + 1), "value_m3s": 120.0 + 5.0 * at}
            for at in reversed(range(12))
        ]

    edit_json(target / "stages.json", edit)
    edit_json(target / "initial_conditions.json", observe)
    edit_json(
        target / "config.json",
        lambda file: file["estimation"].update(max_order=4, order_selection=order_selection),
    )
    edit_rows(
        target / "scenarios/load_seasonal_stats.parquet", lambda rows: [r for r in rows if r["stage_id"] < 4]
    )
    return target


def given(target: Path) -> Path:
    """d19 with deviations of 2 m3/s, three openings a stage, and coefficients of both pre-study stages."""
    variation("d19-multi-hydro-par", target, openings=3)
    edit_rows(
        target / "scenarios/inflow_seasonal_stats.parquet",
        lambda rows: [{**row, "std_m3s": 2.0} for row in rows],
    )
    edit_rows(
        target / "scenarios/inflow_ar_coefficients.parquet",
        lambda rows: [
            *({**row, "stage_id": stage} for stage in (-2, -1) for row in rows if row["stage_id"] == 0),
            *rows,
        ],
    )
    return target


JANUARY = {"id": -3, "start_date": "2023-01-01", "end_date": "2023-02-01", "season_id": 0}


def with_another_january(target: Path) -> Path:
    """d19 with deviations of 2 m3/s, three openings a stage, and statistics of January before the study."""
    variation("d19-multi-hydro-par", target, openings=3)
    edit_json(target / "stages.json", lambda file: file["pre_study_stages"].insert(0, JANUARY))
    edit_rows(
        target / "scenarios/inflow_seasonal_stats.parquet",
        lambda rows: [
            *({**row, "std_m3s": 2.0, "stage_id": -3} for row in rows if row["stage_id"] == 0),
            *({**row, "std_m3s": 2.0} for row in rows),
        ],
    )
    return target


def without_pre_study_stages(target: Path) -> Path:
    edit_json(estimated(target, "pacf_annual") / "stages.json", lambda file: file.pop("pre_study_stages"))
    return target


def without_named_state(target: Path) -> Path:
    def edit(file: dict[str, Any]) -> None:
        for stage in file["stages"]:
            del stage["state_variables"]

    edit_json(estimated(target, "pacf") / "stages.json", edit)
    return target


def with_scenarios(target: Path) -> Path:
    given(target)
    rows = [
        {"stage_id": stage, "scenario_id": scenario, "hydro_id": hydro, "value_m3s": mean + sign * step}
        for stage, sign in enumerate((1, -1, 1))
        for scenario, step in enumerate((-2.0, -0.5, 1.5, 2.5))
        for hydro, mean in enumerate((40.0, 25.0))
    ]
    ids = [(name, pa.int32()) for name in ("stage_id", "scenario_id", "hydro_id")]
    table = pa.Table.from_pylist(rows, schema=pa.schema([*ids, ("value_m3s", pa.float64())]))
    pq.write_table(table, target / "scenarios/external_inflow_scenarios.parquet", compression="zstd")
    source = {"seed": 7, "inflow": {"scheme": "external"}}
    edit_json(target / "config.json", lambda file: file["training"].update(scenario_source=source))
    return target


def with_residuals_of_the_history(target: Path) -> Path:
    def edit(file: dict[str, Any]) -> None:
        for stage in file["stages"]:
            stage["sampling_method"] = "historical_residuals"

    edit_json(estimated(target, "pacf") / "stages.json", edit)
    return target


DIFFERENCES = (
    (with_another_january, 1_234_788.1416062876, 1_241_298.8635762418),
    (without_pre_study_stages, 17_996_065.09728573, 18_014_770.755619496),
    (without_named_state, 25_349_342.23201876, 19_105_598.58626173),
    (with_scenarios, 1_243_617.5353650171, 1_941_597.1044815835),
    (with_residuals_of_the_history, 7_864_995.453661703, 22_680_243.782819584),
)
"""Rows of ``docs/differences.md`` on inflow models: maker of the case, bound of cobre-rs, ours."""
