"""What all tables of a stage are made from: its place in time, and the values of its LPs by scenario.

Arrays by scenario are (scenario, row), rows by entity and then by block, as tables have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, Stage, StageData
from cobre.units import HM3_PER_M3S_HOUR

if TYPE_CHECKING:
    from cobre.lp.index import IdArray
    from cobre.lp.state import StateLayout
    from cobre.lp.template import StageTemplate
    from cobre.lp.topology import Topology
    from cobre.results.simulation.service import Service
    from cobre.sddp.simulation.block import SimulatedStage

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Kept = TypeVar("Kept")

TOLERANCE = 1e-6
"""How near, relative to a limit, a value counts as being at it."""


@dataclass(frozen=True, eq=False)
class Study:
    """What does not change from stage to stage."""

    case: Case
    topology: Topology
    layout: StateLayout
    service: Service
    equivalent: FloatArray
    accumulated: FloatArray
    integrated: FloatArray
    integrated_accumulated: FloatArray
    min_storage_hm3: FloatArray


class StageFrame:
    """A stage: K blocks, P periods with a water balance of their own.

    Attributes
    ----------
    template
        Of any node of the stage: those of a stage have the same columns, rows, costs and limits.
    hours, volume
        float64[K]: hours of each block, and hm3 that 1 m3/s carries in it.
    period
        int64[K]: period of each block.
    """

    def __init__(self, study: Study, position: int, template: StageTemplate) -> None:
        self.study = study
        self.position = position
        self.template = template
        self.stage: Stage = study.case.stages[position]
        self.data: StageData = study.case.stage_data[position]
        self.hours: FloatArray = np.array([block.hours for block in self.stage.blocks], np.float64)
        self.volume: FloatArray = HM3_PER_M3S_HOUR * self.hours
        self.blocks = len(self.hours)
        self.chronological = self.stage.block_mode == "chronological"
        self.periods = self.blocks if self.chronological else 1
        self.period: IntArray = (
            np.arange(self.blocks) if self.chronological else np.zeros(self.blocks, np.int64)
        )
        self.block_id = np.array([block.id for block in self.stage.blocks], np.int32)
        # The place after the last one is that of columns which the LP does not have: it costs nothing.
        self.price = np.append(template.cost * template.cost_scale, 0.0)
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[StageFrame], Kept]) -> Kept:
        """Return what ``make`` returns for this stage, made when it is first asked for."""
        if name not in self._made:
            self._made[name] = make(self)
        kept: Kept = self._made[name]
        return kept

    def ids(self, kind: str) -> IdArray:
        """Return the columns of a family."""
        return self.template.index.columns[kind].ids

    def has(self, kind: str) -> bool:
        """Whether the LP has columns of a family."""
        family = self.template.index.columns.get(kind)
        return family is not None and bool((family.ids >= 0).any())

    def rows(self, kind: str) -> IdArray:
        """Return the rows of a family."""
        return self.template.index.rows[kind].ids

    def by_period(self, ids: IdArray) -> IdArray:
        """Return ids of a family by entity and period as (entity, period)."""
        return ids if self.chronological else ids[:, None]

    def in_blocks(self, ids: IdArray) -> IdArray:
        """Return ids by entity and period as (entity, block)."""
        return self.by_period(ids)[:, self.period]

    def repeated(self, ids: IdArray) -> IdArray:
        """Return ids by entity as (entity, block)."""
        return np.repeat(ids[:, None], self.blocks, axis=1)

    def spread(self, values: FloatArray) -> FloatArray:
        """Return values by entity as (entity, block)."""
        return np.repeat(values[:, None], self.blocks, axis=1)


class StageValues:
    """The values of a stage in S scenarios; whatever an LP does not have counts 0."""

    def __init__(self, frame: StageFrame, found: SimulatedStage) -> None:
        self.frame = frame
        self.node = found.node
        self.realised = found.realised
        self.incoming = found.incoming
        self.discount = found.discount
        self._columns = _with_nothing(found.columns, frame.template.num_cols)
        self._duals = _with_nothing(found.duals, frame.template.num_rows)

    @property
    def scenarios(self) -> int:
        """S."""
        return len(self.node)

    def columns(self, ids: IdArray) -> FloatArray:
        """Return the values of columns, (S, *ids.shape)."""
        return _taken(self._columns, ids)

    def of(self, kind: str) -> FloatArray:
        """Return the values of a family, (S, *its axes)."""
        return self.columns(self.frame.ids(kind))

    def by_block(self, kind: str) -> FloatArray:
        """Return the values of a family by entity and period as (S, entity, block)."""
        return self.columns(self.frame.in_blocks(self.frame.ids(kind)))

    def cost(self, kind: str) -> FloatArray:
        """Return what a family costs, $, (S, *its axes)."""
        ids = self.frame.ids(kind)
        cost: FloatArray = self.columns(ids) * self.frame.price[ids]
        return cost

    def duals(self, ids: IdArray) -> FloatArray:
        """Return the duals of rows, (S, *ids.shape)."""
        return _taken(self._duals, ids)

    def state(self, first: int, count: int) -> FloatArray:
        """Return components of the incoming state, (S, count)."""
        return self.incoming[:, first : first + count]


def _with_nothing(values: FloatArray, count: int) -> FloatArray:
    """Return values by (S, place) with a 0 at the end, where the id -1 of what is absent points."""
    padded = np.zeros((len(values), count + 1))
    padded[:, :count] = values[:, :count]
    return padded


def _taken(values: FloatArray, ids: IdArray) -> FloatArray:
    picked: FloatArray = np.take(values, ids.ravel(), axis=1, mode="wrap")
    return picked.reshape(len(values), *ids.shape)


def group_sum(values: FloatArray, owner: IntArray, owners: int) -> FloatArray:
    """Return the sums of values (S, member, K) over the members of each owner, (S, owner, K)."""
    total = np.zeros((values.shape[0], owners, *values.shape[2:]))
    if not len(owner):
        return total
    order = np.argsort(owner, kind="stable")
    sorted_owner = owner[order]
    rank = np.arange(len(owner)) - np.searchsorted(sorted_owner, sorted_owner)
    for number in range(int(rank.max()) + 1):  # the i-th member of every owner at once
        members = order[rank == number]
        total[:, owner[members]] += values[:, members]
    return total


def operative_state(serves: BoolArray, most: FloatArray, used: FloatArray) -> NDArray[np.int8]:
    """Return the codes of (S, entity, block) for entities that may use up to ``most`` and use ``used``.

    Parameters
    ----------
    serves
        Whether each entity is in service, (entity,).
    most
        (entity, block), or (S, entity, block) where it varies by scenario.
    """
    full = used >= most - TOLERANCE * np.maximum(1.0, np.abs(most))
    state = np.where(full, 3, 2)
    state = np.where(most <= 0.0, 1, state)
    codes: NDArray[np.int8] = np.where(serves[:, None], state, 0).astype(np.int8)
    return np.broadcast_to(codes, used.shape)
