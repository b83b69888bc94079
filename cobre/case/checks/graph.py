"""The policy graph: a chain of stages, or nodes that each belong to a stage."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from cobre.case.checks.config import external_classes
from cobre.case.checks.references import check_unique
from cobre.case.format import layout
from cobre.case.format.schema.config import EnumeratedTraining
from cobre.case.format.schema.stages import NodeEntry, TransitionEntry
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, known_ids, short_ids

_FILE = layout.STAGES
_PROBABILITY_TOLERANCE = 1e-6


def check_graph(sources: Sources, reporter: Reporter) -> None:
    """Check transitions and nodes. Only for a stages file that is well formed."""
    root = sources.stages.root
    if root is None:
        return
    stage_ids = sorted({stage.id for stage in root.stages if stage.id >= 0})
    graph = root.policy_graph
    transitions = graph.transitions or []
    if not graph.nodes:
        if transitions:
            _check_chain(stage_ids, transitions, reporter)
        return
    check_unique([node.id for node in graph.nodes], _FILE, "node", reporter, field="policy_graph.nodes")
    _check_scenarios(sources, graph.nodes, reporter)
    if not _check_node_stages(stage_ids, graph.nodes, reporter):
        return
    stage_of = {node.id: stage_ids.index(node.stage_id) for node in graph.nodes}
    if transitions:
        _check_node_transitions(stage_ids, stage_of, transitions, reporter)
    elif len(stage_of) > len(stage_ids):
        _report(
            "BusinessRuleViolation",
            "is missing, but some stage has several nodes",
            "policy_graph.transitions",
            None,
            None,
            "List the transitions between nodes with their probabilities.",
            reporter,
        )


def _report(
    kind: str,
    what: str,
    field: str,
    value: object,
    rule: str | None,
    suggestion: str,
    reporter: Reporter,
    entity: str | None = None,
) -> None:
    owner = f" of {entity}" if entity else ""
    reporter.error(
        kind,
        f"{_FILE}: {field}{owner} {what}.",
        file=_FILE,
        entity=entity,
        field=field,
        value=value,
        rule=rule,
        suggestion=suggestion,
    )


def _check_ends(
    transitions: Sequence[TransitionEntry], ids: Sequence[int], word: str, reporter: Reporter
) -> bool:
    """Check that transitions join known ids (5b.1) and that what leaves each source sums to 1 (5b.2)."""
    known = frozenset(ids)
    clean = True
    outgoing: dict[int, list[float]] = defaultdict(list)
    for index, transition in enumerate(transitions):
        outgoing[transition.source_id].append(transition.probability)
        for key, value in (("source_id", transition.source_id), ("target_id", transition.target_id)):
            if value not in known:
                clean = False
                field = f"policy_graph.transitions[{index}].{key}"
                _report(
                    "InvalidReference",
                    f"is {value}, but there is no {word} with that id",
                    field,
                    value,
                    "5b.1",
                    known_ids(sorted(known), word),
                    reporter,
                )
    for source, probabilities in sorted(outgoing.items()):
        total = sum(sorted(probabilities))
        if abs(total - 1.0) > _PROBABILITY_TOLERANCE:
            clean = False
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: the probabilities of the transitions out of {word} {source} sum to {total}, "
                "not 1.",
                file=_FILE,
                entity=f"{word} {source}",
                field="policy_graph.transitions",
                value=total,
                rule="5b.2",
                suggestion=f"Make the probabilities of each source {word} sum to 1.",
            )
    return clean


def _check_chain(
    stage_ids: Sequence[int], transitions: Sequence[TransitionEntry], reporter: Reporter
) -> None:
    if not _check_ends(transitions, stage_ids, "stage", reporter):
        return
    chain = list(itertools.pairwise(stage_ids))
    if sorted((item.source_id, item.target_id) for item in transitions) != chain:
        reporter.error(
            "NotImplemented",
            f"{_FILE}: policy_graph.transitions is not the plain chain of stages {short_ids(stage_ids)}; "
            "stages that branch or are left out are not supported yet.",
            file=_FILE,
            field="policy_graph.transitions",
            value=[[item.source_id, item.target_id] for item in transitions],
            suggestion="Remove transitions, list one from each stage to the next, or define nodes.",
        )


def _check_node_stages(stage_ids: Sequence[int], nodes: Sequence[NodeEntry], reporter: Reporter) -> bool:
    clean = True
    for index, node in enumerate(nodes):
        if node.stage_id not in stage_ids:
            clean = False
            _report(
                "InvalidReference",
                f"is {node.stage_id}, but there is no study stage with that id",
                f"policy_graph.nodes[{index}].stage_id",
                node.stage_id,
                None,
                known_ids(stage_ids, "stage"),
                reporter,
                f"node {node.id}",
            )
    count = Counter(node.stage_id for node in nodes)
    empty = [number for number in stage_ids if number not in count]
    if empty:
        clean = False
        _report(
            "BusinessRuleViolation",
            f"has no node for stage {short_ids(empty)}",
            "policy_graph.nodes",
            short_ids(empty),
            None,
            "Give every stage at least one node, or remove all nodes for a plain chain.",
            reporter,
        )
    if stage_ids and count[stage_ids[0]] > 1:
        clean = False
        _report(
            "BusinessRuleViolation",
            f"has {count[stage_ids[0]]} nodes for the first stage, {stage_ids[0]}, but a study starts at one",
            "policy_graph.nodes",
            count[stage_ids[0]],
            None,
            "Keep one node for the first stage; openings or an extra stage before it can branch.",
            reporter,
        )
    return clean


def _check_scenarios(sources: Sources, nodes: Sequence[NodeEntry], reporter: Reporter) -> None:
    named = [node.id for node in nodes if node.scenario_id is not None]
    config = sources.config.root
    if not named or config is None:
        return
    if not isinstance(config.training.selection, EnumeratedTraining):
        _report(
            "BusinessRuleViolation",
            f"is given at node {short_ids(named)}, but training.selection in {layout.CONFIG} is not "
            "'enumerated'",
            "policy_graph.nodes[].scenario_id",
            short_ids(named),
            None,
            'Write "selection": {"method": "enumerated"} in the section training.',
            reporter,
        )
    if not external_classes(sources):
        _report(
            "BusinessRuleViolation",
            f"is given at node {short_ids(named)}, but no class in training.scenario_source of "
            f"{layout.CONFIG} has the scheme 'external'",
            "policy_graph.nodes[].scenario_id",
            short_ids(named),
            None,
            'Write for example "inflow": {"scheme": "external"}, or remove the scenario ids.',
            reporter,
        )


def _check_node_transitions(
    stage_ids: Sequence[int],
    stage_of: Mapping[int, int],
    transitions: Sequence[TransitionEntry],
    reporter: Reporter,
) -> None:
    clean = _check_ends(transitions, sorted(stage_of), "node", reporter)
    pairs = Counter((item.source_id, item.target_id) for item in transitions)
    for (source, target), count in sorted(pairs.items()):
        if count > 1:
            clean = False
            _report(
                "DuplicateId",
                f"lists the transition from node {source} to node {target} {count} times",
                "policy_graph.transitions",
                [source, target],
                None,
                "Keep one transition with the whole probability.",
                reporter,
            )
    for index, item in enumerate(transitions):
        if item.annual_discount_rate_override is not None:
            _report(
                "BusinessRuleViolation",
                "is given, but in a graph with nodes the rate belongs to the stage",
                f"policy_graph.transitions[{index}].annual_discount_rate_override",
                item.annual_discount_rate_override,
                None,
                "Use annual_discount_rate_override of the stage.",
                reporter,
            )
        if item.source_id not in stage_of or item.target_id not in stage_of:
            continue
        first, second = stage_of[item.source_id], stage_of[item.target_id]
        if second != first + 1:
            clean = False
            _report(
                "BusinessRuleViolation",
                f"leads from node {item.source_id} (stage {stage_ids[first]}) to node {item.target_id} "
                f"(stage {stage_ids[second]}), which is not the next stage",
                f"policy_graph.transitions[{index}]",
                [item.source_id, item.target_id],
                None,
                "Every transition must lead to the stage right after its source.",
                reporter,
            )
        elif item.probability == 0.0:
            reporter.warning(
                "ModelQuality",
                f"{_FILE}: the transition from node {item.source_id} to node {item.target_id} has "
                "probability 0.",
                file=_FILE,
                field=f"policy_graph.transitions[{index}].probability",
                value=0.0,
                suggestion="Remove the transition.",
            )
    if clean:
        _check_connected(len(stage_ids), stage_of, transitions, reporter)


def _check_connected(
    num_stages: int, stage_of: Mapping[int, int], transitions: Sequence[TransitionEntry], reporter: Reporter
) -> None:
    sources = {item.source_id for item in transitions}
    targets = {item.target_id for item in transitions}
    stuck = [node for node, stage in stage_of.items() if stage < num_stages - 1 and node not in sources]
    unreached = [node for node, stage in stage_of.items() if stage > 0 and node not in targets]
    for nodes, what in ((stuck, "leads out of"), (unreached, "leads to")):
        if nodes:
            _report(
                "BusinessRuleViolation",
                f"has no transition that {what} node {short_ids(nodes)}",
                "policy_graph.transitions",
                short_ids(nodes),
                None,
                "Connect every node with the stage before and the stage after it.",
                reporter,
                None,
            )
