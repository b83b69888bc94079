"""The axes that rows are placed on: study stages with their blocks, and entities by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.format.parse import Parsed
from cobre.case.format.sources import Sources
from cobre.case.problems import name_entity

IntArray = NDArray[np.int64]
GROUP_KEY = 2**32
"""A unit group is found by ``hydro_id * GROUP_KEY + group_id``, which sorts by plant, then by group."""


@dataclass(frozen=True, eq=False)
class StageAxis:
    """The study stages (ids >= 0) in ascending order.

    Attributes
    ----------
    ids
        Ids of the stages; ``None`` when they are not all known.
    blocks
        Number of blocks by stage; -1 where it is not known.
    hours
        Hours by stage; 0 where they are not known.
    """

    ids: IntArray | None
    blocks: IntArray
    hours: NDArray[np.float64]

    @property
    def complete(self) -> bool:
        """Whether everything about the stages is known."""
        return self.ids is not None and self.ids.size > 0 and bool((self.blocks > 0).all())

    @property
    def width(self) -> int:
        """Most blocks of any stage."""
        return int(self.blocks.max(initial=0))


def stage_axis(sources: Sources) -> StageAxis:
    """Return the axis of study stages, as far as ``stages.json`` could be read."""
    parsed = sources.stages
    if parsed.ids is None:
        return StageAxis(None, np.zeros(0, np.int64), np.zeros(0))
    entries = {stage.id: stage for stage in parsed.items}
    ids = sorted(number for number in parsed.id_set if number >= 0)
    blocks = [len(entries[number].blocks) if number in entries else -1 for number in ids]
    hours = [
        sum(block.hours for block in entries[number].blocks) if number in entries else 0.0 for number in ids
    ]
    return StageAxis(np.array(ids, np.int64), np.array(blocks, np.int64), np.array(hours, np.float64))


@dataclass(frozen=True, eq=False)
class EntityAxis:
    """Entities in ascending id.

    Attributes
    ----------
    word
        What an entity is called.
    ids
        Sorted ids (of unit groups, their keys; see :data:`GROUP_KEY`); ``None`` when not all are known.
    """

    word: str
    ids: IntArray | None
    names: Mapping[int, str]
    of_groups: bool = False

    def name(self, key: int) -> str:
        """Return how the entity with this id (or key) is called in problems."""
        if not self.of_groups:
            return name_entity(self.word, key, self.names.get(key))
        # The group id is the remainder in the range of an int32, not in [0, 2^32).
        hydro = (key + GROUP_KEY // 2) // GROUP_KEY
        return f"{name_entity('hydro', hydro, self.names.get(hydro))}, unit group {key - hydro * GROUP_KEY}"


def entity_axis(parsed: Parsed[Any, Any], word: str) -> EntityAxis:
    """Return the axis of one registry."""
    ids = None if parsed.ids is None else np.array(sorted(parsed.id_set), np.int64)
    return EntityAxis(word, ids, parsed.names)


def group_axis(sources: Sources) -> EntityAxis:
    """Return the axis of all unit groups: plants in order, then groups by id."""
    hydros = sources.hydros
    keys = None
    if is_complete(hydros):
        pairs = {(hydro.id, group.id) for hydro in hydros.items for group in hydro.unit_groups}
        keys = np.array([hydro * GROUP_KEY + group for hydro, group in sorted(pairs)], np.int64)
    return EntityAxis("unit group", keys, hydros.names, of_groups=True)


def is_complete(parsed: Parsed[Any, Any]) -> bool:
    """Whether every entry of a registry is readable and has an id of its own."""
    return parsed.ids is not None and len(parsed.items) == len(parsed.ids) == len(parsed.id_set)


def positions(ids: NDArray[Any], known: IntArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the position of each id in the sorted ``known``, and whether it is there at all."""
    if known.size == 0:
        return np.zeros(ids.size, np.intp), np.zeros(ids.size, np.bool_)
    at = np.minimum(np.searchsorted(known, ids), known.size - 1)
    return at, known[at] == ids
