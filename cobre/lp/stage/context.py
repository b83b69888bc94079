"""What all parts of a stage LP share: the stage's data, its time, and the rows that parts share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cobre.case.model import Case, HydroStatus, Stage, StageData
from cobre.lp.assembly import LpAssembly
from cobre.lp.index import ABSENT, IdArray, Labels, unique_labels
from cobre.lp.state import StateLayout
from cobre.lp.topology import Topology
from cobre.units import HM3_PER_M3S_HOUR

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NoiseEntities:
    """Positions of random entities among the realised values of an opening."""

    hydro: NDArray[np.int64]
    bus: NDArray[np.int64]
    source: NDArray[np.int64]

    @classmethod
    def of(cls, case: Case) -> NoiseEntities:
        """Return the positions of a study: inflows, then loads, then availabilities."""
        hydros, buses, sources = len(case.hydros), len(case.buses), len(case.non_controllables)
        first_source = hydros + buses
        return cls(
            np.arange(hydros),
            np.arange(hydros, first_source),
            np.arange(first_source, first_source + sources),
        )

    def __len__(self) -> int:
        return len(self.hydro) + len(self.bus) + len(self.source)


class StageContext:
    """One stage under construction.

    A *period* is a stretch of the stage with a water balance of its own: the whole stage where blocks are
    parallel, each block where they are chronological. K blocks, P periods, h hydro plants.

    Attributes
    ----------
    hours, volume
        float64[K]: hours of each block, and hm3 that 1 m3/s carries in it.
    period
        int64[K]: period of each block.
    period_hours, period_volume
        The same by period.
    block_begin, block_end, period_edges
        Hours from the start of the stage. A release in a parallel block is spread over the whole stage.
    balance
        int32[h, P]: rows of the water balances.
    storage_before, storage_after
        int32[h, P]: columns of the storage at both ends of each period; the incoming storage is a column
        only where something besides the balance refers to it.
    load
        int32[b, K]: rows of the load balances.
    noise
        Where the values of random entities are.
    most_available_mw
        float64[s]: most that each non-controllable source may have at the stage, before block factors.
    """

    balance: IdArray
    storage_before: IdArray
    storage_after: IdArray
    load: IdArray

    def __init__(
        self,
        case: Case,
        topology: Topology,
        layout: StateLayout,
        position: int,
        most_available_mw: FloatArray,
    ) -> None:
        self.case = case
        self.topology = topology
        self.layout = layout
        self.position = position
        self.noise = NoiseEntities.of(case)
        self.most_available_mw = most_available_mw
        self.stage: Stage = case.stages[position]
        self.data: StageData = case.stage_data[position]
        self.lp = LpAssembly()
        blocks = self.stage.blocks
        self.block_labels = unique_labels([block.name for block in blocks], [block.id for block in blocks])
        self.chronological = self.stage.block_mode == "chronological"
        self.hours = np.array([block.hours for block in blocks], np.float64)
        self.volume = HM3_PER_M3S_HOUR * self.hours
        self._split_time()
        status = np.asarray(self.data.hydro_status)
        self.operating: BoolArray = status == HydroStatus.OPERATING
        self.filling: BoolArray = status == HydroStatus.FILLING
        self.dammed: BoolArray = status != HydroStatus.OUT

    def _split_time(self) -> None:
        edges = np.concatenate([[0.0], np.cumsum(self.hours)])
        if self.chronological:
            self.period = np.arange(len(self.hours))
            self.period_hours = self.hours
            self.period_edges = edges
            self.block_begin, self.block_end = edges[:-1], edges[1:]
        else:
            self.period = np.zeros(len(self.hours), np.int64)
            self.period_hours = np.array([self.stage.hours])
            self.period_edges = np.array([0.0, self.stage.hours])
            self.block_begin = np.zeros(len(self.hours))
            self.block_end = np.full(len(self.hours), self.stage.hours)
        self.period_volume = HM3_PER_M3S_HOUR * self.period_hours

    @property
    def periods(self) -> int:
        """Number of periods."""
        return len(self.period_hours)

    def period_axes(self, labels: Labels) -> tuple[Labels, ...]:
        """Return the axes of a family by entity and period; parallel stages name no block."""
        return (labels, self.block_labels) if self.chronological else (labels,)

    def by_period(self, values: ArrayLike) -> FloatArray:
        """Return values by (entity, period) in the shape of :meth:`period_axes`."""
        array: FloatArray = np.asarray(values, np.float64)
        return array if self.chronological else array[..., 0]

    def ids_by_period(self, ids: IdArray) -> IdArray:
        """Return ids of a family made with :meth:`period_axes` as (entity, period)."""
        return ids if self.chronological else ids[:, None]

    def period_mask(self, mask: BoolArray) -> BoolArray:
        """Return a condition by entity in the shape of :meth:`period_axes`."""
        return np.repeat(mask[:, None], self.periods, axis=1) if self.chronological else mask

    def penalty(self, name: str) -> FloatArray:
        """Return a hydro cost of every plant at this stage."""
        return self.data.penalty(name)

    def soft_limit(
        self,
        kind: str,
        axes: tuple[Labels, ...],
        where: ArrayLike,
        *,
        price: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> IdArray:
        """Add rows with a lower or an upper limit that may be violated at ``price`` $ per unit."""
        rows = self.lp.add_rows(
            kind,
            axes,
            where=where,
            lower=-np.inf if lower is None else lower,
            upper=np.inf if upper is None else upper,
        )
        slack = self.lp.add_columns(f"{kind}_violation", axes, where=where, cost=price)
        self.lp.put(rows, slack, 1.0 if upper is None else -1.0)
        return rows


def chosen(ids: IdArray, positions: NDArray[np.int64]) -> IdArray:
    """Return ``ids[positions]``, with ``ABSENT`` for negative positions."""
    if not len(ids):
        return np.full((len(positions), *ids.shape[1:]), ABSENT, np.int32)
    picked = ids[positions]
    picked[positions < 0] = ABSENT
    return picked
