"""Parts of a study put together from a few values, for studies made without files."""

from __future__ import annotations

from typing import Any

import numpy as np

from cobre.case.model.production import ProductionModel
from cobre.case.model.scenarios import Scenarios
from cobre.case.model.stage_data import HYDRO_PENALTIES, HydroStatus, StageData


def stage_data(
    blocks: int,
    *,
    hydros: int = 0,
    groups: int | None = None,
    thermals: int = 0,
    lines: int = 0,
    buses: int = 1,
    ncs: int = 0,
    pumps: int = 0,
    contracts: int = 0,
    **values: Any,
) -> StageData:
    """Return stage data with nothing in it but ``values``, which are spread over entities and blocks.

    Unless given: no limits at all on outflow, zero for everything else, block factors of 1.
    """
    count = {"h": hydros, "u": hydros if groups is None else groups, "i": thermals, "l": lines, "b": buses}
    count |= {"r": ncs, "p": pumps, "c": contracts}
    blocked = {
        "i": ("thermal_min_mw", "thermal_max_mw"),
        "h": (
            *("turbined_min_m3s", "turbined_max_m3s", "generation_min_mw", "generation_max_mw"),
            *("outflow_min_m3s", "outflow_max_m3s", "diversion_min_m3s", "diversion_max_m3s"),
        ),
        "u": (
            *("group_turbined_min_m3s", "group_turbined_max_m3s"),
            *("group_generation_min_mw", "group_generation_max_mw"),
        ),
        "l": ("line_direct_mw", "line_reverse_mw"),
        "b": ("load_factor",),
        "p": ("pumping_min_m3s", "pumping_max_m3s"),
        "c": ("contract_min_mw", "contract_max_mw", "contract_price"),
        "r": ("ncs_factor",),
    }
    staged = {
        "i": ("thermal_cost",),
        "h": ("storage_min_hm3", "storage_max_hm3", "withdrawal_m3s", "filling_min_rate_m3s"),
        "l": ("exchange_cost",),
        "b": ("excess_cost",),
        "r": ("ncs_available_mw", "curtailment_cost"),
    }
    default = {"outflow_max_m3s": np.inf, "load_factor": 1.0, "ncs_factor": 1.0}
    fields: dict[str, Any] = {
        "hydro_status": np.full(hydros, HydroStatus.OPERATING, np.int8),
        "ncs_in_service": np.ones(ncs, np.bool_),
        "hydro_penalty": np.zeros((hydros, len(HYDRO_PENALTIES))),
    }
    for axis, names in blocked.items():
        for name in names:
            value = np.asarray(values.pop(name, default.get(name, 0.0)), np.float64)
            if value.ndim == 1:
                value = value[:, None]
            fields[name] = np.array(np.broadcast_to(value, (count[axis], blocks)))
    for axis, names in staged.items():
        for name in names:
            fields[name] = np.array(np.broadcast_to(np.float64(values.pop(name, 0.0)), (count[axis],)))
    for name, value in values.pop("penalties", {}).items():
        fields["hydro_penalty"][:, HYDRO_PENALTIES.index(name)] = value
    fields |= values
    return StageData(**fields)


def constant_production(stages: int, productivity: list[float]) -> tuple[tuple[ProductionModel, ...], ...]:
    """Return models of constant productivity, the same at every stage."""
    models = tuple(
        ProductionModel("constant_productivity", value, np.zeros((0, 4))) for value in productivity
    )
    return (models,) * stages


def scenarios(**values: Any) -> Scenarios:
    """Return scenarios without non-controllable sources unless they are given."""
    stages = len(values["load_mean_mw"])
    values.setdefault("ncs_mean", np.zeros((stages, 0)))
    values.setdefault("ncs_std", np.zeros((stages, 0)))
    values.setdefault("ncs_has_stats", np.zeros(values["ncs_mean"].shape[1], np.bool_))
    return Scenarios(**values)
