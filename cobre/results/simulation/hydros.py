"""Tables of hydro plants: what they release, hold and generate, and the energy in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import HydroStatus
from cobre.lp.stage.plants import has_planes
from cobre.lp.travel import arrival_shares
from cobre.results.simulation.catalogue import HYDRO_BUS_GENERATION, HYDROS
from cobre.results.simulation.frame import (
    TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    StageFrame,
    StageValues,
    group_sum,
    operative_state,
)
from cobre.results.simulation.maker import Columns, Maker, entity_keys, names_of
from cobre.units import HM3_PER_M3S_HOUR


def _hydros(frame: StageFrame, found: StageValues) -> Columns:
    turbined, generation = by_plant(frame, found)
    outflow = _outflow(frame, found, turbined)
    inflow = _repeated(frame, found.realised[:, : len(frame.study.case.hydros)])
    initial, final = storages(frame, found)
    diverted_in, diverted_out = _diverted(frame, found)
    return {
        "turbined_m3s": turbined,
        "spillage_m3s": found.of("hydro_spillage"),
        "outflow_m3s": outflow,
        "evaporation_m3s": found.by_block("hydro_evaporation"),
        "diverted_inflow_m3s": diverted_in,
        "diverted_outflow_m3s": diverted_out,
        "incremental_inflow_m3s": inflow,
        "inflow_m3s": inflow,
        "storage_initial_hm3": initial,
        "storage_final_hm3": final,
        "generation_mw": generation,
        "generation_mwh": generation * frame.hours,
        **_energies(frame, inflow, initial, final),
        "spillage_cost": found.cost("hydro_spillage"),
        "water_value_per_hm3": found.duals(frame.in_blocks(frame.rows("hydro_balance"))),
        "storage_binding_code": _storage_binding(frame, final),
        "operative_state_code": _state(frame, turbined, generation),
        **_slacks(frame, found),
        "delayed_inflow_m3s": _delayed(frame, found, outflow),
        "water_withdrawal_m3s": _withdrawal(frame, found),
    }


def by_group(frame: StageFrame, found: StageValues) -> tuple[FloatArray, FloatArray]:
    """Return turbined flow and generation of every unit group, (S, group, block)."""
    planar, rho = frame.once("production", _production)
    turbined = found.of("hydro_turbined")
    generation = np.where(planar[:, None], found.of("hydro_generation"), turbined * rho[:, None])
    return turbined, generation


def _production(frame: StageFrame) -> tuple[BoolArray, FloatArray]:
    """Return by unit group whether planes bound its generation, and else its MW per m3/s."""
    models = frame.study.case.production[frame.position]
    owner = frame.study.topology.group_hydro
    planar = np.array([has_planes(model) for model in models], np.bool_)
    rho = np.array([model.productivity_mw_per_m3s for model in models], np.float64)
    return planar[owner], rho[owner]


def by_plant(frame: StageFrame, found: StageValues) -> tuple[FloatArray, FloatArray]:
    """Return turbined flow and generation of every plant, (S, hydro, block)."""
    owner, plants = frame.study.topology.group_hydro, len(frame.study.case.hydros)
    turbined, generation = by_group(frame, found)
    return group_sum(turbined, owner, plants), group_sum(generation, owner, plants)


def storages(frame: StageFrame, found: StageValues) -> tuple[FloatArray, FloatArray]:
    """Return the storages at both ends of each block (of the stage where blocks are parallel)."""
    initial = found.state(0, len(frame.study.case.hydros))[:, :, None]
    final = found.of("hydro_storage_final")[:, :, None]
    interior = found.of("hydro_storage_block")
    # A plant out of service keeps its storage: it has no columns inside the stage.
    interior = np.where(frame.ids("hydro_storage_block") < 0, final, interior)
    before = np.concatenate([initial, interior], axis=2)[:, :, frame.period]
    after = np.concatenate([interior, final], axis=2)[:, :, frame.period]
    return before, after


def _repeated(frame: StageFrame, values: FloatArray) -> FloatArray:
    """Return values of the stage (S, entity) in each of its blocks."""
    return np.repeat(values[:, :, None], frame.blocks, axis=2)


def _outflow(frame: StageFrame, found: StageValues, turbined: FloatArray) -> FloatArray:
    # Only plants out of service have a bypass, and they have nothing else.
    outflow: FloatArray = turbined + found.of("hydro_spillage") + found.by_block("hydro_bypass")
    return outflow


def _diverted(frame: StageFrame, found: StageValues) -> tuple[FloatArray, FloatArray]:
    sent = found.of("hydro_diversion")
    target = frame.study.topology.diversion_target
    sources = np.flatnonzero(target >= 0)
    return group_sum(sent[:, sources], target[sources], sent.shape[1]), sent


def _energies(frame: StageFrame, inflow: FloatArray, initial: FloatArray, final: FloatArray) -> Columns:
    study, at = frame.study, frame.position
    shape = inflow.shape

    def everywhere(values: FloatArray) -> FloatArray:
        return np.broadcast_to(values[at][:, None], shape)

    per_hm3 = study.integrated_accumulated[at][:, None] / HM3_PER_M3S_HOUR
    stored = [(storage - study.min_storage_hm3[:, None]) * per_hm3 for storage in (initial, final)]
    hours = frame.stage.hours
    return {
        "equivalent_productivity_mw_per_m3s": everywhere(study.equivalent),
        "accumulated_productivity_mw_per_m3s": everywhere(study.accumulated),
        "incremental_inflow_energy_mw": inflow * study.accumulated[at][:, None],
        "stored_energy_initial_mwh": stored[0],
        "stored_energy_final_mwh": stored[1],
        "integrated_equivalent_productivity_mw_per_m3s": everywhere(study.integrated),
        "integrated_accumulated_productivity_mw_per_m3s": everywhere(study.integrated_accumulated),
        "stored_energy_initial_mw": stored[0] / hours,
        "stored_energy_final_mw": stored[1] / hours,
    }


def _storage_binding(frame: StageFrame, final: FloatArray) -> NDArray[np.int8]:
    data = frame.data
    serves = np.asarray(data.hydro_status) != HydroStatus.OUT
    operates = np.asarray(data.hydro_status) == HydroStatus.OPERATING
    margin = TOLERANCE * np.maximum(1.0, np.abs(data.storage_max_hm3))
    # A reservoir that fills for the first time has no minimum yet.
    least = np.where(operates, data.storage_min_hm3, -np.inf)
    empty = final <= (least + margin)[:, None]
    full = final >= (data.storage_max_hm3 - margin)[:, None]
    codes: NDArray[np.int8] = np.where(serves[:, None], empty + 2 * full, 0).astype(np.int8)
    return codes


def _state(frame: StageFrame, turbined: FloatArray, generation: FloatArray) -> NDArray[np.int8]:
    data = frame.data
    operates = np.asarray(data.hydro_status) == HydroStatus.OPERATING
    owner = frame.study.topology.group_hydro
    plants = turbined.shape[1]
    most_flow = np.minimum(
        data.turbined_max_m3s, group_sum(data.group_turbined_max_m3s[None], owner, plants)[0]
    )
    most_power = np.minimum(
        data.generation_max_mw, group_sum(data.group_generation_max_mw[None], owner, plants)[0]
    )
    by_flow = operative_state(operates, most_flow, turbined)
    by_power = operative_state(operates, most_power, generation)
    worse = np.minimum(by_flow, by_power)
    # Without flow or without power there is no capacity; at the largest of either it is used up.
    return np.where(worse <= 1, worse, np.maximum(by_flow, by_power))


def _slacks(frame: StageFrame, found: StageValues) -> Columns:
    owner, plants = frame.study.topology.group_hydro, len(frame.study.case.hydros)

    def both(quantity: str) -> FloatArray:
        of_groups = group_sum(found.of(f"hydro_{quantity}_min_violation"), owner, plants)
        total: FloatArray = of_groups + found.of(f"hydro_plant_{quantity}_min_violation")
        return total

    filling = found.of("hydro_filling_rate_violation") + found.of("hydro_filling_target_violation")
    has_slack = "hydro_inflow_slack" in frame.template.index.columns
    shortage = found.of("hydro_inflow_slack") if has_slack else np.zeros((found.scenarios, plants))
    return {
        "turbined_slack_m3s": both("turbined"),
        "outflow_slack_below_m3s": found.of("hydro_outflow_min_violation"),
        "outflow_slack_above_m3s": found.of("hydro_outflow_max_violation"),
        "generation_slack_mw": both("generation"),
        "storage_violation_below_hm3": found.by_block("hydro_storage_below"),
        "filling_target_violation_hm3": _repeated(frame, filling),
        "evaporation_violation_pos_m3s": found.by_block("hydro_evaporation_above"),
        "evaporation_violation_neg_m3s": found.by_block("hydro_evaporation_below"),
        "inflow_nonnegativity_slack_m3s": _repeated(frame, shortage),
        "water_withdrawal_violation_pos_m3s": _repeated(frame, found.of("hydro_withdrawal_above")),
        "water_withdrawal_violation_neg_m3s": _repeated(frame, found.of("hydro_withdrawal_below")),
    }


def _withdrawal(frame: StageFrame, found: StageValues) -> FloatArray:
    dammed = np.asarray(frame.data.hydro_status) != HydroStatus.OUT
    scheduled = np.where(dammed, frame.data.withdrawal_m3s, 0.0)
    corrected = found.of("hydro_withdrawal_above") - found.of("hydro_withdrawal_below")
    return _repeated(frame, scheduled + corrected)


def _delayed(frame: StageFrame, found: StageValues, outflow: FloatArray) -> FloatArray:
    """Return the flow that arrives after its travel time, (S, hydro, block)."""
    study, layout = frame.study, frame.study.layout
    arriving = np.zeros(outflow.shape)
    for place, plant in enumerate(study.case.hydros):
        below = int(study.topology.downstream[place])
        if below < 0 or plant.travel_time_hours <= 0.0:
            continue
        if layout.transit_depth[place]:  # evenly over the stage
            earlier = found.incoming[:, layout.transit_first[place]]
            arriving[:, below] += (earlier / (HM3_PER_M3S_HOUR * frame.stage.hours))[:, None]
        begin, end, edges = release_intervals(frame)
        shares, _ = arrival_shares(begin, end, edges, (), plant.travel_time_hours)
        released = outflow[:, place] * frame.volume
        volume = (released[:, :, None] * shares).sum(axis=1)  # by period
        period_volume = HM3_PER_M3S_HOUR * np.diff(edges)
        arriving[:, below] += (volume / period_volume)[:, frame.period]
    return arriving


def release_intervals(frame: StageFrame) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return begin and end of each block's release, and the edges of periods, h from the stage's start."""
    total = frame.stage.hours
    if frame.chronological:
        edges = np.concatenate([[0.0], np.cumsum(frame.hours)])
        return edges[:-1], edges[1:], edges
    return np.zeros(frame.blocks), np.full(frame.blocks, total), np.array([0.0, total])


