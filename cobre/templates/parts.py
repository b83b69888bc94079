"""Entries and files of a case as plain data, with the defaults that most small cases share."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

Json = dict[str, Any]
Files = dict[str, Any]
"""By path in the case directory: a JSON object, or an Arrow table for a Parquet file."""

SINCE = "2000-01-01"
"""``operational_start_date`` of every entity; it has no effect on dispatch."""


_SCENARIOS = 500


def config(forward_passes: int, iterations: int, inflow_method: str = "none") -> Json:
    """``config.json``: how many forward passes and iterations, and what ``cobre run`` simulates then."""
    return {
        "training": {
            "tree_seed": 42,
            "selection": {"method": "sampled", "forward_passes": forward_passes},
            "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
        },
        "modeling": {"inflow_non_negativity": {"method": inflow_method}},
        "simulation": {"enabled": True, "selection": {"method": "sampled", "num_scenarios": _SCENARIOS}},
    }


def penalties(deficit_segments: list[Json], exchange_cost: float = 1.0, outflow_below: float = 500.0) -> Json:
    """``penalties.json``: what unserved load and broken operating rules cost."""
    return {
        "bus": {"deficit_segments": deficit_segments, "excess_cost": 0.1},
        "line": {"exchange_cost": exchange_cost},
        "non_controllable_source": {"curtailment_cost": 0.01},
        "hydro": {
            "spillage_cost": 0.01,
            "diversion_cost": 0.01,
            "turbined_cost": 0.0,
            "storage_violation_below_cost": 10000.0,
            "filling_target_violation_cost": 10000.0,
            "turbined_violation_below_cost": 500.0,
            "outflow_violation_below_cost": outflow_below,
            "outflow_violation_above_cost": 500.0,
            "generation_violation_below_cost": 500.0,
            "evaporation_violation_cost": 5000.0,
            "water_withdrawal_violation_cost": 5000.0,
            "inflow_nonnegativity_cost": 5000.0,
        },
    }


def stages(
    dates: Sequence[str],
    hours: Mapping[str, float] | Sequence[Mapping[str, float]],
    annual_discount_rate: float = 0.0,
    num_openings: int | Sequence[int] = 1,
    **fields: Any,
) -> Json:
    """``stages.json``: consecutive stages between ``dates``.

    Parameters
    ----------
    hours
        Hours of each block by its name, for all stages or for each.
    num_openings
        For all stages or for each.
    fields
        Further keys of every stage.
    """
    n_stages = len(dates) - 1
    by_stage = [hours] * n_stages if isinstance(hours, Mapping) else hours
    openings = [num_openings] * n_stages if isinstance(num_openings, int) else num_openings
    return {
        "policy_graph": {"type": "finite_horizon", "annual_discount_rate": annual_discount_rate},
        "stages": [
            {
                "id": t,
                "start_date": start,
                "end_date": end,
                "blocks": [
                    {"id": k, "name": name, "hours": value}
                    for k, (name, value) in enumerate(by_stage[t].items())
                ],
                "num_openings": openings[t],
                **fields,
            }
            for t, (start, end) in enumerate(itertools.pairwise(dates))
        ],
    }


def month_starts(first: str, n_months: int) -> list[str]:
    """Return the first days of ``n_months`` months from ``first`` on, and the day after the last."""
    start = datetime.date.fromisoformat(first)
    months = [start.year * 12 + start.month - 1 + number for number in range(n_months + 1)]
    return [datetime.date(month // 12, month % 12 + 1, 1).isoformat() for month in months]


def month_hours(dates: Sequence[str], shares: Mapping[str, float]) -> list[dict[str, float]]:
    """Return the hours of each block in the stages between ``dates``, by the block's share of the time."""
    lengths = [
        24.0 * (datetime.date.fromisoformat(end) - datetime.date.fromisoformat(start)).days
        for start, end in itertools.pairwise(dates)
    ]
    return [{name: length * share for name, share in shares.items()} for length in lengths]


def entity(number: int, name: str, **fields: Any) -> Json:
    """Return what every entity has, and ``fields``."""
    return {"id": number, "name": name, "operational_start_date": SINCE, **fields}


def bus(bus_id: int, name: str) -> Json:
    """Return an entry of ``buses.json`` with the global deficit segments."""
    return entity(bus_id, name)


def line(
    line_id: int, name: str, buses: tuple[int, int], capacity_mw: tuple[float, float], **fields: Any
) -> Json:
    """Return an entry of ``lines.json``; buses and capacities as (source, target) and (direct, reverse)."""
    return entity(
        line_id,
        name,
        source_bus_id=buses[0],
        target_bus_id=buses[1],
        capacity={"direct_mw": capacity_mw[0], "reverse_mw": capacity_mw[1]},
        **fields,
    )


