"""The policy graph as arrays, and the path of every forward pass through it.

A chain has one node for each stage. With the selection ``enumerated`` the passes of an iteration are all
paths through nodes and openings, each with its probability; otherwise pass m draws its way.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.errors import CobreError, Problem, ValidationError
from cobre.lp.arrays import F64_1D, I64_1D, I64_2D
from cobre.native import array_struct
from cobre.rules.risk import MEASURES
from cobre.sddp.kernel.risk import RISK_KINDS

MOST_PATHS = 100_000
"""Paths that enumeration goes through at most."""


class GraphArrays(NamedTuple):
    """The graph; N nodes ordered by stage, T stages, E transitions, P enumerated paths.

    Attributes
    ----------
    stage_start
        int64[T + 1]: nodes of stage t are ``stage_start[t]`` to ``stage_start[t + 1]``.
    node_stage
        int64[N]: stage of each node.
    successor_start, successor, probability
        int64[N + 1], int64[E], float64[E]: nodes that may follow a node.
    risk_kind
        int64[T + 1]: kind of the risk measure of each stage, which weighs what follows it, and behind them of
        that which weighs the openings of the first stage; see :mod:`cobre.sddp.kernel.risk`.
    risk_start, risk_parameters
        int64[T + 2], float64: the parameters of each measure.
    path_node, path_opening
        int64[P, T]: the enumerated paths; P is 0 when passes draw their way.
    path_leader
        int64[P, T]: first path that is the same up to and with that stage.
    path_weight
        float64[P]: probability of each path.
    """

    stage_start: I64_1D
    node_stage: I64_1D
    successor_start: I64_1D
    successor: I64_1D
    probability: F64_1D
    risk_kind: I64_1D
    risk_start: I64_1D
    risk_parameters: F64_1D
    path_node: I64_2D
    path_opening: I64_2D
    path_leader: I64_2D
    path_weight: F64_1D


GraphStruct = array_struct(GraphArrays)


def graph_arrays(
    case: Case, num_openings: NDArray[np.int64], *, section: Literal["training", "simulation"] = "training"
) -> GraphArrays:
    """Flatten the graph of a study.

    Parameters
    ----------
    num_openings
        Openings of each node.
    section
        Whose selection decides whether paths are enumerated.

    Raises
    ------
    ValidationError
        When the first stage has several nodes, or enumeration would go through too many paths.
    """
    nodes, stages = case.graph.nodes, len(case.stages)
    measures = [stage.risk for stage in case.stages]
    measures.append(case.graph.root_risk or measures[0])
    parameters = [MEASURES[measure.kind].parameters(measure) for measure in measures]
    node_stage = np.array([node.stage for node in nodes], np.int64)
    stage_start = np.searchsorted(node_stage, np.arange(stages + 1)).astype(np.int64)
    if stage_start[1] != 1:
        raise ValidationError(
            [
                Problem(
                    "NotImplemented",
                    f"the first stage has {stage_start[1]} nodes; a study starts at one node",
                    {"file": "stages.json", "field": "policy_graph.nodes"},
                    "give the first stage one node",
                )
            ],
            source="the policy graph",
        )
    edges = sorted(case.graph.transitions, key=lambda edge: (edge.source, edge.target))
    sources = np.array([edge.source for edge in edges], np.int64)
    successor_start = np.searchsorted(sources, np.arange(len(nodes) + 1)).astype(np.int64)
    graph = GraphArrays(
        stage_start=stage_start,
        node_stage=node_stage,
        successor_start=successor_start,
        successor=np.array([edge.target for edge in edges], np.int64),
        probability=np.array([edge.probability for edge in edges], np.float64),
        risk_kind=np.array([RISK_KINDS[measure.kind] for measure in measures], np.int64),
        risk_start=np.concatenate([[0], np.cumsum([len(values) for values in parameters])]).astype(np.int64),
        risk_parameters=np.array([value for values in parameters for value in values], np.float64),
        path_node=np.zeros((0, stages), np.int64),
        path_opening=np.zeros((0, stages), np.int64),
        path_leader=np.zeros((0, stages), np.int64),
        path_weight=np.zeros(0),
    )
    options = case.training if section == "training" else case.simulation
    return _with_paths(graph, num_openings, section) if options.enumerated else graph


def _with_paths(graph: GraphArrays, num_openings: NDArray[np.int64], section: str) -> GraphArrays:
    """Enumerate all paths, in the order of nodes and openings, stage by stage."""
    stages = len(graph.stage_start) - 1
    count = _count_paths(graph, num_openings)
    if count > MOST_PATHS:
        raise CobreError(
            "IncompatibleSettings",
            f"enumerated selection would go through {count:.6g} paths, more than {MOST_PATHS}",
            {"file": "config.json", "field": f"{section}.selection", "value": "enumerated"},
            "reduce openings or stages, or use the selection 'sampled'",
        )
    node = np.zeros((1, 1), np.int64)  # stages so far x paths
    opening = np.zeros((0, 1), np.int64)
    weight = np.ones(1)
    prefix: list[NDArray[np.int64]] = []
    for stage in range(stages):
        here = node[stage]
        widths = num_openings[here]
        spread = np.repeat(np.arange(len(here)), widths)
        drawn = np.concatenate([np.arange(width) for width in widths]).astype(np.int64)
        node, weight = node[:, spread], (weight / widths)[spread]
        opening = np.vstack([opening[:, spread], drawn])
        prefix = [ids[spread] for ids in prefix] + [np.arange(len(drawn), dtype=np.int64)]
        if stage + 1 < stages:
            here = node[stage]
            first, last = graph.successor_start[here], graph.successor_start[here + 1]
            spread = np.repeat(np.arange(len(here)), last - first)
            edges = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
            node = np.vstack([node[:, spread], graph.successor[edges]])
            opening = opening[:, spread]
            weight = weight[spread] * graph.probability[edges]
            prefix = [ids[spread] for ids in prefix]
    leaders = []
    for ids in prefix:
        _, first_path, inverse = np.unique(ids, return_index=True, return_inverse=True)
        leaders.append(first_path[inverse.ravel()])
    return graph._replace(
        path_node=np.ascontiguousarray(node.T),
        path_opening=np.ascontiguousarray(opening.T),
        path_leader=np.ascontiguousarray(np.array(leaders, np.int64).T),
        path_weight=weight,
    )


def _count_paths(graph: GraphArrays, num_openings: NDArray[np.int64]) -> float:
    """Return the number of paths as a float, which does not overflow."""
    below = np.ones(len(graph.node_stage))
    for node in reversed(range(len(graph.node_stage))):
        edges = slice(graph.successor_start[node], graph.successor_start[node + 1])
        after = below[graph.successor[edges]].sum() if edges.start < edges.stop else 1.0
        below[node] = float(num_openings[node]) * after
    return float(below[0])
