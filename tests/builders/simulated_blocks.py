"""Blocks of simulated scenarios, made by HiGHS alone: one LP of a node after another, cuts included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cobre.case.model import Case
from cobre.lp import StageTemplate, StateLayout, build_templates, scale_templates
from cobre.lp.highs import HighsModel
from cobre.policy import Policy, boundary_cuts
from cobre.policy.boundary import future_cost_floor
from cobre.sddp.simulation.block import SimulatedBlock, SimulatedStage
from cobre.stochastic import OpeningTree, build_opening_tree


@dataclass(frozen=True, eq=False)
class Simulated:
    """A block, and what its LPs were."""

    case: Case
    layout: StateLayout
    templates: tuple[StageTemplate, ...]
    block: SimulatedBlock


def simulate(case: Case, policy: Policy | None = None, scenarios: int = 3, first: int = 0) -> Simulated:
    """Simulate scenarios whose openings follow from a fixed seed; without a policy the future is free."""
    layout = StateLayout(case)
    tree: OpeningTree = build_opening_tree(case, model=layout.inflow)
    components = [(part.kind, part.entity_id, part.offset) for part in layout.components]
    boundary = boundary_cuts(case, components)
    floor = None if boundary is None else partial(future_cost_floor, boundary)
    templates = build_templates(case, tree, layout, floor)
    scaled, _ = scale_templates(templates)
    passes = [
        _one(case, policy, layout, scaled, np.random.default_rng([5, first + n])) for n in range(scenarios)
    ]
    stages = []
    for steps in zip(*passes, strict=True):
        node, columns, duals, realised, incoming, discount = zip(*steps, strict=True)
        stages.append(
            SimulatedStage(
                np.array(node),
                *(np.stack(part) for part in (columns, duals, realised, incoming)),
                np.array(discount),
            )
        )
    return Simulated(case, layout, templates, SimulatedBlock(first, None, tuple(stages)))


def _one(
    case: Case,
    policy: Policy | None,
    layout: StateLayout,
    templates: Sequence[StageTemplate],
    random: np.random.Generator,
) -> list[tuple[object, ...]]:
    state, discount, node = layout.initial.copy(), 1.0, 0
    steps: list[tuple[object, ...]] = []
    for stage in case.stages:
        template = templates[node]
        opening = int(random.integers(template.num_openings))
        noise = template.opening_values[opening]
        columns, duals = _solve(template, policy, node, noise, state)
        steps.append((node, columns, duals, template.realised(opening, state), state, discount))
        state = columns[template.state_col]
        discount *= stage.discount_factor
        following = [edge for edge in case.graph.transitions if edge.source == node]
        if following:
            chance = np.array([edge.probability for edge in following])
            node = following[int(random.choice(len(following), p=chance / chance.sum()))].target
    return steps


def _solve(
    template: StageTemplate, policy: Policy | None, node: int, noise: np.ndarray, state: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns in physical units and the duals of the template's rows, $ per physical unit."""
    rows = template.num_rows
    with HighsModel(template) as model:
        rhs = template.rhs_at(noise, state)
        model.set_row_bounds(0, rhs, rhs)
        index = np.concatenate([[template.theta_col], template.state_col]).astype(np.int32)
        scale = template.col_scale[index]
        if policy is not None:
            cuts = policy.cuts[node]
            for intercept, slope in zip(cuts.intercept[cuts.active], cuts.slopes[cuts.active], strict=True):
                value = scale * np.concatenate([[1.0], -slope / template.cost_scale])
                model.add_row(float(intercept) / template.cost_scale, index, value)
                rows += 1
        status = model.solve()
        assert status == "optimal", status
        columns, _, duals = model._solution(template.num_cols, rows)
    own = slice(template.num_rows)
    return columns * template.col_scale, duals[own] * template.row_scale * template.cost_scale
