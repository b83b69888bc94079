"""Tables of buses and lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.results.simulation.catalogue import BUSES, EXCHANGES
from cobre.results.simulation.frame import TOLERANCE, BoolArray, FloatArray, StageFrame, StageValues
from cobre.results.simulation.maker import Columns, Maker, entity_keys, names_of


def _buses(frame: StageFrame, found: StageValues) -> Columns:
    case, hours = frame.study.case, frame.hours
    hydros, count = len(case.hydros), len(case.buses)
    load = found.realised[:, hydros : hydros + count, None] * frame.data.load_factor
    deficit = found.of("bus_deficit").sum(axis=2)
    excess = found.of("bus_excess")
    return {
        "load_mw": load,
        "load_mwh": load * hours,
        "deficit_mw": deficit,
        "deficit_mwh": deficit * hours,
        "excess_mw": excess,
        "excess_mwh": excess * hours,
        "spot_price": found.duals(frame.rows("bus_balance")) / hours,
    }


def _exchanges(frame: StageFrame, found: StageValues) -> Columns:
    direct, reverse = found.of("line_direct"), found.of("line_reverse")
    losses = (direct + reverse) * frame.study.topology.line_loss[:, None]
    net = direct - reverse
    return {
        "direct_flow_mw": direct,
        "reverse_flow_mw": reverse,
        "net_flow_mw": net,
        "net_flow_mwh": net * frame.hours,
        "losses_mw": losses,
        "losses_mwh": losses * frame.hours,
        "exchange_cost": found.cost("line_direct") + found.cost("line_reverse"),
        "operative_state_code": _line_state(
            frame.study.service.at("line", frame.position),
            (frame.data.line_direct_mw, direct),
            (frame.data.line_reverse_mw, reverse),
        ),
    }


def _line_state(serves: BoolArray, *directions: tuple[FloatArray, FloatArray]) -> NDArray[np.int8]:
    """Return 0 out of service, 1 without capacity in any direction, 3 full in one, else 2."""
    full = np.zeros(directions[0][1].shape, np.bool_)
    open_ = np.zeros(directions[0][0].shape, np.bool_)
    for most, flow in directions:
        open_ |= most > 0.0
        full |= (most > 0.0) & (flow >= most - TOLERANCE * np.maximum(1.0, most))
    state = np.where(full, 3, np.where(open_, 2, 1))
    codes: NDArray[np.int8] = np.where(serves[:, None], state, 0).astype(np.int8)
    return codes


BUS_MAKER = Maker(
    BUSES,
    present=lambda study: bool(study.case.buses),
    keys=lambda frame: entity_keys(frame, "bus", frame.study.case.buses),
    values=_buses,
    names={"bus_name": names_of("buses")},
)

EXCHANGE_MAKER = Maker(
    EXCHANGES,
    present=lambda study: bool(study.case.lines),
    keys=lambda frame: entity_keys(frame, "line", frame.study.case.lines),
    values=_exchanges,
    names={"line_name": names_of("lines")},
)
