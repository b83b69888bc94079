"""Travel of water along the hours of the stages, and the calendar of commitments made ahead."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from oracle.files import Json, RawFiles, date

HM3_PER_M3S_HOUR = 0.0036


def stage_start(files: RawFiles, position: int) -> float:
    """Hours from the start of the study to the start of a stage."""
    return sum(sum(files.hours(earlier)) for earlier in range(position))


def release_interval(files: RawFiles, position: int, block: int) -> tuple[float, float]:
    """Time over which the release of a block is spread: the stage, or the block where time has an order."""
    start, hours = stage_start(files, position), files.hours(position)
    if files.stages[position].get("block_mode") != "chronological":
        return start, start + sum(hours)
    return start + sum(hours[:block]), start + sum(hours[: block + 1])


def share(interval: tuple[float, float], cell: tuple[float, float]) -> float:
    """Share of an interval that lies inside a cell."""
    both = min(interval[1], cell[1]) - max(interval[0], cell[0])
    return max(both, 0.0) / (interval[1] - interval[0])


def past_arrivals_hm3(files: RawFiles, plant: Json, position: int) -> float:
    """Water released by a plant before the study that reaches the plant below in a stage."""
    origin = date(files.stages[0]["start_date"])
    begin = stage_start(files, position)
    cell = (begin, begin + sum(files.hours(position)))
    total = 0.0
    for window in files.initial.get("past_defluences") or []:
        if window["hydro_id"] == plant["id"]:
            travel = plant["travel_time_hours"]
            start, end = (24.0 * (date(window[key]) - origin).days for key in ("start_date", "end_date"))
            inside = share((start + travel, end + travel), cell) * (end - start)
            total += HM3_PER_M3S_HOUR * window["value_m3s"] * inside
    return total


@dataclass(frozen=True)
class Delivery:
    """One delivery of a thermal plant that is committed ahead.

    ``position`` may lie behind the last stage (post-study); ``decision`` is ``None`` before the study.
    """

    position: int
    decision: int | None
    hours: float
    committed_mw: float = 0.0


def deliveries(files: RawFiles, thermal: Json) -> list[Delivery]:
    """All deliveries that were decided before the study or are decided in it."""
    ahead = thermal["anticipated_config"]
    count = len(files.stages)
    starts = [_midnight(stage["start_date"]) for stage in files.stages]
    starts.append(_midnight(files.stages[-1]["end_date"]))
    hours = [sum(files.hours(position)) for position in range(count)]
    begin = list(starts[:-1])
    for stage in files.post_study.get("stages") or []:
        begin.append(_midnight(stage["start_date"]))
        hours.append(float(stage["duration_hours"]))
    found = []
    for position, start in enumerate(begin):
        if ahead.get("lead_stages") is not None:
            decision = position - int(ahead["lead_stages"])
        else:
            moment = start - datetime.timedelta(hours=float(ahead["lead_time_hours"]))
            decision = sum(1 for edge in starts if edge <= moment) - 1
        if decision >= count:
            continue
        if decision < 0:
            if position < count:
                found.append(Delivery(position, None, hours[position], _committed(files, thermal, start)))
        else:
            found.append(Delivery(position, decision, hours[position]))
    return found


def _midnight(text: str) -> datetime.datetime:
    return datetime.datetime.combine(date(text), datetime.time())


def _committed(files: RawFiles, thermal: Json, start: datetime.datetime) -> float:
    for window in files.initial.get("past_anticipated_commitments") or []:
        inside = _midnight(window["start_date"]) <= start < _midnight(window["end_date"])
        if window["thermal_id"] == thermal["id"] and inside:
            return float(window["value_mw"])
    raise ValueError(f"no commitment of thermal {thermal['id']} on {start.date()}")
