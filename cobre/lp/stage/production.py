"""Hydro generation: turbines, production models, and the limits of unit groups and plants.

With constant productivity the turbined flow gives the generation, G = rho q. Otherwise every unit group
has a generation of its own, and their sum is below every plane,

    sum_g G_g <= p0 + pv (v + v') / 2 + pq sum_g q_g + ps s,

with v, v' the storages at both ends of the period. Group and plant limits both hold; those of a plant get
rows only where they are tighter than what the groups add up to. Maxima are hard, minima have a slack.
"""

from __future__ import annotations

import numpy as np

from cobre.lp.index import Labels
from cobre.lp.stage.context import BoolArray, FloatArray, StageContext, chosen
from cobre.lp.stage.flows import add_outflow_limits, add_turbined
from cobre.lp.stage.plants import is_planar, plane_table, productivity

# Sums of group limits round: a plant's limit this close to them is not tighter.
_SLIGHTLY = 1e-12


def add_production(stage: StageContext) -> None:
    """Add turbined flow, generation and their limits."""
    planar, rho = is_planar(stage), productivity(stage)
    lp, data, topology = stage.lp, stage.data, stage.topology
    hydro = topology.group_hydro
    single = topology.groups_of_hydro == 1
    most_flow, most_power = data.turbined_max_m3s, data.generation_max_mw
    proportional = ~planar & (rho > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_power = np.where(proportional[:, None], most_power / rho[:, None], np.inf)
        group_by_power = np.where(
            proportional[hydro][:, None], data.group_generation_max_mw / rho[hydro][:, None], np.inf
        )
    most_flow = np.minimum(most_flow, by_power)
    group_flow = np.minimum(data.group_turbined_max_m3s, group_by_power)
    group_flow = np.where(single[hydro][:, None], np.minimum(group_flow, most_flow[hydro]), group_flow)
    turbined = add_turbined(stage, group_flow)
    _cap(stage, "hydro_plant_turbined_max", "hydro_turbined", stage.operating, group_flow, most_flow)
    lp.put(
        stage.load[topology.group_bus],
        turbined,
        np.where(planar[hydro], 0.0, rho[hydro])[:, None],
    )

    has_planes = stage.operating & planar
    # Planes cross zero at zero flow: without turbines spillage must not be held back by them.
    turbines = np.minimum(_sum_by_plant(stage, group_flow), most_flow) > 0.0
    group_power = np.where(turbines[hydro], data.group_generation_max_mw, 0.0)
    group_power = np.where(single[hydro][:, None], np.minimum(group_power, most_power[hydro]), group_power)
    generation = lp.add_columns(
        "hydro_generation",
        (topology.group_labels, stage.block_labels),
        where=has_planes[hydro][:, None],
        upper=group_power,
    )
    lp.put(stage.load[topology.group_bus], generation, 1.0)
    _cap(stage, "hydro_plant_generation_max", "hydro_generation", has_planes, group_power, most_power)
    _add_planes(stage, has_planes, turbines)
    add_outflow_limits(stage)
    _add_minima(stage, planar, rho, single)


def _sum_by_plant(stage: StageContext, values: FloatArray) -> FloatArray:
    total = np.zeros((len(stage.topology.hydro_labels), values.shape[1]))
    np.add.at(total, stage.topology.group_hydro, values)
    return total


def _cap(
    stage: StageContext,
    kind: str,
    columns: str,
    where: BoolArray,
    of_groups: FloatArray,
    of_plant: FloatArray,
) -> None:
    """Add the plant's hard maximum where the groups together could pass it."""
    lp, topology = stage.lp, stage.topology
    several = (where & (topology.groups_of_hydro > 1))[:, None]
    tighter = of_plant < _sum_by_plant(stage, of_groups) * (1.0 - _SLIGHTLY)
    axes = (topology.hydro_labels, stage.block_labels)
    rows = lp.add_rows(kind, axes, where=several & tighter, upper=of_plant)
    lp.put(chosen(rows, topology.group_hydro), lp.columns[columns], 1.0)


def _add_planes(stage: StageContext, has_planes: BoolArray, turbines: BoolArray) -> None:
    lp, topology = stage.lp, stage.topology
    planes, exists = plane_table(stage)
    labels: Labels = tuple(str(number) for number in range(planes.shape[1]))
    where = exists[:, None, :] & has_planes[:, None, None] & turbines[:, :, None]
    rows = lp.add_rows(
        "hydro_production",
        (topology.hydro_labels, stage.block_labels, labels),
        where=where,
        upper=planes[:, None, :, 0],
    )
    p_storage, p_flow, p_spill = (planes[:, None, :, column] for column in (1, 2, 3))
    of_group = chosen(rows, topology.group_hydro)
    lp.put(of_group, lp.columns["hydro_generation"][:, :, None], 1.0)
    lp.put(of_group, lp.columns["hydro_turbined"][:, :, None], -p_flow[topology.group_hydro])
    lp.put(rows, lp.columns["hydro_spillage"][:, :, None], -p_spill)
    lp.put(rows, stage.storage_before[:, stage.period, None], -0.5 * p_storage)
    lp.put(rows, stage.storage_after[:, stage.period, None], -0.5 * p_storage)


def _add_minima(stage: StageContext, planar: BoolArray, rho: FloatArray, single: BoolArray) -> None:
    """Add the minima of flow and generation: of groups, and of plants where they ask for more."""
    lp, data, topology = stage.lp, stage.data, stage.topology
    hydro = topology.group_hydro
    power_of_flow = np.where(planar, 0.0, rho)
    for quantity, plant_min, group_min, penalty, flow_factor in (
        (
            "turbined",
            data.turbined_min_m3s,
            data.group_turbined_min_m3s,
            "turbined_violation_below",
            np.ones(len(rho)),
        ),
        (
            "generation",
            data.generation_min_mw,
            data.group_generation_min_mw,
            "generation_violation_below",
            power_of_flow,
        ),
    ):
        price = stage.penalty(penalty)[:, None] * stage.hours
        least = np.where(single[hydro][:, None], np.maximum(group_min, plant_min[hydro]), group_min)
        of_group = stage.soft_limit(
            f"hydro_{quantity}_min",
            (topology.group_labels, stage.block_labels),
            stage.operating[hydro][:, None] & (least > 0.0),
            price=price[hydro],
            lower=least,
        )
        more = plant_min > _sum_by_plant(stage, group_min) * (1.0 + _SLIGHTLY)
        of_plant = stage.soft_limit(
            f"hydro_plant_{quantity}_min",
            (topology.hydro_labels, stage.block_labels),
            (stage.operating & ~single)[:, None] & more,
            price=price,
            lower=plant_min,
        )
        for rows in (of_group, chosen(of_plant, hydro)):
            lp.put(rows, lp.columns["hydro_turbined"], flow_factor[hydro][:, None])
            if quantity == "generation":
                lp.put(rows, lp.columns["hydro_generation"], 1.0)
