"""Buses and lines.

Of a flow f the receiving end gets (1 - loss) f. Load that is not served is deficit, in slices of rising cost;
what is too much is excess.
"""

from __future__ import annotations

import numpy as np

from cobre.lp.stage.context import StageContext


def add_load_rows(stage: StageContext) -> None:
    """Add the load balances (MW) of every bus and block."""
    axes = (stage.topology.bus_labels, stage.block_labels)
    stage.load = stage.lp.add_equations("bus_balance", axes)
    stage.lp.put_noise(stage.load, stage.noise.bus[:, None], stage.data.load_factor)


def add_network(stage: StageContext) -> None:
    """Add line flows, deficit and excess."""
    lp, data, topology = stage.lp, stage.data, stage.topology
    for direction, capacity, sender, receiver in (
        ("direct", data.line_direct_mw, topology.line_source, topology.line_target),
        ("reverse", data.line_reverse_mw, topology.line_target, topology.line_source),
    ):
        flow = lp.add_columns(
            f"line_{direction}",
            (topology.line_labels, stage.block_labels),
            cost=data.exchange_cost[:, None] * stage.hours,
            upper=capacity,
        )
        lp.put(stage.load[receiver], flow, 1.0 - topology.line_loss[:, None])
        lp.put(stage.load[sender], flow, -1.0)
    _add_deficit(stage)
    excess = lp.add_columns(
        "bus_excess",
        (topology.bus_labels, stage.block_labels),
        cost=data.excess_cost[:, None] * stage.hours,
    )
    lp.put(stage.load, excess, -1.0)


def _add_deficit(stage: StageContext) -> None:
    buses = stage.case.buses
    most = max((len(bus.deficit_segments) for bus in buses), default=0)
    depth, cost = np.zeros((len(buses), most)), np.zeros((len(buses), most))
    exists = np.zeros((len(buses), most), bool)
    for place, bus in enumerate(buses):
        for number, segment in enumerate(bus.deficit_segments):
            depth[place, number] = np.inf if segment.depth_mw is None else segment.depth_mw
            cost[place, number] = segment.cost_per_mwh
            exists[place, number] = True
    labels = tuple(str(number + 1) for number in range(most))
    deficit = stage.lp.add_columns(
        "bus_deficit",
        (stage.topology.bus_labels, labels, stage.block_labels),
        where=exists[:, :, None],
        cost=cost[:, :, None] * stage.hours,
        upper=depth[:, :, None],
    )
    stage.lp.put(stage.load[:, None, :], deficit, 1.0)