def _pairs(frame: StageFrame) -> tuple[IntArray, IntArray]:
    """Return the pairs of plant and bus, by plant and then by bus, and the pair of every unit group."""
    topology = frame.study.topology
    groups = np.stack([topology.group_hydro, topology.group_bus], axis=1)
    pairs, member = np.unique(groups, axis=0, return_inverse=True)
    return pairs, np.ravel(member).astype(np.int64)


def _by_bus_order(frame: StageFrame) -> tuple[IntArray, IntArray, IntArray]:
    """Return pairs, and the pair and block of every row: by plant, block and bus."""
    pairs, _ = frame.once("pairs", _pairs)
    pair, block = (np.ravel(part) for part in np.indices((len(pairs), frame.blocks)))
    order = np.lexsort((pairs[pair, 1], block, pairs[pair, 0]))
    return pairs, pair[order], block[order]


def _bus_keys(frame: StageFrame) -> Columns:
    case = frame.study.case
    pairs, pair, block = frame.once("rows by bus", _by_bus_order)
    hydro, bus = pairs[pair, 0].astype(np.int32), pairs[pair, 1].astype(np.int32)
    return {
        "block_id": frame.block_id[block],
        "hydro_id": np.array([plant.id for plant in case.hydros], np.int32)[hydro],
        "bus_id": np.array([entity.id for entity in case.buses], np.int32)[bus],
        "hydro_name": hydro,
        "bus_name": bus,
    }


def _bus_values(frame: StageFrame, found: StageValues) -> Columns:
    pairs, member = frame.once("pairs", _pairs)
    _, pair, block = frame.once("rows by bus", _by_bus_order)
    turbined, generation = (
        group_sum(values, member, len(pairs))[:, pair, block] for values in by_group(frame, found)
    )
    return {
        "turbined_m3s": turbined,
        "generation_mw": generation,
        "generation_mwh": generation * frame.hours[block],
    }


HYDRO_MAKER = Maker(
    HYDROS,
    present=lambda study: bool(study.case.hydros),
    keys=lambda frame: entity_keys(frame, "hydro", frame.study.case.hydros),
    values=_hydros,
    names={"hydro_name": names_of("hydros")},
)

HYDRO_BUS_MAKER = Maker(
    HYDRO_BUS_GENERATION,
    present=lambda study: bool(study.case.hydros),
    keys=_bus_keys,
    values=_bus_values,
    names={"hydro_name": names_of("hydros"), "bus_name": names_of("buses")},
)
