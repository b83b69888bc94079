"""The horizon: dates, blocks, order of stages, discount."""

from __future__ import annotations

import itertools
from collections import defaultdict

from cobre.case import layout
from cobre.case.checks.references import check_reference, check_unique
from cobre.case.problems import Reporter, short_ids
from cobre.case.schema.stages import StageEntry, TransitionEntry
from cobre.case.sources import Sources
from cobre.units import DAYS_PER_YEAR

_FILE = layout.STAGES
_PROBABILITY_TOLERANCE = 1e-6


def check_stages(sources: Sources, reporter: Reporter) -> None:
    """Check the stages and the policy graph."""
    stages = sources.stages
    ids = stages.ids if stages.ids is not None else [stage.id for stage in stages.items]
    check_unique(ids, _FILE, "stage", reporter)
    if stages.ids is not None:
        count = len(set(stages.ids))
        if count < 2:
            found = "stages is empty" if count == 0 else "there is only one stage"
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: {found}, but a study needs at least two stages.",
                file=_FILE,
                field="stages",
                value=list(stages.ids),
                suggestion="Add stages to the list.",
            )
    for stage in sorted(stages.items, key=lambda item: item.id):
        _check_stage(stage, reporter)
    if stages.root is None:
        return
    graph = stages.root.policy_graph
    if graph.transitions:
        _check_transitions(sources, graph.transitions, reporter)
    overrides = transition_rates(graph.transitions or [])
    for stage in stages.items:
        rate = stage_rate(stage, overrides, graph.annual_discount_rate)
        try:
            discount_factor(stage, rate)
        except OverflowError:
            reporter.error(
                "InvalidValue",
                f"{_FILE}: the discount rate {rate} of stage {stage.id} has no finite discount factor.",
                file=_FILE,
                entity=f"stage {stage.id}",
                field="annual_discount_rate_override",
                value=rate,
                suggestion="Give a rate well above -1.",
            )


def _check_stage(stage: StageEntry, reporter: Reporter) -> None:
    entity = f"stage {stage.id}"
    if stage.end_date <= stage.start_date:
        reporter.error(
            "InvalidValue",
            f"{_FILE}: end_date of {entity} ({stage.end_date}) must be later than its start_date "
            f"({stage.start_date}).",
            file=_FILE,
            entity=entity,
            field="end_date",
            value=str(stage.end_date),
            suggestion="The end date is the first day after the stage.",
        )
    ids = [block.id for block in stage.blocks]
    if sorted(ids) != list(range(len(ids))) or not ids:
        wanted = f"0 to {len(ids) - 1}, each once" if ids else "at least one block"
        reporter.error(
            "InvalidValue",
            f"{_FILE}: the block ids of {entity} are {ids}, but must be {wanted}.",
            file=_FILE,
            entity=entity,
            field="blocks",
            value=ids,
            suggestion="Number the blocks of a stage 0, 1, 2, ... in any order.",
        )


def _check_transitions(sources: Sources, transitions: list[TransitionEntry], reporter: Reporter) -> None:
    stages = sources.stages
    known = True
    outgoing: dict[int, float] = defaultdict(float)
    for index, transition in enumerate(transitions):
        outgoing[transition.source_id] += transition.probability
        for key in ("source_id", "target_id"):
            field = f"policy_graph.transitions[{index}].{key}"
            value = getattr(transition, key)
            known &= check_reference(value, stages, "stage", _FILE, None, field, reporter, "5b.1")
    for source, total in sorted(outgoing.items()):
        if abs(total - 1.0) > _PROBABILITY_TOLERANCE:
            known = False
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: the probabilities of the transitions out of stage {source} sum to {total}, not 1.",
                file=_FILE,
                entity=f"stage {source}",
                field="policy_graph.transitions",
                value=total,
                rule="5b.2",
                suggestion="Make the probabilities of each source stage sum to 1.",
            )
    if not known or stages.ids is None:
        return
    order = sorted(set(stages.ids))
    chain = list(itertools.pairwise(order))
    if sorted((item.source_id, item.target_id) for item in transitions) != chain:
        reporter.error(
            "NotImplemented",
            f"{_FILE}: policy_graph.transitions is not the plain chain of stages {short_ids(order)}; "
            "other policy graphs are not supported yet.",
            file=_FILE,
            field="policy_graph.transitions",
            value=[[item.source_id, item.target_id] for item in transitions],
            suggestion="Remove transitions, or list one from each stage to the next with probability 1.",
        )


def transition_rates(transitions: list[TransitionEntry]) -> dict[int, float]:
    """Return the discount rate that transitions give, by the id of the stage they leave."""
    return {
        item.source_id: item.annual_discount_rate_override
        for item in transitions
        if item.annual_discount_rate_override is not None
    }


def stage_rate(stage: StageEntry, transition_overrides: dict[int, float], global_rate: float) -> float:
    """Return the annual discount rate of a stage: its own, else its transition's, else the global one."""
    if stage.annual_discount_rate_override is not None:
        return stage.annual_discount_rate_override
    return transition_overrides.get(stage.id, global_rate)


def discount_factor(stage: StageEntry, rate: float) -> float:
    """Return the one-step factor (1 + r)^(-days/365.25), exactly 1 without a rate.

    Raises
    ------
    OverflowError
        When the factor has no finite value.
    """
    if rate == 0.0:
        return 1.0
    days = (stage.end_date - stage.start_date).days
    return float((1.0 + rate) ** (-days / DAYS_PER_YEAR))
