"""Realisations of uncertainty in the nodes of the tree."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.files import RawFiles


@dataclass(frozen=True)
class Opening:
    """One realisation of a stage, by entity id; what is not given is at its mean.

    Attributes
    ----------
    inflow_m3s, load_mw
        Incremental inflow of hydro plants, load of buses.
    ncs_share
        Availability of non-controllable sources as a share of their maximum.
    """

    inflow_m3s: dict[int, float] = field(default_factory=dict)
    load_mw: dict[int, float] = field(default_factory=dict)
    ncs_share: dict[int, float] = field(default_factory=dict)


def inflow(files: RawFiles, hydro_id: int, stage_id: int, opening: Opening) -> float:
    """Natural inflow (m3/s)."""
    if hydro_id in opening.inflow_m3s:
        return opening.inflow_m3s[hydro_id]
    keys = {"hydro_id": hydro_id, "stage_id": stage_id}
    return float(files.cell("scenarios/inflow_seasonal_stats.parquet", keys, "mean_m3s", default=0.0))


def load(files: RawFiles, bus_id: int, stage_id: int, block: int, opening: Opening) -> float:
    """Load (MW) of a bus in a block."""
    value = opening.load_mw.get(bus_id)
    if value is None:
        keys = {"bus_id": bus_id, "stage_id": stage_id}
        value = float(files.cell("scenarios/load_seasonal_stats.parquet", keys, "mean_mw", default=0.0))
    return value * _factor(files, "load_factors", "bus_id", bus_id, stage_id, block)


def available(
    files: RawFiles, ncs_id: int, most_mw: float, stage_id: int, block: int, opening: Opening
) -> float:
    """Power (MW) that nature offers a source in a block."""
    table = "scenarios/non_controllable_stats.parquet"
    keys = {"ncs_id": ncs_id, "stage_id": stage_id}
    if ncs_id in opening.ncs_share:
        power = most_mw * min(max(opening.ncs_share[ncs_id], 0.0), 1.0)
    elif any(row["ncs_id"] == ncs_id for row in files.rows(table)):
        power = most_mw * float(files.cell(table, keys, "mean", default=0.0))
    else:
        power = float(
            files.cell("constraints/ncs_bounds.parquet", keys, "available_generation_mw", default=most_mw)
        )
    return power * _factor(files, "non_controllable_factors", "ncs_id", ncs_id, stage_id, block)


def _factor(files: RawFiles, name: str, id_key: str, entity_id: int, stage_id: int, block: int) -> float:
    for entry in files.json(f"scenarios/{name}.json", {name: []})[name]:
        if entry[id_key] == entity_id and entry["stage_id"] == stage_id:
            for item in entry["block_factors"]:
                if item["block_id"] == block:
                    return float(item["factor"])
    return 1.0
