"""The horizon: dates, blocks, order of stages, discount."""

from __future__ import annotations

from dataclasses import replace

from cobre.case.catalogue import by_id
from cobre.case.checks.graph import check_graph
from cobre.case.checks.references import check_unique
from cobre.case.format import layout
from cobre.case.format.schema.stages import PreStudyStageEntry, StageEntry, StagesFile, TransitionEntry
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, short_ids
from cobre.case.seasons import check_seasons
from cobre.units import DAYS_PER_YEAR

_FILE = layout.STAGES
_MOST_PERIODS_BEFORE = 1000
"""Far more than any model reads; an id below is a mistake."""


def check_stages(sources: Sources, reporter: Reporter) -> None:
    """Check the stages, their seasons and the policy graph."""
    stages = sources.stages
    ids = stages.ids if stages.ids is not None else [stage.id for stage in stages.items]
    check_unique(ids, _FILE, "stage", reporter)
    if stages.ids is not None:
        study = sorted({number for number in stages.ids if number >= 0})
        if len(study) < 2:
            found = "there is only one stage" if study else "stages is empty"
            before = " with an id >= 0" if len(study) < len(stages.ids) else ""
            reporter.error(
                "BusinessRuleViolation",
                f"{_FILE}: {found}{before}, but a study needs at least two stages.",
                file=_FILE,
                field="stages",
                value=list(stages.ids),
                suggestion="Add stages to the list.",
            )
    for stage in by_id(stages.items):
        _check_stage(stage, reporter)
    if stages.root is None:
        return
    _check_pre_study(stages.root, reporter)
    check_seasons(stages.root, reporter)
    check_graph(sources, reporter)
    _check_openings(stages.root, reporter)
    _check_state_variables(stages.root, reporter)
    _warn_sobol(stages.root, reporter)
    graph = stages.root.policy_graph
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
                rule="5b.3",
                suggestion="Give a rate well above -1.",
            )


def study_stages(sources: Sources) -> Sources:
    """Return the sources with study stages only in ``stages.items`` and ``stages.ids``."""
    stages = sources.stages
    # Without any stage (already reported) no reference is reported as one to a missing stage.
    ids = tuple(number for number in stages.ids or () if number >= 0) or None
    items = tuple(stage for stage in stages.items if stage.id >= 0)
    return replace(sources, stages=replace(stages, ids=ids, items=items))


def pre_study_ids(sources: Sources) -> frozenset[int]:
    """Return the ids of the pre-study stages, as far as they can be read."""
    root = sources.stages.root
    if root is None:
        return frozenset()
    listed = {stage.id for stage in root.pre_study_stages or ()}
    return frozenset(listed | {stage.id for stage in root.stages if stage.id < 0})


def ids_before_study(sources: Sources) -> frozenset[int]:
    """Return the ids that rows of inflow models may use for periods before the study.

    Those of pre-study stages; others count periods back from the first stage.
    """
    return pre_study_ids(sources) | frozenset(range(-_MOST_PERIODS_BEFORE, 0))


def _check_stage(stage: StageEntry, reporter: Reporter) -> None:
    entity = f"stage {stage.id}"
    _check_order(stage, reporter)
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
            rule="5b.52",
            suggestion="Number the blocks of a stage 0, 1, 2, ... in any order.",
        )


def _check_order(stage: StageEntry | PreStudyStageEntry, reporter: Reporter) -> None:
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


def _check_pre_study(file: StagesFile, reporter: Reporter) -> None:
    for stage in file.pre_study_stages or ():
        _check_order(stage, reporter)
    negative = [stage.id for stage in file.stages if stage.id < 0]
    listed = [stage.id for stage in file.pre_study_stages or ()]
    # Repeats inside the list of stages are reported there.
    check_unique([*set(negative), *listed], _FILE, "pre-study stage", reporter, field="pre_study_stages")
    if negative:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: stage {short_ids(negative)} has a negative id and so lies before the study; "
            "nothing is decided there.",
            file=_FILE,
            entity=f"stage {short_ids(negative)}",
            field="stages",
            value=short_ids(negative),
            suggestion="List it under pre_study_stages, or give it an id >= 0.",
        )


def _check_openings(file: StagesFile, reporter: Reporter) -> None:
    """Openings are given where a node has generated ones; those of other stages depend on the statistics."""
    external: dict[int, bool] = {}
    for node in file.policy_graph.nodes or ():
        external[node.stage_id] = external.get(node.stage_id, True) and node.scenario_id is not None
    for stage in by_id(file.stages):
        if stage.id < 0:
            continue
        entity = f"stage {stage.id}"
        if stage.num_openings is None and not external.get(stage.id, False):
            reporter.error(
                "SchemaViolation",
                f"{_FILE}: the required key num_openings of {entity} is missing.",
                file=_FILE,
                entity=entity,
                field="num_openings",
                suggestion="Add the key 'num_openings'.",
            )


def _warn_sobol(file: StagesFile, reporter: Reporter) -> None:
    uneven = [
        stage.id
        for stage in file.stages
        if stage.sampling_method in ("qmc_sobol", "owen_sobol")
        and stage.num_openings
        and stage.num_openings.bit_count() > 1
    ]
    if uneven:
        reporter.warning(
            "ModelQuality",
            f"{_FILE}: num_openings of stage {short_ids(uneven)} is no power of 2, so that Sobol points do "
            "not fill space evenly.",
            file=_FILE,
            entity=f"stage {short_ids(uneven)}",
            field="num_openings",
            rule="5b.25",
            suggestion="Use 2, 4, 8, 16, ... openings.",
        )


def _check_state_variables(file: StagesFile, reporter: Reporter) -> None:
    fixed = [
        stage.id
        for stage in file.stages
        if stage.id >= 0 and stage.state_variables is not None and stage.state_variables.storage is False
    ]
    if fixed:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: state_variables.storage of stage {short_ids(fixed)} is false, but storage is always "
            "carried to the next stage.",
            file=_FILE,
            entity=f"stage {short_ids(fixed)}",
            field="state_variables.storage",
            value=False,
            suggestion="Leave the key out; a plant without a reservoir needs no such mark.",
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