def thermal(
    plant_id: int,
    name: str,
    cost: float,
    max_mw: float,
    bus_id: int = 0,
    min_mw: float = 0.0,
    **fields: Any,
) -> Json:
    """Return an entry of ``thermals.json``; cost in $/MWh."""
    return entity(
        plant_id,
        name,
        bus_id=bus_id,
        cost_per_mwh=cost,
        generation={"min_mw": min_mw, "max_mw": max_mw},
        **fields,
    )


def hydro(
    hydro_id: int,
    name: str,
    storage_hm3: tuple[float, float],
    groups: list[tuple[str, int, float, float]],
    downstream_id: int | None = None,
    min_outflow_m3s: float = 0.0,
    model: str = "constant_productivity",
    **fields: Any,
) -> Json:
    """Return an entry of ``hydros.json``; a group is (name, bus, max MW, max m3/s)."""
    return entity(
        hydro_id,
        name,
        downstream_id=downstream_id,
        reservoir={"min_storage_hm3": storage_hm3[0], "max_storage_hm3": storage_hm3[1]},
        outflow={"min_outflow_m3s": min_outflow_m3s, "max_outflow_m3s": None},
        generation={
            "model": model,
            "min_turbined_m3s": 0.0,
            "max_turbined_m3s": sum(group[3] for group in groups),
            "min_generation_mw": 0.0,
            "max_generation_mw": sum(group[2] for group in groups),
        },
        unit_groups=[
            {
                "id": g,
                "name": group_name,
                "bus_id": bus_id,
                "min_generation_mw": 0.0,
                "max_generation_mw": max_mw,
                "min_turbined_m3s": 0.0,
                "max_turbined_m3s": max_m3s,
            }
            for g, (group_name, bus_id, max_mw, max_m3s) in enumerate(groups)
        ],
        **fields,
    )


def production(models: Sequence[float | Json]) -> Json:
    """``hydro_production_models.json``: for each plant a constant productivity (MW/(m3/s)) or model keys."""
    return {
        "production_models": [
            {
                "hydro_id": h,
                "selection_mode": "stage_ranges",
                "stage_ranges": [
                    {
                        "start_stage_id": 0,
                        "end_stage_id": None,
                        **(
                            model
                            if isinstance(model, dict)
                            else {"model": "constant_productivity", "productivity_mw_per_m3s": model}
                        ),
                    }
                ],
            }
            for h, model in enumerate(models)
        ]
    }


def initial_storage(values_hm3: Sequence[float], **fields: Any) -> Json:
    """``initial_conditions.json``."""
    storage = [{"hydro_id": h, "value_hm3": value} for h, value in enumerate(values_hm3)]
    return {"storage": storage, "filling_storage": [], **fields}


def load_factors(factors: Sequence[Sequence[float]], n_stages: int) -> Json:
    """``load_factors.json``: for each bus one factor a block, the same in every stage."""
    return {
        "load_factors": [
            {
                "bus_id": b,
                "stage_id": t,
                "block_factors": [{"block_id": k, "factor": factor} for k, factor in enumerate(row)],
            }
            for b, row in enumerate(factors)
            for t in range(n_stages)
        ]
    }


def seasonal_stats(
    entity_word: str,
    unit: str,
    mean: Sequence[Sequence[float]],
    std: Sequence[Sequence[float]] | None = None,
) -> pa.Table:
    """Return a table of means and standard deviations, given as one list of stages for each entity.

    Parameters
    ----------
    unit
        Ending of the value columns, such as ``mw``; none where empty.
    """
    std = std or [[0.0] * len(row) for row in mean]
    rows = [(e, t, mean[e][t], std[e][t]) for e in range(len(mean)) for t in range(len(mean[e]))]
    ids, stage_ids, means, stds = zip(*rows, strict=True)
    ending = f"_{unit}" if unit else ""
    return table(
        **{
            f"{entity_word}_id": ids,
            "stage_id": stage_ids,
            f"mean{ending}": means,
            f"std{ending}": stds,
        }
    )


def table(**columns: Sequence[Any]) -> pa.Table:
    """Return a table with int32 ids (columns that end in ``_id``) and float64 values; ``None`` is null."""
    return pa.table(
        {
            name: pa.array(values, pa.int32() if name.endswith("_id") else pa.float64())
            for name, values in columns.items()
        }
    )
