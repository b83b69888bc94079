"""Buses, lines, thermal and hydro plants: references, cascade, limits."""

from __future__ import annotations

from collections.abc import Sequence

from cobre.case.catalogue import by_id
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.format import layout
from cobre.case.format.schema.penalties import DeficitSegmentEntry
from cobre.case.format.schema.system import HydroEntry, UnitGroupEntry
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, name_entity

_SUM_TOLERANCE = 1e-6
"""Relative slack when the limits of unit groups are added up against the plant's."""


def check_system(sources: Sources, reporter: Reporter) -> None:
    """Check everything in ``system/`` except productivity."""
    for parsed, path, word in (
        (sources.buses, layout.BUSES, "bus"),
        (sources.lines, layout.LINES, "line"),
        (sources.thermals, layout.THERMALS, "thermal"),
        (sources.hydros, layout.HYDROS, "hydro"),
    ):
        # With an unreadable id somewhere, the readable ones can still repeat.
        ids = parsed.ids if parsed.ids is not None else [item.id for item in parsed.items]
        check_unique(ids, path, word, reporter, names=parsed.names)
    _check_buses(sources, reporter)
    _check_lines(sources, reporter)
    _check_thermals(sources, reporter)
    for hydro in by_id(sources.hydros.items):
        _check_hydro(hydro, sources, reporter)
    _check_cascade(sources, reporter)


def _check_buses(sources: Sources, reporter: Reporter) -> None:
    if sources.penalties.root is not None:
        segments = sources.penalties.root.bus.deficit_segments
        _check_deficit(segments, layout.PENALTIES, None, "bus.deficit_segments", reporter)
    for bus in by_id(sources.buses.items):
        if bus.deficit_segments is not None:
            entity = name_entity("bus", bus.id, bus.name)
            _check_deficit(bus.deficit_segments, layout.BUSES, entity, "deficit_segments", reporter)


def _check_deficit(
    segments: Sequence[DeficitSegmentEntry], path: str, entity: str | None, field: str, reporter: Reporter
) -> None:
    def complain(message: str, where: str, value: object, suggestion: str) -> None:
        owner = f" of {entity}" if entity else ""
        reporter.error(
            "InvalidValue",
            f"{path}: {where}{owner} {message}",
            file=path,
            entity=entity,
            field=where,
            value=value,
            suggestion=suggestion,
        )

    if not segments:
        complain("must hold at least one segment.", field, [], "Add a segment with depth_mw null.")
        return
    for index, segment in enumerate(segments[:-1]):
        if segment.depth_mw is None:
            complain(
                "has no limit, so the segments after it could never be used.",
                f"{field}[{index}].depth_mw",
                None,
                "Only the last segment may have depth_mw null.",
            )
        following = segments[index + 1].cost
        if following <= segment.cost:
            complain(
                f"is {following}, but must be greater than the cost before it ({segment.cost}).",
                f"{field}[{index + 1}].cost",
                following,
                "Order the segments by strictly increasing cost.",
            )
    if segments[-1].depth_mw is not None:
        complain(
            f"is {segments[-1].depth_mw}, but the last segment must be unlimited.",
            f"{field}[{len(segments) - 1}].depth_mw",
            segments[-1].depth_mw,
            "Set depth_mw of the last segment to null.",
        )


def _check_lines(sources: Sources, reporter: Reporter) -> None:
    path = layout.LINES
    for line in by_id(sources.lines.items):
        entity = name_entity("line", line.id, line.name)
        check_reference(line.source_bus_id, sources.buses, "bus", path, entity, "source_bus_id", reporter)
        check_reference(line.target_bus_id, sources.buses, "bus", path, entity, "target_bus_id", reporter)
        if line.source_bus_id == line.target_bus_id:
            reporter.error(
                "InvalidValue",
                f"{path}: target_bus_id of {entity} is {line.target_bus_id}, the same bus as its source.",
                file=path,
                entity=entity,
                field="target_bus_id",
                value=line.target_bus_id,
                suggestion="A line must join two different buses.",
            )


def _check_thermals(sources: Sources, reporter: Reporter) -> None:
    for thermal in by_id(sources.thermals.items):
        entity = name_entity("thermal", thermal.id, thermal.name)
        check_reference(thermal.bus_id, sources.buses, "bus", layout.THERMALS, entity, "bus_id", reporter)
        limits = thermal.generation
        check_order(
            limits.min_mw,
            limits.max_mw,
            layout.THERMALS,
            entity,
            "generation.min_mw",
            "max_mw",
            "5a.13",
            reporter,
        )


def check_order(
    low: float,
    high: float | None,
    path: str,
    entity: str,
    field: str,
    other: str,
    rule: str | None,
    reporter: Reporter,
) -> None:
    """Report a declared minimum above its maximum; no maximum is never exceeded."""
    if high is not None and low > high:
        reporter.error(
            "InvalidValue",
            f"{path}: {field} of {entity} is {low}, more than {other} ({high}).",
            file=path,
            entity=entity,
            field=field,
            value=low,
            rule=rule,
            suggestion="Make the minimum no greater than the maximum.",
        )


