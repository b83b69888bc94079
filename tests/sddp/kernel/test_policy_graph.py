"""Training over node graphs and enumerated paths, against the whole tree as one LP."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from builders.studies import cascade_study, dry_and_wet, with_training

from cobre.case.model import Case, PolicyGraph, PolicyNode, RiskMeasure, Transition
from cobre.errors import CobreError, ValidationError
from cobre.lp import build_templates
from cobre.sddp import train
from cobre.sddp.kernel.graph import graph_arrays
from cobre.stochastic import build_opening_tree


def tree_optimum(case: Case) -> float:
    """Solve the deterministic equivalent: one copy of a node's LP for each way of getting there."""
    templates = build_templates(case, build_opening_tree(case))
    initial = np.array([hydro.initial_storage_hm3 for hydro in case.hydros])
    cost: list[float] = []
    bounds: list[tuple[float, float]] = []
    rows: list[tuple[float, float, list[tuple[int, float]]]] = []

    def add(place: int, weight: float, parent: list[int] | None) -> None:
        template = templates[place]
        for opening in range(template.num_openings):
            share = weight / template.num_openings
            first = len(cost)
            for column in range(template.num_cols):
                is_theta = column == template.theta_col
                cost.append(0.0 if is_theta else share * template.cost[column])
                bounds.append(
                    (0.0, 0.0) if is_theta else (template.col_lower[column], template.col_upper[column])
                )
            entries: list[list[tuple[int, float]]] = [[] for _ in range(template.num_rows)]
            for column in range(template.num_cols):
                for k in range(template.matrix_start[column], template.matrix_start[column + 1]):
                    entries[template.matrix_row[k]].append((first + column, template.matrix_value[k]))
            lower, upper = template.row_lower.copy(), template.row_upper.copy()
            dynamic = template.num_dynamic_rows
            fixed = initial if parent is None else np.zeros(len(initial))
            lower[:dynamic] = upper[:dynamic] = template.rhs(opening, fixed)
            for component, column in enumerate(parent or ()):
                for k in range(template.state_start[component], template.state_start[component + 1]):
                    entries[template.state_row[k]].append((column, -template.state_value[k]))
            rows.extend(zip(lower, upper, entries, strict=True))
            outgoing = [first + int(column) for column in template.state_col]
            for edge in case.graph.transitions:
                if edge.source == place:
                    add(edge.target, share * template.discount * edge.probability, outgoing)

    add(0, 1.0, None)
    matrix = scipy.sparse.lil_matrix((len(rows), len(cost)))
    for row, (_, _, terms) in enumerate(rows):
        for column, value in terms:
            matrix[row, column] += value
    within = scipy.optimize.LinearConstraint(
        matrix.tocsr(), [lower for lower, _, _ in rows], [upper for _, upper, _ in rows]
    )
    limits = scipy.optimize.Bounds([lower for lower, _ in bounds], [upper for _, upper in bounds])
    solution = scipy.optimize.milp(np.array(cost), constraints=within, bounds=limits)
    assert solution.success
    return float(solution.fun * templates[0].cost_scale)


def test_markov_chain_reaches_the_optimum_of_its_tree():
    case = dry_and_wet()
    result = train(case)
    assert result.lower_bound == pytest.approx(tree_optimum(case), rel=1e-8)
    assert result.policy.node_ids == (0, 10, 11, 20, 21)
    assert all(len(cuts) for cuts in result.policy.intercepts[:3])


def test_enumeration_gives_the_exact_upper_bound():
    case = with_training(dry_and_wet(), enumerated=True, iteration_limit=12)
    result = train(case)
    optimum = tree_optimum(case)
    assert result.lower_bound == pytest.approx(optimum, rel=1e-8)
    assert result.upper_bound == pytest.approx(optimum, rel=1e-8, abs=1e-9)
    assert result.history[-1].upper_bound_kind == "exact"
    assert result.upper_bound_std == 0.0
    # Two openings at the root, then one for each node: 8 paths, 2 and 4 different trial points.
    assert (result.history[0].forward_passes, result.history[0].cuts_added) == (8, 6)


def test_paths_are_all_ways_through_the_tree_with_their_probabilities():
    case = with_training(dry_and_wet(stages=4), enumerated=True)
    graph = graph_arrays(case, build_opening_tree(case).num_openings)
    assert graph.path_node.shape == (16, 4)
    assert graph.path_weight.sum() == pytest.approx(1.0)
    ways = {tuple(row) for row in np.hstack([graph.path_node, graph.path_opening])}
    assert len(ways) == 16
    assert [len(set(leaders)) for leaders in graph.path_leader.T] == [2, 4, 8, 16]
    staying = (graph.path_node[:, 1:] % 2 == 1).all(axis=1)
    assert graph.path_weight[staying].sum() == pytest.approx(0.5 * 0.75 * 0.75)


def test_too_many_paths_are_refused_by_name():
    case = with_training(cascade_study(stages=12, openings=3), enumerated=True)
    with pytest.raises(CobreError, match="531441 paths"):
        train(case)


def test_several_first_nodes_are_refused():
    case = dry_and_wet()
    nodes = (PolicyNode(7, 0), *case.graph.nodes)
    with pytest.raises(ValidationError, match="2 nodes"):
        graph_arrays(replace(case, graph=PolicyGraph(nodes, ())), np.ones(len(nodes), np.int64))


def test_worst_case_policy_is_that_of_the_dry_branch():
    """CVaR of a tail no larger than the smallest branch looks at the worst branch alone."""
    case = dry_and_wet(stages=2)
    worst = replace(case, stages=tuple(replace(stage, risk=RiskMeasure(1.0, 1e-3)) for stage in case.stages))
    worst = replace(worst, stages=tuple(replace(stage, num_openings=1) for stage in worst.stages))
    dry = PolicyGraph(case.graph.nodes[:2], (Transition(0, 1, 1.0),))
    alone = replace(case, graph=dry, stages=tuple(replace(s, num_openings=1) for s in case.stages))
    assert train(worst).lower_bound == pytest.approx(tree_optimum(alone), rel=1e-8)
