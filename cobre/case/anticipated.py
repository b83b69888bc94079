"""Thermal plants that are committed ahead of time: which stage decides what is delivered when.

A delivery stage ``s`` is decided ``lead_stages`` stages earlier, or at the stage that holds the moment
``lead_time_hours`` before the start of ``s`` on the calendar. What would have been decided before the study
is given by ``past_anticipated_commitments``; what is decided inside the study for a time after it is
delivered in a post-study stage, if there is one.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cobre.case.catalogue import by_id
from cobre.case.checks.windows import by_entity, check_windows
from cobre.case.format import layout
from cobre.case.format.schema.initial import CommitmentEntry, PostStudyFile, PostStudyThermalBounds, Window
from cobre.case.format.schema.stages import StageEntry
from cobre.case.format.schema.system import AnticipatedConfig, ThermalEntry
from cobre.case.format.sources import Sources
from cobre.case.model import AnticipatedDelivery, Case, PostStudyStage, Stage, StageData, Thermal
from cobre.case.problems import Reporter, name_entity, short_ids

_INITIAL = layout.INITIAL_CONDITIONS
_POST = layout.POST_STUDY
_FIELD = "past_anticipated_commitments"
_HOURS_PER_DAY = 24.0
_TOLERANCE = 1e-6
"""Relative slack when a past commitment is compared with limits."""


def check_anticipated(sources: Sources, reporter: Reporter) -> None:
    """Check leads, past commitments and post-study stages; values against limits come later."""
    stages = by_id(sources.stages.items)
    known = sources.stages.root is not None and sources.thermals.ids is not None and bool(stages)
    plants = by_id(sources.thermals.items)
    ahead = {item.id: item for item in plants if item.anticipated_config is not None}
    post = sources.post_study.root if sources.post_study is not None else None
    post_known = sources.post_study is None or post is not None
    if post is not None:
        _check_post_study(post, stages if known else [], ahead if known else None, sources, reporter)
    commitments = sources.initial.root.past_anticipated_commitments if sources.initial.root else None
    clean = check_windows(
        commitments or [], _FIELD, "thermal_id", sources.thermals, "thermal", None, None, reporter
    )
    if not known or not post_known:
        return
    for thermal in ahead.values():
        _check_lead(thermal, stages, post, reporter)
    if clean and sources.initial.root is not None:
        _check_commitments(sources, stages, ahead, commitments or [], reporter)


def _start_hours(date: datetime.date) -> float:
    return date.toordinal() * _HOURS_PER_DAY


def decision_stage(config: AnticipatedConfig, starts: Sequence[datetime.date], delivery: int) -> int:
    """Return the position of the stage that decides a delivery, or -1 if it lies before the study.

    Parameters
    ----------
    starts
        First day of each study stage, then of each post-study stage.
    delivery
        Position of the delivery stage among them.
    """
    if config.lead_stages is not None:
        return max(delivery - config.lead_stages, -1)
    moment = _start_hours(starts[delivery]) - (config.lead_time_hours or 0.0)
    before = [position for position, day in enumerate(starts[:delivery]) if _start_hours(day) <= moment]
    return before[-1] if before else -1


def _check_lead(
    thermal: ThermalEntry, stages: Sequence[StageEntry], post: PostStudyFile | None, reporter: Reporter
) -> None:
    config = thermal.anticipated_config
    entity = name_entity("thermal", thermal.id, thermal.name)
    if config is None:
        return
    starts = [stage.start_date for stage in stages]
    no_post = post is None or not post.stages
    key = "lead_stages" if config.lead_stages is not None else "lead_time_hours"
    value = getattr(config, key)
    too_long = config.lead_stages is not None and config.lead_stages > len(stages)
    if config.lead_time_hours is not None:
        too_long = decision_stage(config, starts, len(starts) - 1) < 0
    if too_long and no_post:
        reporter.error(
            "BusinessRuleViolation",
            f"{layout.THERMALS}: anticipated_config.{key} of {entity} is {value}, longer than the study, so "
            "nothing could be decided.",
            file=layout.THERMALS,
            entity=entity,
            field=f"anticipated_config.{key}",
            value=value,
            rule="5a.14",
            suggestion=f"Shorten the lead, or add {_POST} with the stages in which it is delivered.",
        )
    lengths = {(stage.end_date - stage.start_date).days for stage in stages}
    if config.lead_stages is not None and max(lengths) - min(lengths) > 7:
        reporter.warning(
            "ModelQuality",
            f"{layout.THERMALS}: anticipated_config.lead_stages of {entity} counts stages of different "
            f"length ({min(lengths)} to {max(lengths)} days).",
            file=layout.THERMALS,
            entity=entity,
            field="anticipated_config.lead_stages",
            value=config.lead_stages,
            rule="5a.28",
            suggestion="lead_time_hours means the same time at every stage.",
        )


def _in_window(thermal: ThermalEntry, stage: StageEntry) -> bool:
    entry, leave = thermal.entry_stage_id, thermal.exit_stage_id
    return (entry is None or entry <= stage.id) and (leave is None or stage.id < leave)


def _check_commitments(
    sources: Sources,
    stages: Sequence[StageEntry],
    ahead: dict[int, ThermalEntry],
    entries: Sequence[CommitmentEntry],
    reporter: Reporter,
) -> None:
    starts = [stage.start_date for stage in stages]
    windows = by_entity(entries, "thermal_id")

    def complain(message: str, thermal: int, value: object, suggestion: str) -> None:
        entity = name_entity("thermal", thermal, sources.thermals.names.get(thermal))
        reporter.error(
            "BusinessRuleViolation",
            f"{_INITIAL}: {_FIELD} of {entity} {message}.",
            file=_INITIAL,
            entity=entity,
            field=_FIELD,
            value=value,
            rule="5a.15",
            suggestion=suggestion,
        )

    for number in sorted(set(windows) - set(ahead)):
        if number in sources.thermals.id_set and number in {item.id for item in sources.thermals.items}:
            complain(
                "are given, but the plant is not committed ahead of time",
                number,
                len(windows[number]),
                "Remove the entries, or give the plant an anticipated_config.",
            )
    for thermal in ahead.values():
        config = thermal.anticipated_config
        if config is None:
            continue
        own = [window for _, window in windows.get(thermal.id, [])]
        leading = [
            stage for position, stage in enumerate(stages) if decision_stage(config, starts, position) < 0
        ]
        uncovered = [
            stage.id
            for stage in leading
            if _in_window(thermal, stage) and _covered_days(own, stage) != _days(stage)
        ]
        if uncovered:
            complain(
                f"do not cover stage {short_ids(uncovered)}, which is decided before the study",
                thermal.id,
                short_ids(uncovered),
                "Give one window with the dates of each such stage.",
            )
        for window in own:
            if not any(
                stage.start_date < window.end_date and window.start_date < stage.end_date for stage in leading
            ) or _days(window) > sum(_covered_days([window], stage) for stage in leading):
                complain(
                    f"hold a window from {window.start_date} to {window.end_date}, which reaches beyond the "
                    "stages that are decided before the study",
                    thermal.id,
                    str(window.start_date),
                    f"Stages decided before the study: {short_ids([s.id for s in leading]) or '(none)'}.",
                )


def _days(span: Window | StageEntry) -> int:
    return (span.end_date - span.start_date).days


def _covered_days(windows: Sequence[Window], stage: StageEntry) -> int:
    """Return the days of a stage that windows (without overlap) hold."""
    return sum(
        max(0, (min(window.end_date, stage.end_date) - max(window.start_date, stage.start_date)).days)
        for window in windows
    )


def _check_post_study(
    post: PostStudyFile,
    stages: Sequence[StageEntry],
    ahead: dict[int, ThermalEntry] | None,
    sources: Sources,
    reporter: Reporter,
) -> None:
    def complain(
        kind: str, message: str, field: str, value: object, suggestion: str, rule: str = "5a.47"
    ) -> None:
        reporter.error(
            kind,
            f"{_POST}: {message}.",
            file=_POST,
            field=field,
            value=value,
            rule=rule,
            suggestion=suggestion,
        )

    if stages and post.stages and post.stages[0].start_date != stages[-1].end_date:
        complain(
            "BusinessRuleViolation",
            f"stages[0] starts on {post.stages[0].start_date}, but the study ends on {stages[-1].end_date}",
            "stages[0].start_date",
            str(post.stages[0].start_date),
            "Post-study stages must follow the study without a gap.",
        )
    for index, (first, second) in enumerate(itertools.pairwise(post.stages)):
        span = (second.start_date - first.start_date).days * _HOURS_PER_DAY
        # Dates have no hours, so a duration may miss the next date by less than a day.
        if abs(span - first.duration_hours) >= _HOURS_PER_DAY:
            complain(
                "BusinessRuleViolation",
                f"stages[{index}] lasts {first.duration_hours} hours from {first.start_date}, but "
                f"stages[{index + 1}] starts on {second.start_date}",
                f"stages[{index + 1}].start_date",
                str(second.start_date),
                "Post-study stages must follow each other without a gap.",
            )
    given: set[tuple[int, int]] = set()
    for index, row in enumerate(post.thermal_bounds or ()):
        place = f"thermal_bounds[{index}]"
        pair = (row.thermal_id, row.post_study_stage_index)
        if pair in given:
            complain(
                "DuplicateId",
                f"{place} repeats thermal {pair[0]} and post-study stage {pair[1]}",
                place,
                list(pair),
                "Keep one row for each pair.",
            )
        given.add(pair)
        if sources.thermals.ids is not None and row.thermal_id not in sources.thermals.id_set:
            complain(
                "InvalidReference",
                f"{place}.thermal_id is {row.thermal_id}, but there is no thermal with that id",
                f"{place}.thermal_id",
                row.thermal_id,
                "Remove the row, or add the plant.",
                "referential.1",
            )
        elif ahead is not None and row.thermal_id not in ahead and row.thermal_id in _readable(sources):
            complain(
                "BusinessRuleViolation",
                f"{place} is for thermal {row.thermal_id}, which is not committed ahead of time",
                f"{place}.thermal_id",
                row.thermal_id,
                "Remove the row, or give the plant an anticipated_config.",
            )
        if row.post_study_stage_index >= len(post.stages):
            complain(
                "InvalidReference",
                f"{place}.post_study_stage_index is {row.post_study_stage_index}, but there are "
                f"{len(post.stages)} post-study stages",
                f"{place}.post_study_stage_index",
                row.post_study_stage_index,
                "Stages are counted from 0.",
            )
        if row.min_mw > row.max_mw:
            complain(
                "InvalidValue",
                f"{place}.min_mw is {row.min_mw}, more than max_mw ({row.max_mw})",
                f"{place}.min_mw",
                row.min_mw,
                "Make the minimum no greater than the maximum.",
            )
    if not stages:
        return
    starts = [stage.start_date for stage in stages]
    for thermal in (ahead or {}).values():
        wanted = _reached(thermal, starts, stages[-1].id, [item.start_date for item in post.stages])
        missing = [index for index in wanted if (thermal.id, index) not in given]
        if missing:
            entity = name_entity("thermal", thermal.id, thermal.name)
            complain(
                "DimensionMismatch",
                f"thermal_bounds has no row of {entity} for post-study stage {short_ids(missing)}, which its "
                "lead reaches",
                "thermal_bounds",
                short_ids(missing),
                "Give its limits and price there.",
            )


def _readable(sources: Sources) -> frozenset[int]:
    return frozenset(item.id for item in sources.thermals.items)


def _reached(
    thermal: ThermalEntry,
    starts: Sequence[datetime.date],
    last_stage_id: int,
    post_starts: Sequence[datetime.date],
) -> dict[int, int]:
    """Return the post-study stages whose delivery is decided inside the study, and where it is decided."""
    config = thermal.anticipated_config
    if config is None or (thermal.exit_stage_id is not None and thermal.exit_stage_id <= last_stage_id + 1):
        return {}
    count, together = len(starts), [*starts, *post_starts]
    decisions = {index: decision_stage(config, together, count + index) for index in range(len(post_starts))}
    return {index: decision for index, decision in decisions.items() if 0 <= decision < count}


# ---------------------------------------------------------------------------------------------------------


def post_study_stages(sources: Sources) -> tuple[PostStudyStage, ...]:
    """Return the post-study stages, none when there is no such file."""
    root = sources.post_study.root if sources.post_study is not None else None
    return tuple(PostStudyStage(item.start_date, item.duration_hours) for item in root.stages) if root else ()


def commit_ahead(case: Case, sources: Sources) -> Case:
    """Return the case with the deliveries of plants that are committed ahead of time.

    Their cost is charged where it is decided, so it is 0 in the data of the delivery stages. Only for sources
    without errors.
    """
    entries = {item.id: item for item in sources.thermals.items if item.anticipated_config is not None}
    if not entries:
        return case
    root = sources.initial.root
    windows = by_entity((root.past_anticipated_commitments if root else None) or (), "thermal_id")
    post = sources.post_study.root if sources.post_study is not None else None
    bounds = {
        (row.thermal_id, row.post_study_stage_index): row for row in (post and post.thermal_bounds) or ()
    }
    thermals = []
    for position, thermal in enumerate(case.thermals):
        if thermal.id not in entries:
            thermals.append(thermal)
            continue
        own = [window for _, window in windows.get(thermal.id, [])]
        deliveries = _deliveries(entries[thermal.id], position, own, case, bounds)
        thermals.append(replace(thermal, anticipated=deliveries))
    charged_ahead = np.array([bool(thermal.anticipated) for thermal in thermals])
    data = tuple(_without_cost(item, charged_ahead) for item in case.stage_data)
    return replace(case, thermals=tuple(thermals), stage_data=data)


def _without_cost(data: StageData, thermals: np.ndarray) -> StageData:
    cost = np.where(thermals, 0.0, data.thermal_cost)
    cost.setflags(write=False)
    return replace(data, thermal_cost=cost)


def _deliveries(
    entry: ThermalEntry,
    position: int,
    windows: Sequence[Window],
    case: Case,
    bounds: dict[tuple[int, int], PostStudyThermalBounds],
) -> tuple[AnticipatedDelivery, ...]:
    config = entry.anticipated_config
    if config is None:
        return ()
    starts = [stage.start_date for stage in case.stages]
    deliveries = []
    for delivery, (stage, data) in enumerate(zip(case.stages, case.stage_data, strict=True)):
        decision = decision_stage(config, starts, delivery)
        deliveries.append(
            AnticipatedDelivery(
                delivery=delivery,
                decision=decision,
                committed_mw=_committed(windows, stage) if decision < 0 else None,
                min_mw=float(data.thermal_min_mw[position].max()),
                max_mw=float(data.thermal_max_mw[position].min()),
                cost_per_mwh=float(data.thermal_cost[position]),
                hours=stage.hours,
            )
        )
    post_starts = [item.start_date for item in case.post_study_stages]
    for index, decision in _reached(entry, starts, case.stages[-1].id, post_starts).items():
        row = bounds[entry.id, index]
        deliveries.append(
            AnticipatedDelivery(
                delivery=len(starts) + index,
                decision=decision,
                committed_mw=None,
                min_mw=row.min_mw,
                max_mw=row.max_mw,
                cost_per_mwh=row.cost_per_mwh,
                hours=case.post_study_stages[index].hours,
            )
        )
    return tuple(deliveries)


def _committed(windows: Sequence[Window], stage: Stage) -> float:
    """Return the mean of past commitments over a stage, MW; 0 where there is none."""
    total = 0.0
    for window in windows:
        days = (min(window.end_date, stage.end_date) - max(window.start_date, stage.start_date)).days
        if days > 0 and isinstance(window, CommitmentEntry):
            total += window.value_mw * days
    return total / (stage.end_date - stage.start_date).days


def check_committed(case: Case, reporter: Reporter) -> None:
    """Check past commitments against the limits of their stages, which no later decision could mend."""
    for thermal in case.thermals:
        for item in thermal.anticipated:
            if item.committed_mw is None:
                continue
            slack = _TOLERANCE * max(1.0, item.max_mw)
            if item.min_mw - slack <= item.committed_mw <= item.max_mw + slack:
                continue
            _report_committed(thermal, item, case.stages[item.delivery], reporter)


def _report_committed(thermal: Thermal, item: AnticipatedDelivery, stage: Stage, reporter: Reporter) -> None:
    entity = name_entity("thermal", thermal.id, thermal.name)
    reporter.error(
        "InvalidValue",
        f"{_INITIAL}: {_FIELD} of {entity} at stage {stage.id} is {item.committed_mw} MW, outside its limits "
        f"{item.min_mw}-{item.max_mw}.",
        file=_INITIAL,
        entity=entity,
        field=f"{_FIELD}.value_mw",
        value=item.committed_mw,
        rule="5a.15",
        suggestion="Give a value inside the limits of the plant at that stage.",
    )
