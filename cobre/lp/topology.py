"""What is connected to what, as positions instead of ids, and the labels of all entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import EXTENSIONS
from cobre.case.model import Case
from cobre.lp.index import Labels, unique_labels

Positions = NDArray[np.int64]

NOWHERE = -1
"""Position of an entity that is not there (no downstream plant, no channel)."""


@dataclass(frozen=True, eq=False)
class Topology:
    """Positions of the neighbours of every entity, in the order of the case.

    ``group_*`` run over the unit groups of all plants, in plant order; ``place`` maps the ids of each class
    of entities to positions.
    """

    place: dict[str, dict[int, int]]
    group_hydro: Positions
    group_bus: Positions
    groups_of_hydro: Positions
    downstream: Positions
    diversion_target: Positions
    thermal_bus: Positions
    line_source: Positions
    line_target: Positions
    line_loss: NDArray[np.float64]
    ncs_bus: Positions
    pump_bus: Positions
    pump_source: Positions
    pump_destination: Positions
    pump_consumption: NDArray[np.float64]
    contract_bus: Positions
    contract_sign: NDArray[np.float64]
    hydro_labels: Labels
    group_labels: Labels
    bus_labels: Labels
    thermal_labels: Labels
    line_labels: Labels
    ncs_labels: Labels
    pump_labels: Labels
    contract_labels: Labels
    extension_labels: dict[str, Labels]


def topology_of(case: Case) -> Topology:
    """Return the topology of a study."""
    classes: dict[str, Sequence[Any]] = {
        "bus": case.buses,
        "line": case.lines,
        "hydro": case.hydros,
        "thermal": case.thermals,
        "ncs": case.non_controllables,
        "pump": case.pumping_stations,
        "contract": case.contracts,
        **{kind.name: case.extensions.get(kind.attribute, ()) for kind in EXTENSIONS},
    }
    place = {
        name: {entity.id: position for position, entity in enumerate(entities)}
        for name, entities in classes.items()
    }
    labels = {
        name: unique_labels([entity.name for entity in entities], [entity.id for entity in entities])
        for name, entities in classes.items()
    }

    def at(kind: str, ids: Sequence[int | None]) -> Positions:
        return np.array([NOWHERE if number is None else place[kind][number] for number in ids], np.int64)

    groups = [(h, group) for h, hydro in enumerate(case.hydros) for group in hydro.unit_groups]
    hydros, lines, pumps = case.hydros, case.lines, case.pumping_stations
    return Topology(
        place=place,
        group_hydro=np.array([h for h, _ in groups], np.int64),
        group_bus=at("bus", [group.bus_id for _, group in groups]),
        groups_of_hydro=np.array([len(hydro.unit_groups) for hydro in hydros], np.int64),
        downstream=at("hydro", [hydro.downstream_id for hydro in hydros]),
        diversion_target=at(
            "hydro", [None if hydro.diversion is None else hydro.diversion.downstream_id for hydro in hydros]
        ),
        thermal_bus=at("bus", [thermal.bus_id for thermal in case.thermals]),
        line_source=at("bus", [line.source_bus_id for line in lines]),
        line_target=at("bus", [line.target_bus_id for line in lines]),
        line_loss=np.array([line.loss for line in lines], np.float64),
        ncs_bus=at("bus", [source.bus_id for source in case.non_controllables]),
        pump_bus=at("bus", [pump.bus_id for pump in pumps]),
        pump_source=at("hydro", [pump.source_hydro_id for pump in pumps]),
        pump_destination=at("hydro", [pump.destination_hydro_id for pump in pumps]),
        pump_consumption=np.array([pump.consumption_mw_per_m3s for pump in pumps], np.float64),
        contract_bus=at("bus", [contract.bus_id for contract in case.contracts]),
        contract_sign=np.array([1.0 if contract.kind == "import" else -1.0 for contract in case.contracts]),
        hydro_labels=labels["hydro"],
        group_labels=_group_labels(case, labels["hydro"]),
        bus_labels=labels["bus"],
        thermal_labels=labels["thermal"],
        line_labels=labels["line"],
        ncs_labels=labels["ncs"],
        pump_labels=labels["pump"],
        contract_labels=labels["contract"],
        extension_labels={kind.name: labels[kind.name] for kind in EXTENSIONS},
    )


def _group_labels(case: Case, hydro_labels: Labels) -> Labels:
    """The plant's label where it has one group, else plant and group."""
    names, ids = [], []
    for label, hydro in zip(hydro_labels, case.hydros, strict=True):
        single = len(hydro.unit_groups) == 1
        names += [label if single else f"{label}/{group.name}" for group in hydro.unit_groups]
        ids += [f"{hydro.id}.{group.id}" for group in hydro.unit_groups]
    return unique_labels(names, ids)
