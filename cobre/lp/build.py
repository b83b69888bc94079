"""From a case and its opening tree to the stage LPs; :mod:`cobre.lp.stage` describes their content."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, Stage
from cobre.errors import CobreError
from cobre.lp.assembly import AssembledLp
from cobre.lp.cost_unit import choose_cost_scale, cost_ends
from cobre.lp.past_inflow import PastInflow, past_inflow
from cobre.lp.stage import build_stage
from cobre.lp.stage.build import FUTURE_COST
from cobre.lp.state import StateLayout
from cobre.lp.template import StageTemplate
from cobre.lp.topology import topology_of
from cobre.stochastic import OpeningTree

FloatArray = NDArray[np.float64]
TerminalFloor = Callable[[FloatArray, FloatArray], float]


def build_templates(
    case: Case,
    tree: OpeningTree,
    layout: StateLayout | None = None,
    terminal_floor: TerminalFloor | None = None,
) -> tuple[StageTemplate, ...]:
    """Build the LP of every node of the policy graph, in physical units.

    Parameters
    ----------
    case
        The study.
    tree
        Realisations of inflow, load and availability by node and opening.
    layout
        The components of the state; made from the case unless it is at hand.
    terminal_floor
        Where the state at the end is valued by cuts: a lower bound ($) of that value over the box of
        final states from the first argument to the second. ``None``: the end is worth nothing.

    Returns
    -------
    tuple of StageTemplate
        One for each node (on a chain: each stage), in their order; those of a stage differ in their
        right-hand sides only. The future cost of each is bounded below by a valid bound on the cost of the
        stages after it (and fixed to zero in the last stage, unless there is a terminal floor).

    Raises
    ------
    CobreError
        When the cost of a stage has no lower bound, so that no valid bound on the future cost exists, or
        costs cannot be put in one unit (``ValidationError``).
    """
    topology = topology_of(case)
    layout = StateLayout(case, topology) if layout is None else layout
    nodes = _nodes_by_stage(case)
    most_available = most_available_mw(case, tree, nodes)
    built = [
        build_stage(case, topology, layout, position, most_available[position])
        for position in range(len(nodes))
    ]
    costs = [end for stage, (lp, _) in zip(case.stages, built, strict=True) for end in cost_ends(stage, lp)]
    scale = choose_cost_scale(costs, case.training.cost_scale_factor)
    past = past_inflow(case, layout.inflow, tree, nodes)
    terminal = None
    if terminal_floor is not None:
        last, columns = built[-1]
        terminal = terminal_floor(*_outgoing_box(layout, past, len(nodes) - 1, last, columns))
    floors = _future_cost_floors(case, [lp for lp, _ in built], terminal)
    templates: dict[int, StageTemplate] = {}
    for position, (here, (lp, state_columns)) in enumerate(zip(nodes, built, strict=True)):
        ends = terminal is None and position == len(nodes) - 1
        of_stage = stage_template(case.stages[position], lp, state_columns, scale, floors[position], ends)
        least, most = _outgoing_box(layout, past, position, lp, state_columns)
        for node in here:
            given = case.graph.nodes[node].scenario_id is not None
            templates[node] = replace(
                of_stage,
                opening_values=opening_values(tree, node),
                truncated=past.truncated[position] & (not given),
                valid_truncation=case.training.truncation_cuts == "valid",
                past_lower=past.lower[position],
                past_upper=past.upper[position],
                state_least=least,
                state_most=most,
                **_psi(layout, position),
            )
    return tuple(templates[node] for node in range(len(templates)))


def opening_values(tree: OpeningTree, node: int) -> FloatArray:
    """Return inflow, load and availability of the openings of a node, side by side."""
    rows = tree.rows(node)
    values: FloatArray = np.concatenate(
        [tree.inflow_m3s[rows], tree.load_mw[rows], tree.ncs_mw[rows]], axis=1
    )
    return np.ascontiguousarray(values)


def most_available_mw(
    case: Case, tree: OpeningTree, nodes_by_stage: Sequence[Sequence[int]]
) -> list[FloatArray]:
    """Return for each stage the most that each non-controllable source may have, in openings and passes."""
    scheme, library = case.training.source.scheme("ncs"), case.scenarios.external_ncs
    installed = np.array([source.max_generation_mw for source in case.non_controllables], np.float64)
    found = []
    for position, nodes in enumerate(nodes_by_stage):
        most = np.concatenate([tree.ncs_mw[tree.rows(node)] for node in nodes]).max(axis=0, initial=0.0)
        serving = np.where(case.stage_data[position].ncs_in_service, installed, 0.0)
        if scheme == "out_of_sample":
            most = np.maximum(most, np.where(case.scenarios.ncs_has_stats, serving, 0.0))
        elif scheme == "external" and library is not None:
            most = np.maximum(most, serving * library[position].max(axis=0, initial=0.0))
        found.append(most)
    return found


def _psi(layout: StateLayout, position: int) -> dict[str, Any]:
    """Return what the inflow of each plant takes from the state."""
    psi = layout.inflow.psi[position]
    used = psi != 0.0
    hydro, lane = np.nonzero(used)
    return {
        "psi_start": np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32),
        "psi_component": layout.memory_place[hydro, lane].astype(np.int32),
        "psi_value": np.ascontiguousarray(psi[hydro, lane]),
    }


def _outgoing_box(
    layout: StateLayout, past: PastInflow, position: int, lp: AssembledLp, state_columns: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the state that leaves a stage; no limit of a column bounds past inflows."""
    columns = list(state_columns)
    lower, upper = lp.col_lower[columns], lp.col_upper[columns]
    for place, part in enumerate(layout.components):
        if part.kind == "inflow_lag":
            lower[place] = past.memory_lower[position + 1, part.entity, part.lane]
            upper[place] = past.memory_upper[position + 1, part.entity, part.lane]
    return lower, upper


