"""Productivity of every hydro plant at every stage, from ranges of stages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case import layout
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.problems import Reporter, name_entity, short_ids
from cobre.case.schema.production import ByStageRanges
from cobre.case.sources import Sources
from cobre.case.stats import group_by_stages, name_group

_FILE = layout.PRODUCTION_MODELS
_OTHER_SOURCE = "system/hydro_energy_productivity.parquet"


def resolve_productivity(sources: Sources, reporter: Reporter) -> NDArray[np.float64] | None:
    """Check the production models and return the productivity by (stage, hydro), MW/(m3/s).

    The first range that holds a stage wins. Returns ``None`` when stages or plants are not all known.
    """
    hydros, stages, production = sources.hydros, sources.stages, sources.production
    entries = production.items if production else ()
    if production:
        ids = production.ids if production.ids is not None else [entry.hydro_id for entry in entries]
        check_unique(ids, _FILE, "hydro", reporter, names=hydros.names, field="hydro_id")
    for entry in entries:
        entity = name_entity("hydro", entry.hydro_id, hydros.names.get(entry.hydro_id))
        check_reference(entry.hydro_id, hydros, "hydro", _FILE, entity, "hydro_id", reporter)
        if isinstance(entry, ByStageRanges):
            _check_ranges(entry, entity, reporter)
    if hydros.ids is None or stages.ids is None or (production and production.ids is None):
        return None
    stage_ids = np.unique(np.asarray(stages.ids, dtype=np.int64))
    hydro_ids = np.unique(np.asarray(hydros.ids, dtype=np.int64))
    position = {number: index for index, number in enumerate(hydro_ids.tolist())}
    values = np.full((stage_ids.size, hydro_ids.size), np.nan)
    judged = _plants_to_judge(sources)
    for entry in entries:
        if entry.hydro_id not in position or not isinstance(entry, ByStageRanges):
            continue
        column = values[:, position[entry.hydro_id]]
        # From the last range to the first, so that the first one has the last word.
        for part in reversed(entry.stage_ranges):
            inside = stage_ids >= part.start_stage_id
            if part.end_stage_id is not None:
                inside &= stage_ids <= part.end_stage_id
            column[inside] = np.nan if part.productivity_mw_per_m3s is None else part.productivity_mw_per_m3s
    missing = np.isnan(values) & np.isin(hydro_ids, sorted(judged))
    for group, gap in group_by_stages(missing, hydro_ids, stage_ids):
        who = name_group("hydro", group, hydros.names)
        reporter.error(
            "DimensionMismatch",
            f"{_FILE}: {who} without productivity at stage {short_ids(gap)}.",
            file=_FILE,
            entity=who,
            field="productivity_mw_per_m3s",
            value=short_ids(gap),
            rule="productivity_resolution.1",
            suggestion="Add stage ranges with productivity_mw_per_m3s that cover every stage.",
        )
    return values


def _plants_to_judge(sources: Sources) -> set[int]:
    """Return the plants whose productivity must be here; those refused for another reason are left out."""
    if _OTHER_SOURCE in sources.present:
        return set()
    judged = {item.id for item in sources.hydros.items if item.generation.model == "constant_productivity"}
    if sources.production:
        judged -= set(sources.production.id_set)
        for entry in sources.production.items:
            if isinstance(entry, ByStageRanges) and all(
                part.model == "constant_productivity" for part in entry.stage_ranges
            ):
                judged.add(entry.hydro_id)
    return judged


def _check_ranges(entry: ByStageRanges, entity: str, reporter: Reporter) -> None:
    for index, part in enumerate(entry.stage_ranges):
        if part.end_stage_id is not None and part.end_stage_id < part.start_stage_id:
            field = f"stage_ranges[{index}].end_stage_id"
            reporter.error(
                "InvalidValue",
                f"{_FILE}: {field} of {entity} is {part.end_stage_id}, "
                f"before the start {part.start_stage_id}.",
                file=_FILE,
                entity=entity,
                field=field,
                value=part.end_stage_id,
                suggestion="Both ends of a range belong to it; leave the end null for the rest of the study.",
            )
