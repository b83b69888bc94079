"""Water let through dams: turbined, spilt, diverted; where it goes, and the limits on outflow.

Turbined and spilt water reaches the downstream plant after the travel time, diverted water reaches the
channel's end at once. Outflow limits hold for the sum of the three.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.lp.index import IdArray
from cobre.lp.stage.context import FloatArray, StageContext, chosen
from cobre.lp.travel import arrival_shares


def add_flows(stage: StageContext) -> None:
    """Add turbined, spilt and diverted flow; limits of turbines are those of :mod:`production`."""
    lp, data, topology = stage.lp, stage.data, stage.topology
    hydros = np.arange(len(topology.hydro_labels))
    blocks = (topology.hydro_labels, stage.block_labels)
    spillage = lp.add_columns(
        "hydro_spillage",
        blocks,
        where=stage.dammed[:, None],
        cost=stage.penalty("spillage")[:, None] * stage.hours,
    )
    _run_down(stage, spillage, hydros)
    diversion = lp.add_columns(
        "hydro_diversion",
        blocks,
        where=(stage.dammed & (topology.diversion_target >= 0))[:, None],
        cost=stage.penalty("diversion")[:, None] * stage.hours,
        lower=data.diversion_min_m3s,
        upper=data.diversion_max_m3s,
    )
    lp.put(stage.balance[:, stage.period], diversion, stage.volume)
    target = chosen(stage.balance, topology.diversion_target)
    lp.put(target[:, stage.period], diversion, -stage.volume)
    # What reaches the site of a plant out of service runs on; negative inflow, too.
    bypass = stage.ids_by_period(
        lp.add_columns(
            "hydro_bypass",
            stage.period_axes(topology.hydro_labels),
            where=stage.period_mask(~stage.dammed),
            lower=-np.inf,
        )
    )
    begin, end = stage.period_edges[:-1], stage.period_edges[1:]
    _route(stage, bypass, hydros, stage.period_volume, np.arange(stage.periods), begin, end)


def add_turbined(stage: StageContext, upper: FloatArray) -> IdArray:
    """Add the turbined flow of every unit group, at most ``upper`` (group, block) m3/s."""
    topology = stage.topology
    hydro = topology.group_hydro
    turbined = stage.lp.add_columns(
        "hydro_turbined",
        (topology.group_labels, stage.block_labels),
        where=stage.operating[hydro][:, None],
        cost=stage.penalty("turbined")[hydro][:, None] * stage.hours,
        upper=upper,
    )
    _run_down(stage, turbined, hydro)
    return turbined


def add_outflow_limits(stage: StageContext) -> None:
    """Add the limits on turbined + spilt + diverted flow, with slacks."""
    lp, data, topology = stage.lp, stage.data, stage.topology
    axes = (topology.hydro_labels, stage.block_labels)
    dammed = stage.dammed[:, None]
    least = stage.soft_limit(
        "hydro_outflow_min",
        axes,
        dammed & (data.outflow_min_m3s > 0.0),
        price=stage.penalty("outflow_violation_below")[:, None] * stage.hours,
        lower=data.outflow_min_m3s,
    )
    most = stage.soft_limit(
        "hydro_outflow_max",
        axes,
        dammed & np.isfinite(data.outflow_max_m3s),
        price=stage.penalty("outflow_violation_above")[:, None] * stage.hours,
        upper=data.outflow_max_m3s,
    )
    for rows in (least, most):
        lp.put(chosen(rows, topology.group_hydro), lp.columns["hydro_turbined"], 1.0)
        lp.put(rows, lp.columns["hydro_spillage"], 1.0)
        lp.put(rows, lp.columns["hydro_diversion"], 1.0)


def _run_down(stage: StageContext, columns: IdArray, hydro: NDArray[np.int64]) -> None:
    """Take block flows (m3/s) out of their plants' reservoirs and lead them downstream."""
    _route(stage, columns, hydro, stage.volume, stage.period, stage.block_begin, stage.block_end)


def _route(
    stage: StageContext,
    columns: IdArray,
    hydro: NDArray[np.int64],
    volume: FloatArray,
    period: NDArray[np.int64],
    begin: FloatArray,
    end: FloatArray,
) -> None:
    """Lead flows downstream: ``columns`` (n, m) of plants ``hydro`` (n,), in m intervals of time."""
    lp, depth = stage.lp, stage.layout.transit_depth
    lp.put(stage.balance[hydro][:, period], columns, volume)
    travel = np.array([plant.travel_time_hours for plant in stage.case.hydros])
    delayed = travel > 0.0
    at_once = np.where(delayed, -1, stage.topology.downstream)
    lp.put(chosen(stage.balance, at_once)[hydro][:, period], columns, -volume)
    later_hours = [following.hours for following in stage.case.stages[stage.position + 1 :]]
    for h in np.flatnonzero(delayed & (stage.topology.downstream >= 0)):
        own = columns[hydro == h][:, :, None]
        same, later = arrival_shares(begin, end, stage.period_edges, later_hours, float(travel[h]))
        target = stage.balance[stage.topology.downstream[h]]
        lp.put(target, own, -volume[:, None] * same)
        count = min(int(depth[h]), later.shape[1])
        first = int(stage.layout.transit_first[h] - stage.layout.transit_first[0])
        rows = stage.lp.rows["hydro_transit"][first : first + count]
        lp.put(rows, own, -volume[:, None] * later[:, :count])
