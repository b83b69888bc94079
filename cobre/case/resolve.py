"""Parsed files to the immutable model: defaults, overrides and order settled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.stages import discount_factor, stage_rate, transition_rates
from cobre.case.hydro_models import HydroModels
from cobre.case.load_factors import resolve_load_factors
from cobre.case.model import (
    HYDRO_PENALTIES,
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    HydroStatus,
    Line,
    Scenarios,
    Stage,
    StageData,
    Thermal,
    TrainingOptions,
    UnitGroup,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.schema.config import ConfigFile, EnumeratedTraining, IterationLimit
from cobre.case.schema.penalties import (
    DeficitSegmentEntry,
    GlobalHydroPenalties,
    HydroPenaltyOverrides,
    PenaltiesFile,
)
from cobre.case.schema.stages import StagesFile
from cobre.case.sources import Sources
from cobre.case.stats import SeasonalStats
from cobre.errors import Problem

DEFAULT_TREE_SEED = 42
DEFAULT_INFLOW_NONNEGATIVITY_COST = 1000.0


def resolve(
    path: Path,
    sources: Sources,
    hydro_models: HydroModels,
    inflow: SeasonalStats,
    load: SeasonalStats,
    warnings: tuple[Problem, ...],
) -> Case:
    """Build the model from sources that passed every check.

    Parameters
    ----------
    hydro_models
        Production and evaporation of the plants.
    inflow, load
        By (stage, hydro) in m3/s and by (stage, bus) in MW.
    """
    config, penalties, stages = sources.config.root, sources.penalties.root, sources.stages.root
    if config is None or penalties is None or stages is None:
        raise ValueError("resolve() needs sources without errors")
    resolved_stages = _stages(stages)
    hydros = _hydros(sources)
    stage_data = _stage_data(sources, penalties, resolved_stages)
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
            ncs_mean=_frozen(np.zeros((len(resolved_stages), 0))),
            ncs_std=_frozen(np.zeros((len(resolved_stages), 0))),
            ncs_has_stats=np.zeros(0, np.bool_),
        ),
        evaporation=hydro_models.evaporation,
        generic=((),) * len(resolved_stages),
        energy=hydro_models.energy,
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
        Line(id=line.id, name=line.name, source_bus_id=line.source_bus_id, target_bus_id=line.target_bus_id)
        for line in sorted(sources.lines.items, key=lambda line: line.id)
    )


def _thermals(sources: Sources) -> tuple[Thermal, ...]:
    return tuple(
        Thermal(id=thermal.id, name=thermal.name, bus_id=thermal.bus_id)
        for thermal in sorted(sources.thermals.items, key=lambda thermal: thermal.id)
    )


def _hydros(sources: Sources) -> tuple[Hydro, ...]:
    storage = {entry.hydro_id: entry.value_hm3 for entry in sources.initial.items}
    return tuple(
        Hydro(
            id=hydro.id,
            name=hydro.name,
            downstream_id=hydro.downstream_id,
            unit_groups=tuple(
                UnitGroup(id=group.id, name=group.name, bus_id=group.bus_id)
                for group in sorted(hydro.unit_groups, key=lambda group: group.id)
            ),
            initial_storage_hm3=storage.get(hydro.id, hydro.reservoir.min_storage_hm3),
        )
        for hydro in sorted(sources.hydros.items, key=lambda hydro: hydro.id)
    )


def _stage_data(
    sources: Sources, penalties: PenaltiesFile, stages: tuple[Stage, ...]
) -> tuple[StageData, ...]:
    """Repeat the entities' values for every stage and block."""
    hydros = sorted(sources.hydros.items, key=lambda hydro: hydro.id)
    groups = [group for hydro in hydros for group in sorted(hydro.unit_groups, key=lambda group: group.id)]
    thermals = sorted(sources.thermals.items, key=lambda thermal: thermal.id)
    lines = sorted(sources.lines.items, key=lambda line: line.id)
    costs = [
        _hydro_penalties(penalties.hydro, hydro.penalties or HydroPenaltyOverrides()) for hydro in hydros
    ]
    factors = resolve_load_factors(sources)
    data = []
    for position, stage in enumerate(stages):

        def each(values: list[float], width: int = len(stage.blocks)) -> NDArray[np.float64]:
            return _frozen(np.repeat(np.array(values, np.float64)[:, None], width, axis=1))

        nothing = _frozen(np.zeros((0, len(stage.blocks))))
        zero = [0.0] * len(hydros)
        data.append(
            StageData(
                thermal_min_mw=each([thermal.generation.min_mw for thermal in thermals]),
                thermal_max_mw=each([thermal.generation.max_mw for thermal in thermals]),
                thermal_cost=_frozen(np.array([thermal.cost_per_mwh for thermal in thermals])),
                hydro_status=np.full(len(hydros), HydroStatus.OPERATING, np.int8),
                storage_min_hm3=_frozen(np.array([hydro.reservoir.min_storage_hm3 for hydro in hydros])),
                storage_max_hm3=_frozen(np.array([hydro.reservoir.max_storage_hm3 for hydro in hydros])),
                turbined_min_m3s=each([hydro.generation.min_turbined_m3s for hydro in hydros]),
                turbined_max_m3s=each([hydro.generation.max_turbined_m3s for hydro in hydros]),
                generation_min_mw=each([hydro.generation.min_generation_mw for hydro in hydros]),
                generation_max_mw=each([hydro.generation.max_generation_mw for hydro in hydros]),
                outflow_min_m3s=each([hydro.outflow.min_outflow_m3s for hydro in hydros]),
                outflow_max_m3s=each(
                    [
                        np.inf if hydro.outflow.max_outflow_m3s is None else hydro.outflow.max_outflow_m3s
                        for hydro in hydros
                    ]
                ),
                diversion_min_m3s=each(zero),
                diversion_max_m3s=each(zero),
                withdrawal_m3s=_frozen(np.zeros(len(hydros))),
                filling_min_rate_m3s=_frozen(np.zeros(len(hydros))),
                group_turbined_min_m3s=each([group.min_turbined_m3s for group in groups]),
                group_turbined_max_m3s=each([group.max_turbined_m3s for group in groups]),
                group_generation_min_mw=each([group.min_generation_mw for group in groups]),
                group_generation_max_mw=each([group.max_generation_mw for group in groups]),
                hydro_penalty=_frozen(np.array(costs).reshape(len(hydros), len(HYDRO_PENALTIES))),
                line_direct_mw=each([line.capacity.direct_mw for line in lines]),
                line_reverse_mw=each([line.capacity.reverse_mw for line in lines]),
                exchange_cost=_frozen(
                    np.array(
                        [
                            penalties.line.exchange_cost if line.exchange_cost is None else line.exchange_cost
                            for line in lines
                        ]
                    )
                ),
                excess_cost=_frozen(np.full(len(sources.buses.items), penalties.bus.excess_cost)),
                load_factor=_frozen(factors[position]),
                pumping_min_m3s=nothing,
                pumping_max_m3s=nothing,
                contract_min_mw=nothing,
                contract_max_mw=nothing,
                contract_price=nothing,
                ncs_available_mw=_frozen(np.zeros(0)),
                ncs_in_service=np.zeros(0, np.bool_),
                ncs_factor=nothing,
                curtailment_cost=_frozen(np.zeros(0)),
            )
        )
    return tuple(data)


def _hydro_penalties(common: GlobalHydroPenalties, own: HydroPenaltyOverrides) -> list[float]:
    """Return the costs of one plant in the order of HYDRO_PENALTIES."""

    def pick(name: str) -> float:
        symmetric = name.removesuffix("_pos").removesuffix("_neg")
        values = (
            getattr(own, f"{name}_cost", None),
            getattr(own, f"{symmetric}_cost", None),
            getattr(common, f"{name}_cost", None),
            getattr(common, f"{symmetric}_cost", None),
        )
        fallback = DEFAULT_INFLOW_NONNEGATIVITY_COST if name == "inflow_nonnegativity" else 0.0
        return next((float(value) for value in values if value is not None), fallback)

    return [pick(name) for name in HYDRO_PENALTIES]
