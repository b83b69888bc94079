"""Tables of what stages hand on besides storage: past inflows, water under way, commitments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cobre.case.model import GenericRow
from cobre.results.simulation.catalogue import ANTICIPATED_LANES, GENERIC_VIOLATIONS, IN_TRANSIT, INFLOW_LAGS
from cobre.results.simulation.frame import IntArray, StageFrame, StageValues, Study, group_sum
from cobre.results.simulation.maker import NO_ID, Columns, Maker, names_of

# -- past inflows ----------------------------------------------------------------------------------------


def _lag_places(study: Study) -> list[int]:
    """Return the components of past inflow, by plant and then by lane."""
    parts = study.layout.components
    places = [place for place, part in enumerate(parts) if part.kind == "inflow_lag"]
    return sorted(places, key=lambda place: (parts[place].entity, parts[place].lane))


def _lag_keys(frame: StageFrame) -> Columns:
    parts = [frame.study.layout.components[place] for place in _lag_places(frame.study)]
    lane = np.array([part.lane for part in parts], np.int32)
    return {
        "hydro_id": np.array([part.entity_id for part in parts], np.int32),
        "lag_index": lane,
        "lag_name": lane,
        "hydro_name": np.array([part.entity for part in parts], np.int32),
    }


INFLOW_LAG_MAKER = Maker(
    INFLOW_LAGS,
    present=lambda study: bool(_lag_places(study)),
    keys=_lag_keys,
    values=lambda frame, found: {"inflow_m3s": found.incoming[:, _lag_places(frame.study)]},
    names={"lag_name": lambda study: study.layout.inflow.lags.names, "hydro_name": names_of("hydros")},
)

# -- water under way -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Arrivals:
    """Components of water under way, and the (plant below, lag) that each belongs to."""

    components: IntArray
    lag_one: IntArray
    member: IntArray
    below: IntArray
    lag: IntArray


def _arrivals(study: Study) -> _Arrivals:
    parts = [(place, part) for place, part in enumerate(study.layout.components) if part.kind == "in_transit"]
    below = [int(study.topology.downstream[part.entity]) for _, part in parts]
    rows = sorted({(plant, part.offset) for plant, (_, part) in zip(below, parts, strict=True)})
    number = {row: position for position, row in enumerate(rows)}
    return _Arrivals(
        np.array([place for place, _ in parts], np.int64),
        np.array([part.offset == 1 for _, part in parts], np.int64),
        np.array(
            [number[plant, part.offset] for plant, (_, part) in zip(below, parts, strict=True)], np.int64
        ),
        np.array([plant for plant, _ in rows], np.int64),
        np.array([lag for _, lag in rows], np.int64),
    )


def _transit_keys(frame: StageFrame) -> Columns:
    rows = _arrivals(frame.study)
    ids = np.array([plant.id for plant in frame.study.case.hydros], np.int32)
    return {
        "hydro_id": ids[rows.below],
        "lag": rows.lag.astype(np.int32),
        "hydro_name": rows.below.astype(np.int32),
    }


def _transit_values(frame: StageFrame, found: StageValues) -> Columns:
    rows = _arrivals(frame.study)
    outgoing = found.columns(frame.template.state_col[rows.components])
    arriving = found.incoming[:, rows.components] * rows.lag_one
    count = len(rows.below)
    return {
        "in_transit_volume_hm3": group_sum(outgoing, rows.member, count),
        "delayed_arrival_hm3": group_sum(arriving, rows.member, count),
    }


IN_TRANSIT_MAKER = Maker(
    IN_TRANSIT,
    present=lambda study: bool(study.layout.transit_depth.any()),
    keys=_transit_keys,
    values=_transit_values,
    names={"hydro_name": names_of("hydros")},
)

# -- commitments for deliveries after the study ----------------------------------------------------------


def _lanes(frame: StageFrame) -> list[tuple[int, int, int, bool]]:
    """Return thermal plant, post-study stage, component and whether it is decided in this stage."""
    study, stages = frame.study, len(frame.study.case.stages)
    return [
        (
            place,
            delivery.delivery - stages,
            int(study.layout.commitment_first[place]) + delivery.delivery - frame.position - 1,
            delivery.decision == frame.position,
        )
        for place, thermal in enumerate(study.case.thermals)
        for delivery in thermal.anticipated
        if delivery.delivery >= stages and delivery.decision <= frame.position
    ]


def _lane_keys(frame: StageFrame) -> Columns:
    case, lanes = frame.study.case, _lanes(frame)
    dates = [case.post_study_stages[after].start_date for _, after, _, _ in lanes]
    place = np.array([thermal for thermal, _, _, _ in lanes], np.int32)
    return {
        "thermal_id": np.array([case.thermals[thermal].id for thermal in place], np.int32),
        "delivery_date": np.array([int(day.strftime("%Y%m%d")) for day in dates], np.int32),
        "thermal_name": place,
    }


def _lane_values(frame: StageFrame, found: StageValues) -> Columns:
    lanes = _lanes(frame)
    component = np.array([place for _, _, place, _ in lanes], np.int64)
    now = np.array([decided for _, _, _, decided in lanes], np.bool_)
    carried = found.columns(frame.template.state_col[component])
    return {"deposited_decision_mw": np.where(now, carried, 0.0), "carried_committed_mw": carried}


ANTICIPATED_LANE_MAKER = Maker(
    ANTICIPATED_LANES,
    present=lambda study: any(
        delivery.delivery >= len(study.case.stages)
        for thermal in study.case.thermals
        for delivery in thermal.anticipated
    ),
    keys=_lane_keys,
    values=_lane_values,
    names={"thermal_name": names_of("thermals")},
)

# -- generic constraints ---------------------------------------------------------------------------------


def _soft_rows(frame: StageFrame) -> tuple[list[GenericRow], list[int]]:
    rows = frame.study.case.generic[frame.position]
    soft = [number for number, row in enumerate(rows) if row.penalty is not None]
    return [rows[number] for number in soft], soft


def _constraint_names(study: Study) -> Sequence[str]:
    named = {row.constraint_id: row.name for rows in study.case.generic for row in rows}
    return [named[number] for number in sorted(named)]


def _generic_keys(frame: StageFrame) -> Columns:
    rows, _ = _soft_rows(frame)
    ids = np.array([row.constraint_id for row in rows], np.int32)
    every = np.array(
        sorted({row.constraint_id for rows in frame.study.case.generic for row in rows}), np.int32
    )
    block = [NO_ID if row.block is None else int(frame.block_id[row.block]) for row in rows]
    return {
        "block_id": np.array(block, np.int32),
        "constraint_id": ids,
        "constraint_name": np.searchsorted(every, ids).astype(np.int32),
    }


def _generic_values(frame: StageFrame, found: StageValues) -> Columns:
    _, soft = _soft_rows(frame)
    if not soft:
        return {name: np.zeros((found.scenarios, 0)) for name in ("slack_value", "slack_cost")}
    return {
        "slack_value": (found.of("generic_below") + found.of("generic_above"))[:, soft],
        "slack_cost": (found.cost("generic_below") + found.cost("generic_above"))[:, soft],
    }


GENERIC_MAKER = Maker(
    GENERIC_VIOLATIONS,
    present=lambda study: any(row.penalty is not None for rows in study.case.generic for row in rows),
    keys=_generic_keys,
    values=_generic_values,
    names={"constraint_name": _constraint_names},
)
