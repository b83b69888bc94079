"""What the production and evaporation models of a plant need besides themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cobre.case.format import layout
from cobre.case.format.schema.production import ModelChoice
from cobre.case.format.schema.system import HydroEntry
from cobre.case.hydro.production import PlantChoice
from cobre.case.hydro.tables import HydroTables
from cobre.case.problems import Reporter, name_entity, short_ids


def entity_of(plant: HydroEntry) -> str:
    """Return how a plant is called in problems."""
    return name_entity("hydro", plant.id, plant.name)


def _stages_of(choice: PlantChoice, wanted: Sequence[bool], stage_ids: Sequence[int]) -> list[int]:
    chosen = np.array(wanted)[choice.at]
    return [stage_ids[index] for index in np.flatnonzero(chosen).tolist()]


def check_needs(
    choice: PlantChoice, tables: HydroTables, stage_ids: Sequence[int], reporter: Reporter
) -> None:
    """Check that a plant has the tables its models work with."""
    plant, entity = choice.plant, entity_of(choice.plant)
    rows = tables.geometry_rows.get(plant.id, 0)
    head = _stages_of(choice, [part.model == "linearized_head" for part in choice.parts], stage_ids)
    computed = _stages_of(choice, [fpha_source(part) == "computed" for part in choice.parts], stage_ids)
    given = _stages_of(choice, [fpha_source(part) == "precomputed" for part in choice.parts], stage_ids)
    if layout.GEOMETRY not in tables.unreadable:
        for at, least, model in ((head, 2, "linearized_head"), (computed, 1, "fpha, computed")):
            if at and rows < least:
                reporter.error(
                    "DimensionMismatch",
                    f"{layout.GEOMETRY}: {entity} has {rows} rows, but its model ({model}) at stage "
                    f"{short_ids(at)} needs {least} or more.",
                    file=layout.GEOMETRY,
                    entity=entity,
                    field="hydro_id",
                    value=rows,
                    rule="dimensional.7",
                    suggestion="Add points of volume, height and area for the plant.",
                )
    if computed:
        _check_physics(plant, entity, tables, reporter)
    uses = "head" if head or computed else "evaporation" if plant.evaporation is not None else None
    if uses is not None and plant.id in tables.geometry:
        _check_span(plant, entity, tables, uses, reporter)
    if given and layout.FPHA_PLANES not in tables.unreadable:
        _check_planes(plant, entity, given, tables, reporter)


def _check_span(plant: HydroEntry, entity: str, tables: HydroTables, uses: str, reporter: Reporter) -> None:
    volume = tables.geometry[plant.id].volume_hm3
    low, high = plant.reservoir.min_storage_hm3, plant.reservoir.max_storage_hm3
    if volume[0] > low or volume[-1] < high:
        reporter.warning(
            "ModelQuality",
            f"{layout.GEOMETRY}: the geometry of {entity} goes from {volume[0]} to {volume[-1]} hm3, but its "
            f"storage from {low} to {high}; outside, height and area do not change ({uses}).",
            file=layout.GEOMETRY,
            entity=entity,
            field="volume_hm3",
            value=[float(volume[0]), float(volume[-1])],
            suggestion="Add points at the limits of storage.",
        )


def _check_physics(plant: HydroEntry, entity: str, tables: HydroTables, reporter: Reporter) -> None:
    if plant.tailrace is None and plant.id not in tables.tailrace:
        reporter.error(
            "BusinessRuleViolation",
            f"{layout.HYDROS}: planes are to be computed for {entity}, but it has no tailrace.",
            file=layout.HYDROS,
            entity=entity,
            field="tailrace",
            suggestion=f"Give the tailrace here or in {layout.TAILRACE_CURVES}.",
        )
    for key, assumed in (("hydraulic_losses", "no losses"), ("efficiency", "an efficiency of 1")):
        if getattr(plant, key) is None:
            reporter.warning(
                "ModelQuality",
                f"{layout.HYDROS}: planes of {entity} are computed with {assumed}, as {key} is not given.",
                file=layout.HYDROS,
                entity=entity,
                field=key,
                suggestion=f"Give {key}.",
            )


def _check_planes(
    plant: HydroEntry, entity: str, stages: Sequence[int], tables: HydroTables, reporter: Reporter
) -> None:
    planes = tables.planes.get(plant.id)
    if planes is None:
        # Faulty rows have been reported, and then the plant is absent for that reason.
        if not any(
            problem.context.get("file") == layout.FPHA_PLANES and problem.context.get("entity") == entity
            for problem in reporter.errors
        ):
            reporter.error(
                "DimensionMismatch",
                f"{layout.FPHA_PLANES}: {entity} has no planes, but its model is fpha, precomputed.",
                file=layout.FPHA_PLANES,
                entity=entity,
                field="hydro_id",
                rule="dimensional.6",
                suggestion="Add its planes, or let them be computed.",
            )
        return
    gap = [number for number in stages if number not in planes] if None not in planes else []
    if gap:
        reporter.error(
            "BusinessRuleViolation",
            f"{layout.FPHA_PLANES}: {entity} has no planes at stage {short_ids(gap)}.",
            file=layout.FPHA_PLANES,
            entity=entity,
            field="stage_id",
            value=short_ids(gap),
            rule="5a.11",
            suggestion="Add planes for these stages, or planes with null stage_id for all others.",
        )


def check_evaporation(plant: HydroEntry, tables: HydroTables, reporter: Reporter) -> None:
    """Check that a plant that evaporates has a surface."""
    missing = plant.id not in tables.geometry_rows and layout.GEOMETRY not in tables.unreadable
    if plant.evaporation is not None and missing:
        entity = entity_of(plant)
        reporter.error(
            "BusinessRuleViolation",
            f"{layout.HYDROS}: {entity} evaporates, but has no rows in {layout.GEOMETRY}.",
            file=layout.HYDROS,
            entity=entity,
            field="evaporation",
            rule="5a.50",
            suggestion="Add its geometry, or remove the evaporation.",
        )


def fpha_source(part: ModelChoice) -> str | None:
    """Return where the planes of a choice come from; ``None`` for other models."""
    return part.fpha_config.source if part.model == "fpha" and part.fpha_config else None
