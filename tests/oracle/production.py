"""How plants turn water into power, and how reservoirs evaporate."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Mapping, Sequence

from oracle.files import Json, RawFiles, date

Plane = tuple[float, float, float, float]
"""``G <= p0 + pv v + pq q + ps s``, v the mean storage of the period."""
Planes = Mapping[tuple[int, int], Sequence[Plane]]
"""By (hydro id, stage id), for models that are fitted to geometry."""


def production_part(files: RawFiles, plant: Json, position: int) -> Json:
    """Entry of ``hydro_production_models.json`` that holds for a plant at a stage; empty where none does."""
    stage_id = files.stages[position]["id"]
    for entry in files.json("system/hydro_production_models.json", {"production_models": []})[
        "production_models"
    ]:
        if entry["hydro_id"] != plant["id"]:
            continue
        if entry["selection_mode"] == "stage_ranges":
            for part in entry["stage_ranges"]:
                end = part.get("end_stage_id")
                if part["start_stage_id"] <= stage_id and (end is None or stage_id <= end):
                    return dict(part)
            return {}
        for part in entry["seasons"]:
            if part["season_id"] == files.season(position):
                return dict(part)
        return {"model": entry["default_model"]}
    return {}


def productivity(files: RawFiles, plant: Json, position: int) -> float:
    """MW per m3/s of a plant at a stage."""
    value = production_part(files, plant, position).get("productivity_mw_per_m3s")
    if value is None:
        keys = {"hydro_id": plant["id"], "stage_id": files.stages[position]["id"]}
        column = "equivalent_productivity_mw_per_m3s"
        value = files.cell("system/hydro_energy_productivity.parquet", keys, column, default=0.0)
    return float(value)


def planes_of(files: RawFiles, plant: Json, position: int, fitted: Planes) -> list[Plane]:
    """Planes that bound the generation of a plant; none for constant productivity."""
    if plant["generation"]["model"] == "constant_productivity":
        return []
    stage_id = files.stages[position]["id"]
    if (plant["id"], stage_id) in fitted:
        return list(fitted[plant["id"], stage_id])
    rows = [row for row in files.rows("system/fpha_hyperplanes.parquet") if row["hydro_id"] == plant["id"]]
    own = [row for row in rows if row.get("stage_id") == stage_id]
    return [
        (row.get("kappa", 1.0) * row["gamma_0"], row["gamma_v"], row["gamma_q"], row["gamma_s"])
        for row in own or [row for row in rows if row.get("stage_id") is None]
    ]


def evaporation(files: RawFiles, plant: Json, position: int) -> tuple[float, float] | None:
    """Intercept (m3/s) and slope (m3/s per hm3); days of the stage weigh its months."""
    given = plant.get("evaporation")
    if not given:
        return None
    stage = files.stages[position]
    start, end = date(stage["start_date"]), date(stage["end_date"])
    intercept = slope = 0.0
    days = (end - start).days
    for number in range(days):
        day = start + datetime.timedelta(days=number)
        hours = 24.0 * calendar.monthrange(day.year, day.month)[1]
        height = given["coefficients_mm"][day.month - 1]
        references = given.get("reference_volumes_hm3")
        if references:
            reference = references[day.month - 1]
        else:
            reference = 0.5 * sum(plant["reservoir"][f"{end}_storage_hm3"] for end in ("min", "max"))
        area, per_hm3 = _area(files, plant, reference)
        kv = height * per_hm3 / (3.6 * hours)
        slope += kv / days
        intercept += (height * area / (3.6 * hours) - kv * reference) / days
    return intercept, slope


def _area(files: RawFiles, plant: Json, volume: float) -> tuple[float, float]:
    """Surface (km2) and its slope (km2 per hm3) at a volume."""
    rows = [row for row in files.rows("system/hydro_geometry.parquet") if row["hydro_id"] == plant["id"]]
    points = sorted((row["volume_hm3"], row["area_km2"]) for row in rows)
    if len(points) == 1:
        return points[0][1], 0.0
    segment = 0
    while segment + 2 < len(points) and points[segment + 1][0] <= volume:
        segment += 1
    (v0, a0), (v1, a1) = points[segment], points[segment + 1]
    slope = (a1 - a0) / (v1 - v0)
    inside = min(max(volume, v0), v1)
    return a0 + slope * (inside - v0), slope
