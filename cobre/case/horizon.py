"""Stages, seasons, policy graph and options, resolved. Only for sources without errors."""

from __future__ import annotations

import posixpath
from pathlib import Path

from cobre.case.checks.config import boundary_path
from cobre.case.checks.stages import discount_factor, stage_rate, transition_rates
from cobre.case.model import (
    Block,
    CheckpointOptions,
    PolicyGraph,
    PolicyNode,
    PolicyOptions,
    RiskMeasure,
    Season,
    SeasonMap,
    Stage,
    TrainingOptions,
    Transition,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.schema.config import Checkpointing, ConfigFile, IterationLimit, SampledTraining
from cobre.case.schema.stages import StageEntry, StagesFile
from cobre.case.seasons import stage_season

DEFAULT_TREE_SEED = 42
DEFAULT_POLICY_PATH = "policy"


def resolve_training(config: ConfigFile) -> TrainingOptions:
    """Return the options of training."""
    training, modeling = config.training, config.modeling
    selection, seed = training.selection, training.tree_seed
    method = modeling.inflow_non_negativity.method if modeling and modeling.inflow_non_negativity else None
    return TrainingOptions(
        tree_seed=DEFAULT_TREE_SEED if seed is None else abs(seed),
        forward_passes=selection.forward_passes if isinstance(selection, SampledTraining) else 0,
        iteration_limit=max(
            rule.limit for rule in training.stopping_rules if isinstance(rule, IterationLimit)
        ),
        inflow_method=method or "penalty",
        cost_scale_factor=modeling.cost_scale_factor if modeling else None,
        enumerated=not isinstance(selection, SampledTraining),
    )


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


def resolve_stages(file: StagesFile) -> tuple[Stage, ...]:
    """Return the study stages by ascending id."""
    rates = transition_rates(file.policy_graph.transitions or []) if not file.policy_graph.nodes else {}
    rate = file.policy_graph.annual_discount_rate
    study = sorted((stage for stage in file.stages if stage.id >= 0), key=lambda stage: stage.id)
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
        blocks=tuple(
            Block(block.id, block.name, block.hours)
            for block in sorted(stage.blocks, key=lambda block: block.id)
        ),
        num_openings=1 if stage.num_openings is None else stage.num_openings,
        discount_factor=discount_factor(stage, rate),
        block_mode=stage.block_mode or "parallel",
        risk=_risk(stage),
        sampling_method=method,
        storage_is_state=state is None or state.storage is not False,
        lags_are_state=state is not None and state.inflow_lags is True,
    )


def _risk(stage: StageEntry) -> RiskMeasure:
    if stage.risk_measure is None:
        return RiskMeasure()
    return RiskMeasure(weight=stage.risk_measure.cvar.weight, tail=stage.risk_measure.cvar.alpha)


def resolve_seasons(file: StagesFile) -> SeasonMap | None:
    """Return how dates map to seasons, or ``None`` without definitions."""
    definitions = file.season_definitions
    if definitions is None:
        return None
    return SeasonMap(
        definitions.cycle_type,
        tuple(
            Season(item.id, item.label, item.month_start, item.day_start, item.month_end, item.day_end)
            for item in sorted(definitions.seasons, key=lambda item: item.id)
        ),
    )


def resolve_graph(file: StagesFile) -> PolicyGraph:
    """Return the policy graph; probabilities out of a node sum to 1 but for rounding."""
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
