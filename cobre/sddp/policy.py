"""The trained policy: for each stage the cuts that bound its future cost from below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.errors import Problem, ValidationError
from cobre.policy import policy_digest

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Policy:
    """Cuts ``theta >= intercept + slope . state`` of every node, in $ and slot order.

    On a chain the nodes are the stages.

    Attributes
    ----------
    stage_ids
        Declared id of each node's stage.
    node_ids
        Declared ids of the nodes; ``None`` on a chain.
    state_names
        Name of each state component; storages are in hm3.
    components
        Kind, declared id of the entity and offset of each component, see
        :class:`cobre.lp.state.StateComponent`.
    forward_passes
        Forward passes of one iteration.
    intercepts, slopes
        For each stage float64[cuts] and float64[cuts, states].
    iterations, passes
        For each stage int32[cuts]: where each cut comes from; iterations count from 1, 0 is another policy.
    active
        For each stage bool[cuts]: whether cut selection left it in the LPs. A cut that is not is valid, too.
    future_cost_floor
        For each stage the bound on the future cost that holds without any cut, in $.
    boundary_cuts
        How many cuts at each node of the last stage came from another policy; they stand first.
    """

    stage_ids: tuple[int, ...]
    state_names: tuple[str, ...]
    forward_passes: int
    intercepts: tuple[NDArray[np.float64], ...]
    slopes: tuple[NDArray[np.float64], ...]
    future_cost_floor: tuple[float, ...]
    iterations: tuple[NDArray[np.int32], ...]
    passes: tuple[NDArray[np.int32], ...]
    active: tuple[NDArray[np.bool_], ...]
    components: tuple[tuple[str, int, int], ...] = ()
    node_ids: tuple[int, ...] | None = None
    boundary_cuts: int = 0

    def evaluate(self, stage: int, state: NDArray[np.float64]) -> float:
        """Return the future cost ($) that the cuts of a stage give at the state it leaves behind.

        Parameters
        ----------
        stage
            Position of the stage, from 0; with a policy graph of the node.
        state
            A number for each component, in the order of ``state_names``.

        Raises
        ------
        ValidationError
            When the policy has no such stage, or the state has not one number for each component.
        """
        if not hasattr(stage, "__index__") or not 0 <= stage < len(self.intercepts):
            raise _wrong("stage", stage, f"a position from 0 to {len(self.intercepts) - 1}")
        try:
            point = np.asarray(state, np.float64)
        except (TypeError, ValueError):
            raise _wrong("state", state, "a sequence of numbers") from None
        if point.shape != (len(self.state_names),):
            names = ", ".join(self.state_names[:_SHOWN]) + (", ..." if len(self.state_names) > _SHOWN else "")
            wanted = f"{len(self.state_names)} numbers ({names}), but its shape is {point.shape}"
            raise _wrong("state", state, wanted)
        if not np.isfinite(point).all():
            raise _wrong("state", state, "finite numbers")
        values = self.intercepts[stage] + self.slopes[stage] @ point
        return float(max(self.future_cost_floor[stage], values.max(initial=-np.inf)))

    def __repr__(self) -> str:
        nodes, cuts = len(self.intercepts), sum(len(part) for part in self.intercepts)
        return f"Policy({nodes} nodes, {len(self.state_names)} state components, {cuts} cuts)"

    def sha256(self) -> str:
        """Return a digest over every bit of every cut, and over which of them are active."""
        return policy_digest(
            stage_ids=self.stage_ids,
            node_ids=self.node_ids,
            states=len(self.state_names),
            forward_passes=self.forward_passes,
            intercepts=self.intercepts,
            slopes=self.slopes,
            active=self.active,
        )


def _wrong(name: str, value: object, wanted: str) -> ValidationError:
    message = f"{name} must be {wanted}"
    if name == "stage":
        message += f", not {value!r}"
    return ValidationError(
        [Problem("InvalidValue", message, {"field": name, "value": f"{value!r:.80}"})], source="arguments"
    )
