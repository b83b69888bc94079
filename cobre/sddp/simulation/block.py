"""What one fixed block of scenarios was simulated to: the interface between the sweeps and the tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SimulatedStage:
    """A stage of a block of S scenarios; C and R are the most columns and rows of the stage's nodes.

    Attributes
    ----------
    node
        Position of the node of every scenario, int64[S].
    columns
        Values of the columns of the node's template, in physical units, float64[S, C].
    duals
        Duals of the rows of the node's template, float64[S, R]: slope of the optimal value in the right-hand
        side, $ per physical unit, not discounted to the first stage.
    realised
        Values of the random entities as the LP has them, float64[S, E]: inflow (m3/s, with the part that
        follows from past inflows), load (MW), availability (MW).
    incoming
        Incoming state, float64[S, n].
    discount
        Discount factor to the first stage, float64[S].
    """

    node: IntArray
    columns: FloatArray
    duals: FloatArray
    realised: FloatArray
    incoming: FloatArray
    discount: FloatArray

    def part(self, first: int, end: int) -> SimulatedStage:
        """Return scenarios ``first`` to ``end - 1`` of the block, without a copy."""
        return SimulatedStage(*(getattr(self, field.name)[first:end] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class SimulatedBlock:
    """A block of S scenarios.

    Attributes
    ----------
    first_scenario
        Number of the first scenario, from 0; the others follow it.
    probability
        Of every scenario, float64[S]; ``None`` unless they enumerate all that can happen.
    stages
        In the order of positions.
    """

    first_scenario: int
    probability: FloatArray | None
    stages: tuple[SimulatedStage, ...]

    def parts(self, scenarios: int) -> Iterator[SimulatedBlock]:
        """Yield the block in parts of so many scenarios, the last of what is left, without copies."""
        for first in range(0, len(self.stages[0].node), scenarios):
            end = first + scenarios
            yield SimulatedBlock(
                self.first_scenario + first,
                None if self.probability is None else self.probability[first:end],
                tuple(stage.part(first, end) for stage in self.stages),
            )
