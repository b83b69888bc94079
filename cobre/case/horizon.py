"""Stages, seasons, policy graph and options, resolved. Only for sources without errors."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobre.case.catalogue import by_id
from cobre.case.checks.config import boundary_path
from cobre.case.checks.stages import discount_factor, stage_rate, transition_rates
from cobre.case.format.schema.config import (
    Checkpointing,
    ConfigFile,
    SampledSimulation,
    SampledTraining,
    SimulationScenarioSource,
    TrainingScenarioSource,
)
from cobre.case.format.schema.config import CutSelection as CutSelectionSection
from cobre.case.format.schema.stages import StageEntry, StagesFile
from cobre.case.model import (
    Block,
    CheckpointOptions,
    CutSelection,
    EstimationOptions,
    ExportOptions,
    PassSchedule,
    PolicyGraph,
    PolicyNode,
    PolicyOptions,
    RiskMeasure,
    ScenarioSource,
    Season,
    SeasonMap,
    SimulationOptions,
    Stage,
    TrainingOptions,
    Transition,
    UpperBoundOptions,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.seasons import stage_season
from cobre.rules.selection import METHODS
from cobre.rules.stopping.iteration_limit import IterationLimit

HELD_BY_OPTIONS = (
    *("$schema", "json_schema", "simulation", "policy", "exports", "upper_bound_evaluation"),
    *(
        f"training.{name}"
        for name in (
            *("enabled", "tree_seed", "selection", "stopping_rules", "stopping_mode", "cut_selection"),
            *("parallelism", "solver"),
            *("scenario_source.seed", "scenario_source.historical_years", "scenario_source.openings.source"),
            *(f"scenario_source.{name}.scheme" for name in ("inflow", "load", "ncs")),
        )
    ),
    *("modeling.inflow_non_negativity.method", "modeling.inflow_non_negativity.truncation_cuts"),
    "modeling.cost_scale_factor",
    *(
        f"estimation.{name}"
        for name in (
            *("max_order", "order_selection", "min_observations_per_season", "max_coefficient_magnitude"),
        )
    ),
)
"""Keys of ``config.json``, and sections with all that is in them, that have an option of a study.

