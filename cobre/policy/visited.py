"""The states that forward passes went through, by stage: what bounds and cut selection look back on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class VisitedStates:
    """A growing archive of outgoing states, the same on every rank.

    Parameters
    ----------
    stages, states
        T stages, n state components.
    capacity
        States by stage that fit before the archive has to grow.

    Attributes
    ----------
    count
        States kept of every stage so far.
    """

    def __init__(self, stages: int, states: int, capacity: int = 0) -> None:
        self.count = 0
        self._state = np.empty((stages, capacity, states))
        self._node = np.empty((stages, capacity), np.int64)

    def append(self, states_all: NDArray[np.float64], nodes: NDArray[np.int64]) -> None:
        """Add the outgoing states of one iteration's passes.

        Parameters
        ----------
        states_all
            float64[T, M, n], copied.
        nodes
            int64[T, M]: node of the policy graph that each state was left with.
        """
        last = self.count + states_all.shape[1]
        if last > self._state.shape[1]:
            self._grow(max(last, 2 * self._state.shape[1]))
        self._state[:, self.count : last] = states_all
        self._node[:, self.count : last] = nodes
        self.count = last

    def nodes(self) -> NDArray[np.int64]:
        """Return the nodes of all states, int64[T, count], a copy."""
        found: NDArray[np.int64] = self._node[:, : self.count].copy()
        return found

    def of_stage(self, stage: int) -> NDArray[np.float64]:
        """Return the states of a stage in the order of iterations and passes, float64[count, n] (a view)."""
        return self._state[stage, : self.count]

    def of_node(self, stage: int, node: int) -> NDArray[np.float64]:
        """Return the states that were left at a node of ``stage``, in the same order."""
        here: NDArray[np.float64] = self.of_stage(stage)[self._node[stage, : self.count] == node]
        return here

    def _grow(self, capacity: int) -> None:
        stages, _, states = self._state.shape
        state, node = np.empty((stages, capacity, states)), np.empty((stages, capacity), np.int64)
        state[:, : self.count] = self._state[:, : self.count]
        node[:, : self.count] = self._node[:, : self.count]
        self._state, self._node = state, node
