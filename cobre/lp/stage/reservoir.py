"""Reservoirs: storage, water balances, evaporation, withdrawal, first filling.

A plant that is out of service keeps its storage, and whatever reaches its site runs on downstream. Storage
limits hold at the end of every period. They are hard, except for the floor of a plant that starts below it
or whose dam is filled during the study: its floor has a slack at ``storage_violation_below``.

Evaporation E (m3/s) of a period with mean storage v: ``E = k0 + kv v``, with slacks on both sides. It is
negative where rain on the surface exceeds what evaporates: water that enters the reservoir.

A filling dam keeps at least the wanted rate, ``v' - v >= zeta rate``, and reaches the floor of its first
stage of service at the end; both at ``filling_target_violation`` $/hm3.
"""

from __future__ import annotations

import numpy as np

from cobre.case.model import HydroStatus
from cobre.lp.index import ABSENT, IdArray
from cobre.lp.stage.context import BoolArray, StageContext
from cobre.lp.stage.plants import is_planar, plane_table

_INITIAL_STORAGE = ("hydro_storage_initial", "hydro_useful_volume_initial")
_SLACK_METHODS = ("penalty", "truncation_with_penalty")


def add_reservoirs(stage: StageContext) -> IdArray:
    """Add storages and the rows of the water balances; return the columns of the final storages."""
    lp, data, labels = stage.lp, stage.data, stage.topology.hydro_labels
    hydros = np.arange(len(labels))
    soft = _soft_floor(stage) & stage.operating
    floor = np.where(stage.operating & ~soft, data.storage_min_hm3, 0.0)
    ceiling = np.where(stage.dammed, data.storage_max_hm3, np.inf)
    final = lp.add_columns("hydro_storage_final", (labels,), lower=floor, upper=ceiling)
    interior = lp.add_columns(
        "hydro_storage_block",
        (labels, stage.block_labels[: stage.periods - 1]),
        where=stage.dammed[:, None],
        lower=floor[:, None],
        upper=ceiling[:, None],
    )
    withdrawn = np.where(stage.dammed, data.withdrawal_m3s, 0.0)
    rhs = stage.by_period(-withdrawn[:, None] * stage.period_volume)
    stage.balance = stage.ids_by_period(lp.add_equations("hydro_balance", stage.period_axes(labels), rhs=rhs))
    lp.put_noise(stage.balance, stage.noise.hydro[:, None], stage.period_volume)

    needed = _needs_initial(stage) & stage.dammed
    initial = lp.add_columns("hydro_storage_initial", (labels,), where=needed, lower=-np.inf)
    equal = lp.add_equations("hydro_storage_incoming", (labels,), where=needed)
    lp.put(equal, initial, 1.0)
    lp.put_state(equal, hydros, 1.0)
    stage.storage_before = np.concatenate([initial[:, None], interior], axis=1)
    stage.storage_after = np.concatenate([interior, final[:, None]], axis=1)
    for ends in (stage.storage_before, stage.storage_after):
        ends[~stage.dammed] = final[~stage.dammed, None]
    in_balance = np.where(stage.dammed[:, None], stage.balance, ABSENT)
    lp.put(in_balance, stage.storage_after, 1.0)
    lp.put(in_balance, stage.storage_before, -1.0)
    lp.put_state(np.where(needed, ABSENT, in_balance[:, 0]), hydros, 1.0)

    carried = lp.add_equations("hydro_storage_carried", (labels,), where=~stage.dammed)
    lp.put(carried, final, 1.0)
    lp.put_state(carried, hydros, 1.0)
    _add_soft_floor(stage, soft)
    return final


def add_water_uses(stage: StageContext) -> None:
    """Add what besides turbines and spillways takes water from reservoirs or gives it to them."""
    lp, data, labels = stage.lp, stage.data, stage.topology.hydro_labels
    hours = stage.stage.hours
    if stage.case.training.inflow_method in _SLACK_METHODS:
        slack = lp.add_columns(
            "hydro_inflow_slack",
            (labels,),
            where=stage.dammed,
            cost=stage.penalty("inflow_nonnegativity") * hours,
        )
        lp.put(stage.balance, slack[:, None], -stage.period_volume)
    withdraws = stage.dammed & (data.withdrawal_m3s > 0.0)
    # No more can be missing than is withdrawn: beyond it the slack would be a source of water.
    for side, name, sign, most in (
        ("below", "neg", -1.0, data.withdrawal_m3s),
        ("above", "pos", 1.0, np.inf),
    ):
        slack = lp.add_columns(
            f"hydro_withdrawal_{side}",
            (labels,),
            where=withdraws,
            cost=stage.penalty(f"water_withdrawal_violation_{name}") * hours,
            upper=most,
        )
        lp.put(stage.balance, slack[:, None], sign * stage.period_volume)
    _add_evaporation(stage)
    _add_filling(stage)


