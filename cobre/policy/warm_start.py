"""What of a stored policy another study can start from.

A cut ``theta >= alpha + pi . x`` bounds the future cost Q(x) of the study it was made for. Stages are
matched by their dates, and the horizon must end on the same day, for else the cut bounds the cost of
another future. Components of the state are matched by kind, entity and offset.

Of a component y that the policy does not know, the cut says nothing; with slope 0 it claims that alpha + pi
. x bounds Q(x, y) at *every* y. The policy was trained without y, so at best it bounds Q(x, 0). Q is
convex, and as a rule falls in y: water in a new reservoir or under way, power that is paid for already, and
wet months before save costs later. So the claim fails for some y > 0, however the cut is lifted, and the
policy is refused. It holds where y cannot be other than 0 at the end of the stage (``held_at_zero``):
arrivals and deliveries after the end of the study.

A component that only the policy has is dropped where no cut depends on it; else the policy is refused: what
value to give it is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.errors import Problem, ValidationError
from cobre.policy.model import NodeCuts, NodeEntry, PolicyData, StateEntry

_KIND = "PolicyIncompatible"


@dataclass(frozen=True, eq=False)
class Adaptation:
    """How a policy's cuts become those of a study.

    Attributes
    ----------
    component
        int64[states of the study]: the policy's component, -1 where the slope is 0.
    node
        int64[nodes of the study]: the policy's node, -1 where there are no cuts to take.
    notes
        What is left out, added or dropped.
    """

    component: NDArray[np.int64]
    node: NDArray[np.int64]
    notes: tuple[Problem, ...] = ()


def compatibility(
    policy: PolicyData,
    components: Sequence[StateEntry],
    nodes: Sequence[NodeEntry],
    held_at_zero: NDArray[np.bool_] | None = None,
) -> Adaptation:
    """Return how a study with this state and these nodes can use the cuts of ``policy``.

    The cuts at the end of the study are left out: they came from the boundary of the stored policy, and the
    study has a boundary of its own, or none.

    Parameters
    ----------
    held_at_zero
        bool[nodes, components] of the study: outgoing components that can only be 0. None unless given.

    Raises
    ------
    ValidationError
        With everything that stands in the way.
    """
    if held_at_zero is None:
        held_at_zero = np.zeros((len(nodes), len(components)), np.bool_)
    node, notes, errors = _match_nodes(policy, nodes)
    place = {part.key: position for position, part in enumerate(policy.components)}
    component = np.array([place.get(part.key, -1) for part in components], np.int64)
    used = np.flatnonzero(node >= 0)
    for position in np.flatnonzero(component < 0).tolist():
        part = components[position]
        if held_at_zero[used, position].all():
            notes.append(_note(f"the policy does not know {part}, which is 0 where its cuts are used", part))
        else:
            errors.append(
                _error(
                    f"the policy does not know a state of the study ({part}); its cuts would not hold where "
                    "that is not 0",
                    part,
                    "train the policy with this entity, or start fresh",
                )
            )
    for position in sorted(set(range(len(policy.components))) - set(component.tolist())):
        part = policy.components[position]
        if any(_active_slopes(policy.cuts[node[new]])[:, position].any() for new in used):
            message = f"cuts of the policy depend on a state that the study does not have ({part})"
            errors.append(_error(message, part, "add the entity to the study, or start fresh"))
        else:
            notes.append(_note(f"the policy knows {part}, which no cut depends on; it is dropped", part))
    if errors:
        raise ValidationError(errors, source="starting from the stored policy")
    return Adaptation(component, node, tuple(notes))


def adapted_cuts(
    policy: PolicyData, adaptation: Adaptation
) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Return intercepts ($) and slopes of the active cuts for each node of the study, in slot order."""
    found = []
    known = adaptation.component >= 0
    for node in adaptation.node:
        slopes, intercepts = np.zeros((0, len(policy.components))), np.zeros(0)
        if node >= 0:
            slopes, intercepts = _active_slopes(policy.cuts[node]), _active_intercepts(policy.cuts[node])
        adapted = np.zeros((len(intercepts), len(known)))
        adapted[:, known] = slopes[:, adaptation.component[known]]
        found.append((intercepts, adapted))
    return tuple(found)


def _active_slopes(cuts: NodeCuts) -> NDArray[np.float64]:
    return cuts.slopes[cuts.active]


def _active_intercepts(cuts: NodeCuts) -> NDArray[np.float64]:
    return cuts.intercept[cuts.active]


def _match_nodes(
    policy: PolicyData, nodes: Sequence[NodeEntry]
) -> tuple[NDArray[np.int64], list[Problem], list[Problem]]:
    """Match nodes by the dates of their stages, and by id where a stage has several."""
    notes: list[Problem] = []
    ours, theirs = max(node.end_date for node in nodes), max(node.end_date for node in policy.nodes)
    found = np.full(len(nodes), -1, np.int64)
    if ours != theirs:
        message = f"the study ends on {ours}, the stored policy on {theirs}: its cuts value another future"
        context = {"field": "stages", "value": str(ours), "stored": str(theirs)}
        problem = Problem(_KIND, message, context, "let both end on the same day, or start fresh")
        return found, notes, [problem]
    branching = len({node.stage_id for node in nodes}) < len(nodes) or not policy.is_chain
    place = {_node_key(node, branching): position for position, node in enumerate(policy.nodes)}
    for position, node in enumerate(nodes):
        if node.end_date != ours:
            found[position] = place.get(_node_key(node, branching), -1)
            if found[position] < 0:
                words = f"stage {node.stage_id} ({node.start_date} to {node.end_date})"
                notes.append(_note(f"the policy has no cuts for node {node.id}, {words}", node))
    for position, node in enumerate(policy.nodes):
        if node.end_date != theirs and position not in found:
            words = f"stage {node.stage_id} ({node.start_date} to {node.end_date})"
            notes.append(_note(f"cuts of the policy's node {node.id}, {words}, are not used", node))
    if not (found >= 0).any() and len(policy.nodes) > 1:
        message = "no stage of the study has the dates of a stage of the stored policy"
        return found, notes, [Problem(_KIND, message, {"field": "stages"}, "start fresh")]
    return found, notes, []


def _node_key(node: NodeEntry, branching: bool) -> tuple[object, ...]:
    dates = (node.start_date, node.end_date)
    return (*dates, node.id) if branching else dates


def _note(message: str, what: object) -> Problem:
    return Problem(_KIND, message, {"entity": str(what)})


def _error(message: str, part: StateEntry, suggestion: str) -> Problem:
    return Problem(_KIND, message, {"entity": str(part)}, suggestion)
