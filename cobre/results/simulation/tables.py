"""From a block of simulated scenarios to the tables of all entities; no loop over scenarios."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.hydro.energy import accumulate
from cobre.lp.state import StateLayout
from cobre.lp.template import StageTemplate
from cobre.lp.topology import topology_of
from cobre.results.columns import TableSpec
from cobre.results.simulation.catalogue import (
    EXTENSIONS,
    PATHS,
    SCENARIO_SUMMARY,
    TABLES,
    TRANSIT_SEED,
)
from cobre.results.simulation.costs import COST_MAKER, stage_costs
from cobre.results.simulation.frame import FloatArray, StageFrame, StageValues, Study
from cobre.results.simulation.hydros import HYDRO_BUS_MAKER, HYDRO_MAKER, by_plant
from cobre.results.simulation.maker import NO_ID, Maker, names_of
from cobre.results.simulation.memory import (
    ANTICIPATED_LANE_MAKER,
    GENERIC_MAKER,
    IN_TRANSIT_MAKER,
    INFLOW_LAG_MAKER,
)
from cobre.results.simulation.network import BUS_MAKER, EXCHANGE_MAKER
from cobre.results.simulation.service import service_of
from cobre.results.simulation.sources import (
    CONTRACT_MAKER,
    NON_CONTROLLABLE_MAKER,
    PUMPING_MAKER,
    THERMAL_MAKER,
)
from cobre.sddp.simulation.block import SimulatedBlock

_EPOCH = datetime.date(1970, 1, 1)

MAKERS: tuple[Maker, ...] = (
    *(COST_MAKER, HYDRO_MAKER, HYDRO_BUS_MAKER, THERMAL_MAKER, EXCHANGE_MAKER, BUS_MAKER, PUMPING_MAKER),
    *(CONTRACT_MAKER, NON_CONTROLLABLE_MAKER, *(module.MAKER for module in EXTENSIONS)),
    *(INFLOW_LAG_MAKER, IN_TRANSIT_MAKER),
    *(ANTICIPATED_LANE_MAKER, GENERIC_MAKER),
    Maker(PATHS, lambda study: True, lambda frame: {"block_id": np.zeros(1, np.int32)}, lambda *_: {}),
)
"""All tables with rows by stage."""


class SimulationTables:
    """Makes the tables of a study's simulation, block by block.

    Parameters
    ----------
    templates
        The stage LP of every node in physical units, as :func:`cobre.lp.build_templates` returns them.
    layout
        The components of the state; made from the case unless it is at hand.
    """

    def __init__(
        self, case: Case, templates: Sequence[StageTemplate], layout: StateLayout | None = None
    ) -> None:
        topology = topology_of(case)
        self._study = Study(
            case=case,
            topology=topology,
            layout=StateLayout(case, topology) if layout is None else layout,
            service=service_of(case),
            **_energy(case, topology.downstream),
        )
        of_stage = {node.stage: template for node, template in zip(case.graph.nodes, templates, strict=True)}
        self._frames = [
            StageFrame(self._study, position, of_stage[position]) for position in range(len(case.stages))
        ]
        self._node_ids = np.array([node.id for node in case.graph.nodes], np.int32)
        self._makers = [maker for maker in MAKERS if maker.present(self._study)]
        self._seeds = _seed_windows(self._study)
        present = {maker.spec.name for maker in self._makers} | {SCENARIO_SUMMARY.name}
        if self._seeds:
            present.add(TRANSIT_SEED.name)
        self.specs: tuple[TableSpec, ...] = tuple(spec for spec in TABLES if spec.name in present)

    @property
    def case(self) -> Case:
        """The study."""
        return self._study.case

    def schemas(self) -> dict[str, pa.Schema]:
        """Return the schemas of the tables that the study has, by name."""
        return {spec.name: spec.schema for spec in self.specs}

    @property
    def cells_of_a_scenario(self) -> int:
        """How many values the tables with rows by stage have for one scenario."""
        return sum(layout.rows * len(layout.maker.spec.columns) for layout in self._layouts)

    def tables(self, block: SimulatedBlock) -> dict[str, pa.Table]:
        """Return the tables of a block of scenarios, rows by scenario, stage, entity and load block."""
        schemas = self.schemas()
        return {name: table.cast(schemas[name]) for name, table in self.encoded_tables(block)}

    def encoded_tables(self, block: SimulatedBlock) -> Iterator[tuple[str, pa.Table]]:
        """Yield the tables one after another, with names as dictionaries: what files are written from."""
        values = [StageValues(frame, found) for frame, found in zip(self._frames, block.stages, strict=True)]
        scenario = np.arange(block.first_scenario, block.first_scenario + values[0].scenarios, dtype=np.int32)
        for layout in self._layouts:
            yield layout.maker.spec.name, self._table(layout, scenario, values)
        if self._seeds:
            yield TRANSIT_SEED.name, self._transit_seed(scenario, values)
        yield SCENARIO_SUMMARY.name, self._summary(block, scenario, values)

    @cached_property
    def _layouts(self) -> list[_Layout]:
        return [_Layout(maker, self._frames) for maker in self._makers]

    def _table(self, layout: _Layout, scenario: NDArray[np.int32], values: Sequence[StageValues]) -> pa.Table:
        maker, count = layout.maker, len(scenario)
        found: dict[str, NDArray[Any]] = {}
        for frame, of_stage, first, end in zip(
            self._frames, values, layout.starts[:-1], layout.starts[1:], strict=True
        ):
            for name, array in maker.values(frame, of_stage).items():
                if name not in found:
                    found[name] = np.empty((count, layout.rows), array.dtype)
                found[name][:, first:end] = array.reshape(count, -1)
        nodes = np.stack([self._node_ids[of_stage.node] for of_stage in values], axis=1)
        arrays = []
        for column in maker.spec.columns:
            if column.name == "scenario_id":
                array = pa.array(np.repeat(scenario, layout.rows))
            elif column.name == "node_id":
                array = pa.array(nodes[:, layout.stage].ravel())
            elif column.name in found:
                array = pa.array(found[column.name].ravel(), from_pandas=column.nullable)
            else:
                array = layout.repeated(column.name, column.type, count)
            arrays.append(array)
        return _put_together(maker.spec, arrays)

    def _transit_seed(self, scenario: NDArray[np.int32], values: Sequence[StageValues]) -> pa.Table:
        study, count = self._study, len(scenario)
        releases = []
        for plant, position in self._seeds:
            frame, found = self._frames[position], values[position]
            outflow = by_plant(frame, found)[0][:, plant] + found.of("hydro_spillage")[:, plant]
            outflow = outflow + found.by_block("hydro_bypass")[:, plant]
            releases.append((outflow * frame.hours).sum(axis=1) / frame.stage.hours)
        stages = [study.case.stages[position] for _, position in self._seeds]
        place = np.array([plant for plant, _ in self._seeds], np.int32)
        ids = np.array([plant.id for plant in study.case.hydros], np.int32)
        arrays = [
            pa.array(np.repeat(scenario, len(place))),
            pa.array(np.tile(ids[place], count)),
            _dates(np.tile(_days([stage.start_date for stage in stages]), count)),
            _dates(np.tile(_days([stage.end_date for stage in stages]), count)),
            pa.array(np.stack(releases, axis=1).ravel()),
            _names(np.tile(place, count), names_of("hydros")(study)),
        ]
        return _put_together(TRANSIT_SEED, arrays)

    def _summary(
        self, block: SimulatedBlock, scenario: NDArray[np.int32], values: Sequence[StageValues]
    ) -> pa.Table:
        total, terminal = np.zeros(len(scenario)), np.zeros(len(scenario))
        for frame, found in zip(self._frames, values, strict=True):
            costs = stage_costs(frame, found)
            total += found.discount * costs["immediate_cost"]
            terminal = found.discount * costs["future_cost"]
        missing = pa.nulls(len(scenario), pa.float64())
        probability = missing if block.probability is None else pa.array(block.probability)
        arrays = [pa.array(scenario), probability, pa.array(total), pa.array(terminal)]
        return _put_together(SCENARIO_SUMMARY, arrays)


class _Layout:
    """The rows of a table in one scenario: what is the same in all of them."""

    def __init__(self, maker: Maker, frames: Sequence[StageFrame]) -> None:
        self.maker = maker
        keys = [maker.keys(frame) for frame in frames]
        counts = [len(next(iter(of_stage.values()))) for of_stage in keys]
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.rows = int(self.starts[-1])
        self.stage = np.repeat(np.arange(len(frames)), counts)
        study = frames[0].study
        self._keys: dict[str, NDArray[Any]] = {
            name: np.concatenate([of_stage[name] for of_stage in keys]) for name in keys[0]
        }
        stages = study.case.stages
        self._keys["stage_id"] = np.array([stage.id for stage in stages], np.int32)[self.stage]
        self._keys["start_date"] = _days([stage.start_date for stage in stages])[self.stage]
        self._names: Mapping[str, Sequence[str]] = {
            column: names(study) for column, names in maker.names.items()
        }

    def repeated(self, name: str, kind: str, scenarios: int) -> pa.Array:
        """Return a column that is the same in all scenarios."""
        values = np.tile(self._keys[name], scenarios)
        if name in self._names:
            return _names(values, self._names[name])
        if kind == "date32":
            return _dates(values)
        return pa.array(values, mask=values == NO_ID) if name == "block_id" else pa.array(values)


def _put_together(spec: TableSpec, arrays: Sequence[pa.Array]) -> pa.Table:
    fields = [
        pa.field(column.name, array.type, nullable=column.nullable)
        for column, array in zip(spec.columns, arrays, strict=True)
    ]
    return pa.Table.from_arrays(list(arrays), schema=pa.schema(fields))


def _names(places: NDArray[np.int32], names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(places), pa.array(list(names), pa.string()))


def _days(dates: Sequence[datetime.date]) -> NDArray[np.int32]:
    return np.array([(day - _EPOCH).days for day in dates], np.int32)


def _dates(days: NDArray[np.int32]) -> pa.Array:
    return pa.array(days).cast(pa.date32())


def _energy(case: Case, downstream: NDArray[np.int64]) -> dict[str, FloatArray]:
    """Return productivities of plants and cascades by (stage, hydro), and the plants' least storages."""
    if case.energy is not None:
        own, integrated, least = case.energy.equivalent, case.energy.integrated, case.energy.min_storage_hm3
    else:  # a study made without files has productivities alone
        own = integrated = np.array(
            [[model.productivity_mw_per_m3s for model in models] for models in case.production], np.float64
        ).reshape(len(case.stages), len(case.hydros))
        least = np.stack([data.storage_min_hm3 for data in case.stage_data]).min(axis=0)
    return {
        "equivalent": own,
        "accumulated": accumulate(own, downstream.astype(np.intp)),
        "integrated": integrated,
        "integrated_accumulated": accumulate(integrated, downstream.astype(np.intp)),
        "min_storage_hm3": least,
    }


def _seed_windows(study: Study) -> list[tuple[int, int]]:
    """Return plants and stages (positions) whose releases have not all arrived as the study ends."""
    hours = np.array([stage.hours for stage in study.case.stages])
    left = np.concatenate([np.cumsum(hours[::-1])[::-1][1:], [0.0]])  # after each stage
    return [
        (place, int(position))
        for place, plant in enumerate(study.case.hydros)
        if plant.downstream_id is not None
        for position in np.flatnonzero(left < plant.travel_time_hours)
    ]
