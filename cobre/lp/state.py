"""What a stage hands to the next one: the components of the state, the same at every stage.

    storage     hm3 in each reservoir at the end of the stage
    inflow_lag  m3/s, what a plant's inflow model remembers of past inflows
    in_transit  hm3 released by a plant with travel time that reach the plant below j stages later
    commitment  MW ordered from a thermal plant for delivery j stages later

and what the modules of :mod:`cobre.lp.entities` carry.

An outgoing component with offset j refers to stage t + j, an incoming one of stage t - 1 + j. What cannot
matter any more (arrivals after the end of the study) is held at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import type_of
from cobre.case.model import Case, Hydro, Thermal
from cobre.lp.entities import PARTS
from cobre.lp.index import ABSENT
from cobre.lp.topology import Topology, topology_of
from cobre.lp.travel import longest_offset
from cobre.stochastic.par import InflowModel, inflow_model


@dataclass(frozen=True)
class StateComponent:
    """One component of the state.

    Attributes
    ----------
    kind
        What it is; storage and water in hm3, past inflow in m3/s, commitments in MW, energy in MWh.
    entity
        Position of the hydro plant (the releasing one for water in transit), thermal plant or other entity.
    entity_id
        Its declared id.
    offset
        Stages until it matters, from 1; 0 for storage. Of past inflow the number of its lane, from 1.
    """

    kind: str
    entity: int
    entity_id: int
    offset: int
    name: str

    @property
    def lane(self) -> int:
        """Position among the components of past inflow, see :class:`cobre.stochastic.par.LagDynamics`."""
        return self.offset - 1


class StateLayout:
    """The components of the state, and where each entity's begin.

    Attributes
    ----------
    components
        Storages by plant, then past inflow by lane and plant, then water in transit by plant and offset, then
        commitments by plant and offset, then those of :mod:`cobre.lp.entities`.
    inflow
        The inflow model whose memory is carried.
    memory_place
        int64 by (hydro plant, lane): component of past inflow, ``ABSENT`` where it is not carried.
    initial
        float64[n]: the state that enters the first stage.
    transit_first, transit_depth
        int64 by hydro plant: first component of its water in transit, and how many it has.
    commitment_first, commitment_depth
        The same by thermal plant.
    first
        First component of each kind that a module of :mod:`cobre.lp.entities` adds.
    """

    def __init__(
        self, case: Case, topology: Topology | None = None, inflow: InflowModel | None = None
    ) -> None:
        topology = topology_of(case) if topology is None else topology
        self.inflow = inflow_model(case) if inflow is None else inflow
        hours = [stage.hours for stage in case.stages]
        components: list[StateComponent] = []
        initial: list[float] = []
        for h, hydro in enumerate(case.hydros):
            name = f"hydro_storage[{topology.hydro_labels[h]}]"
            components.append(StateComponent("storage", h, hydro.id, 0, name))
            initial.append(hydro.initial_storage_hm3)
        lags = self.inflow.lags
        self.memory_place = np.full(lags.needed.shape, ABSENT, np.int64)
        for lane, label in enumerate(lags.names):
            for h in np.flatnonzero(lags.needed[:, lane]).tolist():
                self.memory_place[h, lane] = len(components)
                name = f"hydro_inflow_memory[{topology.hydro_labels[h]}, {label}]"
                components.append(StateComponent("inflow_lag", h, case.hydros[h].id, lane + 1, name))
                initial.append(float(lags.initial[h, lane]))
        self.transit_depth = np.array([_transit_depth(hydro, hours) for hydro in case.hydros], np.int64)
        self.transit_first = _starts(len(components), self.transit_depth)
        for h, hydro in enumerate(case.hydros):
            for offset in range(1, int(self.transit_depth[h]) + 1):
                name = f"hydro_in_transit[{topology.hydro_labels[h]}, {offset}]"
                components.append(StateComponent("in_transit", h, hydro.id, offset, name))
                past = hydro.past_outflow_hm3
                initial.append(past[offset - 1] if offset <= len(past) else 0.0)
        self.commitment_depth = np.array([_commitment_depth(thermal) for thermal in case.thermals], np.int64)
        self.commitment_first = _starts(len(components), self.commitment_depth)
        for i, thermal in enumerate(case.thermals):
            committed = {
                delivery.delivery: delivery.committed_mw or 0.0
                for delivery in thermal.anticipated
                if delivery.decision < 0
            }
            for offset in range(1, int(self.commitment_depth[i]) + 1):
                name = f"thermal_commitment[{topology.thermal_labels[i]}, {offset}]"
                components.append(StateComponent("commitment", i, thermal.id, offset, name))
                initial.append(committed.get(offset - 1, 0.0))
        self.first: dict[str, int] = {}
        for part in PARTS:
            if part.state_kind is None:
                continue
            self.first[part.state_kind] = len(components)
            entities, labels = case.entities(part.entry), topology.extension_labels[type_of(part.entry).name]
            for position, (entity, label) in enumerate(zip(entities, labels, strict=True)):
                name = f"{part.state_kind}[{label}]"
                components.append(StateComponent(part.state_kind, position, entity.id, 0, name))
                initial.append(part.initial(entity))
        self.components = tuple(components)
        self.initial: NDArray[np.float64] = np.array(initial, np.float64)

    def __len__(self) -> int:
        return len(self.components)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each component."""
        return tuple(component.name for component in self.components)


def _starts(first: int, depth: NDArray[np.int64]) -> NDArray[np.int64]:
    return first + np.concatenate([[0], np.cumsum(depth)])[:-1].astype(np.int64)


def _transit_depth(hydro: Hydro, hours: Sequence[float]) -> int:
    """Most stages that water of this plant is under way inside the study, past releases included."""
    if hydro.downstream_id is None:
        return 0
    past = hydro.past_outflow_hm3[: len(hours)]
    known = max((stage + 1 for stage, volume in enumerate(past) if volume != 0.0), default=0)
    return max(known, longest_offset(hours, hydro.travel_time_hours))


def _commitment_depth(thermal: Thermal) -> int:
    return max((d.delivery - max(d.decision, -1) for d in thermal.anticipated), default=0)
