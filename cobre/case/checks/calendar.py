"""Warnings about time: gaps between stages, and hours that do not fit the dates."""

from __future__ import annotations

from itertools import pairwise

from cobre.case.catalogue import by_id
from cobre.case.format import layout
from cobre.case.format.schema.stages import StageEntry
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, short_ids

_FILE = layout.STAGES
_HOURS_PER_DAY = 24.0
TOLERATED = 0.1
"""Share by which hours may differ from those of the dates: every month may have the 730 hours of an average
one, 8.6 % more than February has."""


def check_calendar(sources: Sources, reporter: Reporter) -> None:
    """Warn of days between stages that belong to none or to two, and of hours that do not fit the dates."""
    stages = by_id(stage for stage in sources.stages.items if stage.end_date > stage.start_date)
    for before, after in pairwise(stages):
        _check_neighbours(before, after, reporter)
    _check_hours(stages, reporter)


def _check_neighbours(before: StageEntry, after: StageEntry, reporter: Reporter) -> None:
    days = (after.start_date - before.end_date).days
    if days == 0:
        return
    what = (
        f"no stage has the {_days(days)} between stage {before.id}, which ends on {before.end_date}, and "
        "stage "
        f"{after.id}, which starts on {after.start_date}; their load and inflow are left out"
        if days > 0
        else f"stage {after.id} starts on {after.start_date}, {_days(-days)} before stage {before.id} ends "
        f"({before.end_date}), so load and inflow of these days count twice"
    )
    reporter.warning(
        "ModelQuality",
        f"{_FILE}: {what}.",
        file=_FILE,
        entity=f"stage {after.id}",
        field="start_date",
        value=str(after.start_date),
        suggestion="Let each stage start on the day on which the one before ends.",
    )


def _check_hours(stages: list[StageEntry], reporter: Reporter) -> None:
    odd = [stage for stage in stages if abs(_share(stage) - 1.0) > TOLERATED]
    if not odd:
        return
    worst = max(odd, key=lambda stage: abs(_share(stage) - 1.0))
    hours, days = _hours(worst), (worst.end_date - worst.start_date).days
    others = [stage.id for stage in odd if stage is not worst]
    further = f"; those of stage {short_ids(others)} do not fit either" if others else ""
    reporter.warning(
        "ModelQuality",
        f"{_FILE}: the blocks of stage {worst.id} have {hours:,.6g} hours, but its {_days(days)} from "
        f"{worst.start_date} to {worst.end_date} have {_HOURS_PER_DAY * days:,.6g} "
        f"({100.0 * (_share(worst) - 1.0):+,.3g} %){further}.",
        file=_FILE,
        entity=f"stage {short_ids([stage.id for stage in odd])}",
        field="blocks",
        value=hours,
        suggestion="Let the hours of the blocks of a stage add up to 24 for each of its days.",
    )


def _hours(stage: StageEntry) -> float:
    return float(sum(block.hours for block in stage.blocks))


def _share(stage: StageEntry) -> float:
    """Return the hours of the blocks over those of the dates."""
    return _hours(stage) / (_HOURS_PER_DAY * (stage.end_date - stage.start_date).days)


def _days(count: int) -> str:
    return f"{count} day" if count == 1 else f"{count} days"
