"""What evaluations of the upper bound leave for the next one: vertices with bounds of the future cost there.

A bound of the future cost at a state stays valid whatever is trained later. So an evaluation need not look at
all vertices again: it takes some of the states visited since the last one, and what it takes costs less
than the iterations that visited them. The number follows from numbers of states alone, never from time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.sddp.upper_bound.vertices import MOST_VERTICES, distinct, distinct_places

FloatArray = NDArray[np.float64]

_SHARE = 0.4
"""Work of an evaluation for that of the trial points since the last one."""

_COLUMN_COST = 350.0
"""An LP with A vertices takes about 1 + A (n / this)^2 times what it takes with few."""

_FIRST = 1600
"""The first vertices that a node gets in any case, times the components of the state."""

_LEAST = 16
"""New and old states that an evaluation looks at, if there are as many."""

_STATES, _VALUES, _NODES, _SEEN, _PRICES = (
    f"upper_bound_{name}" for name in ("vertices", "values", "nodes", "seen", "prices")
)


def affordable_vertices(new: int, known: int, states: int) -> int:
    """Return how many of ``new`` states are worth an evaluation, by a node with ``known`` vertices.

    Parameters
    ----------
    states
        Components of the state.
    """
    column = (states / _COLUMN_COST) ** 2
    count = int(_SHARE * new)
    while count > 0 and count * (1.0 + column * min(known + count, MOST_VERTICES)) > _SHARE * new:
        count -= 1
    first = min(MOST_VERTICES, _FIRST // max(states, 1))
    return min(new, MOST_VERTICES, max(count, _LEAST, first - known))


def _most_kept(evaluated: int, states: int) -> int:
    """Return how many vertices are kept: more make LPs slower."""
    cheap = (_COLUMN_COST / max(states, 1)) ** 2
    return int(max(evaluated, min(MOST_VERTICES, max(1.5 * cheap, 2 * evaluated))))


class KnownValues:
    """Vertices of all nodes with values, newest first.

    Parameters
    ----------
    nodes, states
        Nodes of the policy graph, components of the state.
    prices
        What the values depend on besides the case: margin on prices, and the price that is assumed where
        there is none, or -1.
    """

    def __init__(self, nodes: int, states: int, prices: tuple[float, float] = (1.0, -1.0)) -> None:
        self._states = [np.zeros((0, states))] * nodes
        self._values = [np.zeros(0)] * nodes
        self._seen = np.zeros(nodes, np.int64)
        self._prices = np.array(prices)

    def candidates(self, node: int, visited: FloatArray) -> tuple[FloatArray, int, FloatArray]:
        """Return what an evaluation looks at, of all states ``visited`` at the node, oldest first.

        Returns
        -------
        new, count, again
            States visited since the last evaluation, how many of them to take, and vertices to bound again.
        """
        new = visited[self._seen[node] :]
        known = self._states[node]
        different = len(distinct(new))
        count = affordable_vertices(different, len(known), visited.shape[1])
        return new, count, known[: max(0, min(_LEAST, 2 * different) - count)]

    def keep(
        self, node: int, seen: int, states: FloatArray, values: FloatArray, fixed: int
    ) -> tuple[FloatArray, FloatArray]:
        """Keep new values (finite ones), and return all vertices of the node with their values.

        Parameters
        ----------
        seen
            States visited at the node so far.
        states, values
            What was bounded, of which the first ``fixed`` are bounded by every evaluation: they are not kept.
        """
        finite = np.isfinite(values)
        fixed = int(np.count_nonzero(finite[:fixed]))
        states, values = states[finite], values[finite]
        all_states = np.vstack([states, self._states[node]])
        all_values = np.concatenate([values, self._values[node]])
        place = distinct_places(all_states)
        all_states, all_values = all_states[place], all_values[place]
        most = fixed + _most_kept(len(states) - fixed, states.shape[1])
        all_states, all_values = all_states[:most], all_values[:most]
        self._states[node], self._values[node] = all_states[fixed:].copy(), all_values[fixed:].copy()
        self._seen[node] = seen
        return all_states, all_values

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays for a checkpoint."""
        counts = [len(values) for values in self._values]
        return {
            _STATES: np.vstack(self._states),
            _VALUES: np.concatenate(self._values),
            _NODES: np.repeat(np.arange(len(counts)), counts).astype(np.int64),
            _SEEN: self._seen.copy(),
            _PRICES: self._prices.copy(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what :meth:`arrays` returned; nothing where values were bounded with other prices.

        Raises
        ------
        ValueError
            When the arrays do not fit each other or the study.
        """
        if _PRICES not in arrays or not np.array_equal(arrays[_PRICES], self._prices):
            return
        parts = [arrays.get(name) for name in (_STATES, _VALUES, _NODES, _SEEN)]
        states, values, nodes, seen = parts
        if states is None or values is None or nodes is None or seen is None:
            raise ValueError("values of the upper bound are incomplete")
        count, width = len(values), self._states[0].shape[1]
        fits = states.shape == (count, width) and nodes.shape == (count,) and seen.shape == self._seen.shape
        if not fits or not np.isfinite(values).all() or not np.isin(nodes, np.arange(len(seen))).all():
            raise ValueError("values of the upper bound do not fit the study")
        for node in range(len(seen)):
            self._states[node], self._values[node] = states[nodes == node], values[nodes == node]
        self._seen[:] = seen
