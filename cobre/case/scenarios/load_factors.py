"""Factors that spread the load of a stage over its blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.format import layout
from cobre.case.format.schema.scenarios import LoadFactorEntry
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, name_entity

_FILE = layout.LOAD_FACTORS


def check_load_factors(sources: Sources, reporter: Reporter) -> None:
    """Check that every factor belongs to an existing bus, stage and block, and only once."""
    if sources.load_factors is None:
        return
    blocks = {stage.id: {block.id for block in stage.blocks} for stage in sources.stages.items}
    for entry in sources.load_factors.items:
        entity = name_entity("bus", entry.bus_id, sources.buses.names.get(entry.bus_id))
        check_reference(entry.bus_id, sources.buses, "bus", _FILE, entity, "bus_id", reporter)
        check_reference(entry.stage_id, sources.stages, "stage", _FILE, entity, "stage_id", reporter)
        place = f"{entity} at stage {entry.stage_id}"
        check_unique(
            [item.block_id for item in entry.block_factors],
            _FILE,
            "block",
            reporter,
            field="block_factors",
            entity=place,
        )
        if entry.stage_id in blocks:
            _check_blocks(entry, blocks[entry.stage_id], place, reporter)
    pairs = Counter((entry.bus_id, entry.stage_id) for entry in sources.load_factors.items)
    for (bus, stage), count in sorted(pairs.items()):
        if count > 1:
            entity = name_entity("bus", bus, sources.buses.names.get(bus))
            reporter.error(
                "DuplicateId",
                f"{_FILE}: {entity} has {count} entries for stage {stage}.",
                file=_FILE,
                entity=entity,
                field="stage_id",
                value=stage,
                suggestion="Keep one entry for each pair of bus and stage.",
            )


def _check_blocks(entry: LoadFactorEntry, known: set[int], place: str, reporter: Reporter) -> None:
    for index, item in enumerate(entry.block_factors):
        if item.block_id not in known:
            reporter.error(
                "InvalidReference",
                f"{_FILE}: block_factors[{index}] of {place} names block {item.block_id}, which is unknown.",
                file=_FILE,
                entity=place,
                field=f"block_factors[{index}].block_id",
                value=item.block_id,
                rule="5b.17",
                suggestion=f"Blocks of this stage: {', '.join(map(str, sorted(known)))}.",
            )


def resolve_load_factors(sources: Sources) -> tuple[NDArray[np.float64], ...]:
    """Return for each stage the factors by (bus, block); 1 where the file has no row.

    Only for sources without errors.
    """
    stages = by_id(sources.stages.items)
    bus_at = {number: index for index, number in enumerate(sorted(sources.buses.id_set))}
    stage_at = {stage.id: index for index, stage in enumerate(stages)}
    factors = tuple(np.ones((len(bus_at), len(stage.blocks))) for stage in stages)
    if sources.load_factors is not None:
        for entry in sources.load_factors.items:
            row = factors[stage_at[entry.stage_id]][bus_at[entry.bus_id]]
            for item in entry.block_factors:
                row[item.block_id] = item.factor
    return factors
