"""Service windows and filling: stages in the right order, and stored water where it belongs."""

from __future__ import annotations

from cobre.case.bounds.axes import StageAxis
from cobre.case.catalogue import ENTITY_TYPES, by_id
from cobre.case.format import layout
from cobre.case.format.schema.system import HydroEntry, Served
from cobre.case.format.sources import Sources
from cobre.case.model import HydroStatus
from cobre.case.problems import Reporter, name_entity
from cobre.case.service import hydro_status, in_service


def check_service(sources: Sources, stages: StageAxis, reporter: Reporter) -> None:
    """Check the service window of every entity, and the filling of hydro plants."""
    for kind in ENTITY_TYPES:
        for item in by_id(sources.registry(kind).items) if kind.has_service else ():
            if item.entry_stage_id is not None or item.exit_stage_id is not None:
                entity = name_entity(kind.word, item.id, item.name)
                _check_window(item, kind.path, entity, stages, reporter)
    for hydro in by_id(sources.hydros.items):
        if hydro.filling is not None:
            _check_filling(hydro, name_entity("hydro", hydro.id, hydro.name), reporter)
    _check_seeds(sources, reporter)


def _check_window(item: Served, path: str, entity: str, stages: StageAxis, reporter: Reporter) -> None:
    entry, leave = item.entry_stage_id, item.exit_stage_id
    if entry is not None and leave is not None and entry >= leave:
        reporter.error(
            "BusinessRuleViolation",
            f"{path}: {entity} enters service at stage {entry}, not before it leaves at stage {leave}.",
            file=path,
            entity=entity,
            field="entry_stage_id",
            value=entry,
            rule="5a.6",
            suggestion="entry_stage_id is the first stage in service, exit_stage_id the first one after it.",
        )
    elif stages.ids is not None and stages.ids.size and not in_service([item], stages.ids).any():
        if isinstance(item, HydroEntry) and (hydro_status([item], stages.ids) != HydroStatus.OUT).any():
            return  # it fills up beyond the end of the study
        reporter.warning(
            "UnusedEntity",
            f"{path}: {entity} is not in service at any study stage.",
            file=path,
            entity=entity,
            field="exit_stage_id" if entry is None else "entry_stage_id",
            value=leave if entry is None else entry,
            suggestion="Check the service window, or remove the entity.",
        )


def _check_filling(hydro: HydroEntry, entity: str, reporter: Reporter) -> None:
    if hydro.filling is None:
        return
    start, entry = hydro.filling.start_stage_id, hydro.entry_stage_id

    def complain(message: str, field: str, value: int | None, rule: str, suggestion: str) -> None:
        reporter.error(
            "BusinessRuleViolation",
            f"{layout.HYDROS}: {entity} {message}",
            file=layout.HYDROS,
            entity=entity,
            field=field,
            value=value,
            rule=rule,
            suggestion=suggestion,
        )

    if entry is None:
        complain(
            "has filling, but no stage at which it enters service.",
            "entry_stage_id",
            None,
            "5a.7",
            "Give entry_stage_id, the first stage after filling.",
        )
    elif start >= entry:
        complain(
            f"starts filling at stage {start}, not before it enters service at stage {entry}.",
            "filling.start_stage_id",
            start,
            "5a.7",
            "Start filling at an earlier stage.",
        )
    if hydro.exit_stage_id is not None:
        complain(
            "has filling, so it cannot leave service.",
            "exit_stage_id",
            hydro.exit_stage_id,
            "5a.7a",
            "Set exit_stage_id to null.",
        )


def _check_seeds(sources: Sources, reporter: Reporter) -> None:
    """Check that plants with filling, and only they, start from ``filling_storage``, below dead volume."""
    if sources.initial.root is None:
        return
    path = layout.INITIAL_CONDITIONS
    stored = {entry.hydro_id: entry.value_hm3 for entry in sources.initial.root.storage}
    seeds = {entry.hydro_id: entry.value_hm3 for entry in sources.initial.root.filling_storage}
    for hydro in by_id(sources.hydros.items):
        entity = name_entity("hydro", hydro.id, hydro.name)
        mine, other, wrong = ("filling_storage", "storage", stored)
        if hydro.filling is None:
            mine, other, wrong = "storage", "filling_storage", seeds
        if hydro.id in wrong:
            has = "has no filling" if hydro.filling is None else "is to be filled"
            reporter.error(
                "BusinessRuleViolation",
                f"{path}: {entity} {has}, so its initial storage belongs in {mine}, not in {other}.",
                file=path,
                entity=entity,
                field=f"{other}.value_hm3",
                value=wrong[hydro.id],
                rule="5a.7b",
                suggestion=f"Move the entry to {mine}.",
            )
        dead = hydro.reservoir.min_storage_hm3
        if hydro.filling is not None and hydro.id in seeds and seeds[hydro.id] >= dead:
            reporter.error(
                "BusinessRuleViolation",
                f"{path}: filling_storage of {entity} is {seeds[hydro.id]} hm3, not below its dead volume "
                f"({dead} hm3).",
                file=path,
                entity=entity,
                field="filling_storage.value_hm3",
                value=seeds[hydro.id],
                rule="5a.7b",
                suggestion="A plant that is full to its dead volume needs no filling.",
            )
