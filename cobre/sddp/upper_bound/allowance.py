"""How many vertices a deterministic upper bound may have that nobody asked for: a fixed rule of sizes.

Work is counted in LPs times columns. The bound may take ``max(LEAST_WORK, work of training / 4)``, at the end
of training; an LP with vertices takes about twice as long for each column as one of training, so that the
bound takes less than a third of the iterations, or a few tenths of a second. The number of vertices is the
largest that fits; below :data:`FEWEST_VERTICES` the bound would be too loose to be of use. Neither time nor
ranks nor threads enter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.sddp.kernel.graph import GraphArrays

LEAST_WORK = 1_000_000
"""LPs x columns that are always allowed: some 0.3 s."""
TRAINING_SHARE = 4
"""Work of training that pays for one unit of the bound's."""
FEWEST_VERTICES = 15
MOST_STATES = 40
"""Components of the state beyond which a bound over so few vertices is loose, and its prices take long."""
_PRICE_WORK = 10
"""LPs of the own engine that one of HiGHS, for a price of the state, counts as."""

HOW_TO_ASK = '"upper_bound_evaluation": {"enabled": true} in config.json computes it whatever it takes'


def too_many_states(states: int) -> str | None:
    """Return why a study gets no bound unless it asks for one, whatever its training takes."""
    if states <= MOST_STATES:
        return None
    return f"not computed with more than {MOST_STATES} state components ({states}); {HOW_TO_ASK}"


def allowed_vertices(
    graph: GraphArrays,
    num_openings: NDArray[np.int64],
    states: int,
    columns: int,
    training_lps: int,
    most: int,
) -> int:
    """Return the visited states by node that the rule allows, at most ``most``; 0 for no bound.

    Parameters
    ----------
    num_openings
        Openings of each node.
    columns
        Of the largest stage LP.
    training_lps
        LPs of all iterations.
    """
    work = max(LEAST_WORK, training_lps * columns // TRAINING_SHARE)
    work -= 2 * states * len(num_openings) * _PRICE_WORK * columns
    openings = int(num_openings[graph.successor].sum()) if len(graph.successor) else 0
    if openings == 0:
        return most if work > 0 else 0  # stages apart: one LP for each opening
    # The largest v with openings * v * (columns + v) <= work.
    room = max(work, 0) / openings
    vertices = min(most, int((columns * columns / 4 + room) ** 0.5 - columns / 2))
    return vertices if vertices >= min(FEWEST_VERTICES, most) else 0
