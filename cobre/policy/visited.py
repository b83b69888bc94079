"""The states that forward passes went through, by stage: what bounds look back on, and checkpoints keep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.policy.checks import require, require_array


@dataclass(frozen=True, eq=False)
class VisitedRows:
    """Outgoing states of forward passes as files hold them, one in each row.

    Attributes
    ----------
    iteration, stage, forward_pass
        int64[rows]: iteration from 1, position of the stage, pass from 0.
    values
        float64[rows, states].
    """

    iteration: NDArray[np.int64]
    stage: NDArray[np.int64]
    forward_pass: NDArray[np.int64]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        count = len(self.iteration)
        for name, least in (("iteration", 1), ("stage", 0), ("forward_pass", 0)):
            values = getattr(self, name)
            require_array(name, values, np.int64, (count,))
            require(count == 0 or values.min() >= least, f"{name} of a visited state is below {least}")
        require_array("visited states", self.values, np.float64, (count, self.values.shape[-1]))


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

    def rows(self, passes: int) -> VisitedRows | None:
        """Return the archive by (stage, iteration, pass), ``None`` if empty; an iteration has ``passes``."""
        if not self.count:
            return None
        stages, order = len(self._state), np.arange(self.count)
        return VisitedRows(
            iteration=np.tile(order // passes + 1, stages).astype(np.int64),
            stage=np.repeat(np.arange(stages), self.count).astype(np.int64),
            forward_pass=np.tile(order % passes, stages).astype(np.int64),
            values=np.concatenate([self.of_stage(stage) for stage in range(stages)]),
        )

    def restore(self, rows: VisitedRows, nodes: NDArray[np.int64]) -> None:
        """Append what :meth:`rows` and :meth:`nodes` returned."""
        stages, _, states = self._state.shape
        self.append(rows.values.reshape(stages, nodes.shape[1], states), nodes)

    def _grow(self, capacity: int) -> None:
        stages, _, states = self._state.shape
        state, node = np.empty((stages, capacity, states)), np.empty((stages, capacity), np.int64)
        state[:, : self.count] = self._state[:, : self.count]
        node[:, : self.count] = self._node[:, : self.count]
        self._state, self._node = state, node
