"""Parsed files to the immutable model: defaults, overrides and order settled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.stages import discount_factor, stage_rate, transition_rates
from cobre.case.load_factors import resolve_load_factors
from cobre.case.model import (
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    HydroPenalties,
    Line,
    Stage,
    Thermal,
    TrainingOptions,
    UnitGroup,
)
from cobre.case.schema.config import ConfigFile, EnumeratedTraining, IterationLimit
from cobre.case.schema.penalties import (
    DeficitSegmentEntry,
    GlobalHydroPenalties,
    HydroPenaltyOverrides,
    PenaltiesFile,
)
from cobre.case.schema.stages import StagesFile
from cobre.case.schema.system import HydroEntry
from cobre.case.sources import Sources
from cobre.case.stats import SeasonalStats
from cobre.errors import Problem

DEFAULT_TREE_SEED = 42
DEFAULT_INFLOW_NONNEGATIVITY_COST = 1000.0


def resolve(
    path: Path,
    sources: Sources,
    productivity: NDArray[np.float64],
    inflow: SeasonalStats,
    load: SeasonalStats,
    warnings: tuple[Problem, ...],
) -> Case:
    """Build the model from sources that passed every check.

    Parameters
    ----------
    productivity
        By (stage, hydro), MW/(m3/s).
    inflow, load
        By (stage, hydro) in m3/s and by (stage, bus) in MW.
    """
    config, penalties, stages = sources.config.root, sources.penalties.root, sources.stages.root
    if config is None or penalties is None or stages is None:
        raise ValueError("resolve() needs sources without errors")
    return Case(
        path=path,
        training=_training(config),
        stages=_stages(stages),
        buses=_buses(sources, penalties),
        lines=_lines(sources, penalties),
        thermals=_thermals(sources),
        hydros=_hydros(sources, penalties, productivity),
        inflow_mean_m3s=_frozen(inflow.mean),
        inflow_std_m3s=_frozen(inflow.std),
        load_mean_mw=_frozen(load.mean),
        load_std_mw=_frozen(load.std),
        load_factor=tuple(_frozen(factors) for factors in resolve_load_factors(sources)),
        warnings=warnings,
    )


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
            excess_cost_per_mwh=penalties.bus.excess_cost,
        )
        for bus in sorted(sources.buses.items, key=lambda bus: bus.id)
    )


def _lines(sources: Sources, penalties: PenaltiesFile) -> tuple[Line, ...]:
    return tuple(
        Line(
            id=line.id,
            name=line.name,
            source_bus_id=line.source_bus_id,
            target_bus_id=line.target_bus_id,
            direct_mw=line.capacity.direct_mw,
            reverse_mw=line.capacity.reverse_mw,
            exchange_cost_per_mwh=(
                penalties.line.exchange_cost if line.exchange_cost is None else line.exchange_cost
            ),
        )
        for line in sorted(sources.lines.items, key=lambda line: line.id)
    )


def _thermals(sources: Sources) -> tuple[Thermal, ...]:
    return tuple(
        Thermal(
            id=thermal.id,
            name=thermal.name,
            bus_id=thermal.bus_id,
            min_mw=thermal.generation.min_mw,
            max_mw=thermal.generation.max_mw,
            cost_per_mwh=thermal.cost_per_mwh,
        )
        for thermal in sorted(sources.thermals.items, key=lambda thermal: thermal.id)
    )


def _hydros(
    sources: Sources, penalties: PenaltiesFile, productivity: NDArray[np.float64]
) -> tuple[Hydro, ...]:
    storage = {entry.hydro_id: entry.value_hm3 for entry in sources.initial.items}
    ordered = sorted(sources.hydros.items, key=lambda hydro: hydro.id)
    return tuple(
        _hydro(hydro, storage, penalties.hydro, tuple(productivity[:, index].tolist()))
        for index, hydro in enumerate(ordered)
    )


def _hydro(
    hydro: HydroEntry,
    storage: dict[int, float],
    common: GlobalHydroPenalties,
    productivity: tuple[float, ...],
) -> Hydro:
    plant = hydro.generation
    return Hydro(
        id=hydro.id,
        name=hydro.name,
        downstream_id=hydro.downstream_id,
        min_storage_hm3=hydro.reservoir.min_storage_hm3,
        max_storage_hm3=hydro.reservoir.max_storage_hm3,
        initial_storage_hm3=storage.get(hydro.id, hydro.reservoir.min_storage_hm3),
        min_outflow_m3s=hydro.outflow.min_outflow_m3s,
        max_outflow_m3s=hydro.outflow.max_outflow_m3s,
        min_turbined_m3s=plant.min_turbined_m3s,
        max_turbined_m3s=plant.max_turbined_m3s,
        min_generation_mw=plant.min_generation_mw,
        max_generation_mw=plant.max_generation_mw,
        unit_groups=tuple(
            UnitGroup(
                id=group.id,
                name=group.name,
                bus_id=group.bus_id,
                min_generation_mw=group.min_generation_mw,
                max_generation_mw=group.max_generation_mw,
                min_turbined_m3s=group.min_turbined_m3s,
                max_turbined_m3s=group.max_turbined_m3s,
            )
            for group in sorted(hydro.unit_groups, key=lambda group: group.id)
        ),
        productivity_mw_per_m3s=productivity,
        penalties=_hydro_penalties(common, hydro.penalties or HydroPenaltyOverrides()),
    )


def _hydro_penalties(common: GlobalHydroPenalties, own: HydroPenaltyOverrides) -> HydroPenalties:
    def pick(override: float | None, value: float) -> float:
        return value if override is None else override

    fallback = pick(common.inflow_nonnegativity_cost, DEFAULT_INFLOW_NONNEGATIVITY_COST)
    return HydroPenalties(
        spillage=pick(own.spillage_cost, common.spillage_cost),
        turbined=pick(own.turbined_cost, common.turbined_cost),
        storage_violation_below=pick(own.storage_violation_below_cost, common.storage_violation_below_cost),
        turbined_violation_below=pick(
            own.turbined_violation_below_cost, common.turbined_violation_below_cost
        ),
        outflow_violation_below=pick(own.outflow_violation_below_cost, common.outflow_violation_below_cost),
        outflow_violation_above=pick(own.outflow_violation_above_cost, common.outflow_violation_above_cost),
        generation_violation_below=pick(
            own.generation_violation_below_cost, common.generation_violation_below_cost
        ),
        inflow_nonnegativity=pick(own.inflow_nonnegativity_cost, fallback),
    )
