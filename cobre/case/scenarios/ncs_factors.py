"""Factors that spread the availability of non-controllable sources over the blocks of a stage."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.format import layout
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, name_entity

_FILE = layout.NCS_FACTORS
_WORD = "non-controllable source"


def check_ncs_factors(sources: Sources, reporter: Reporter) -> None:
    """Check that every factor belongs to an existing source, stage and block, and only once."""
    if sources.ncs_factors is None:
        return
    registry, entries = sources.non_controllables, sources.ncs_factors.items
    blocks = {stage.id: {block.id for block in stage.blocks} for stage in sources.stages.items}
    for entry in entries:
        entity = name_entity(_WORD, entry.ncs_id, registry.names.get(entry.ncs_id))
        place = f"{entity} at stage {entry.stage_id}"
        check_reference(entry.ncs_id, registry, _WORD, _FILE, entity, "ncs_id", reporter)
        check_reference(
            entry.stage_id, sources.stages, "stage", _FILE, entity, "stage_id", reporter, "referential.8"
        )
        ids = [item.block_id for item in entry.block_factors]
        check_unique(ids, _FILE, "block", reporter, field="block_factors", entity=place)
        for index, number in enumerate(ids):
            if entry.stage_id in blocks and number not in blocks[entry.stage_id]:
                known = ", ".join(map(str, sorted(blocks[entry.stage_id])))
                reporter.error(
                    "InvalidReference",
                    f"{_FILE}: block_factors[{index}] of {place} names block {number}, which is unknown.",
                    file=_FILE,
                    entity=place,
                    field=f"block_factors[{index}].block_id",
                    value=number,
                    suggestion=f"Blocks of this stage: {known}.",
                )
    pairs = Counter((entry.ncs_id, entry.stage_id) for entry in entries)
    for (number, stage), count in sorted(pairs.items()):
        if count > 1:
            entity = name_entity(_WORD, number, registry.names.get(number))
            reporter.error(
                "DuplicateId",
                f"{_FILE}: {entity} has {count} entries for stage {stage}.",
                file=_FILE,
                entity=entity,
                field="stage_id",
                value=stage,
                suggestion="Keep one entry for each pair of source and stage.",
            )


def resolve_ncs_factors(sources: Sources) -> tuple[NDArray[np.float64], ...]:
    """Return for each study stage the factors by (source, block); 1 where the file has no row.

    Only for sources without errors.
    """
    stages = by_id(stage for stage in sources.stages.items if stage.id >= 0)
    source_at = {number: index for index, number in enumerate(sorted(sources.non_controllables.id_set))}
    stage_at = {stage.id: index for index, stage in enumerate(stages)}
    factors = tuple(np.ones((len(source_at), len(stage.blocks))) for stage in stages)
    if sources.ncs_factors is not None:
        for entry in sources.ncs_factors.items:
            if entry.stage_id not in stage_at:
                continue  # a pre-study stage
            row = factors[stage_at[entry.stage_id]][source_at[entry.ncs_id]]
            for item in entry.block_factors:
                row[item.block_id] = item.factor
    return factors
