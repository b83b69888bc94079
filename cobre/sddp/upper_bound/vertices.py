"""The points at which the future cost of a node is bounded: visited states, and corners that hold them all.

With a price for more of a component but none for less, every state above a corner at the lower limit is the
corner plus something that has a price; the other way round at the upper limit. A component with neither price
needs both limits. What is not covered makes an LP infeasible and the bound infinite, never wrong.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from cobre.lp import StageTemplate

FloatArray = NDArray[np.float64]

_ALL_CORNERS = 6
"""Components without any price up to which all corners of their box are vertices."""

MOST_VERTICES = 200
"""Default limit of the visited states by node that the bound uses."""

_SAME = 1.0e-9
"""States closer than this share of the range of every component count as one."""


def vertices_of(
    template: StageTemplate,
    visited: FloatArray,
    initial_state: FloatArray,
    up: FloatArray,
    down: FloatArray,
    most: int,
) -> FloatArray:
    """Return the vertices of a node's outgoing state, float64[V, n].

    These are corners, the initial state, and visited states.

    Parameters
    ----------
    visited
        float64[count, n], oldest first.
    up, down
        Prices of the outgoing state; ``inf`` where there is none.
    most
        Most visited states that are kept, see :func:`chosen_states`.
    """
    fixed = fixed_vertices(template, visited, initial_state, up, down)
    return distinct(np.vstack([fixed, chosen_states(visited, most)]))


def fixed_vertices(
    template: StageTemplate, visited: FloatArray, initial_state: FloatArray, up: FloatArray, down: FloatArray
) -> FloatArray:
    """Return the vertices that do not depend on a choice: corners and the initial state; as above."""
    lower = (template.col_lower * template.col_scale)[template.state_col]
    upper = (template.col_upper * template.col_scale)[template.state_col]
    start = np.clip(initial_state, lower, upper)
    corners = _corners(lower, upper, np.vstack([start[None], visited]), up, down)
    return distinct(np.vstack([corners, start[None]]))


def _corners(
    lower: FloatArray, upper: FloatArray, known: FloatArray, up: FloatArray, down: FloatArray
) -> FloatArray:
    seen_low, seen_high = known.min(axis=0), known.max(axis=0)
    low = np.where(np.isfinite(lower), lower, seen_low)
    high = np.where(np.isfinite(upper), upper, seen_high)
    # A component that no state changes (a plant out of service) keeps its value.
    fixed = np.isinf(up) & np.isinf(down) & (seen_low == seen_high)
    low[fixed] = high[fixed] = seen_low[fixed]
    # Where moves both ways have prices, the corner from which the cheaper one leads.
    base = np.where(down < up, high, low)
    free = np.flatnonzero(np.isinf(up) & np.isinf(down) & (low < high))
    if len(free) <= _ALL_CORNERS:
        sides = np.array(list(itertools.product((False, True), repeat=len(free))), bool)
    else:
        sides = np.vstack(
            [np.zeros(len(free), bool), np.eye(len(free), dtype=bool), np.ones(len(free), bool)]
        )
    corners = np.tile(base, (len(sides), 1))
    corners[:, free] = np.where(sides, high[free], low[free])
    # Away from the corner moves may be dear, too: the opposite one makes the hull wide.
    return np.vstack([corners, np.where(down < up, low, high)])


def chosen_states(visited: FloatArray, most: int) -> FloatArray:
    """Return at most ``most`` of the states: the latest, and those farthest from what is chosen already.

    The latest are at least half of them, and two for each component: with many components the value at a
    state depends on its neighbours, and others help little. Distances are in shares of each component's
    range; of equals the latest counts. Latest first.
    """
    latest = distinct(visited[::-1])
    if len(latest) <= most:
        return latest
    scaled = (latest - latest.min(axis=0)) / _range(latest)
    chosen = list(range(max((most + 1) // 2, min(most, 2 * visited.shape[1]))))
    distance = np.full(len(latest), np.inf)
    for place in chosen:
        distance = np.minimum(distance, _distance(scaled, place))
    while len(chosen) < most:
        farthest = int(np.argmax(distance))
        chosen.append(farthest)
        distance = np.minimum(distance, _distance(scaled, farthest))
    return latest[np.array(chosen, np.int64)]


def _distance(scaled: FloatArray, place: int) -> FloatArray:
    distance: FloatArray = np.abs(scaled - scaled[place]).max(axis=1, initial=0.0)
    return distance


def _range(states: FloatArray) -> FloatArray:
    width: FloatArray = states.max(axis=0) - states.min(axis=0)
    return np.where(width > 0.0, width, 1.0)


def distinct(states: FloatArray) -> FloatArray:
    """Return the states without repetitions, each where it stands first."""
    return states[distinct_places(states)]


def distinct_places(states: FloatArray) -> NDArray[np.int64]:
    """Return the places of the states without repetitions, each where it stands first."""
    if not states.size:
        return np.arange(min(len(states), 1))
    rounded = np.rint((states - states.min(axis=0)) / (_SAME * _range(states)))
    _, first = np.unique(rounded, axis=0, return_index=True)
    return np.sort(first)
