"""What one fixed block of scenarios was simulated to: the interface between the sweeps and the tables."""

from __future__ import annotations

from dataclasses import dataclass

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
