"""Non-controllable sources, contracts and pumping stations.

A source gives ``n + curtailed = available`` MW in each block; generating is rewarded with the curtailment
cost, which equals charging it for what is curtailed up to a constant.
"""

from __future__ import annotations

import numpy as np

from cobre.lp.stage.context import StageContext


def add_sources(stage: StageContext) -> None:
    """Add all three."""
    _add_non_controllable(stage)
    _add_contracts(stage)
    _add_pumping(stage)


def _add_non_controllable(stage: StageContext) -> None:
    lp, data, topology = stage.lp, stage.data, stage.topology
    axes = (topology.ncs_labels, stage.block_labels)
    serves = np.asarray(data.ncs_in_service)[:, None]
    most = stage.most_available_mw[:, None] * data.ncs_factor
    curtails = np.array([source.allow_curtailment for source in stage.case.non_controllables], bool)
    generation = lp.add_columns(
        "non_controllable_generation",
        axes,
        where=serves,
        cost=-data.curtailment_cost[:, None] * stage.hours,
        upper=most,
    )
    curtailed = lp.add_columns(
        "non_controllable_curtailment",
        axes,
        where=serves,
        upper=np.where(curtails[:, None], most, 0.0),
    )
    rows = lp.add_equations("non_controllable_available", axes, where=serves)
    lp.put_noise(rows, stage.noise.source[:, None], data.ncs_factor)
    lp.put(rows, generation, 1.0)
    lp.put(rows, curtailed, 1.0)
    lp.put(stage.load[topology.ncs_bus], generation, 1.0)


def _add_contracts(stage: StageContext) -> None:
    lp, data, topology = stage.lp, stage.data, stage.topology
    power = lp.add_columns(
        "contract_power",
        (topology.contract_labels, stage.block_labels),
        cost=data.contract_price * stage.hours,
        lower=data.contract_min_mw,
        upper=data.contract_max_mw,
    )
    lp.put(stage.load[topology.contract_bus], power, topology.contract_sign[:, None])


def _add_pumping(stage: StageContext) -> None:
    lp, data, topology = stage.lp, stage.data, stage.topology
    flow = lp.add_columns(
        "pumping_flow",
        (topology.pump_labels, stage.block_labels),
        lower=data.pumping_min_m3s,
        upper=data.pumping_max_m3s,
    )
    lp.put(stage.balance[topology.pump_source][:, stage.period], flow, stage.volume)
    lp.put(stage.balance[topology.pump_destination][:, stage.period], flow, -stage.volume)
    lp.put(stage.load[topology.pump_bus], flow, -topology.pump_consumption[:, None])
