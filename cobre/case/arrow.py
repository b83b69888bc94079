"""A case as Arrow tables: its entities, and the value of every limit, cost and model at each stage.

Ids are those of the case; ``block_id`` is the block's id inside its stage. Units are in the names of columns;
costs are in $/MWh unless the name states another unit, those of hydro plants as in
:data:`cobre.case.model.HYDRO_PENALTIES`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.case.catalogue import EXTENSIONS
from cobre.case.format.schema.system import Entity
from cobre.case.model import (
    HYDRO_PENALTIES,
    AnticipatedDelivery,
    Block,
    Bus,
    Case,
    Contract,
    DeficitSegment,
    Hydro,
    HydroStatus,
    Line,
    NonControllable,
    PumpingStation,
    Stage,
    StageData,
    Thermal,
    UnitGroup,
)
from cobre.case.model.generic import GenericRow, GenericTerm

_TYPES: dict[str, Any] = {
    "int": pa.int32(),
    "float": pa.float64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "datetime.date": pa.date32(),
}


def case_tables(case: Case) -> dict[str, pa.Table]:
    """Return the tables of a case by name.

    Entities
        ``buses``, ``deficit_segments``, ``lines``, ``thermals``, ``anticipated_deliveries``, ``hydros``,
        ``unit_groups``, ``non_controllables``, ``pumping_stations``, ``contracts``.
    Time
        ``stages``, ``blocks``, ``nodes``, ``transitions``.
    Resolved values by stage (and block)
        ``thermal_limits``, ``hydro_limits``, ``hydro_stages`` (status, storage, costs),
        ``unit_group_limits``, ``line_limits``, ``bus_values``, ``pumping_limits``, ``contract_limits``,
        ``non_controllable_values``.
    Models and uncertainty
        ``production``, ``planes``, ``evaporation``, ``generic_rows``, ``generic_terms``, ``inflows``,
        ``loads``, ``availability``.
    """
    return {**_entities(case), **_time(case), **_values(case), **_models(case), **_uncertainty(case)}


# -- entities and time ---------------------------------------------------------------------------------


def _entities(case: Case) -> dict[str, pa.Table]:
    segments = [(bus.id, n, part) for bus in case.buses for n, part in enumerate(bus.deficit_segments)]
    deliveries = [(thermal.id, part) for thermal in case.thermals for part in thermal.anticipated]
    groups = [(hydro.id, group) for hydro in case.hydros for group in hydro.unit_groups]
    hydros = _records(Hydro, case.hydros)
    diversions = [None if hydro.diversion is None else hydro.diversion.downstream_id for hydro in case.hydros]
    filling = [
        None if hydro.filling is None else case.stages[hydro.filling.start].id for hydro in case.hydros
    ]
    hydros = hydros.append_column("diversion_downstream_id", pa.array(diversions, pa.int32()))
    return {
        "buses": _records(Bus, case.buses),
        "deficit_segments": _records(
            DeficitSegment,
            [part for _, _, part in segments],
            bus_id=[bus for bus, _, _ in segments],
            segment=[place for _, place, _ in segments],
        ),
        "lines": _records(Line, case.lines),
        "thermals": _records(Thermal, case.thermals),
        "anticipated_deliveries": _records(
            AnticipatedDelivery,
            [part for _, part in deliveries],
            thermal_id=[plant for plant, _ in deliveries],
        ),
        "hydros": hydros.append_column("filling_start_stage_id", pa.array(filling, pa.int32())),
        "unit_groups": _records(
            UnitGroup, [group for _, group in groups], hydro_id=[hydro for hydro, _ in groups]
        ),
        "non_controllables": _records(NonControllable, case.non_controllables),
        "pumping_stations": _records(PumpingStation, case.pumping_stations),
        "contracts": _records(Contract, case.contracts),
        **{
            kind.attribute: _entries(kind.entry, items)
            for kind in EXTENSIONS
            if (items := case.extensions.get(kind.attribute))
        },
    }


def _time(case: Case) -> dict[str, pa.Table]:
    blocks = [(stage.id, block) for stage in case.stages for block in stage.blocks]
    stages = _records(Stage, case.stages)
    stages = stages.append_column("hours", pa.array([stage.hours for stage in case.stages], pa.float64()))
    stages = stages.append_column("risk_weight", pa.array([s.risk.weight for s in case.stages], pa.float64()))
    stages = stages.append_column("risk_tail", pa.array([s.risk.tail for s in case.stages], pa.float64()))
    stages = stages.append_column("risk_kind", pa.array([s.risk.kind for s in case.stages], pa.string()))
    stages = stages.append_column("risk_gamma", pa.array([s.risk.gamma for s in case.stages], pa.float64()))
    spectra = pa.array([list(s.risk.spectrum) for s in case.stages], pa.list_(pa.float64()))
    stages = stages.append_column("risk_spectrum", spectra)
    nodes, edges = case.graph.nodes, case.graph.transitions
    return {
        "stages": stages,
        "blocks": _records(Block, [block for _, block in blocks], stage_id=[stage for stage, _ in blocks]),
        "nodes": pa.table(
            {
                "id": pa.array([node.id for node in nodes], pa.int32()),
                "stage_id": pa.array([case.stages[node.stage].id for node in nodes], pa.int32()),
                "scenario_id": pa.array([node.scenario_id for node in nodes], pa.int32()),
                "label": pa.array([node.label for node in nodes], pa.string()),
            }
        ),
        "transitions": pa.table(
            {
                "source_id": pa.array([nodes[edge.source].id for edge in edges], pa.int32()),
                "target_id": pa.array([nodes[edge.target].id for edge in edges], pa.int32()),
                "probability": pa.array([edge.probability for edge in edges], pa.float64()),
            }
        ),
    }


def _records(kind: Any, items: Iterable[Any], **first: Sequence[int]) -> pa.Table:
    """Return dataclasses as rows: their fields of plain types, after the id columns in ``first``."""
    items = list(items)
    columns = {name: pa.array(values, pa.int32()) for name, values in first.items()}
    for field in fields(kind):
        parts = str(field.type).replace(" ", "").split("|")
        if parts[0].startswith(("Literal", "BlockMode", "SamplingMethod")):
            parts[0] = "str"
        if parts[0] in _TYPES:
            values = [getattr(item, field.name) for item in items]
            columns[field.name] = pa.array(values, _TYPES[parts[0]])
    return pa.table(columns)


def _entries(model: type[Entity], items: Sequence[Any]) -> pa.Table:
    """Return entities of an extension as rows."""
    columns = {}
    for name, field in model.model_fields.items():
        kinds = [part for part in get_args(field.annotation) or (field.annotation,) if part is not type(None)]
        kind = get_args(kinds[0])[0] if get_args(kinds[0]) else kinds[0]
        of = _TYPES["datetime.date" if kind is datetime.date else kind.__name__]
        columns[name] = pa.array([getattr(item, name) for item in items], of)
    return pa.table(columns)


# -- resolved values -----------------------------------------------------------------------------------

_LIMITS: dict[str, tuple[str, ...]] = {
    "thermal": ("thermal_min_mw", "thermal_max_mw", "thermal_cost"),
    "hydro": (
        *("turbined_min_m3s", "turbined_max_m3s", "generation_min_mw", "generation_max_mw"),
        *("outflow_min_m3s", "outflow_max_m3s", "diversion_min_m3s", "diversion_max_m3s"),
    ),
    "unit_group": (
        *("group_turbined_min_m3s", "group_turbined_max_m3s"),
        *("group_generation_min_mw", "group_generation_max_mw"),
    ),
    "line": ("line_direct_mw", "line_reverse_mw", "exchange_cost"),
    "bus": ("load_factor", "excess_cost"),
    "pumping": ("pumping_min_m3s", "pumping_max_m3s"),
    "contract": ("contract_min_mw", "contract_max_mw", "contract_price"),
    "ncs": ("ncs_available_mw", "ncs_factor", "curtailment_cost", "ncs_in_service"),
}


def _values(case: Case) -> dict[str, pa.Table]:
    groups = [(hydro.id, group.id) for hydro in case.hydros for group in hydro.unit_groups]
    ids: dict[str, dict[str, list[int]]] = {
        "thermal": {"thermal_id": [item.id for item in case.thermals]},
        "hydro": {"hydro_id": [item.id for item in case.hydros]},
        "unit_group": {
            "hydro_id": [hydro for hydro, _ in groups],
            "hydro_unit_group_id": [group for _, group in groups],
        },
        "line": {"line_id": [item.id for item in case.lines]},
        "bus": {"bus_id": [item.id for item in case.buses]},
        "pumping": {"pumping_station_id": [item.id for item in case.pumping_stations]},
        "contract": {"contract_id": [item.id for item in case.contracts]},
        "ncs": {"ncs_id": [item.id for item in case.non_controllables]},
    }
    names = {"bus": "bus_values", "ncs": "non_controllable_values"}
    tables = {
        names.get(kind, f"{kind}_limits"): _by_block(case, ids[kind], columns)
        for kind, columns in _LIMITS.items()
    }
    for kind in EXTENSIONS:
        items = case.extensions.get(kind.attribute)
        if items and kind.limits:
            own = {kind.id_column: [item.id for item in items]}
            tables[f"{kind.name}_limits"] = _by_block(case, own, [limit.field for limit in kind.limits])
    tables["hydro_stages"] = _hydro_stages(case)
    return tables


def _by_block(case: Case, ids: dict[str, list[int]], columns: Sequence[str]) -> pa.Table:
    """Return values by (stage, entity, block); those without blocks are repeated in every block."""
    count = len(next(iter(ids.values())))

    def spread(values: NDArray[Any], stage: Stage) -> NDArray[Any]:
        values = values if values.ndim == 2 else values[:, None]
        return np.broadcast_to(values, (count, len(stage.blocks))).ravel()

    def each(make: Callable[[Stage, StageData], NDArray[Any]]) -> NDArray[Any]:
        parts = [make(stage, data) for stage, data in zip(case.stages, case.stage_data, strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def block_ids(stage: Stage) -> NDArray[np.int32]:
        return np.array([block.id for block in stage.blocks], np.int32)

    table: dict[str, Any] = {
        "stage_id": each(lambda stage, _: np.full(count * len(stage.blocks), stage.id, np.int32)),
        "block_id": each(lambda stage, _: np.tile(block_ids(stage), count)),
    }
    for name, of in ids.items():
        own = np.array(of, np.int32)
        table[name] = each(lambda stage, _, own=own: np.repeat(own, len(stage.blocks)))  # type: ignore[misc]
    for name in columns:
        table[name] = each(lambda stage, data, name=name: spread(_limit(data, name), stage))  # type: ignore[misc]
    return pa.table(table)


def _limit(data: StageData, name: str) -> NDArray[Any]:
    values: NDArray[Any] = data.extensions[name] if name in data.extensions else getattr(data, name)
    return values


def _hydro_stages(case: Case) -> pa.Table:
    table = _stage_axes(case, "hydro_id", [hydro.id for hydro in case.hydros])
    status = _stacked([data.hydro_status for data in case.stage_data], len(case.hydros))
    table["status"] = [HydroStatus(int(value)).name.lower() for value in status.ravel()]
    for name in ("storage_min_hm3", "storage_max_hm3", "withdrawal_m3s", "filling_min_rate_m3s"):
        table[name] = _stacked([getattr(data, name) for data in case.stage_data], len(case.hydros)).ravel()
    for place, name in enumerate(HYDRO_PENALTIES):
        costs = [data.hydro_penalty[:, place] for data in case.stage_data]
        table[f"{name}_cost"] = _stacked(costs, len(case.hydros)).ravel()
    return pa.table(table)


def _stage_axes(case: Case, name: str, ids: Sequence[int]) -> dict[str, Any]:
    return {
        "stage_id": np.repeat(np.array([stage.id for stage in case.stages], np.int32), len(ids)),
        name: np.tile(np.array(ids, np.int32), len(case.stages)),
    }


def _stacked(rows: Sequence[NDArray[Any]], count: int) -> NDArray[Any]:
    return np.array(rows).reshape(len(rows), count)


# -- models and uncertainty ----------------------------------------------------------------------------


def _models(case: Case) -> dict[str, pa.Table]:
    places = [
        (stage.id, hydro.id, model)
        for stage, models in zip(case.stages, case.production, strict=True)
        for hydro, model in zip(case.hydros, models, strict=True)
    ]
    quality = {
        name: pa.array(
            [None if m.quality is None else getattr(m.quality, name) for _, _, m in places], pa.float64()
        )
        for name in ("alpha", "max_deviation_mw", "mean_deviation_mw", "mean_power_mw")
    }
    count = np.array([len(model.planes) for _, _, model in places], np.int64)
    planes = np.concatenate([np.zeros((0, 4)), *(model.planes for _, _, model in places)])
    stage_ids = np.array([stage for stage, _, _ in places], np.int32)
    hydro_ids = np.array([hydro for _, hydro, _ in places], np.int32)
    first = np.cumsum(count) - count
    production = {
        "stage_id": stage_ids,
        "hydro_id": hydro_ids,
        "kind": pa.array([model.kind for _, _, model in places], pa.string()),
        "productivity_mw_per_m3s": pa.array(
            [model.productivity_mw_per_m3s for _, _, model in places], pa.float64()
        ),
        "planes": count.astype(np.int32),
        **quality,
    }
    return {
        "production": pa.table(production),
        "planes": pa.table(
            {
                "stage_id": np.repeat(stage_ids, count),
                "hydro_id": np.repeat(hydro_ids, count),
                "plane": (np.arange(len(planes)) - np.repeat(first, count)).astype(np.int32),
                "constant_mw": planes[:, 0],
                "mw_per_hm3": planes[:, 1],
                "mw_per_turbined_m3s": planes[:, 2],
                "mw_per_spilt_m3s": planes[:, 3],
            }
        ),
        "evaporation": _evaporation(case),
        **_generic(case),
    }


def _evaporation(case: Case) -> pa.Table:
    rows = [
        (stage.id, hydro.id, model.intercept_m3s, model.slope_m3s_per_hm3, model.reference_volume_hm3)
        for stage, models in zip(case.stages, case.evaporation, strict=True)
        for hydro, model in zip(case.hydros, models, strict=True)
        if model is not None
    ]
    schema = pa.schema(
        [
            ("stage_id", pa.int32()),
            ("hydro_id", pa.int32()),
            ("intercept_m3s", pa.float64()),
            ("slope_m3s_per_hm3", pa.float64()),
            ("reference_volume_hm3", pa.float64()),
        ]
    )
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * len(schema), schema=schema)


def _generic(case: Case) -> dict[str, pa.Table]:
    rows = [row for rows in case.generic for row in rows]
    terms = [(number, row, term) for number, row in enumerate(rows) for term in row.terms]

    def block_id(row: GenericRow, block: int | None) -> int | None:
        return None if block is None else case.stages[row.stage].blocks[block].id

    def column(read: Callable[[int, GenericRow, GenericTerm], Any], kind: Any) -> Any:
        return pa.array([read(*entry) for entry in terms], kind)

    return {
        "generic_rows": pa.table(
            {
                "row": pa.array(range(len(rows)), pa.int32()),
                "constraint_id": pa.array([row.constraint_id for row in rows], pa.int32()),
                "name": pa.array([row.name for row in rows], pa.string()),
                "stage_id": pa.array([case.stages[row.stage].id for row in rows], pa.int32()),
                "block_id": pa.array([block_id(row, row.block) for row in rows], pa.int32()),
                "lower": pa.array([row.lower for row in rows], pa.float64()),
                "upper": pa.array([row.upper for row in rows], pa.float64()),
                "penalty": pa.array([row.penalty for row in rows], pa.float64()),
            }
        ),
        "generic_terms": pa.table(
            {
                "row": column(lambda number, row, term: number, pa.int32()),
                "coefficient": column(lambda number, row, term: term.coefficient, pa.float64()),
                "variable": column(lambda number, row, term: term.kind, pa.string()),
                "entity_id": column(lambda number, row, term: term.entity_id, pa.int32()),
                "block_id": column(lambda number, row, term: block_id(row, term.block), pa.int32()),
                "bus_id": column(lambda number, row, term: term.bus_id, pa.int32()),
            }
        ),
    }


def _uncertainty(case: Case) -> dict[str, pa.Table]:
    given = case.scenarios
    hydros, buses = [item.id for item in case.hydros], [item.id for item in case.buses]
    sources = [item.id for item in case.non_controllables]

    def table(name: str, ids: Sequence[int], **values: NDArray[np.float64]) -> pa.Table:
        flat = {key: np.ascontiguousarray(value).ravel() for key, value in values.items()}
        return pa.table({**_stage_axes(case, name, ids), **flat})

    return {
        "inflows": table("hydro_id", hydros, mean_m3s=given.inflow_mean_m3s, std_m3s=given.inflow_std_m3s),
        "loads": table("bus_id", buses, mean_mw=given.load_mean_mw, std_mw=given.load_std_mw),
        "availability": table("ncs_id", sources, mean=given.ncs_mean, std=given.ncs_std),
    }