def _check_hydro(hydro: HydroEntry, sources: Sources, reporter: Reporter) -> None:
    path = layout.HYDROS
    entity = name_entity("hydro", hydro.id, hydro.name)
    if hydro.downstream_id is not None:
        check_reference(hydro.downstream_id, sources.hydros, "hydro", path, entity, "downstream_id", reporter)
    storage, outflow, plant = hydro.reservoir, hydro.outflow, hydro.generation
    for low, high, field, other, rule in (
        (
            storage.min_storage_hm3,
            storage.max_storage_hm3,
            "reservoir.min_storage_hm3",
            "max_storage_hm3",
            "5a.2",
        ),
        (
            plant.min_turbined_m3s,
            plant.max_turbined_m3s,
            "generation.min_turbined_m3s",
            "max_turbined_m3s",
            "5a.3",
        ),
        (
            outflow.min_outflow_m3s,
            outflow.max_outflow_m3s,
            "outflow.min_outflow_m3s",
            "max_outflow_m3s",
            "5a.4",
        ),
        (
            plant.min_generation_mw,
            plant.max_generation_mw,
            "generation.min_generation_mw",
            "max_generation_mw",
            "5a.5",
        ),
    ):
        check_order(low, high, path, entity, field, other, rule, reporter)
    _check_groups(hydro, entity, sources, reporter)


def _check_groups(hydro: HydroEntry, entity: str, sources: Sources, reporter: Reporter) -> None:
    path, plant = layout.HYDROS, hydro.generation
    check_unique(
        [group.id for group in hydro.unit_groups],
        path,
        "unit group",
        reporter,
        field="unit_groups",
        entity=entity,
    )
    for index, group in enumerate(hydro.unit_groups):
        place = f"unit_groups[{index}]"
        check_reference(group.bus_id, sources.buses, "bus", path, entity, f"{place}.bus_id", reporter)
        for key, unit in (("generation", "mw"), ("turbined", "m3s")):
            low, high = _limits(group, key, unit)
            check_order(
                low, high, path, entity, f"{place}.min_{key}_{unit}", f"max_{key}_{unit}", None, reporter
            )
    for key, unit in (("generation", "mw"), ("turbined", "m3s")):
        limits = [_limits(group, key, unit) for group in hydro.unit_groups]
        # Sorted, so that the sum does not depend on the order in the file.
        lowest, highest = sum(sorted(low for low, _ in limits)), sum(sorted(high for _, high in limits))
        plant_low = float(getattr(plant, f"min_{key}_{unit}"))
        plant_high = float(getattr(plant, f"max_{key}_{unit}"))
        if highest > plant_high * (1.0 + _SUM_TOLERANCE):
            _report_sum(entity, f"max_{key}_{unit}", highest, "more", plant_high, "5a.41", reporter)
        if lowest < plant_low * (1.0 - _SUM_TOLERANCE):
            _report_sum(entity, f"min_{key}_{unit}", lowest, "less", plant_low, "5a.44", reporter)


def _limits(group: UnitGroupEntry, key: str, unit: str) -> tuple[float, float]:
    return float(getattr(group, f"min_{key}_{unit}")), float(getattr(group, f"max_{key}_{unit}"))


def _report_sum(
    entity: str, key: str, total: float, relation: str, limit: float, rule: str, reporter: Reporter
) -> None:
    reporter.error(
        "BusinessRuleViolation",
        f"{layout.HYDROS}: {key} of the unit groups of {entity} sums to {total}, {relation} than the plant's "
        f"generation.{key} ({limit}).",
        file=layout.HYDROS,
        entity=entity,
        field=f"unit_groups[].{key}",
        value=total,
        rule=rule,
        suggestion="Change the limits of the groups or of the plant so that they agree.",
    )


def _check_cascade(sources: Sources, reporter: Reporter) -> None:
    """Report each cycle of the cascade once; a plant has at most one plant downstream."""
    hydros = {hydro.id: hydro for hydro in by_id(sources.hydros.items)}
    done: set[int] = set()
    for start in hydros:
        path: list[int] = []
        on_path: set[int] = set()
        here: int | None = start
        while here is not None and here in hydros and here not in done and here not in on_path:
            path.append(here)
            on_path.add(here)
            here = hydros[here].downstream_id
        if here is not None and here in on_path:
            cycle = path[path.index(here) :]
            names = " -> ".join(str(number) for number in [*cycle, here])
            first = hydros[here]
            reporter.error(
                "CycleDetected",
                f"{layout.HYDROS}: water would flow in a circle through hydros {names}.",
                file=layout.HYDROS,
                entity=name_entity("hydro", first.id, first.name),
                field="downstream_id",
                value=first.downstream_id,
                rule="5a.1",
                suggestion="Set downstream_id of the plant at the end of the cascade to null.",
            )
        done.update(path)
