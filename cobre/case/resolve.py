"""Parsed files to the immutable model: defaults, overrides and order settled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.case.anticipated import post_study_stages
from cobre.case.catalogue import EXTENSIONS, by_id
from cobre.case.checks.initial import initial_storage
from cobre.case.format.schema.penalties import DeficitSegmentEntry, PenaltiesFile
from cobre.case.format.sources import Sources
from cobre.case.horizon import (
    resolve_estimation,
    resolve_exports,
    resolve_graph,
    resolve_policy,
    resolve_seasons,
    resolve_simulation,
    resolve_stages,
    resolve_training,
)
from cobre.case.hydro.models import HydroModels
from cobre.case.hydro.travel import water_under_way
from cobre.case.model import (
    Bus,
    Case,
    Contract,
    DeficitSegment,
    Diversion,
    Filling,
    Hydro,
    Line,
    NonControllable,
    PumpingStation,
    Scenarios,
    Stage,
    StageData,
    Thermal,
    UnitGroup,
)


def resolve(
    path: Path,
    sources: Sources,
    stage_data: tuple[StageData, ...],
    hydro_models: HydroModels,
    scenarios: Scenarios,
) -> Case:
    """Build the model from sources that passed every check.

    Parameters
    ----------
    stage_data
        Limits and costs of every study stage.
    hydro_models
        Production and evaporation of the plants.
    scenarios
        Statistics and external scenarios.
    """
    config, penalties, stages = sources.config.root, sources.penalties.root, sources.stages.root
    if config is None or penalties is None or stages is None:
        raise ValueError("resolve() needs sources without errors")
    resolved_stages = resolve_stages(stages)
    hydros = _hydros(sources, resolved_stages)
    return Case(
        path=path,
        training=resolve_training(config),
        stages=resolved_stages,
        graph=resolve_graph(stages),
        buses=_buses(sources, penalties),
        lines=_lines(sources),
        thermals=_thermals(sources),
        hydros=hydros,
        stage_data=stage_data,
        production=hydro_models.production(*_storage_range(hydros, stage_data)),
        scenarios=scenarios,
        evaporation=hydro_models.evaporation,
        generic=((),) * len(resolved_stages),
        energy=hydro_models.energy,
        non_controllables=_non_controllables(sources),
        pumping_stations=_pumping_stations(sources),
        contracts=_contracts(sources),
        post_study_stages=post_study_stages(sources),
        seasons=resolve_seasons(stages),
        policy=resolve_policy(path, config),
        estimation=resolve_estimation(config),
        simulation=resolve_simulation(config),
        exports=resolve_exports(config),
        config=config,
        extensions={
            kind.attribute: tuple(by_id(items))
            for kind in EXTENSIONS
            if (items := sources.registry(kind).items)
        },
    )


def _storage_range(
    hydros: tuple[Hydro, ...], stage_data: tuple[StageData, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and largest storage (hm3) that each plant can have at any time."""
    initial = np.array([hydro.initial_storage_hm3 for hydro in hydros], np.float64)
    low = np.minimum.reduce([initial, *(data.storage_min_hm3 for data in stage_data)])
    high = np.maximum.reduce([initial, *(data.storage_max_hm3 for data in stage_data)])
    return low, high


def _segments(entries: list[DeficitSegmentEntry]) -> tuple[DeficitSegment, ...]:
    return tuple(DeficitSegment(entry.depth_mw, entry.cost) for entry in entries)


def _buses(sources: Sources, penalties: PenaltiesFile) -> tuple[Bus, ...]:
    common = penalties.bus.deficit_segments
    return tuple(
        Bus(
            id=bus.id,
            name=bus.name,
            deficit_segments=_segments(common if bus.deficit_segments is None else bus.deficit_segments),
        )
        for bus in by_id(sources.buses.items)
    )


def _lines(sources: Sources) -> tuple[Line, ...]:
    return tuple(
        Line(
            id=line.id,
            name=line.name,
            source_bus_id=line.source_bus_id,
            target_bus_id=line.target_bus_id,
            loss=(line.losses_percent or 0.0) / 100.0,
        )
        for line in by_id(sources.lines.items)
    )


def _thermals(sources: Sources) -> tuple[Thermal, ...]:
    return tuple(
        Thermal(id=thermal.id, name=thermal.name, bus_id=thermal.bus_id)
        for thermal in by_id(sources.thermals.items)
    )


def _hydros(sources: Sources, stages: tuple[Stage, ...]) -> tuple[Hydro, ...]:
    storage = initial_storage(sources)
    under_way = water_under_way(sources, stages)
    stage_ids = np.array([stage.id for stage in stages], np.int64)
    return tuple(
        Hydro(
            id=hydro.id,
            name=hydro.name,
            downstream_id=hydro.downstream_id,
            unit_groups=tuple(
                UnitGroup(id=group.id, name=group.name, bus_id=group.bus_id)
                for group in by_id(hydro.unit_groups)
            ),
            initial_storage_hm3=storage[hydro.id],
            travel_time_hours=hydro.travel_time_hours or 0.0,
            past_outflow_hm3=under_way.get(hydro.id, ()),
            diversion=None if hydro.diversion is None else Diversion(hydro.diversion.downstream_id),
            filling=(
                None
                if hydro.filling is None
                else Filling(int(np.searchsorted(stage_ids, hydro.filling.start_stage_id)))
            ),
            specific_productivity_mw_per_m3s_per_m=hydro.specific_productivity_mw_per_m3s_per_m,
        )
        for hydro in by_id(sources.hydros.items)
    )


def _non_controllables(sources: Sources) -> tuple[NonControllable, ...]:
    return tuple(
        NonControllable(
            id=item.id,
            name=item.name,
            bus_id=item.bus_id,
            max_generation_mw=item.max_generation_mw,
            allow_curtailment=item.allow_curtailment,
        )
        for item in by_id(sources.non_controllables.items)
    )


def _pumping_stations(sources: Sources) -> tuple[PumpingStation, ...]:
    return tuple(
        PumpingStation(
            id=item.id,
            name=item.name,
            bus_id=item.bus_id,
            source_hydro_id=item.source_hydro_id,
            destination_hydro_id=item.destination_hydro_id,
            consumption_mw_per_m3s=item.consumption_mw_per_m3s,
        )
        for item in by_id(sources.pumping_stations.items)
    )


def _contracts(sources: Sources) -> tuple[Contract, ...]:
    return tuple(
        Contract(id=item.id, name=item.name, bus_id=item.bus_id, kind=item.type)
        for item in by_id(sources.contracts.items)
    )
