"""Load and the most power there is to serve it, by bus and block of a stage.

Every capacity is an upper bound of what the stage LP can generate: nothing is left out but generic
constraints, which can only lower it, and lower limits. So where the load is above it, a deficit is certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.format.schema.batteries import Battery
from cobre.case.model import Case, HydroStatus, ProductionModel, StageData

FloatArray = NDArray[np.float64]

KINDS = ("thermal", "hydro", "non_controllable", "contract", "battery")
"""Where power comes from."""


@dataclass(frozen=True, eq=False)
class StagePower:
    """Load and capacity of a stage, MW.

    Attributes
    ----------
    load
        (bus, block), the expected one.
    local
        (bus, block) most power of what stands at a bus.
    imports
        (bus, block) most power that lines bring, losses taken off.
    by_kind
        (kind of :data:`KINDS`, block) most power in the system.
    """

    load: FloatArray
    local: FloatArray
    imports: FloatArray
    by_kind: FloatArray


def expected_load(case: Case) -> FloatArray:
    """Return the expected load of every stage and bus before block factors, MW."""
    return _expected(case, "load", case.scenarios.load_mean_mw, case.scenarios.external_load_mw)


def expected_inflow(case: Case, modelled_m3s: FloatArray) -> FloatArray:
    """Return the expected inflow by (stage, hydro): of external scenarios if they are used, else modelled."""
    return _expected(case, "inflow", modelled_m3s, case.scenarios.external_inflow_m3s)


def expected_source_mw(case: Case) -> FloatArray:
    """Return the expected availability of every stage and source before block factors, MW."""
    scenarios = case.scenarios
    most = np.array([source.max_generation_mw for source in case.non_controllables], np.float64)
    share = _expected(case, "ncs", scenarios.ncs_mean, scenarios.external_ncs)
    given = np.stack([data.ncs_available_mw for data in case.stage_data])
    drawn = scenarios.ncs_has_stats | (scenarios.external_ncs is not None)
    in_service = np.stack([data.ncs_in_service for data in case.stage_data])
    return np.where(in_service, np.where(drawn, share * most, given), 0.0)


def stage_powers(case: Case) -> list[StagePower]:
    """Return load and capacity of every stage."""
    load = expected_load(case)
    place = {bus.id: number for number, bus in enumerate(case.buses)}
    bounded = _production_limits(case)
    return [_power(case, position, load[position], place, bounded[position]) for position in range(len(load))]


def _power(
    case: Case, position: int, load: FloatArray, place: dict[int, int], production: FloatArray
) -> StagePower:
    data = case.stage_data[position]
    shape = data.load_factor.shape
    plant = np.minimum(data.generation_max_mw, production)
    groups = [
        (number, group.bus_id) for number, hydro in enumerate(case.hydros) for group in hydro.unit_groups
    ]
    owner = np.array([number for number, _ in groups], np.intp)
    group = np.minimum(data.group_generation_max_mw, plant[owner])
    together = np.zeros_like(plant)
    np.add.at(together, owner, group)
    batteries = case.entities(Battery)
    parts = {
        "thermal": (data.thermal_max_mw, [plant.bus_id for plant in case.thermals]),
        "hydro": (group, [bus for _, bus in groups]),
        "non_controllable": (
            _most_available(case, data),
            [source.bus_id for source in case.non_controllables],
        ),
        "contract": (
            np.where(_imports(case)[:, None], data.contract_max_mw, -data.contract_min_mw).clip(min=0.0),
            [contract.bus_id for contract in case.contracts],
        ),
        "battery": (
            data.extensions.get("battery_discharge_max_mw", np.zeros((0, shape[1]))),
            [battery.bus_id for battery in batteries],
        ),
    }
    local = np.zeros(shape)
    by_kind = np.zeros((len(KINDS), shape[1]))
    for number, kind in enumerate(KINDS):
        most, buses = parts[kind]
        np.add.at(local, np.array([place[bus] for bus in buses], np.intp), most)
        by_kind[number] = np.minimum(plant, together).sum(axis=0) if kind == "hydro" else most.sum(axis=0)
    imports = np.zeros(shape)
    for number, line in enumerate(case.lines):
        imports[place[line.target_bus_id]] += (1.0 - line.loss) * data.line_direct_mw[number]
        imports[place[line.source_bus_id]] += (1.0 - line.loss) * data.line_reverse_mw[number]
    return StagePower(load[:, None] * data.load_factor, local, imports, by_kind)


def _imports(case: Case) -> NDArray[np.bool_]:
    return np.array([contract.kind == "import" for contract in case.contracts], np.bool_)


def _most_available(case: Case, data: StageData) -> FloatArray:
    """Return the most that sources can generate, (source, block)."""
    most = np.array([source.max_generation_mw for source in case.non_controllables], np.float64)
    drawn = case.scenarios.ncs_has_stats | (case.scenarios.external_ncs is not None)
    ceiling = np.where(drawn, most, data.ncs_available_mw)
    return np.where(data.ncs_in_service, ceiling, 0.0)[:, None] * data.ncs_factor


def _expected(case: Case, name: str, mean: FloatArray, external: tuple[FloatArray, ...] | None) -> FloatArray:
    """Return the mean of external scenarios where the study follows these, else the given one."""
    schemes = {"inflow": case.training.source.inflow, "load": case.training.source.load}
    follows = schemes.get(name, case.training.source.ncs) == "external" or case.graph.has_scenarios
    if external is None or not follows:
        return mean
    return np.stack(
        [
            scenarios.mean(axis=0) if len(scenarios) else given
            for scenarios, given in zip(external, mean, strict=True)
        ]
    )


def _production_limits(case: Case) -> list[FloatArray]:
    """Return by stage what plants can generate at the largest flow and the best storage, (hydro, block)."""
    limits = []
    known: dict[int, tuple[FloatArray, ...]] = {}
    for models, data in zip(case.production, case.stage_data, strict=True):
        flow = data.turbined_max_m3s
        limit = np.zeros_like(flow)
        for number, model in enumerate(models):
            if data.hydro_status[number] != HydroStatus.OPERATING:
                continue
            planes = known.setdefault(id(model), _columns(model))
            if not planes:
                limit[number] = model.productivity_mw_per_m3s * flow[number]
                continue
            constant, by_storage, by_flow, by_spillage = planes
            at_best = constant + np.maximum(
                by_storage * data.storage_min_hm3[number], by_storage * data.storage_max_hm3[number]
            )
            power = at_best[:, None] + np.maximum(by_flow, 0.0)[:, None] * flow[number]
            # Spillage that raised generation would have no largest value: such a plane bounds nothing here.
            limit[number] = np.where(by_spillage[:, None] > 0.0, np.inf, power).min(axis=0).clip(min=0.0)
        limits.append(limit)
    return limits


def _columns(model: ProductionModel) -> tuple[FloatArray, ...]:
    return tuple(np.ascontiguousarray(model.planes.T)) if len(model.planes) else ()
