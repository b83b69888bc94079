"""From records to the bytes of a policy file; field ids are those of the format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np

from cobre.policy.foreign.flatbuffer import FILE_IDENTIFIER
from cobre.policy.foreign.records import (
    FORMAT_VERSION,
    NO_DATE,
    NO_ID,
    NO_SEASONS,
    Manifest,
    Pool,
    SeasonManifest,
    StateSlot,
    encode_date,
)

_POOL_FIELDS, _CUT_FIELDS, _SLOT_FIELDS, _MANIFEST_FIELDS = 12, 7, 9, 22
_CUT_BYTES = 96


def encode_pool(pool: Pool) -> bytes:
    """Return the bytes of a pool's file."""
    count, states = pool.slopes.shape
    builder = flatbuffers.Builder(1024 + count * (_CUT_BYTES + 8 * states))
    cuts = _tables(builder, [_cut(builder, pool, place) for place in range(count)])
    active = builder.CreateNumpyVector(np.flatnonzero(pool.active).astype("<u4"))
    slots = _tables(builder, [_slot(builder, slot) for slot in pool.slots])
    builder.StartObject(_POOL_FIELDS)
    builder.PrependUint32Slot(0, pool.pool_id, 0)
    builder.PrependUint32Slot(1, states, 0)
    builder.PrependUint32Slot(2, pool.capacity, 0)
    builder.PrependUint32Slot(3, pool.warm_start_count, 0)
    builder.PrependUOffsetTRelativeSlot(4, cuts, 0)
    builder.PrependUOffsetTRelativeSlot(5, active, 0)
    builder.PrependUint32Slot(6, count, 0)
    builder.PrependUOffsetTRelativeSlot(7, slots, 0)
    builder.PrependFloat64Slot(8, pool.cost_scale_factor, 0.0)
    builder.PrependInt32Slot(9, NO_ID if pool.node_id is None else pool.node_id, NO_ID)
    builder.PrependInt32Slot(10, NO_ID if pool.graph_stage_id is None else pool.graph_stage_id, NO_ID)
    builder.PrependInt32Slot(11, encode_date(pool.priced_date), NO_DATE)
    return _finish(builder)


def _cut(builder: Any, pool: Pool, place: int) -> int:
    coefficients = builder.CreateNumpyVector(np.ascontiguousarray(pool.slopes[place], "<f8"))
    builder.StartObject(_CUT_FIELDS)
    builder.PrependUint64Slot(0, int(pool.cut_ids[place]), 0)
    builder.PrependUint32Slot(1, int(pool.slot_index[place]), 0)
    builder.PrependUint32Slot(2, int(pool.iterations[place]), 0)
    builder.PrependUint32Slot(3, int(pool.forward_passes[place]), 0)
    builder.PrependFloat64Slot(4, float(pool.intercepts[place]), None)
    builder.PrependUOffsetTRelativeSlot(5, coefficients, 0)
    builder.PrependBoolSlot(6, bool(pool.active[place]), False)
    return int(builder.EndObject())


