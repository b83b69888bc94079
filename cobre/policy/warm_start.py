"""What of a stored policy another study can start from.

A cut ``theta >= alpha + pi . x`` bounds the future cost Q(x) of the study it was made for. Stages are
matched by their dates, and the horizon must end on the same day, for else the cut bounds the cost of
another future. Components of the state are matched by kind, entity and offset.

Of a component y that the policy does not know, the cut states nothing; with slope 0 it claims that alpha + pi
. x bounds Q(x, y) at *every* y. The policy was trained without y, so at best it bounds Q(x, 0). Q is
convex, and as a rule falls in y: water in a new reservoir or under way, power that is paid for already, and
wet months before save costs later. So the claim fails for some y > 0, however the cut is lifted, and the
policy is refused. It holds where y cannot be other than 0 at the end of the stage (``held_at_zero``):
arrivals and deliveries after the end of the study.

Where the studies have the same states and dates but other data, :mod:`cobre.policy.validity` states which
cuts hold.

A component that only the policy has is dropped where no cut depends on it; else the policy is refused: what
value to give it is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cobre.errors import Problem, ValidationError
from cobre.policy.bases import FirstBases
from cobre.policy.fingerprint import Fingerprint, differences
from cobre.policy.foreign.conversion import case_nodes, from_flatbuffers
from cobre.policy.formats import format_of
from cobre.policy.matching import ComponentMap, Identified
from cobre.policy.model import NodeCuts, NodeEntry, Policy, StateEntry
from cobre.policy.store.directory import read_policy_directory
from cobre.policy.validity import changes_of_study

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.lp import StageTemplate, StateLayout

_KIND = "PolicyIncompatible"


@dataclass(frozen=True, eq=False)
class Adaptation:
    """How a policy's cuts become those of a study.

    Attributes
    ----------
    components
        Where the study's components are in the policy; the slope of one that is not there is 0.
    node
        int64[nodes of the study]: the policy's node, -1 where there are no cuts to take.
    notes
        What is left out, added or dropped.
    """

    components: ComponentMap
    node: NDArray[np.int64]
    notes: tuple[Problem, ...] = ()


def compatibility(
    policy: Policy,
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
        With everything that prevents it.
    """
    if held_at_zero is None:
        held_at_zero = np.zeros((len(nodes), len(components)), np.bool_)
    node, notes, errors = _match_nodes(policy, nodes)
    found = ComponentMap.of(_identified(components), _identified(policy.components))
    used = np.flatnonzero(node >= 0)
    for position in found.unknown():
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
    for position in found.unused(len(policy.components)):
        part = policy.components[position]
        if any(_active_slopes(policy.cuts[node[new]])[:, position].any() for new in used):
            message = f"cuts of the policy depend on a state that the study does not have ({part})"
            errors.append(_error(message, part, "add the entity to the study, or start fresh"))
        else:
            notes.append(_note(f"the policy knows {part}, which no cut depends on; it is dropped", part))
    if errors:
        raise ValidationError(errors, source="starting from the stored policy")
    return Adaptation(found, node, tuple(notes))


