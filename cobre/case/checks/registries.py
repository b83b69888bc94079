"""Non-controllable sources, pumping stations, contracts, and the channels and curves of hydro plants."""

from __future__ import annotations

import itertools
from typing import Any

from cobre.case.catalogue import EXTENSIONS, EntityType, by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.checks.system import check_order
from cobre.case.format import layout
from cobre.case.format.parse import Parsed
from cobre.case.format.schema.system import HydroEntry, PiecewiseTailrace
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, name_entity


def check_registries(sources: Sources, reporter: Reporter) -> None:
    """Check the optional registries of ``system/``, and the optional parts of hydro plants."""
    _check_non_controllables(sources, reporter)
    _check_pumping(sources, reporter)
    _check_contracts(sources, reporter)
    for kind in EXTENSIONS:
        _check_extension(kind, sources, reporter)
    for hydro in by_id(sources.hydros.items):
        _check_hydro(hydro, sources, reporter)


def _unique(parsed: Parsed[Any, Any], path: str, word: str, reporter: Reporter) -> None:
    # With an unreadable id somewhere, the readable ones can still repeat.
    ids = parsed.ids if parsed.ids is not None else [item.id for item in parsed.items]
    check_unique(ids, path, word, reporter, names=parsed.names)


def _check_non_controllables(sources: Sources, reporter: Reporter) -> None:
    path, word = layout.NON_CONTROLLABLES, "non-controllable source"
    _unique(sources.non_controllables, path, word, reporter)
    for item in by_id(sources.non_controllables.items):
        entity = name_entity(word, item.id, item.name)
        check_reference(item.bus_id, sources.buses, "bus", path, entity, "bus_id", reporter)


def _check_pumping(sources: Sources, reporter: Reporter) -> None:
    path, word = layout.PUMPING_STATIONS, "pumping station"
    _unique(sources.pumping_stations, path, word, reporter)
    for item in by_id(sources.pumping_stations.items):
        entity = name_entity(word, item.id, item.name)
        check_reference(item.bus_id, sources.buses, "bus", path, entity, "bus_id", reporter)
        for field in ("source_hydro_id", "destination_hydro_id"):
            value = getattr(item, field)
            check_reference(value, sources.hydros, "hydro", path, entity, field, reporter)
        if item.source_hydro_id == item.destination_hydro_id:
            reporter.error(
                "BusinessRuleViolation",
                f"{path}: destination_hydro_id of {entity} is {item.destination_hydro_id}, the same plant as "
                "its source.",
                file=path,
                entity=entity,
                field="destination_hydro_id",
                value=item.destination_hydro_id,
                rule="5a.19",
                suggestion="A pumping station must join two different plants.",
            )
        flow = item.flow
        check_order(flow.min_m3s, flow.max_m3s, path, entity, "flow.min_m3s", "max_m3s", None, reporter)


def _check_contracts(sources: Sources, reporter: Reporter) -> None:
    path = layout.CONTRACTS
    _unique(sources.contracts, path, "contract", reporter)
    for item in by_id(sources.contracts.items):
        entity = name_entity("contract", item.id, item.name)
        check_reference(item.bus_id, sources.buses, "bus", path, entity, "bus_id", reporter)
        limits = item.limits
        check_order(limits.min_mw, limits.max_mw, path, entity, "limits.min_mw", "max_mw", None, reporter)


def _check_extension(kind: EntityType, sources: Sources, reporter: Reporter) -> None:
    """Check ids, references and pairs of values as the catalogue states them."""
    parsed = sources.registry(kind)
    _unique(parsed, kind.path, kind.word, reporter)
    targets: dict[str, Parsed[Any, Any]] = {"bus": sources.buses, "hydro": sources.hydros}
    for item in by_id(parsed.items):
        entity = name_entity(kind.word, item.id, item.name)
        for field, target in kind.references:
            value = getattr(item, field)
            check_reference(value, targets[target], target, kind.path, entity, field, reporter)
        for low, high in kind.orders:
            check_order(getattr(item, low), getattr(item, high), kind.path, entity, low, high, None, reporter)


def _check_hydro(hydro: HydroEntry, sources: Sources, reporter: Reporter) -> None:
    path = layout.HYDROS
    entity = name_entity("hydro", hydro.id, hydro.name)
    if hydro.travel_time_hours and hydro.downstream_id is None:
        reporter.error(
            "BusinessRuleViolation",
            f"{path}: {entity} has travel_time_hours {hydro.travel_time_hours}, but no plant downstream.",
            file=path,
            entity=entity,
            field="travel_time_hours",
            value=hydro.travel_time_hours,
            suggestion="Give downstream_id, or remove travel_time_hours.",
        )
    if hydro.diversion is not None:
        target = hydro.diversion.downstream_id
        check_reference(target, sources.hydros, "hydro", path, entity, "diversion.downstream_id", reporter)
        if target == hydro.id:
            reporter.error(
                "CycleDetected",
                f"{path}: the diversion of {entity} leads back to the plant itself.",
                file=path,
                entity=entity,
                field="diversion.downstream_id",
                value=target,
                rule="5a.1",
                suggestion="A diversion must lead to another plant.",
            )
    if isinstance(hydro.tailrace, PiecewiseTailrace):
        for index, (one, two) in enumerate(itertools.pairwise(hydro.tailrace.points)):
            if two.outflow_m3s <= one.outflow_m3s:
                reporter.error(
                    "InvalidValue",
                    f"{path}: tailrace.points[{index + 1}].outflow_m3s of {entity} is {two.outflow_m3s}, not "
                    f"above the one before it ({one.outflow_m3s}).",
                    file=path,
                    entity=entity,
                    field=f"tailrace.points[{index + 1}].outflow_m3s",
                    value=two.outflow_m3s,
                    suggestion="Order the points by strictly increasing outflow.",
                )