def _slot(builder: Any, slot: StateSlot) -> int:
    start, end = (None, None) if slot.interval is None else slot.interval
    builder.StartObject(_SLOT_FIELDS)
    builder.PrependUint8Slot(0, slot.kind, 0)
    builder.PrependInt32Slot(1, slot.entity_id, 0)
    builder.PrependUint32Slot(2, slot.subindex, 0)
    builder.PrependBoolSlot(3, slot.was_active, False)
    builder.PrependInt32Slot(6, encode_date(slot.reference_date), NO_DATE)
    builder.PrependInt32Slot(7, encode_date(start), NO_DATE)
    builder.PrependInt32Slot(8, encode_date(end), NO_DATE)
    return int(builder.EndObject())


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of ``manifest.bin``."""
    builder = flatbuffers.Builder(4096)
    nodes = _tables(builder, [_row(builder, "iiI", (n.id, n.stage_id, n.pool_id)) for n in manifest.nodes])
    edges = _tables(
        builder, [_row(builder, "iid", (e.source_id, e.target_id, e.probability)) for e in manifest.edges]
    )
    warm = builder.CreateNumpyVector(np.array(manifest.warm_start_counts, "<u4"))
    history = builder.CreateNumpyVector(np.array(manifest.lower_bound_history, "<f8"))
    modes = _tables(builder, [builder.CreateString(mode) for mode in manifest.block_mode_per_stage])
    mode = builder.CreateString(manifest.training_block_mode)
    seasons = _seasons(builder, manifest.seasons)
    version, created = (
        builder.CreateString(manifest.software_version),
        builder.CreateString(manifest.created_at),
    )
    software = None if manifest.software is None else builder.CreateString(manifest.software)
    builder.StartObject(_MANIFEST_FIELDS)
    builder.PrependUint32Slot(0, FORMAT_VERSION, 0)
    builder.PrependUOffsetTRelativeSlot(1, version, 0)
    builder.PrependUOffsetTRelativeSlot(2, created, 0)
    builder.PrependUint32Slot(3, manifest.num_stages, 0)
    builder.PrependUint32Slot(4, manifest.num_pools, 0)
    builder.PrependUOffsetTRelativeSlot(5, nodes, 0)
    builder.PrependUOffsetTRelativeSlot(6, edges, 0)
    builder.PrependUint32Slot(7, manifest.completed_iterations, 0)
    builder.PrependFloat64Slot(8, manifest.final_lower_bound, 0.0)
    # Without a value to leave out, so that 0 differs from "none".
    builder.PrependFloat64Slot(9, manifest.best_upper_bound, None)
    builder.PrependUint32Slot(10, manifest.max_iterations, 0)
    builder.PrependUint32Slot(11, manifest.forward_passes, 0)
    builder.PrependUint32Slot(12, max(manifest.warm_start_counts, default=0), 0)
    builder.PrependUOffsetTRelativeSlot(13, warm, 0)
    builder.PrependUint64Slot(14, manifest.rng_seed, 0)
    builder.PrependUOffsetTRelativeSlot(16, mode, 0)
    builder.PrependUOffsetTRelativeSlot(17, modes, 0)
    builder.PrependFloat64Slot(18, manifest.cost_scale_factor, None)
    builder.PrependUOffsetTRelativeSlot(19, seasons, 0)
    if software is not None:
        builder.PrependUOffsetTRelativeSlot(20, software, 0)
    builder.PrependUOffsetTRelativeSlot(21, history, 0)
    return _finish(builder)


def _seasons(builder: Any, seasons: SeasonManifest) -> int:
    rows = []
    for hydro_id, orders in seasons.hydro_orders:
        vector = builder.CreateNumpyVector(np.array(orders, "<u4"))
        builder.StartObject(2)
        builder.PrependInt32Slot(0, hydro_id, 0)
        builder.PrependUOffsetTRelativeSlot(1, vector, 0)
        rows.append(builder.EndObject())
    orders_of = _tables(builder, rows)
    builder.StartObject(3)
    builder.PrependUint8Slot(0, seasons.cycle_code, NO_SEASONS)
    builder.PrependUint32Slot(1, seasons.num_seasons, 0)
    builder.PrependUOffsetTRelativeSlot(2, orders_of, 0)
    return int(builder.EndObject())


def _row(builder: Any, codes: str, values: Sequence[float]) -> int:
    """Write a table of numbers, their types given as in :mod:`struct`."""
    write = {
        "i": builder.PrependInt32Slot,
        "I": builder.PrependUint32Slot,
        "d": builder.PrependFloat64Slot,
    }
    builder.StartObject(len(codes))
    for field, (code, value) in enumerate(zip(codes, values, strict=True)):
        write[code](field, value, 0)
    return int(builder.EndObject())


def _tables(builder: Any, offsets: Sequence[int]) -> int:
    """Write a vector of tables or strings."""
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _finish(builder: Any) -> bytes:
    """Close the root table, which is open, and return the file."""
    builder.Finish(builder.EndObject(), file_identifier=FILE_IDENTIFIER)
    return bytes(builder.Output())