def adapted_cuts(
    policy: Policy, adaptation: Adaptation
) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Return intercepts ($) and slopes of the active cuts for each node of the study, in slot order."""
    none = np.zeros(0), np.zeros((0, len(adaptation.components.place)))
    return tuple(
        none
        if node < 0
        else (
            _active_intercepts(policy.cuts[node]),
            adaptation.components.slopes(_active_slopes(policy.cuts[node])),
        )
        for node in adaptation.node
    )


def _identified(components: Sequence[StateEntry]) -> list[Identified]:
    return [Identified(str(part), (part.key,)) for part in components]


def _active_slopes(cuts: NodeCuts) -> NDArray[np.float64]:
    return cuts.slopes[cuts.active]


def _active_intercepts(cuts: NodeCuts) -> NDArray[np.float64]:
    return cuts.intercept[cuts.active]


def _match_nodes(
    policy: Policy, nodes: Sequence[NodeEntry]
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


@dataclass(frozen=True, eq=False)
class LoadedCuts:
    """Cuts that each node starts with, in $, and what to report of them.

    ``certain``: they are known to lie nowhere above the future cost of the study. ``first_bases``: what LPs
    can start from, with places among these cuts.
    """

    cuts: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    warnings: tuple[Problem, ...] = ()
    certain: bool = True
    first_bases: FirstBases | None = None


def state_entries(layout: StateLayout) -> tuple[StateEntry, ...]:
    """Return the components of the state as policy directories name them."""
    return tuple(StateEntry(part.kind, part.entity_id, part.offset, part.name) for part in layout.components)


def warm_cuts(
    path: Path,
    case: Case,
    layout: StateLayout,
    templates: Sequence[StageTemplate],
    fingerprint: Fingerprint | None,
) -> LoadedCuts:
    """Return the cuts of a stored policy that a study can start with.

    Parameters
    ----------
    fingerprint
        Of the study, to name what differs from that of the policy; ``None`` on ranks that report nothing,
        which then take cuts of any study for certain.

    Raises
    ------
    ValidationError
        When the policy cannot be read, or its cuts would not hold in the study.
    """
    policy = read_policy(path, case, layout)
    adaptation = _adaptation(policy, case, layout, templates)
    warnings = list(adaptation.notes)
    certain = policy.lower_bound_kind == "bound"
    if policy.fingerprint.topics and fingerprint is not None:
        stage_ids = [stage.id for stage in case.stages]
        changes, all_hold = changes_of_study(policy.fingerprint, fingerprint, stage_ids)
        certain = certain and all_hold
        warnings += changes
    elif not policy.fingerprint.topics and format_of(path) == "cobre":
        certain = False
        warnings.append(
            Problem(
                _KIND,
                f"{path} does not hold the study that its cuts were made for, so nothing shows that they "
                "hold here",
                {"file": str(path)},
                "save a policy with its study: cobre train, or Policy.save of a policy that knows it",
            )
        )
    return LoadedCuts(adapted_cuts(policy, adaptation), tuple(warnings), certain)


def read_policy(path: Path, case: Case, layout: StateLayout) -> Policy:
    """Return the policy in a directory of cobre, or of cobre-rs, for a study.

    Raises
    ------
    ValidationError
        When it cannot be read.
    """
    if format_of(path) == "cobre-rs":
        return from_flatbuffers(path, case, state_entries(layout))
    return read_policy_directory(path)


def _adaptation(
    policy: Policy, case: Case, layout: StateLayout, templates: Sequence[StageTemplate]
) -> Adaptation:
    held = np.stack(
        [
            (template.col_lower[template.state_col] == 0.0) & (template.col_upper[template.state_col] == 0.0)
            for template in templates
        ]
    )
    return compatibility(policy, state_entries(layout), case_nodes(case), held)


def cuts_to_simulate(
    policy: Policy,
    case: Case,
    layout: StateLayout,
    templates: Sequence[StageTemplate],
    fingerprint: Fingerprint | None,
) -> LoadedCuts:
    """Return the cuts by which a study is operated under ``policy``; every stage but the last has some.

    What a study costs under the policy of another one is what it costs: such changes are warnings, where the
    cuts can be applied at all.

    Parameters
    ----------
    fingerprint
        As for :func:`warm_cuts`.

    Raises
    ------
    ValidationError
        With everything that keeps the cuts from being applied to the study.
    """
    adaptation = _adaptation(policy, case, layout, templates)
    nodes = case_nodes(case)
    last = max(node.end_date for node in nodes)
    missing = [
        Problem(
            _KIND,
            f"the policy has no cuts for node {node.id}, stage {node.stage_id} ({node.start_date} to "
            f"{node.end_date}): decisions there would not look ahead",
            {"field": "stages", "value": node.stage_id},
            "train a policy for this study: cobre train",
        )
        for place, node in zip(adaptation.node, nodes, strict=True)
        if place < 0 and node.end_date != last
    ]
    if missing:
        raise ValidationError(missing, source="simulating the policy")
    warnings = list(adaptation.notes)
    if policy.fingerprint.topics and fingerprint is not None:
        warnings += [
            replace(problem, suggestion=_OTHER_STUDY)
            for problem in differences(policy.fingerprint, fingerprint)
        ]
    cuts = adapted_cuts(policy, adaptation)
    return LoadedCuts(cuts, tuple(warnings), first_bases=_adapted_bases(policy, adaptation))


def _adapted_bases(policy: Policy, adaptation: Adaptation) -> FirstBases | None:
    """Return the bases with the places of their cuts among the active ones; those that miss one are left out.

    The last stage of a study has no cuts but those of its boundary, which keep their places.
    """
    if policy.first_bases is None or len(adaptation.node) != len(policy.nodes):
        return None
    kept = []
    for node, codes, slots in policy.first_bases.by_node():
        source = int(adaptation.node[node])
        if source < 0:
            kept.append((node, codes, slots))
            continue
        cuts = policy.cuts[source]
        present = cuts.slot[cuts.active]
        places = np.searchsorted(present, slots)
        if source == node and (places < len(present)).all() and (present[places] == slots).all():
            kept.append((node, codes, places.astype(np.int32)))
    return FirstBases.of(kept)


_OTHER_STUDY = "the policy is simulated as it is; train it anew for decisions that know of the change"
