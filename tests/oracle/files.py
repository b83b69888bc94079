"""The files of a case directory as they are, entities and stages sorted by id."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Json = dict[str, Any]

REGISTRIES = {
    "buses": "system/buses.json",
    "lines": "system/lines.json",
    "thermals": "system/thermals.json",
    "hydros": "system/hydros.json",
    "non_controllable_sources": "system/non_controllable_sources.json",
    "pumping_stations": "system/pumping_stations.json",
    "contracts": "system/energy_contracts.json",
    "batteries": "system/batteries.json",
}
BOUNDS = ("thermal", "hydro", "hydro_unit_group", "line", "pumping", "contract", "ncs", "generic_constraint")
MODELLED = {
    *("config.json", "penalties.json", "stages.json", "initial_conditions.json", "post_study_stages.json"),
    *REGISTRIES.values(),
    "constraints/battery_bounds.parquet",
    *("system/hydro_production_models.json", "system/hydro_energy_productivity.parquet"),
    *("system/fpha_hyperplanes.parquet", "system/hydro_geometry.parquet", "system/tailrace_curves.parquet"),
    *("scenarios/inflow_seasonal_stats.parquet", "scenarios/load_seasonal_stats.parquet"),
    *("scenarios/load_factors.json", "scenarios/non_controllable_factors.json"),
    "scenarios/non_controllable_stats.parquet",
    *(f"scenarios/external_{kind}_scenarios.parquet" for kind in ("inflow", "load", "ncs")),
    *(f"constraints/{name}_bounds.parquet" for name in BOUNDS),
    *(f"constraints/penalty_overrides_{name}.parquet" for name in ("bus", "line", "hydro", "ncs")),
    *("constraints/generic_constraints.json", "constraints/generic_parameters.json"),
}
"""Files with a meaning here. Inflows that follow earlier ones have none: they have no openings by stage."""


class RawFiles:
    """Everything the extensive form needs, by the names of the files.

    ``NotImplementedError`` where the directory holds a file that the extensive form does not model.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._documents: dict[str, Json] = {}
        self._refuse_what_is_not_modelled()
        self.config = self.json("config.json")
        self.penalties = self.json("penalties.json")
        self.horizon = self.json("stages.json")
        self.initial = self.json("initial_conditions.json")
        self.post_study = self.json("post_study_stages.json", {})
        stages = [stage for stage in self.horizon["stages"] if stage["id"] >= 0]
        self.stages = sorted(stages, key=lambda stage: int(stage["id"]))
        for stage in self.stages:
            stage["blocks"] = sorted(stage["blocks"], key=lambda block: int(block["id"]))
        for name, file in REGISTRIES.items():
            entities = self.json(file, {name: []})[name]
            setattr(self, name, sorted(entities, key=lambda entity: int(entity["id"])))
        self._tables: dict[str, list[Json]] = {}

    buses: list[Json]
    lines: list[Json]
    thermals: list[Json]
    hydros: list[Json]
    non_controllable_sources: list[Json]
    pumping_stations: list[Json]
    contracts: list[Json]
    batteries: list[Json]

    def json(self, name: str, absent: Json | None = None) -> Json:
        """Content of a JSON file; ``absent`` where there is none."""
        if name not in self._documents:
            path = self.root / name
            missing = absent is not None and not path.exists()
            self._documents[name] = absent if missing else json.loads(path.read_text(encoding="utf-8"))
        return self._documents[name]

    def _refuse_what_is_not_modelled(self) -> None:
        for file in self.root.rglob("*"):
            name = file.relative_to(self.root).as_posix()
            given = file.suffix in (".json", ".parquet") and not name.startswith("output/")
            if given and name not in MODELLED:
                raise NotImplementedError(f"{name} is not part of the extensive form")

    def rows(self, name: str) -> list[Json]:
        """Rows of a Parquet file without nulls; none where there is no file."""
        if name not in self._tables:
            path = self.root / name
            rows = pq.read_table(path).to_pylist() if path.exists() else []
            self._tables[name] = [{k: v for k, v in row.items() if v is not None} for row in rows]
        return self._tables[name]

    def cell(self, table: str, keys: Json, column: str, block: int | None = None, default: Any = None) -> Any:
        """Value of a column in the rows of ``keys``: the block's, else the stage's, else ``default``."""
        found = [
            row
            for row in self.rows(table)
            if column in row and all(row.get(key) == value for key, value in keys.items())
        ]
        for wanted in (block, None):
            for row in found:
                if row.get("block_id") == wanted:
                    return row[column]
        return default

    def hours(self, position: int) -> list[float]:
        """Hours of each block of a stage."""
        return [float(block["hours"]) for block in self.stages[position]["blocks"]]

    def season(self, position: int) -> int | None:
        """Season of a stage: declared, or that of the month it starts in."""
        stage = self.stages[position]
        if stage.get("season_id") is not None:
            return int(stage["season_id"])
        seasons = (self.horizon.get("season_definitions") or {}).get("seasons") or []
        month = date(stage["start_date"]).month
        return next((int(season["id"]) for season in seasons if season["month_start"] == month), None)

    def discount(self, position: int) -> float:
        """Factor on everything after the stage: of the stage, else of its transition, else global."""
        stage, graph = self.stages[position], self.horizon["policy_graph"]
        rates = [stage.get("annual_discount_rate_override")]
        rates += [
            transition.get("annual_discount_rate_override")
            for transition in graph.get("transitions") or []
            if transition["source_id"] == stage["id"] and not graph.get("nodes")
        ]
        rate = first_given([*rates, graph["annual_discount_rate"]])
        days = (date(stage["end_date"]) - date(stage["start_date"])).days
        return float((1.0 + rate) ** (-days / 365.25))


def date(text: str) -> datetime.date:
    """Date of ISO text."""
    return datetime.date.fromisoformat(text)


def first_given(values: Iterable[Any]) -> Any:
    """First value that is not ``None``."""
    return next(value for value in values if value is not None)


def in_service(entity: Json, stage: Json) -> bool:
    """Whether the stage is inside the entity's service window."""
    entry, end = entity.get("entry_stage_id"), entity.get("exit_stage_id")
    return (entry is None or entry <= stage["id"]) and (end is None or stage["id"] < end)
