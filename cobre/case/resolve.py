"""Parsed files to the immutable model: defaults, overrides and order settled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.stages import discount_factor, stage_rate, transition_rates
from cobre.case.hydro_models import HydroModels
from cobre.case.model import (
    Block,
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
    TrainingOptions,
    UnitGroup,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.schema.config import ConfigFile, EnumeratedTraining, IterationLimit
from cobre.case.schema.penalties import DeficitSegmentEntry, PenaltiesFile
from cobre.case.schema.stages import StagesFile
from cobre.case.schema.system import HydroEntry
from cobre.case.sources import Sources
from cobre.case.stats import SeasonalStats
from cobre.errors import Problem

DEFAULT_TREE_SEED = 42


def resolve(
    path: Path,
    sources: Sources,
    stage_data: tuple[StageData, ...],
    hydro_models: HydroModels,
    inflow: SeasonalStats,
    load: SeasonalStats,
    warnings: tuple[Problem, ...],
) -> Case:
    """Build the model from sources that passed every check.

    Parameters
    ----------
    stage_data
        Limits and costs of every study stage.
    hydro_models
        Production and evaporation of the plants.
    inflow, load
        By (stage, hydro) in m3/s and by (stage, bus) in MW.
    """
    config, penalties, stages = sources.config.root, sources.penalties.root, sources.stages.root
    if config is None or penalties is None or stages is None:
        raise ValueError("resolve() needs sources without errors")
    resolved_stages = _stages(stages)
    hydros = _hydros(sources, np.array([stage.id for stage in resolved_stages], np.int64))
    num_ncs = len(sources.non_controllables.items)
    return Case(
        path=path,
        training=_training(config),
        stages=resolved_stages,
        graph=chain_graph(len(resolved_stages)),
        buses=_buses(sources, penalties),
        lines=_lines(sources),
        thermals=_thermals(sources),
        hydros=hydros,
        stage_data=stage_data,
        production=hydro_models.production(*_storage_range(hydros, stage_data)),
        scenarios=Scenarios(
            inflow_mean_m3s=_frozen(inflow.mean),
            inflow_std_m3s=_frozen(inflow.std),
            load_mean_mw=_frozen(load.mean),
            load_std_mw=_frozen(load.std),
            ncs_mean=_frozen(np.zeros((len(resolved_stages), num_ncs))),
            ncs_std=_frozen(np.zeros((len(resolved_stages), num_ncs))),
            ncs_has_stats=np.zeros(num_ncs, np.bool_),
        ),
        evaporation=hydro_models.evaporation,
        generic=((),) * len(resolved_stages),
        energy=hydro_models.energy,
        non_controllables=_non_controllables(sources),
        pumping_stations=_pumping_stations(sources),
        contracts=_contracts(sources),
        warnings=warnings,
    )


def _storage_range(
    hydros: tuple[Hydro, ...], stage_data: tuple[StageData, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and largest storage (hm3) that each plant can have at any time."""
    initial = np.array([hydro.initial_storage_hm3 for hydro in hydros], np.float64)
    low = np.minimum.reduce([initial, *(data.storage_min_hm3 for data in stage_data)])
    high = np.maximum.reduce([initial, *(data.storage_max_hm3 for data in stage_data)])
    return low, high


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    fixed = np.ascontiguousarray(array, dtype=np.float64)
    fixed.setflags(write=False)
    return fixed


def _training(config: ConfigFile) -> TrainingOptions:
    training, modeling = config.training, config.modeling
    if isinstance(training.selection, EnumeratedTraining):
        raise ValueError("resolve() needs sources without errors")
    seed = training.tree_seed
    method = modeling.inflow_non_negativity.method if modeling and modeling.inflow_non_negativity else None
    return TrainingOptions(
        tree_seed=DEFAULT_TREE_SEED if seed is None else abs(seed),
        forward_passes=training.selection.forward_passes,
        iteration_limit=max(
            rule.limit for rule in training.stopping_rules if isinstance(rule, IterationLimit)
        ),
        inflow_method=method or "penalty",
        cost_scale_factor=modeling.cost_scale_factor if modeling else None,
    )


def _stages(file: StagesFile) -> tuple[Stage, ...]:
    rates = transition_rates(file.policy_graph.transitions or [])
    return tuple(
        Stage(
            id=stage.id,
            start_date=stage.start_date,
            end_date=stage.end_date,
            season_id=stage.season_id,
            blocks=tuple(
                Block(block.id, block.name, block.hours)
                for block in sorted(stage.blocks, key=lambda block: block.id)
            ),
            num_openings=stage.num_openings,
            discount_factor=discount_factor(
                stage, stage_rate(stage, rates, file.policy_graph.annual_discount_rate)
            ),
        )
        for stage in sorted(file.stages, key=lambda stage: stage.id)
    )


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
        for bus in sorted(sources.buses.items, key=lambda bus: bus.id)
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
        for line in sorted(sources.lines.items, key=lambda line: line.id)
    )


def _thermals(sources: Sources) -> tuple[Thermal, ...]:
    return tuple(
        Thermal(id=thermal.id, name=thermal.name, bus_id=thermal.bus_id)
        for thermal in sorted(sources.thermals.items, key=lambda thermal: thermal.id)
    )


def _hydros(sources: Sources, stage_ids: NDArray[np.int64]) -> tuple[Hydro, ...]:
    initial = sources.initial.root
    if initial is None:
        raise ValueError("resolve() needs sources without errors")
    storage = {entry.hydro_id: entry.value_hm3 for entry in initial.storage}
    seeds = {entry.hydro_id: entry.value_hm3 for entry in initial.filling_storage}

    def start(hydro: HydroEntry) -> float:
        if hydro.filling is not None:
            return seeds.get(hydro.id, 0.0)
        return storage.get(hydro.id, hydro.reservoir.min_storage_hm3)

    return tuple(
        Hydro(
            id=hydro.id,
            name=hydro.name,
            downstream_id=hydro.downstream_id,
            unit_groups=tuple(
                UnitGroup(id=group.id, name=group.name, bus_id=group.bus_id)
                for group in sorted(hydro.unit_groups, key=lambda group: group.id)
            ),
            initial_storage_hm3=start(hydro),
            travel_time_hours=hydro.travel_time_hours or 0.0,
            diversion=None if hydro.diversion is None else Diversion(hydro.diversion.downstream_id),
            filling=(
                None
                if hydro.filling is None
                else Filling(int(np.searchsorted(stage_ids, hydro.filling.start_stage_id)))
            ),
            specific_productivity_mw_per_m3s_per_m=hydro.specific_productivity_mw_per_m3s_per_m,
        )
        for hydro in sorted(sources.hydros.items, key=lambda hydro: hydro.id)
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
        for item in sorted(sources.non_controllables.items, key=lambda item: item.id)
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
        for item in sorted(sources.pumping_stations.items, key=lambda item: item.id)
    )


def _contracts(sources: Sources) -> tuple[Contract, ...]:
    return tuple(
        Contract(id=item.id, name=item.name, bus_id=item.bus_id, kind=item.type)
        for item in sorted(sources.contracts.items, key=lambda item: item.id)
    )