def _nodes_by_stage(case: Case) -> list[list[int]]:
    """Return the positions of the nodes of every stage."""
    nodes: list[list[int]] = [[] for _ in case.stages]
    for place, node in enumerate(case.graph.nodes):
        nodes[node.stage].append(place)
    return nodes


def stage_template(
    stage: Stage, lp: AssembledLp, state_columns: Sequence[int], scale: float, floor: float, ends: bool
) -> StageTemplate:
    """Return the template of a stage without openings; the future cost gets its limits in ``lp`` itself.

    Parameters
    ----------
    scale
        $ per unit of objective.
    floor
        Least future cost, $.
    ends
        Whether nothing comes after the stage.
    """
    theta = int(lp.index.columns[FUTURE_COST].ids)
    discount = 1.0 if ends else stage.discount_factor
    cost = lp.cost / scale
    cost[theta] = discount
    lp.col_lower[theta] = floor / scale
    lp.col_upper[theta] = 0.0 if ends else math.inf
    return StageTemplate(
        stage_id=stage.id,
        cost=cost,
        col_lower=lp.col_lower,
        col_upper=lp.col_upper,
        row_lower=lp.row_lower,
        row_upper=lp.row_upper,
        matrix_start=lp.matrix_start,
        matrix_row=lp.matrix_row,
        matrix_value=lp.matrix_value,
        state_col=np.array(state_columns, np.int32),
        state_start=lp.state_start,
        state_row=lp.state_row,
        state_value=lp.state_value,
        theta_col=theta,
        fixed_rhs=lp.fixed_rhs,
        noise_start=lp.noise_start,
        noise_row=lp.noise_row,
        noise_value=lp.noise_value,
        opening_values=np.zeros((0, len(lp.noise_start) - 1)),
        psi_start=np.zeros(1, np.int32),
        psi_component=np.zeros(0, np.int32),
        psi_value=np.zeros(0),
        truncated=np.zeros(0, np.bool_),
        valid_truncation=False,
        past_lower=np.zeros(0),
        past_upper=np.zeros(0),
        discount=float(discount),
        cost_scale=float(scale),
        index=lp.index,
    )


def _future_cost_floors(case: Case, stages: Sequence[AssembledLp], terminal: float | None) -> list[float]:
    """Return for each stage a lower bound ($) of the cost of all stages after it."""
    floors: list[float] = []
    after = 0.0 if terminal is None else terminal
    for stage, lp in zip(reversed(case.stages), reversed(stages), strict=True):
        floors.append(after)
        cheapest = cheapest_cost(stage, lp)
        # This stage's whole cost to go, which the stage before it sees as its future cost.
        after = cheapest + stage.discount_factor * after
    return list(reversed(floors))


def cheapest_cost(stage: Stage, lp: AssembledLp) -> float:
    """Return a lower bound ($) of the cost of a stage.

    Raises
    ------
    CobreError
        When there is none.
    """
    cheapest = lp.cheapest_cost()
    if not math.isfinite(cheapest):
        raise CobreError(
            "SolverFailure",
            f"the cost of stage {stage.id} has no lower bound",
            {"stage": stage.id, "columns": lp.unbounded_rewards()},
            "give every rewarded quantity an upper limit",
        )
    return cheapest
