"""Limits of every entity at every stage and block: declared values, then bounds, then service windows.

Grids are arrays by (stage, entity, block) or (stage, entity), named like the fields of
:class:`~cobre.case.model.StageData`. Stages with fewer blocks than others leave the last blocks unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.bounds.axes import StageAxis
from cobre.case.bounds.rows import ALL_BLOCKS, BoundRows
from cobre.case.bounds.tables import BoundTables
from cobre.case.catalogue import EXTENSIONS, by_id
from cobre.case.format.sources import Sources
from cobre.case.service import in_service

FloatArray = NDArray[np.float64]
Grids = dict[str, FloatArray]


def lay_blocks(
    declared: Sequence[float], rows: BoundRows | None, column: str, stages: StageAxis
) -> FloatArray:
    """Return a grid by (stage, entity, block): row of the block > row of the stage > declared value."""
    grid: FloatArray = np.broadcast_to(
        np.array(declared, np.float64)[:, None], (stages.blocks.size, len(declared), stages.width)
    ).copy()
    if rows is None:
        return grid
    values = rows.values[column]
    given = ~np.isnan(values)
    wide = given & (rows.block == ALL_BLOCKS)
    grid[rows.stage[wide], rows.entity[wide]] = values[wide, None]
    own = given & (rows.block != ALL_BLOCKS)
    grid[rows.stage[own], rows.entity[own], rows.block[own]] = values[own]
    return grid


def lay_stages(declared: Sequence[float], rows: BoundRows, column: str, stages: StageAxis) -> FloatArray:
    """Return a grid by (stage, entity): row of the stage > declared value."""
    shape = (stages.blocks.size, len(declared))
    grid: FloatArray = np.broadcast_to(np.array(declared, np.float64), shape).copy()
    values = rows.values[column]
    given = ~np.isnan(values)
    grid[rows.stage[given], rows.entity[given]] = values[given]
    return grid


def resolve_limits(sources: Sources, tables: BoundTables, stages: StageAxis) -> Grids:
    """Return the grids of all limits. Only for registries and stages that are complete."""
    return {
        **_thermals(sources, tables.thermal, stages),
        **_hydros(sources, tables.hydro, stages),
        **_groups(sources, tables.unit_group, stages),
        **_lines(sources, tables.line, stages),
        **_pumping(sources, tables.pumping, stages),
        **_contracts(sources, tables.contract, stages),
        **_non_controllables(sources, tables.ncs, stages),
    }


def resolve_extension_limits(sources: Sources, tables: BoundTables, stages: StageAxis) -> Grids:
    """Return the grids of the limits of extensions that the study has."""
    grids: Grids = {}
    for kind in EXTENSIONS:
        items = by_id(sources.registry(kind).items)
        if items and kind.limits:
            rows = tables.extensions.get(kind.attribute)
            laid = {
                limit.field: lay_blocks([getattr(item, limit.key) for item in items], rows, limit.key, stages)
                for limit in kind.limits
            }
            grids |= _clear(laid, items, stages)
    return grids


def _clear(grids: Grids, entities: Sequence[Any], stages: StageAxis) -> Grids:
    """Set the limits of entities that are out of service to 0."""
    if stages.ids is None:
        raise ValueError("the ids of the stages are not known")
    out = ~in_service(entities, stages.ids)
    for grid in grids.values():
        grid[out] = 0.0
    return grids


def _thermals(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    plants = by_id(sources.thermals.items)
    low, high = [p.generation.min_mw for p in plants], [p.generation.max_mw for p in plants]
    limits = {
        "thermal_min_mw": lay_blocks(low, rows, "min_generation_mw", stages),
        "thermal_max_mw": lay_blocks(high, rows, "max_generation_mw", stages),
    }
    cost = lay_stages([p.cost_per_mwh for p in plants], rows, "cost_per_mwh", stages)
    return {**_clear(limits, plants, stages), "thermal_cost": cost}


def _hydros(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    """Return the limits of hydro plants, whatever their status."""
    plants = by_id(sources.hydros.items)
    unbounded = [np.inf if p.outflow.max_outflow_m3s is None else p.outflow.max_outflow_m3s for p in plants]
    channel = [0.0 if p.diversion is None else p.diversion.max_flow_m3s for p in plants]
    rate = [0.0 if p.filling is None else p.filling.filling_min_rate_m3s for p in plants]
    zero = [0.0] * len(plants)
    by_block = {
        "turbined_min_m3s": ([p.generation.min_turbined_m3s for p in plants], "min_turbined_m3s"),
        "turbined_max_m3s": ([p.generation.max_turbined_m3s for p in plants], "max_turbined_m3s"),
        "generation_min_mw": ([p.generation.min_generation_mw for p in plants], "min_generation_mw"),
        "generation_max_mw": ([p.generation.max_generation_mw for p in plants], "max_generation_mw"),
        "outflow_min_m3s": ([p.outflow.min_outflow_m3s for p in plants], "min_outflow_m3s"),
        "outflow_max_m3s": (unbounded, "max_outflow_m3s"),
        "diversion_min_m3s": (zero, "min_diversion_m3s"),
        "diversion_max_m3s": (channel, "max_diversion_m3s"),
    }
    by_stage = {
        "storage_min_hm3": ([p.reservoir.min_storage_hm3 for p in plants], "min_storage_hm3"),
        "storage_max_hm3": ([p.reservoir.max_storage_hm3 for p in plants], "max_storage_hm3"),
        "withdrawal_m3s": (zero, "water_withdrawal_m3s"),
        "filling_min_rate_m3s": (rate, "filling_min_rate_m3s"),
    }
    return {
        **{name: lay_blocks(values, rows, key, stages) for name, (values, key) in by_block.items()},
        **{name: lay_stages(values, rows, key, stages) for name, (values, key) in by_stage.items()},
    }


def _groups(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    groups = [group for plant in by_id(sources.hydros.items) for group in by_id(plant.unit_groups)]
    return {
        f"group_{quantity}_{side}_{unit}": lay_blocks(
            [getattr(group, f"{side}_{quantity}_{unit}") for group in groups],
            rows,
            f"{side}_{quantity}_{unit}",
            stages,
        )
        for quantity, unit in (("turbined", "m3s"), ("generation", "mw"))
        for side in ("min", "max")
    }


def _lines(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    lines = by_id(sources.lines.items)
    limits = {
        "line_direct_mw": lay_blocks([x.capacity.direct_mw for x in lines], rows, "direct_mw", stages),
        "line_reverse_mw": lay_blocks([x.capacity.reverse_mw for x in lines], rows, "reverse_mw", stages),
    }
    return _clear(limits, lines, stages)


def _pumping(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    stations = by_id(sources.pumping_stations.items)
    limits = {
        "pumping_min_m3s": lay_blocks([x.flow.min_m3s for x in stations], rows, "min_m3s", stages),
        "pumping_max_m3s": lay_blocks([x.flow.max_m3s for x in stations], rows, "max_m3s", stages),
    }
    return _clear(limits, stations, stages)


def _contracts(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    contracts = by_id(sources.contracts.items)
    limits = {
        "contract_min_mw": lay_blocks([x.limits.min_mw for x in contracts], rows, "min_mw", stages),
        "contract_max_mw": lay_blocks([x.limits.max_mw for x in contracts], rows, "max_mw", stages),
    }
    price = lay_blocks([x.price_per_mwh for x in contracts], rows, "price_per_mwh", stages)
    return {**_clear(limits, contracts, stages), "contract_price": price}


def _non_controllables(sources: Sources, rows: BoundRows, stages: StageAxis) -> Grids:
    plants = by_id(sources.non_controllables.items)
    available = [x.max_generation_mw for x in plants]
    limits = {"ncs_available_mw": lay_stages(available, rows, "available_generation_mw", stages)}
    return _clear(limits, plants, stages)
