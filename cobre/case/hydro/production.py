"""Which production model each hydro plant has at each stage, and with which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.format import layout
from cobre.case.format.schema.production import BySeason, ByStageRanges, ModelChoice
from cobre.case.format.schema.system import HydroEntry
from cobre.case.format.sources import Sources
from cobre.case.hydro.tables import HydroTables, PlantRates
from cobre.case.problems import Reporter, name_entity, short_ids
from cobre.case.scenarios.stats import group_by_stages, name_group
from cobre.case.seasons import stage_season

_FILE = layout.PRODUCTION_MODELS
_TABLE = layout.ENERGY_PRODUCTIVITY
_NO_ENTRIES: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class PlantChoice:
    """The models of one plant.

    Attributes
    ----------
    parts
        The distinct choices.
    at
        (stage,) position in ``parts``.
    productivity
        (stage,) given productivity, from either file; NaN = none.
    given_by_table
        (stage,) whether it comes from the table.
    """

    plant: HydroEntry
    parts: tuple[ModelChoice, ...]
    at: NDArray[np.intp]
    productivity: NDArray[np.float64]
    given_by_table: NDArray[np.bool_]


def choose_models(sources: Sources, tables: HydroTables, reporter: Reporter) -> list[PlantChoice]:
    """Check the production models and return the choices of every readable plant, by ascending id.

    Where a plant has several ranges for a stage, the first one wins; where it has none (or no season), the
    model is that of ``hydros.json``.
    """
    hydros, stages, production = sources.hydros, sources.stages, sources.production
    entries = production.items if production else _NO_ENTRIES
    if production:
        ids = production.ids if production.ids is not None else [entry.hydro_id for entry in entries]
        check_unique(ids, _FILE, "hydro", reporter, names=hydros.names, field="hydro_id")
    for entry in entries:
        entity = name_entity("hydro", entry.hydro_id, hydros.names.get(entry.hydro_id))
        check_reference(entry.hydro_id, hydros, "hydro", _FILE, entity, "hydro_id", reporter)
        _check_entry(entry, entity, sources, reporter)
    if stages.ids is None or hydros.ids is None:
        return []
    stage_ids = [number for number in sorted(stages.id_set) if number >= 0]
    season_at = _seasons(sources)
    seasons = [season_at.get(number) for number in stage_ids]
    by_hydro = {entry.hydro_id: entry for entry in reversed(entries)}
    choices = []
    for plant in by_id(hydros.items):
        rates = tables.rates.get(plant.id, PlantRates())
        choices.append(_choose(plant, by_hydro.get(plant.id), rates, stage_ids, seasons))
    # A plant whose entry is malformed is left out: its choices are not known.
    unknown = production is not None and production.ids is None
    faulty = set(production.id_set) - set(by_hydro) if production else set()
    judged = [choice for choice in choices if not unknown and choice.plant.id not in faulty]
    _check_kinds(judged, stage_ids, reporter)
    if _TABLE not in tables.unreadable:
        _check_productivity(judged, stage_ids, sources, reporter)
        _check_twofold(judged, tables, stage_ids, reporter)
    return choices


def _choose(
    plant: HydroEntry,
    entry: ByStageRanges | BySeason | None,
    rates: PlantRates,
    stage_ids: Sequence[int],
    seasons: Sequence[int | None],
) -> PlantChoice:
    fallback = ModelChoice(model=plant.generation.model)
    numbers = np.array(stage_ids, np.int64)
    parts: list[ModelChoice] = []
    at = np.full(numbers.size, -1, np.intp)
    if isinstance(entry, ByStageRanges):
        parts.extend(entry.stage_ranges)
        # From the last range to the first, so that the first one prevails.
        for index in range(len(parts) - 1, -1, -1):
            part = entry.stage_ranges[index]
            inside = numbers >= part.start_stage_id
            if part.end_stage_id is not None:
                inside &= numbers <= part.end_stage_id
            at[inside] = index
    elif isinstance(entry, BySeason):
        parts.extend(entry.seasons)
        position = {part.season_id: index for index, part in reversed(list(enumerate(entry.seasons)))}
        at[:] = [position.get(season, -1) if season is not None else -1 for season in seasons]
        if entry.default_model is not None:
            fallback = ModelChoice(model=entry.default_model)
    at[at < 0] = len(parts)
    parts.append(fallback)
    own = np.array(
        [np.nan if part.productivity_mw_per_m3s is None else part.productivity_mw_per_m3s for part in parts]
    )[at]
    table = rates.by_stage("equivalent", stage_ids)
    by_table = np.isnan(own) & ~np.isnan(table)
    return PlantChoice(plant, tuple(parts), at, np.where(by_table, table, own), by_table)


def _check_entry(entry: ByStageRanges | BySeason, entity: str, sources: Sources, reporter: Reporter) -> None:
    parts: Sequence[ModelChoice] = entry.seasons if isinstance(entry, BySeason) else entry.stage_ranges
    word = "seasons" if isinstance(entry, BySeason) else "stage_ranges"
    if isinstance(entry, BySeason):
        ids = [part.season_id for part in entry.seasons]
        check_unique(ids, _FILE, "season", reporter, field="seasons", entity=entity)
        _check_unused_seasons(ids, entity, sources, reporter)
    else:
        _check_ranges(entry, entity, reporter)
    for index, part in enumerate(parts):
        place = f"{word}[{index}]"
        if part.model == "fpha":
            if part.fpha_config is None:
                reporter.error(
                    "SchemaViolation",
                    f"{_FILE}: {place} of {entity} has the model fpha but no fpha_config.",
                    file=_FILE,
                    entity=entity,
                    field=f"{place}.fpha_config",
                    suggestion='Add "fpha_config": {"source": "computed"} or "precomputed".',
                )
            if part.productivity_mw_per_m3s is not None:
                reporter.error(
                    "SchemaViolation",
                    f"{_FILE}: {place} of {entity} has the model fpha and a productivity.",
                    file=_FILE,
                    entity=entity,
                    field=f"{place}.productivity_mw_per_m3s",
                    value=part.productivity_mw_per_m3s,
                    rule="productivity_resolution.2",
                    suggestion=f"Remove it; an equivalent productivity for reports belongs in {_TABLE}.",
                )
            _check_unused_keys(part, place, entity, reporter)
        elif part.fpha_config is not None:
            reporter.warning(
                "SemanticAmbiguity",
                f"{_FILE}: {place}.fpha_config of {entity} has no effect with the model {part.model}.",
                file=_FILE,
                entity=entity,
                field=f"{place}.fpha_config",
                suggestion="Remove it, or use the model fpha.",
            )


def _check_unused_keys(part: ModelChoice, place: str, entity: str, reporter: Reporter) -> None:
    """Warn of keys of an FPHA configuration that change nothing."""
    config = part.fpha_config
    if config is None:
        return
    idle = [] if config.spillage_discretization_points is None else ["spillage_discretization_points"]
    if config.source == "precomputed":
        idle = sorted(
            name for name in config.model_fields_set if name != "source" and getattr(config, name) is not None
        )
    for name in idle:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: {place}.fpha_config.{name} of {entity} has no effect.",
            file=_FILE,
            entity=entity,
            field=f"{place}.fpha_config.{name}",
            suggestion=(
                "Planes that are given are used as they are."
                if config.source == "precomputed"
                else "The slope in spillage is a secant between no spillage and twice the turbine capacity."
            ),
        )


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


def _check_unused_seasons(ids: Sequence[int], entity: str, sources: Sources, reporter: Reporter) -> None:
    if sources.stages.root is None:
        return
    used = set(_seasons(sources).values())
    idle = sorted(set(ids) - used)
    if idle:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: models of season {short_ids(idle)} of {entity} are never used; no stage has it.",
            file=_FILE,
            entity=entity,
            field="seasons",
            value=short_ids(idle),
            suggestion="Check season_id of the stages.",
        )


def _check_kinds(choices: Sequence[PlantChoice], stage_ids: Sequence[int], reporter: Reporter) -> None:
    """Check that a plant has FPHA at all stages or at none, as ``hydros.json`` states."""
    for choice in choices:
        plant = choice.plant
        declared = plant.generation.model == "fpha"
        fpha = np.array([part.model == "fpha" for part in choice.parts], np.bool_)
        fitted = np.array([part.fpha_config is not None for part in choice.parts], np.bool_)
        # An entry without its configuration has been reported; the last part is the fallback, no entry.
        excused = fpha & ~fitted
        excused[-1] = False
        wrong = ((fpha & fitted) != declared)[choice.at] & ~excused[choice.at]
        if not wrong.any():
            _warn_other_model(choice, reporter)
            continue
        at = short_ids([stage_ids[index] for index in np.flatnonzero(wrong).tolist()])
        entity = name_entity("hydro", plant.id, plant.name)
        if declared:
            message = f"{entity} has the model fpha in {layout.HYDROS}, but not here at stage {at}."
            what = 'Give it "model": "fpha" with an fpha_config at every stage.'
        else:
            message = f"{entity} has the model fpha at stage {at}, but not in {layout.HYDROS}."
            what = f'Set generation.model of the plant to "fpha" in {layout.HYDROS}, for all stages.'
        reporter.error(
            "BusinessRuleViolation",
            f"{_FILE}: {message}",
            file=_FILE,
            entity=entity,
            field="model",
            value=at,
            rule="5a.11",
            suggestion=what,
        )


def _warn_other_model(choice: PlantChoice, reporter: Reporter) -> None:
    """Warn of a plant whose model in ``hydros.json`` is used at no stage."""
    plant = choice.plant
    used = sorted({choice.parts[part].model for part in np.unique(choice.at).tolist()})
    if not used or plant.generation.model in used:
        return
    entity = name_entity("hydro", plant.id, plant.name)
    reporter.warning(
        "SemanticAmbiguity",
        f"{layout.HYDROS}: generation.model of {entity} has no effect, since {_FILE} gives it "
        f"{' and '.join(used)} at every stage.",
        file=layout.HYDROS,
        entity=entity,
        field="generation.model",
        value=plant.generation.model,
        suggestion=f"Set it to {used[0]}.",
    )


def _check_productivity(
    choices: Sequence[PlantChoice], stage_ids: Sequence[int], sources: Sources, reporter: Reporter
) -> None:
    """Report plants without the productivity that their model needs."""
    if not choices:
        return
    names = sources.hydros.names
    needed = [np.array([part.model != "fpha" for part in choice.parts])[choice.at] for choice in choices]
    ids = np.array([choice.plant.id for choice in choices], np.int64)
    stages = np.array(stage_ids, np.int64)
    missing = np.column_stack(
        [need & np.isnan(choice.productivity) for need, choice in zip(needed, choices, strict=True)]
    )
    for group, gap in group_by_stages(missing, ids, stages):
        who = name_group("hydro", group, names)
        reporter.error(
            "DimensionMismatch",
            f"{_FILE}: {who} without productivity at stage {short_ids(gap)}.",
            file=_FILE,
            entity=who,
            field="productivity_mw_per_m3s",
            value=short_ids(gap),
            rule="productivity_resolution.1",
            suggestion=f"Give productivity_mw_per_m3s for every stage, or rows in {_TABLE}.",
        )


def _check_twofold(
    choices: Sequence[PlantChoice], tables: HydroTables, stage_ids: Sequence[int], reporter: Reporter
) -> None:
    """Report plants whose productivity is given both here and in the table."""
    for choice in choices:
        rates = tables.rates.get(choice.plant.id)
        if rates is None:
            continue
        own = np.array([part.productivity_mw_per_m3s is not None for part in choice.parts])[choice.at]
        needs = np.array([part.model != "fpha" for part in choice.parts])[choice.at]
        both = needs & own & ~np.isnan(rates.by_stage("equivalent", stage_ids))
        if both.any():
            at = short_ids([stage_ids[index] for index in np.flatnonzero(both).tolist()])
            entity = name_entity("hydro", choice.plant.id, choice.plant.name)
            reporter.error(
                "SchemaViolation",
                f"{_FILE}: the productivity of {entity} at stage {at} is given here and in {_TABLE}.",
                file=_FILE,
                entity=entity,
                field="productivity_mw_per_m3s",
                value=at,
                rule="productivity_resolution.2",
                suggestion="Keep one of them.",
            )


def _seasons(sources: Sources) -> dict[int, int | None]:
    """Return the season of each stage by its id, from its dates where it names none."""
    file = sources.stages.root
    if file is None:
        return {stage.id: stage.season_id for stage in sources.stages.items}
    return {stage.id: stage_season(file, stage) for stage in sources.stages.items}
