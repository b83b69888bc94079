"""Resolved limits of all entities as one table, ``training/dictionaries/bounds.parquet``.

A limit has a row for each stage. Where blocks differ, that row holds the value of the first block, and each
block with another value has a row of its own. A limit that is infinite in some blocks has rows of the others
alone. Outside its service an entity has limits of 0, except hydro plants, which keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.case.model import Case, StageData
from cobre.results.columns import Column, TableSpec, code, identifier, table
from cobre.results.dictionaries import CODES, ENTITY_CODES

FloatArray = NDArray[np.float64]

BOUNDS: Final[TableSpec] = table(
    "bounds",
    "a limit of an entity at a stage, or in one of its blocks",
    code("entity_type_code", "Type of the entity, see codes.json"),
    identifier("entity_id", "Id of the entity; of a unit group its id inside the plant"),
    identifier("hydro_id", "Plant of a unit group; null for other entities", nullable=True),
    identifier("stage_id", "Declared id of the stage"),
    identifier("block_id", "Block; null for the value of all blocks without a row", nullable=True),
    code("bound_type_code", "Which limit it is, see codes.json"),
    Column("bound_value", "f64", "varies", "The limit, in the unit of the quantity: hm3, m3/s or MW"),
)

_BOUND_CODES: Final = {name: int(number) for number, name in CODES["bound_type"].items()}
_NULL: Final = -(2**31)
_COLUMNS: Final = tuple(column.name for column in BOUNDS.columns)


def bounds_table(case: Case) -> pa.Table:
    """Return the limits of all entities, with the columns of :data:`BOUNDS`."""
    parts: list[list[NDArray[np.float64]]] = [[] for _ in _COLUMNS]
    for kind, ids, owners, limits in _limits(case):
        _append(parts, case, kind, ids, owners, limits)
    joined = [np.concatenate(part) if part else np.zeros(0) for part in parts]
    arrays = []
    for field, values in zip(BOUNDS.schema, joined, strict=True):
        whole = values if pa.types.is_floating(field.type) else values.astype(np.int64)
        missing = values == _NULL if field.nullable else None
        arrays.append(pa.array(whole, field.type, mask=missing))
    return pa.Table.from_arrays(arrays, schema=BOUNDS.schema)


_Limits = list[tuple[str, list[FloatArray]]]


def _limits(case: Case) -> Iterator[tuple[str, list[int], list[int], _Limits]]:
    """Yield by type of entity: its name, ids, plants of unit groups, and values by stage of each limit."""
    data = case.stage_data

    def of(*names: tuple[str, str]) -> _Limits:
        return [(bound, [_by_block(part, field) for part in data]) for bound, field in names]

    def none(entities: Sequence[object]) -> list[int]:
        return [_NULL] * len(entities)

    hydros = case.hydros
    yield (
        "hydro",
        [plant.id for plant in hydros],
        none(hydros),
        of(
            ("storage_min", "storage_min_hm3"),
            ("storage_max", "storage_max_hm3"),
            ("turbined_min", "turbined_min_m3s"),
            ("turbined_max", "turbined_max_m3s"),
            ("outflow_min", "outflow_min_m3s"),
            ("outflow_max", "outflow_max_m3s"),
            ("generation_min", "generation_min_mw"),
            ("generation_max", "generation_max_mw"),
        ),
    )
    yield (
        "thermal",
        [plant.id for plant in case.thermals],
        none(case.thermals),
        of(("generation_min", "thermal_min_mw"), ("generation_max", "thermal_max_mw")),
    )
    lines = of(("flow_max", "line_direct_mw"))
    lines.insert(0, ("flow_min", [np.zeros_like(values) for values in lines[0][1]]))
    yield "line", [line.id for line in case.lines], none(case.lines), lines
    yield (
        "pumping_station",
        [pump.id for pump in case.pumping_stations],
        none(case.pumping_stations),
        of(("flow_min", "pumping_min_m3s"), ("flow_max", "pumping_max_m3s")),
    )
    yield (
        "contract",
        [contract.id for contract in case.contracts],
        none(case.contracts),
        of(("flow_min", "contract_min_mw"), ("flow_max", "contract_max_mw")),
    )
    groups = [(plant.id, group.id) for plant in hydros for group in plant.unit_groups]
    yield (
        "hydro_unit_group",
        [group for _, group in groups],
        [plant for plant, _ in groups],
        of(
            ("turbined_min", "group_turbined_min_m3s"),
            ("turbined_max", "group_turbined_max_m3s"),
            ("generation_min", "group_generation_min_mw"),
            ("generation_max", "group_generation_max_mw"),
        ),
    )


def _by_block(data: StageData, field: str) -> FloatArray:
    """Return a limit by (entity, block)."""
    values: FloatArray = np.asarray(getattr(data, field), np.float64)
    return values[:, None] if values.ndim == 1 else values


def _append(
    parts: list[list[FloatArray]],
    case: Case,
    kind: str,
    ids: list[int],
    owners: list[int],
    limits: _Limits,
) -> None:
    """Append the rows of one type: by entity, stage, limit and block."""
    rows: list[tuple[FloatArray, ...]] = []
    for number, (bound, by_stage) in enumerate(limits):
        for position, values in enumerate(by_stage):
            blocks = np.array([block.id for block in case.stages[position].blocks], np.float64)
            first = values[:, :1]
            # The row of the stage comes first, then those of blocks that differ.
            whole = np.concatenate([first, values], axis=1)
            finite = np.isfinite(values)
            for_all = finite.all(axis=1, keepdims=True)
            kept = np.concatenate([for_all, finite & ((values != first) | ~for_all)], axis=1)
            entity, column = np.nonzero(kept)
            count = len(entity)
            rows.append(
                (
                    entity.astype(np.float64),
                    np.full(count, float(position)),
                    np.full(count, float(number)),
                    column.astype(np.float64),
                    np.concatenate([[_NULL], blocks[: values.shape[1]]])[column],
                    np.full(count, float(_BOUND_CODES[bound])),
                    whole[kept],
                )
            )
    if not rows or not ids:
        return
    places, stages, order_of_limit, columns, block_ids, codes, bounds = (
        np.concatenate(part) for part in zip(*rows, strict=True)
    )
    order = np.lexsort((columns, order_of_limit, stages, places))
    own = places[order].astype(np.int64)
    stage_ids = np.array([stage.id for stage in case.stages], np.float64)
    for part, values in zip(
        parts,
        (
            np.full(len(order), float(ENTITY_CODES[kind])),
            np.array(ids, np.float64)[own],
            np.array(owners, np.float64)[own],
            stage_ids[stages[order].astype(np.int64)],
            block_ids[order],
            codes[order],
            bounds[order],
        ),
        strict=True,
    ):
        part.append(values)
