"""Which entities have noise, in which order, and which stages share it.

A noise vector is ``[hydros by id | buses by id with noise | non-controllable sources by id with noise]``: all
hydros, the buses with a load std > 0 at any stage, the sources with statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, ClassName, Stage

CLASSES: tuple[ClassName, ...] = ("inflow", "load", "ncs")

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NoiseLayout:
    """Positions in the case of the entities with noise, in the order of noise vectors."""

    hydros: IntArray
    buses: IntArray
    sources: IntArray

    @property
    def dimension(self) -> int:
        """Length of a noise vector."""
        return self.hydros.size + self.buses.size + self.sources.size

    def members(self, name: ClassName) -> IntArray:
        """Return the positions of the entities of a class that have noise."""
        return {"inflow": self.hydros, "load": self.buses, "ncs": self.sources}[name]

    def start(self, name: ClassName) -> int:
        """Return where a class begins in a noise vector."""
        return {"inflow": 0, "load": self.hydros.size, "ncs": self.hydros.size + self.buses.size}[name]

    def slots(self, name: ClassName, entities: int) -> IntArray:
        """Return for each of the class's entities its place in a noise vector, -1 without noise."""
        slots = np.full(entities, -1, np.int64)
        members = self.members(name)
        slots[members] = self.start(name) + np.arange(members.size)
        return slots


def noise_layout(
    case: Case, buses: NDArray[np.bool_] | None = None, sources: NDArray[np.bool_] | None = None
) -> NoiseLayout:
    """Return the layout of the study's noise vectors.

    Parameters
    ----------
    buses, sources
        Further entities with noise, as masks.
    """
    scenarios = case.scenarios
    with_load: NDArray[np.bool_] = np.any(scenarios.load_std_mw > 0.0, axis=0)
    with_stats = scenarios.ncs_has_stats
    return NoiseLayout(
        hydros=_by_id([hydro.id for hydro in case.hydros]),
        buses=_by_id([bus.id for bus in case.buses], with_load if buses is None else with_load | buses),
        sources=_by_id(
            [source.id for source in case.non_controllables],
            with_stats if sources is None else with_stats | sources,
        ),
    )


def _by_id(ids: Sequence[int], chosen: NDArray[np.bool_] | None = None) -> IntArray:
    order = np.argsort(np.array(ids, np.int64), kind="stable").astype(np.int64)
    return order if chosen is None else order[chosen[order]]


def noise_groups(stages: Sequence[Stage]) -> IntArray:
    """Return the noise group of each stage: stages of one season in one year share a group.

    Groups are numbered in the order in which they first occur; a stage without a season has its own.

    >>> from cobre.case import load
    >>> noise_groups(load("examples/random-inflow").stages).tolist()
    [0, 1, 2, 3]
    """
    known: dict[tuple[int, int], int] = {}
    groups: list[int] = []
    for stage in stages:
        fresh = max(groups, default=-1) + 1
        if stage.season_id is None:
            groups.append(fresh)
        else:
            groups.append(known.setdefault((stage.season_id, stage.start_date.year), fresh))
    return np.array(groups, np.int64)
