"""Limits and costs of one entity at one stage and block: block row > stage row > entity > global."""

from __future__ import annotations

from oracle.files import Json, RawFiles, first_given

FLOW_LIMITS = (
    "min_turbined_m3s",
    "max_turbined_m3s",
    "min_generation_mw",
    "max_generation_mw",
)


def hydro_limit(files: RawFiles, plant: Json, stage_id: int, name: str, block: int | None = None) -> float:
    """Limit of a plant as named in ``hydro_bounds.parquet``; unbounded outflow is infinite."""
    keys = {"hydro_id": plant["id"], "stage_id": stage_id}
    return float(files.cell("constraints/hydro_bounds.parquet", keys, name, block, _declared(plant, name)))


def _declared(plant: Json, name: str) -> float:
    if name.endswith("_storage_hm3"):
        return float(plant["reservoir"][name])
    if name == "min_outflow_m3s":
        return float(plant["outflow"][name])
    if name == "max_outflow_m3s":
        most = plant["outflow"].get(name)
        return float("inf") if most is None else float(most)
    if name == "max_diversion_m3s":
        return float((plant.get("diversion") or {"max_flow_m3s": 0.0})["max_flow_m3s"])
    if name == "filling_min_rate_m3s":
        return float((plant.get("filling") or {}).get("filling_min_rate_m3s") or 0.0)
    if name in ("min_diversion_m3s", "water_withdrawal_m3s"):
        return 0.0
    return float(plant["generation"][name])


def group_limit(files: RawFiles, plant: Json, group: Json, stage_id: int, name: str, block: int) -> float:
    """Limit of a unit group."""
    keys = {"hydro_id": plant["id"], "hydro_unit_group_id": group["id"], "stage_id": stage_id}
    table = "constraints/hydro_unit_group_bounds.parquet"
    return float(files.cell(table, keys, name, block, group[name]))


def hydro_cost(files: RawFiles, plant: Json, stage_id: int, name: str) -> float:
    """Cost ``<name>_cost`` of a plant.

    Of the two sides of evaporation and withdrawal: stage row of the side, of both, the plant's for both, the
    global one of the side, the global one of both.
    """
    keys = {"hydro_id": plant["id"], "stage_id": stage_id}
    table = "constraints/penalty_overrides_hydro.parquet"
    both = name.removesuffix("_pos").removesuffix("_neg")
    own, everywhere = plant.get("penalties") or {}, files.penalties["hydro"]
    values = [
        files.cell(table, keys, f"{name}_cost"),
        files.cell(table, keys, f"{both}_cost"),
        own.get(f"{both}_cost"),
        everywhere.get(f"{name}_cost"),
        everywhere.get(f"{both}_cost"),
        1000.0 if name == "inflow_nonnegativity" else None,
    ]
    return float(first_given(values))
