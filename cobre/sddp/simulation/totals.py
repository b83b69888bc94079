"""What is kept of the blocks of a simulation, added up in their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

PER_SCENARIO = 3
"""Numbers that are kept of each scenario: cost, terminal value, deficit."""


class Totals:
    """Costs by scenario, and sums over scenarios, of the blocks added so far.

    A record is cost, terminal value and deficit of the scenarios of a block, then its sums.

    Parameters
    ----------
    sums
        How many numbers each of the sums has.

    Attributes
    ----------
    next_block
        The block that is to be added next.
    scenarios
        Of the blocks added.
    """

    def __init__(self, sums: Sequence[int]) -> None:
        self.next_block = 0
        self.scenarios = 0
        self._lengths = list(sums)
        self._by_scenario: list[list[FloatArray]] = [[] for _ in range(PER_SCENARIO)]
        self._sums = [np.zeros(length) for length in sums]
        self._cost = 0.0

    def length(self, scenarios: int) -> int:
        """Return how many numbers the record of a block of so many scenarios has."""
        return PER_SCENARIO * scenarios + sum(self._lengths)

    def add(self, record: FloatArray, scenarios: int) -> None:
        """Add the record of the next block."""
        ends = np.cumsum([*[scenarios] * PER_SCENARIO, *self._lengths])
        parts = np.split(record, ends[:-1])
        for kept, part in zip(self._by_scenario, parts[:PER_SCENARIO], strict=True):
            kept.append(part.copy())
        for total, part in zip(self._sums, parts[PER_SCENARIO:], strict=True):
            total += part
        self._cost += float(parts[0].sum())
        self.next_block += 1
        self.scenarios += scenarios

    @property
    def mean_cost(self) -> float:
        """Mean cost so far, all scenarios alike; 0 before there are any."""
        return self._cost / max(self.scenarios, 1)

    def by_scenario(self) -> list[FloatArray]:
        """Return cost, terminal value and deficit of all scenarios."""
        return [np.concatenate(kept) for kept in self._by_scenario]

    @property
    def sums(self) -> list[FloatArray]:
        """The sums over scenarios."""
        return self._sums
