"""Optional files that go with the base case of :mod:`builders.base_case`: one of each registry and bound."""

from __future__ import annotations

from typing import Any

from builders.base_case import SINCE

NCS = "system/non_controllable_sources.json"
PUMPING = "system/pumping_stations.json"
CONTRACTS = "system/energy_contracts.json"
NCS_FACTORS = "scenarios/non_controllable_factors.json"


def bounds(name: str) -> str:
    """Return the path of a file of bounds."""
    return f"constraints/{name}_bounds.parquet"


def overrides(name: str) -> str:
    """Return the path of a file of cost overrides."""
    return f"constraints/penalty_overrides_{name}.parquet"


def registries() -> dict[str, Any]:
    """Return the optional registries of ``system/`` and the factors of sources."""
    return {
        NCS: {
            "non_controllable_sources": [
                {
                    "id": 7,
                    "name": "WIND",
                    "operational_start_date": SINCE,
                    "bus_id": 3,
                    "max_generation_mw": 20.0,
                    "curtailment_cost": 0.25,
                },
                {
                    "id": 2,
                    "name": "SUN",
                    "operational_start_date": SINCE,
                    "bus_id": 0,
                    "max_generation_mw": 10,
                    "allow_curtailment": False,
                    "entry_stage_id": 1,
                },
            ]
        },
        PUMPING: {
            "pumping_stations": [
                {
                    "id": 1,
                    "name": "LIFT",
                    "operational_start_date": SINCE,
                    "bus_id": 0,
                    "source_hydro_id": 4,
                    "destination_hydro_id": 1,
                    "consumption_mw_per_m3s": 0.5,
                    "flow": {"min_m3s": 0.0, "max_m3s": 8.0},
                    "exit_stage_id": 2,
                }
            ]
        },
        CONTRACTS: {
            "contracts": [
                {
                    "id": number,
                    "name": kind.upper(),
                    "operational_start_date": SINCE,
                    "bus_id": 3,
                    "type": kind,
                    "price_per_mwh": price,
                    "limits": {"min_mw": 0.0, "max_mw": 5.0},
                }
                for number, kind, price in ((0, "import", 90.0), (1, "export", -30.0))
            ]
        },
        NCS_FACTORS: {
            "non_controllable_factors": [
                {"ncs_id": 7, "stage_id": 2, "block_factors": [{"block_id": 0, "factor": 0.5}]}
            ]
        },
    }


def tables() -> dict[str, Any]:
    """Return one small file of each kind of bounds and overrides; the rows fit the registries."""
    return {
        bounds("thermal"): {
            "thermal_id": [0, 0, 2],
            "stage_id": [1, 1, 2],
            "block_id": [None, 1, None],
            "min_generation_mw": [2.0, None, None],
            "max_generation_mw": [30.0, 25.0, None],
            "cost_per_mwh": [60.0, None, 61.0],
        },
        bounds("hydro"): {
            "hydro_id": [1, 1, 4, 4],
            "stage_id": [0, 2, 1, 1],
            "block_id": [None, 0, None, None],
            "min_turbined_m3s": [1.0, 2.0, None, None],
            "max_turbined_m3s": [90.0, 80.0, None, None],
            "min_outflow_m3s": [3.0, 4.0, None, None],
            "max_outflow_m3s": [None, 300.0, None, 400.0],
            "min_generation_mw": [5.0, None, None, None],
            "max_generation_mw": [95.0, None, None, None],
            "min_storage_hm3": [None, None, 20.0, None],
            "max_storage_hm3": [None, None, 180.0, None],
            "water_withdrawal_m3s": [2.5, None, -1.5, None],
        },
        bounds("hydro_unit_group"): {
            "hydro_id": [4, 4],
            "hydro_unit_group_id": [1, 1],
            "stage_id": [0, 0],
            "block_id": [None, 1],
            "min_generation_mw": [3.0, None],
            "max_generation_mw": [35.0, 30.0],
            "min_turbined_m3s": [None, 1.0],
            "max_turbined_m3s": [None, 38.0],
        },
        bounds("line"): {
            "line_id": [0, 0],
            "stage_id": [1, 1],
            "block_id": [0, None],
            "direct_mw": [5.0, 15.0],
            "reverse_mw": [None, 0.0],
        },
        bounds("pumping"): {
            "pumping_station_id": [1],
            "stage_id": [1],
            "block_id": [1],
            "min_m3s": [1.0],
            "max_m3s": [4.0],
        },
        bounds("contract"): {
            "contract_id": [1, 1],
            "stage_id": [0, 2],
            "block_id": [None, 1],
            "min_mw": [1.0, None],
            "max_mw": [9.0, None],
            "price_per_mwh": [None, -45.0],
        },
        bounds("ncs"): {"ncs_id": [7, 2], "stage_id": [1, 0], "available_generation_mw": [12.0, 9.0]},
        overrides("bus"): {"bus_id": [3], "stage_id": [1], "excess_cost": [0.75]},
        overrides("line"): {"line_id": [0], "stage_id": [2], "exchange_cost": [0.125]},
        overrides("ncs"): {"ncs_id": [2], "stage_id": [2], "curtailment_cost": [0.0625]},
        overrides("hydro"): {
            "hydro_id": [1, 4],
            "stage_id": [1, 1],
            "spillage_cost": [0.5, None],
            "turbined_cost": [0.25, None],
            "evaporation_violation_cost": [800.0, None],
            "evaporation_violation_neg_cost": [850.0, None],
            "water_withdrawal_violation_pos_cost": [None, 860.0],
        },
    }


def rich_files() -> dict[str, Any]:
    """Return all of them, as ``extra`` of :func:`builders.base_case.write_case`."""
    return {**registries(), **tables()}