def _soft_floor(stage: StageContext) -> BoolArray:
    """Plants that may enter their first stage of service below their floor."""
    case = stage.case
    status = np.stack([data.hydro_status for data in case.stage_data])
    least = np.stack([data.storage_min_hm3 for data in case.stage_data])
    serves = status == HydroStatus.OPERATING
    first = np.argmax(serves, axis=0)
    initial = np.array([hydro.initial_storage_hm3 for hydro in case.hydros])
    starts_below: BoolArray = initial < least[first, np.arange(len(initial))]
    filled: BoolArray = (status == HydroStatus.FILLING).any(axis=0)
    return starts_below | filled


def _needs_initial(stage: StageContext) -> BoolArray:
    """Plants whose incoming storage enters other rows than the balance."""
    needed = stage.filling & (stage.data.filling_min_rate_m3s > 0.0)
    models = stage.case.evaporation[stage.position]
    needed |= np.array([model is not None and model.slope_m3s_per_hm3 != 0.0 for model in models], bool)
    planes, _ = plane_table(stage)
    needed |= is_planar(stage) & stage.operating & (planes[:, :, 1] != 0.0).any(axis=1)
    place = stage.topology.place["hydro"]
    for row in stage.case.generic[stage.position]:
        for term in row.terms:
            if term.kind in _INITIAL_STORAGE:
                needed[place[term.entity_id]] = True
    return needed


def _add_soft_floor(stage: StageContext, soft: BoolArray) -> None:
    lp, axes = stage.lp, stage.period_axes(stage.topology.hydro_labels)
    where = stage.period_mask(soft)
    spread = np.ones((1, stage.periods))
    least = stage.by_period(stage.data.storage_min_hm3[:, None] * spread)
    price = stage.by_period(stage.penalty("storage_violation_below")[:, None] * spread)
    rows = lp.add_rows("hydro_storage_min", axes, where=where, lower=least)
    slack = lp.add_columns("hydro_storage_below", axes, where=where, cost=price)
    lp.put(rows, slack, 1.0)
    lp.put(stage.ids_by_period(rows), stage.storage_after, 1.0)


def _add_evaporation(stage: StageContext) -> None:
    lp, labels = stage.lp, stage.topology.hydro_labels
    models = stage.case.evaporation[stage.position]
    evaporates = np.array([model is not None for model in models], bool) & stage.dammed
    k0 = np.array([0.0 if model is None else model.intercept_m3s for model in models])
    kv = np.array([0.0 if model is None else model.slope_m3s_per_hm3 for model in models])
    axes, where = stage.period_axes(labels), stage.period_mask(evaporates)
    emptiest, fullest = k0 + kv * stage.data.storage_min_hm3, k0 + kv * stage.data.storage_max_hm3
    least = 2.0 * np.minimum(0.0, np.minimum(emptiest, fullest))
    most = 2.0 * np.maximum(0.0, np.maximum(emptiest, fullest))
    spread = np.ones((1, stage.periods))
    flow = lp.add_columns(
        "hydro_evaporation",
        axes,
        where=where,
        lower=stage.by_period(least[:, None] * spread),
        upper=stage.by_period(most[:, None] * spread),
    )
    rows = lp.add_rows(
        "hydro_evaporation_model",
        axes,
        where=where,
        lower=stage.by_period(k0[:, None] * spread),
        upper=stage.by_period(k0[:, None] * spread),
    )
    lp.put(rows, flow, 1.0)
    half_slope = -0.5 * kv[:, None]
    lp.put(stage.ids_by_period(rows), stage.storage_before, half_slope)
    lp.put(stage.ids_by_period(rows), stage.storage_after, half_slope)
    lp.put(stage.balance, stage.ids_by_period(flow), stage.period_volume)
    for side, name, sign in (("below", "neg", 1.0), ("above", "pos", -1.0)):
        price = stage.penalty(f"evaporation_violation_{name}")[:, None] * stage.period_hours
        slack = lp.add_columns(f"hydro_evaporation_{side}", axes, where=where, cost=stage.by_period(price))
        lp.put(rows, slack, sign)


def _add_filling(stage: StageContext) -> None:
    axes = (stage.topology.hydro_labels,)
    price = stage.penalty("filling_target_violation")
    final, initial = stage.storage_after[:, -1], stage.storage_before[:, 0]
    rate = stage.data.filling_min_rate_m3s
    kept = stage.soft_limit(
        "hydro_filling_rate",
        axes,
        stage.filling & (rate > 0.0),
        price=price,
        lower=rate * stage.period_volume.sum(),
    )
    stage.lp.put(kept, final, 1.0)
    stage.lp.put(kept, initial, -1.0)
    target = np.zeros(len(rate))
    enters = np.zeros(len(rate), bool)
    if stage.position + 1 < len(stage.case.stages):
        following = stage.case.stage_data[stage.position + 1]
        enters = stage.filling & (np.asarray(following.hydro_status) == HydroStatus.OPERATING)
        target = following.storage_min_hm3
    reached = stage.soft_limit("hydro_filling_target", axes, enters, price=price, lower=target)
    stage.lp.put(reached, final, 1.0)
