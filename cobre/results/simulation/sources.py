"""Tables of what besides hydro plants feeds buses or takes from them."""

from __future__ import annotations

import numpy as np

from cobre.results.simulation.catalogue import (
    CONTRACTS,
    NON_CONTROLLABLES,
    PUMPING_STATIONS,
    THERMALS,
)
from cobre.results.simulation.frame import FloatArray, StageFrame, StageValues, operative_state
from cobre.results.simulation.maker import Columns, Maker, entity_keys, names_of


def _thermals(frame: StageFrame, found: StageValues) -> Columns:
    thermals = frame.study.case.thermals
    generation = found.of("thermal_generation")
    ahead = np.array([bool(thermal.anticipated) for thermal in thermals], np.bool_)
    served = frame.study.service.at("thermal", frame.position)
    shape = generation.shape
    return {
        "generation_mw": generation,
        "generation_mwh": generation * frame.hours,
        "generation_cost": found.cost("thermal_generation"),
        "is_anticipated": np.broadcast_to(ahead[:, None], shape),
        "anticipated_committed_mw": np.broadcast_to(_delivered(frame, found)[:, :, None], shape),
        "anticipated_decision_mw": np.broadcast_to(_decided(frame, found)[:, :, None], shape),
        "operative_state_code": operative_state(served, frame.data.thermal_max_mw, generation),
    }


def _delivered(frame: StageFrame, found: StageValues) -> FloatArray:
    """Return the commitment that is delivered in the stage, (S, thermal); NaN where there is none."""
    case, layout = frame.study.case, frame.study.layout
    values = np.full((found.scenarios, len(case.thermals)), np.nan)
    for place, thermal in enumerate(case.thermals):
        if any(delivery.delivery == frame.position for delivery in thermal.anticipated):
            values[:, place] = found.incoming[:, layout.commitment_first[place]]
    return values


def _decided(frame: StageFrame, found: StageValues) -> FloatArray:
    """Return the sum of the commitments made in the stage, (S, thermal); NaN where none can be made."""
    layout = frame.study.layout
    ids, values = frame.ids("anticipated_decision"), found.of("anticipated_decision")
    total = np.full((found.scenarios, len(frame.study.case.thermals)), np.nan)
    first = int(layout.commitment_first.min(initial=len(layout)))
    for place in np.flatnonzero(layout.commitment_depth):
        begin = int(layout.commitment_first[place]) - first
        own = slice(begin, begin + int(layout.commitment_depth[place]))
        if (ids[own] >= 0).any():
            total[:, place] = values[:, own].sum(axis=1)
    return total


def _pumping_stations(frame: StageFrame, found: StageValues) -> Columns:
    flow = found.of("pumping_flow")
    power = flow * frame.study.topology.pump_consumption[:, None]
    served = frame.study.service.at("pump", frame.position)
    return {
        "pumped_flow_m3s": flow,
        "pumped_volume_hm3": flow * frame.volume,
        "power_consumption_mw": power,
        "energy_consumption_mwh": power * frame.hours,
        "pumping_cost": found.cost("pumping_flow"),
        "operative_state_code": operative_state(served, frame.data.pumping_max_m3s, flow),
    }


def _contracts(frame: StageFrame, found: StageValues) -> Columns:
    power = found.of("contract_power")
    served = frame.study.service.at("contract", frame.position)
    return {
        "power_mw": power,
        "energy_mwh": power * frame.hours,
        "price_per_mwh": np.broadcast_to(frame.data.contract_price, power.shape),
        "total_cost": found.cost("contract_power"),
        "operative_state_code": operative_state(served, frame.data.contract_max_mw, power),
    }


def available_mw(frame: StageFrame, found: StageValues) -> FloatArray:
    """Return what non-controllable sources could generate, (S, source, block); 0 out of service."""
    case, data = frame.study.case, frame.data
    first = len(case.hydros) + len(case.buses)
    realised = found.realised[:, first : first + len(case.non_controllables), None]
    serves = np.asarray(data.ncs_in_service)[:, None]
    available: FloatArray = np.where(serves, realised * data.ncs_factor, 0.0)
    return available


def _non_controllables(frame: StageFrame, found: StageValues) -> Columns:
    generation, curtailed = found.of("non_controllable_generation"), found.of("non_controllable_curtailment")
    available = available_mw(frame, found)
    return {
        "generation_mw": generation,
        "generation_mwh": generation * frame.hours,
        "available_mw": available,
        "curtailment_mw": curtailed,
        "curtailment_mwh": curtailed * frame.hours,
        "curtailment_cost": curtailed * frame.hours * frame.data.curtailment_cost[:, None],
        "operative_state_code": operative_state(np.asarray(frame.data.ncs_in_service), available, generation),
    }


THERMAL_MAKER = Maker(
    THERMALS,
    present=lambda study: bool(study.case.thermals),
    keys=lambda frame: entity_keys(frame, "thermal", frame.study.case.thermals),
    values=_thermals,
    names={"thermal_name": names_of("thermals")},
)

PUMPING_MAKER = Maker(
    PUMPING_STATIONS,
    present=lambda study: bool(study.case.pumping_stations),
    keys=lambda frame: entity_keys(frame, "pumping_station", frame.study.case.pumping_stations),
    values=_pumping_stations,
    names={"pumping_station_name": names_of("pumping_stations")},
)

CONTRACT_MAKER = Maker(
    CONTRACTS,
    present=lambda study: bool(study.case.contracts),
    keys=lambda frame: entity_keys(frame, "contract", frame.study.case.contracts),
    values=_contracts,
    names={"contract_name": names_of("contracts")},
)

NON_CONTROLLABLE_MAKER = Maker(
    NON_CONTROLLABLES,
    present=lambda study: bool(study.case.non_controllables),
    keys=lambda frame: entity_keys(frame, "non_controllable", frame.study.case.non_controllables),
    values=_non_controllables,
    names={"non_controllable_name": names_of("non_controllables")},
)