Any other key is read with :meth:`cobre.case.model.Case.option` where it is used, and is part of the study's
fingerprint.
"""

DEFAULT_TREE_SEED = 42
DEFAULT_DOUBLE_EVERY = 10
DEFAULT_POLICY_PATH = "policy"


def further_keys(config: ConfigFile) -> dict[str, Any]:
    """Return the keys that are given and have no option, by dotted path."""

    def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if path in HELD_BY_OPTIONS or value is None:
            return
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from leaves(inner, f"{path}.{name}" if path else name)
        else:
            yield path, value

    return dict(leaves(config.model_dump(serialize_as_any=True), ""))


def resolve_training(config: ConfigFile) -> TrainingOptions:
    """Return the options of training."""
    training, modeling = config.training, config.modeling
    selection, seed = training.selection, training.tree_seed
    negative = modeling.inflow_non_negativity if modeling else None
    return TrainingOptions(
        tree_seed=DEFAULT_TREE_SEED if seed is None else abs(seed),
        forward_passes=selection.forward_passes if isinstance(selection, SampledTraining) else 0,
        iteration_limit=max(
            rule.limit for rule in training.stopping_rules if isinstance(rule, IterationLimit)
        ),
        inflow_method=(negative.method if negative else None) or "penalty",
        cost_scale_factor=modeling.cost_scale_factor if modeling else None,
        truncation_cuts=(negative.truncation_cuts if negative else None) or "tangent",
        enumerated=not isinstance(selection, SampledTraining),
        source=_source(training.scenario_source),
        stopping_rules=tuple(
            rule for rule in training.stopping_rules if not isinstance(rule, IterationLimit)
        ),
        stopping_mode=training.stopping_mode or "any",
        cut_selection=_cut_selection(training.cut_selection),
        upper_bound=_upper_bound(config),
        enabled=training.enabled is not False,
        pass_schedule=_pass_schedule(selection) if isinstance(selection, SampledTraining) else None,
    )


def _pass_schedule(selection: SampledTraining) -> PassSchedule | None:
    if selection.initial_passes is None:
        return None
    return PassSchedule(selection.initial_passes, selection.double_every or DEFAULT_DOUBLE_EVERY)


def _upper_bound(config: ConfigFile) -> UpperBoundOptions:
    section = config.upper_bound_evaluation
    if section is None:
        return UpperBoundOptions()
    prices = section.lipschitz
    factor = None if prices is None else prices.scale_factor
    return UpperBoundOptions(
        enabled=section.enabled,
        initial_iteration=section.initial_iteration or 1,
        interval_iterations=section.interval_iterations,
        fallback_price=None if prices is None else prices.fallback_value,
        price_factor=1.0 if factor is None else factor,
    )


def resolve_simulation(config: ConfigFile) -> SimulationOptions:
    """Return the options of simulation; without a scenario source of its own it has that of training."""
    simulation = config.simulation
    own = simulation.scenario_source if simulation is not None else None
    source = replace(_source(own or config.training.scenario_source), openings="generated")
    selection = simulation.selection if simulation is not None else None
    enabled = simulation is not None and bool(simulation.enabled)
    if selection is None:
        return SimulationOptions(enabled, source=source)
    if isinstance(selection, SampledSimulation):
        return SimulationOptions(enabled, num_scenarios=selection.num_scenarios, source=source)
    return SimulationOptions(enabled, num_scenarios=0, enumerated=True, source=source)


def _source(given: SimulationScenarioSource | None) -> ScenarioSource:
    if given is None:
        return ScenarioSource()
    years = given.historical_years
    schemes = {
        name: entry.scheme
        for name, entry in (("inflow", given.inflow), ("load", given.load), ("ncs", given.ncs))
        if entry is not None and entry.scheme is not None
    }
    openings = given.openings if isinstance(given, TrainingScenarioSource) else None
    return ScenarioSource(
        **schemes,
        seed=None if given.seed is None else abs(given.seed),
        historical_years=(
            None
            if years is None
            else tuple(sorted(set(years)))
            if isinstance(years, list)
            else range(years.from_, years.to + 1)
        ),
        openings="generated" if openings is None or openings.source is None else openings.source,
    )


def _cut_selection(section: CutSelectionSection | None) -> CutSelection:
    if section is None:
        return CutSelection()
    method = section.selection
    given: dict[str, Any] = {
        "max_active_per_stage": section.max_active_per_stage,
        "activity_tolerance": section.row_activity_tolerance,
    }
    if method is not None:
        rule, keys = METHODS[method.method], method.model_dump()
        given["tolerance"] = keys.pop(rule.tolerance_key)
        given["parameters"] = tuple(float(keys.pop(key)) for key in rule.parameter_keys) or None
        given |= keys
    return CutSelection(**{name: value for name, value in given.items() if value is not None})


def resolve_policy(root: Path, config: ConfigFile) -> PolicyOptions:
    """Return where the policy is kept, and where cuts come from besides training."""
    policy = config.policy
    if policy is None:
        return PolicyOptions()
    boundary = policy.boundary
    return PolicyOptions(
        boundary_path=None if boundary is None else boundary_path(root, boundary.path),
        boundary_strict=boundary is not None and bool(boundary.strict),
        path=posixpath.normpath(policy.path or DEFAULT_POLICY_PATH),
        mode=policy.mode or "fresh",
        checkpointing=_checkpointing(policy.checkpointing),
    )


def _checkpointing(section: Checkpointing | None) -> CheckpointOptions | None:
    if section is None or not section.enabled or section.interval_iterations is None:
        return None
    return CheckpointOptions(
        interval_iterations=section.interval_iterations,
        initial_iteration=section.initial_iteration or 0,
        store_basis=section.store_basis is not False,
        compress=section.compress is not False,
    )


def resolve_estimation(config: ConfigFile) -> EstimationOptions:
    """Return how inflow models are estimated."""
    given = config.estimation.model_dump(exclude_none=True) if config.estimation is not None else {}
    return EstimationOptions(**given)


def resolve_exports(config: ConfigFile) -> ExportOptions:
    """Return what training writes besides its results."""
    return ExportOptions(stochastic=config.exports is not None and config.exports.stochastic is True)


def resolve_stages(file: StagesFile) -> tuple[Stage, ...]:
    """Return the study stages by ascending id."""
    rates = transition_rates(file.policy_graph.transitions or []) if not file.policy_graph.nodes else {}
    rate = file.policy_graph.annual_discount_rate
    study = by_id(stage for stage in file.stages if stage.id >= 0)
    return tuple(_stage(file, stage, stage_rate(stage, rates, rate)) for stage in study)


def _stage(file: StagesFile, stage: StageEntry, rate: float) -> Stage:
    state = stage.state_variables
    method = stage.sampling_method or "saa"
    if method == "selective":
        raise ValueError("resolve_stages() needs sources without errors")
    return Stage(
        id=stage.id,
        start_date=stage.start_date,
        end_date=stage.end_date,
        season_id=stage_season(file, stage),
        blocks=tuple(Block(block.id, block.name, block.hours) for block in by_id(stage.blocks)),
        num_openings=1 if stage.num_openings is None else stage.num_openings,
        discount_factor=discount_factor(stage, rate),
        block_mode=stage.block_mode or "parallel",
        risk=stage.risk_measure or RiskMeasure(),
        sampling_method=method,
        storage_is_state=state is None or state.storage is not False,
        lags_are_state=state is not None and state.inflow_lags is True,
    )


def resolve_seasons(file: StagesFile) -> SeasonMap | None:
    """Return how dates map to seasons, or ``None`` without definitions."""
    definitions = file.season_definitions
    if definitions is None:
        return None
    return SeasonMap(
        definitions.cycle_type,
        tuple(
            Season(item.id, item.label, item.month_start, item.day_start, item.month_end, item.day_end)
            for item in by_id(definitions.seasons)
        ),
    )


def resolve_graph(file: StagesFile) -> PolicyGraph:
    """Return the policy graph; probabilities out of a node sum to 1 but for rounding."""
    return replace(_nodes_and_edges(file), root_risk=file.policy_graph.root_risk_measure)


def _nodes_and_edges(file: StagesFile) -> PolicyGraph:
    ids = sorted(stage.id for stage in file.stages if stage.id >= 0)
    if not file.policy_graph.nodes:
        return chain_graph(len(ids))
    stage_at = {number: position for position, number in enumerate(ids)}
    nodes = tuple(
        PolicyNode(node.id, stage_at[node.stage_id], node.scenario_id, node.label)
        for node in sorted(file.policy_graph.nodes, key=lambda node: (stage_at[node.stage_id], node.id))
    )
    if not file.policy_graph.transitions:
        return PolicyGraph(nodes, chain_graph(len(nodes)).transitions)
    node_at = {node.id: position for position, node in enumerate(nodes)}
    edges = sorted(
        (node_at[item.source_id], node_at[item.target_id], item.probability)
        for item in file.policy_graph.transitions
    )
    total: dict[int, float] = {}
    for source, _, probability in edges:
        total[source] = total.get(source, 0.0) + probability
    return PolicyGraph(
        nodes, tuple(Transition(source, target, share / total[source]) for source, target, share in edges)
    )
