"""Which component of one policy's state is which of another's, and slopes moved from one to the other.

Components are the same where they share a key. That of a storage or a past inflow is kind, entity and offset.
What is delivered or arrives later is the same where the days of delivery or arrival are the same; water in
transit whose days are not known, where it arrives after as many stages.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case

Component = tuple[str, int, int]
"""Kind (``storage``, ``inflow_lag``, ``in_transit`` or ``commitment``), declared id of the entity (for water
in transit the plant that released it) and stages until it matters (0 for storage; of past inflow the lag)."""

Interval = tuple[datetime.date, datetime.date]
"""First day, and day after the last."""

_DATED = frozenset({"in_transit", "commitment"})


class Identified(NamedTuple):
    """A component as another policy can find it: its name for people, and its keys, the best first."""

    label: str
    keys: tuple[Hashable, ...]


def component_keys(kind: str, entity_id: int, offset: int, interval: Interval | None) -> tuple[Hashable, ...]:
    """Return the keys of a component; ``interval`` of delivery or arrival, where it is known."""
    if kind in _DATED and interval is not None:
        return ((kind, entity_id, interval),)
    return () if kind == "commitment" else ((kind, entity_id, offset),)


def identified(components: Iterable[Component], days: Sequence[Interval], stage: int) -> list[Identified]:
    """Return components of the state at the end of a stage, by its position in ``days``."""
    return [
        Identified(described(*part), component_keys(*part, interval_after(days, stage, part[2])))
        for part in components
    ]


def described(kind: str, entity_id: int, offset: int) -> str:
    """Return a component for people."""
    return f"{kind} of entity {entity_id}" + (f", offset {offset}" if offset else "")


def study_days(case: Case) -> list[Interval]:
    """Return the days of all stages of a study, and of those after it that are known."""
    after = [
        (stage.start_date, stage.start_date + datetime.timedelta(days=round(stage.hours / 24.0)))
        for stage in case.post_study_stages
    ]
    return [*((stage.start_date, stage.end_date) for stage in case.stages), *after]


def interval_after(days: Sequence[Interval], stage: int, offset: int) -> Interval | None:
    """Return the days of the stage ``offset`` stages after another one; ``None`` where they are not known."""
    return days[stage + offset] if stage + offset < len(days) else None


@dataclass(frozen=True, eq=False)
class ComponentMap:
    """Where our components are among theirs.

    Attributes
    ----------
    place
        int64[ours]: position of each in theirs, -1 where they do not have it. Several of ours may be one of
        theirs: water that reaches a plant from two others.
    """

    place: NDArray[np.int64]

    @classmethod
    def of(cls, ours: Sequence[Identified], theirs: Sequence[Identified]) -> ComponentMap:
        """Find our components among theirs; of several that share a key the first counts."""
        places: dict[Hashable, int] = {}
        for position, part in enumerate(theirs):
            for key in part.keys:
                places.setdefault(key, position)
        return cls(
            np.array([next((places[k] for k in part.keys if k in places), -1) for part in ours], np.int64)
        )

    def unknown(self) -> list[int]:
        """Return positions of ours that they do not have."""
        return [int(position) for position in np.flatnonzero(self.place < 0)]

    def unused(self, theirs: int) -> list[int]:
        """Return positions of theirs, so many in all, that we do not have."""
        return sorted(set(range(theirs)) - set(self.place.tolist()))

    def slopes(self, theirs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return slopes of our components, float64[cuts, ours]; 0 where they do not have one."""
        found = np.zeros((len(theirs), len(self.place)))
        known = self.place >= 0
        found[:, known] = theirs[:, self.place[known]]
        return found
