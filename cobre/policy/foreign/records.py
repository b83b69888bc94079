"""What the files of a policy directory hold."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

FORMAT_VERSION: Final = 3
"""The version of the format that is read and written."""

NO_DATE: Final = -(2**31)
NO_ID: Final = -1
NO_SEASONS: Final = 255
NOT_IN_FORMAT: Final = -1
"""Kind of components that the format has no number for; never stored."""


class SlotKind(IntEnum):
    """What a component of the state is."""

    STORAGE = 0
    INFLOW_LAG = 1
    ANTICIPATED = 2
    IN_TRANSIT = 3


@dataclass(frozen=True)
class StateSlot:
    """One component of the state, as the files identify it.

    Attributes
    ----------
    kind
        A :class:`SlotKind`, or another number that a later format may define.
    entity_id
        Hydro plant (for water in transit the one it flows to) or thermal plant.
    subindex
        Lag of an inflow, from 1; stages until water in transit arrives, from 1; place in a ring buffer for
        commitments (which are identified by their interval); 0 for storage.
    was_active
        Whether the entity was in service.
    reference_date
        Start of the stage whose inflow a lag is.
    interval
        First day, and day after the last, of delivery or arrival.
    """

    kind: int
    entity_id: int
    subindex: int = 0
    was_active: bool = True
    reference_date: datetime.date | None = None
    interval: tuple[datetime.date, datetime.date] | None = None

    def __str__(self) -> str:
        names = {
            SlotKind.STORAGE: "storage of hydro",
            SlotKind.INFLOW_LAG: "inflow lag of hydro",
            SlotKind.ANTICIPATED: "commitment of thermal",
            SlotKind.IN_TRANSIT: "water in transit to hydro",
        }
        if self.kind == NOT_IN_FORMAT:
            return f"a state that cobre-rs does not have, of entity {self.entity_id}"
        name = names[SlotKind(self.kind)] if self.kind in list(SlotKind) else f"state of kind {self.kind} of"
        text = f"{name} {self.entity_id}"
        if self.kind != SlotKind.STORAGE:
            text += f", index {self.subindex}"
        if self.interval is not None:
            text += f" ({self.interval[0]} to {self.interval[1]})"
        return text


@dataclass(frozen=True, eq=False)
class Pool:
    """The cuts on the future cost after one stage: ``theta >= intercept + slope . state``, in $.

    Attributes
    ----------
    pool_id
        Number of the pool, and of its file.
    slots
        What each component of the state is.
    intercepts, slopes
        float64[cuts] and float64[cuts, states].
    active
        bool[cuts]: which cuts the policy uses.
    cut_ids, slot_index, iterations, forward_passes
        uint64[cuts] and uint32[cuts]: where each cut came from.
    cost_scale_factor
        $ per unit of objective in the LPs of the writer; the cuts do not depend on it.
    node_id, graph_stage_id
        Node and stage that the pool belongs to; ``None`` where several share it.
    priced_date
        Date of the state that is valued: the end of the stage.
    capacity, warm_start_count
        Room for cuts, and how many came from an earlier policy.
    """

    pool_id: int
    slots: tuple[StateSlot, ...]
    intercepts: NDArray[np.float64]
    slopes: NDArray[np.float64]
    active: NDArray[np.bool_]
    cut_ids: NDArray[np.uint64]
    slot_index: NDArray[np.uint32]
    iterations: NDArray[np.uint32]
    forward_passes: NDArray[np.uint32]
    cost_scale_factor: float
    node_id: int | None
    graph_stage_id: int | None
    priced_date: datetime.date | None
    capacity: int
    warm_start_count: int = 0


@dataclass(frozen=True)
class ManifestNode:
    """A node of the policy graph, and the pool that holds its cuts."""

    id: int
    stage_id: int
    pool_id: int


@dataclass(frozen=True)
class ManifestEdge:
    """A transition between two nodes, by their ids."""

    source_id: int
    target_id: int
    probability: float


@dataclass(frozen=True)
class SeasonManifest:
    """The cycle of seasons: 0 monthly, 1 weekly, 2 custom, 255 none.

    ``hydro_orders`` gives for each plant the order of its inflow model in every season.
    """

    cycle_code: int = NO_SEASONS
    num_seasons: int = 0
    hydro_orders: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.bin``: the whole policy; costs in $."""

    num_stages: int
    num_pools: int
    nodes: tuple[ManifestNode, ...]
    edges: tuple[ManifestEdge, ...]
    software: str | None
    software_version: str
    created_at: str
    completed_iterations: int
    final_lower_bound: float
    best_upper_bound: float | None
    max_iterations: int
    forward_passes: int
    rng_seed: int
    training_block_mode: str
    block_mode_per_stage: tuple[str, ...]
    cost_scale_factor: float | None
    lower_bound_history: tuple[float, ...]
    warm_start_counts: tuple[int, ...] = ()
    seasons: SeasonManifest = SeasonManifest()


def encode_date(date: datetime.date | None) -> int:
    """Return YYYYMMDD as a number."""
    return NO_DATE if date is None else date.year * 10_000 + date.month * 100 + date.day


def decode_date(number: int) -> datetime.date | None:
    """Return the date of YYYYMMDD; ``None`` for "no date".

    Raises
    ------
    ValueError
        When the number is no date.
    """
    if number == NO_DATE:
        return None
    return datetime.date(number // 10_000, number // 100 % 100, number % 100)
