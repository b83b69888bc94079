"""What a policy directory and a checkpoint hold, as plain data.

Objects check themselves when they are made, so what is written and what was read obey the same rules.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cobre.policy.bases import StartingBases
from cobre.policy.digest import policy_digest
from cobre.policy.fingerprint import Fingerprint
from cobre.policy.history import HistoryColumn, column_type

LowerBoundKind = Literal["bound", "estimate"]

Column = NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
_LARGEST: Final = 2**63 - 1
ARRAY_DTYPES: Final = frozenset(
    np.dtype(name) for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)
"""Types that ``extra_arrays`` may have."""


@dataclass(frozen=True)
class StateEntry:
    """One component of the state.

    Attributes
    ----------
    kind
        ``storage``, ``inflow_lag``, ``in_transit``, ``commitment``, or what a later version adds.
    entity_id
        Declared id of the plant; for water in transit the one that released it.
    offset
        Stages until it matters, or the lag, from 1; 0 for storage.
    name
        For people; takes no part in comparisons of policies.
    """

    kind: str
    entity_id: int
    offset: int
    name: str

    def __post_init__(self) -> None:
        _require(_NAME.match(self.kind), f"a state component has the impossible kind {self.kind!r}")
        _require(0 <= self.offset <= _LARGEST, f"{self.name}: offset {self.offset} is negative or too large")

    @property
    def key(self) -> tuple[str, int, int]:
        """What identifies the component."""
        return self.kind, self.entity_id, self.offset

    def __str__(self) -> str:
        offset = f", offset {self.offset}" if self.offset else ""
        return f"{self.kind} of entity {self.entity_id}{offset}"


@dataclass(frozen=True)
class NodeEntry:
    """A node of the policy graph, on a chain a stage.

    Attributes
    ----------
    id
        Declared id of the node; on a chain the position of the stage.
    stage_id, start_date, end_date
        The node's stage; the cuts value states at the end date.
    future_cost_floor
        Bound on the future cost that holds without any cut, in $.
    loaded_cuts
        How many cuts came from another policy (boundary, warm start); they stand first.
    """

    id: int
    stage_id: int
    start_date: datetime.date
    end_date: datetime.date
    future_cost_floor: float
    loaded_cuts: int = 0

    def __post_init__(self) -> None:
        _require(self.start_date < self.end_date, f"node {self.id} ends on {self.end_date}, before it starts")
        _require(
            self.future_cost_floor == self.future_cost_floor, f"node {self.id}: its cost floor is no number"
        )
        _require(self.loaded_cuts >= 0, f"node {self.id}: loaded_cuts is {self.loaded_cuts}")


@dataclass(frozen=True)
class TransitionEntry:
    """An edge of the policy graph, between ids of nodes."""

    source_id: int
    target_id: int
    probability: float

    def __post_init__(self) -> None:
        _require(0.0 <= self.probability <= 1.0, f"a transition has the probability {self.probability!r}")


@dataclass(frozen=True, eq=False)
class NodeCuts:
    """The cuts of one node, ``theta >= intercept + slope . state`` in $, by ascending slot.

    Attributes
    ----------
    slot
        int64[cuts]: place in the pool, a function of (iteration, forward pass) alone.
    iteration, forward_pass
        int64[cuts]: where a cut was made; iterations from 1, 0 for cuts that were loaded; passes from 0.
    intercept, slopes
        float64[cuts] and float64[cuts, states]; any number but NaN.
    active
        bool[cuts]: whether LPs use the cut.
    activity
        Further columns by cut, int64, float64 or bool: what cut selection remembers. All nodes
        have the same ones.
    """

    slot: NDArray[np.int64]
    iteration: NDArray[np.int64]
    forward_pass: NDArray[np.int64]
    intercept: NDArray[np.float64]
    slopes: NDArray[np.float64]
    active: NDArray[np.bool_]
    activity: Mapping[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.slot)
        _require_array("slopes", self.slopes, np.float64, (count, self.slopes.shape[-1]))
        for name in ("slot", "iteration", "forward_pass"):
            _require_array(name, getattr(self, name), np.int64, (count,))
        _require_array("intercept", self.intercept, np.float64, (count,))
        _require_array("active", self.active, np.bool_, (count,))
        for name, values in self.activity.items():
            _require(_NAME.match(name), f"activity column {name!r}: names are lower-case words")
            _require(values.dtype in (np.int64, np.float64, np.bool_), f"{name} has type {values.dtype}")
            _require_array(name, values, values.dtype, (count,))
        _require(
            count == 0 or (self.slot[0] >= 0 and bool((np.diff(self.slot) > 0).all())),
            "slots of cuts do not ascend",
        )
        _require(not np.isnan(self.intercept).any(), "an intercept of a cut is NaN")
        _require(not np.isnan(self.slopes).any(), "a slope of a cut is NaN")

    def __len__(self) -> int:
        return len(self.slot)


@dataclass(frozen=True, eq=False)
class PolicyData:
    """A trained policy: cuts of every node, and what they are cuts of.

    Attributes
    ----------
    components, nodes, transitions
        State and policy graph; nodes ordered by stage, then by id.
    cuts
        One for each node.
    is_chain
        Whether there is one node for each stage and ids of nodes are positions.
    forward_passes
        Of one iteration.
    seed
        uint64: seed of the opening tree.
    completed_iterations
        Iterations that the cuts stand for.
    lower_bounds, upper_bounds
        float64[completed_iterations], $; bounds of each iteration.
    lower_bound_kind
        ``estimate`` where cuts may lie above the future cost.
    fingerprint
        Of the study, see :mod:`cobre.policy.fingerprint`.
    cost_scale_factor
        $ per unit of objective in the LPs; cuts do not depend on it.
    started_from
        Digest of the policy whose cuts training began with; ``None`` = it began without any.
    """

    components: tuple[StateEntry, ...]
    nodes: tuple[NodeEntry, ...]
    transitions: tuple[TransitionEntry, ...]
    cuts: tuple[NodeCuts, ...]
    is_chain: bool
    forward_passes: int
    seed: int
    completed_iterations: int
    lower_bounds: NDArray[np.float64]
    upper_bounds: NDArray[np.float64]
    fingerprint: Fingerprint
    cost_scale_factor: float = 1.0
    started_from: str | None = None
    lower_bound_kind: LowerBoundKind = "bound"

    def __post_init__(self) -> None:
        _require(
            self.lower_bound_kind in get_args(LowerBoundKind),
            f"lower_bound_kind is {self.lower_bound_kind!r}",
        )
        _require(self.nodes, "a policy without nodes")
        _require(len(self.cuts) == len(self.nodes), f"cuts of {len(self.cuts)} of {len(self.nodes)} nodes")
        _require_unique("node", [node.id for node in self.nodes])
        _require_unique("state component", [component.key for component in self.components])
        _require(1 <= self.forward_passes <= 2**32, f"forward_passes is {self.forward_passes}")
        _require(0 <= self.seed < 2**64, f"seed {self.seed} does not fit into 64 bits")
        _require(0 <= self.completed_iterations <= 2**32, f"iterations: {self.completed_iterations}")
        _require(
            0.0 < self.cost_scale_factor < float("inf"), f"cost_scale_factor is {self.cost_scale_factor!r}"
        )
        known = {node.id for node in self.nodes}
        for edge in self.transitions:
            _require({edge.source_id, edge.target_id} <= known, f"{edge} is between unknown nodes")
        for name in ("lower_bounds", "upper_bounds"):
            _require_array(name, getattr(self, name), np.float64, (self.completed_iterations,))
        names = list(self.cuts[0].activity)
        for node, cuts in zip(self.nodes, self.cuts, strict=True):
            self._check_cuts(node, cuts, names)

    def _check_cuts(self, node: NodeEntry, cuts: NodeCuts, names: Sequence[str]) -> None:
        where = f"node {node.id}"
        states = len(self.components)
        _require(
            cuts.slopes.shape[1] == states, f"{where}: slopes of {cuts.slopes.shape[1]} of {states} states"
        )
        _require(list(cuts.activity) == names, f"{where} has other activity columns than the first node")
        _require(
            node.loaded_cuts <= len(cuts), f"{where}: {node.loaded_cuts} of {len(cuts)} cuts were loaded"
        )
        _require(not cuts.iteration[: node.loaded_cuts].any(), f"{where}: a loaded cut has an iteration")
        made, passes = cuts.iteration[node.loaded_cuts :], cuts.forward_pass
        last = self.completed_iterations
        _require(
            bool(((made >= 1) & (made <= last)).all()),
            f"{where}: a cut is of an iteration outside 1 to {last}",
        )
        _require(
            bool(((passes >= 0) & (passes < self.forward_passes)).all()),
            f"{where}: a cut is of a forward pass outside 0 to {self.forward_passes - 1}",
        )

    def sha256(self) -> str:
        """Return the digest of the cuts; the same as that of the trained policy they come from."""
        return policy_digest(
            stage_ids=[node.stage_id for node in self.nodes],
            node_ids=None if self.is_chain else [node.id for node in self.nodes],
            states=len(self.components),
            forward_passes=self.forward_passes,
            intercepts=[cuts.intercept for cuts in self.cuts],
            slopes=[cuts.slopes for cuts in self.cuts],
            active=[cuts.active for cuts in self.cuts],
        )


@dataclass(frozen=True, eq=False)
class VisitedStates:
    """Outgoing states of forward passes.

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
            _require_array(name, values, np.int64, (count,))
            _require(count == 0 or values.min() >= least, f"{name} of a visited state is below {least}")
        _require_array("visited states", self.values, np.float64, (count, self.values.shape[-1]))


@dataclass(frozen=True, eq=False)
class CheckpointData:
    """All that training needs to go on as if it had never stopped.

    Attributes
    ----------
    policy
        The cuts so far.
    history
        One column for each field of the iterations' records, one row for each iteration; see
        :func:`cobre.policy.history.history_columns`.
    bases
        Starting bases; without them training goes on validly, but degenerate LPs may end in other vertices.
    states
        Visited states, where they are kept.
    extra_arrays
        Named arrays of other parts of training; types in :data:`ARRAY_DTYPES`.
    checkpointing
        Options of checkpoints that were given in place of the case's, so that a resumed run goes on with
        them: fields of :class:`cobre.case.model.CheckpointOptions`, and ``keep_last``.
    """

    policy: PolicyData
    history: Mapping[str, HistoryColumn] = field(default_factory=dict)
    bases: StartingBases | None = None
    states: VisitedStates | None = None
    extra_arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    checkpointing: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.policy.completed_iterations
        for name, column in self.history.items():
            _require(_NAME.match(name), f"history column {name!r}: names are lower-case words")
            _require(
                len(column) == rows, f"history column {name} has {len(column)} rows for {rows} iterations"
            )
            column_type(column)
        for name, array in self.extra_arrays.items():
            _require(_NAME.match(name), f"array {name!r}: names are lower-case words")
            _require(array.dtype in ARRAY_DTYPES, f"array {name} has type {array.dtype}")
        if self.bases is not None:
            self.bases.check(self.policy.forward_passes, len(self.policy.nodes))
        if self.states is not None:
            self._check_states(self.states)

    def _check_states(self, states: VisitedStates) -> None:
        width, known = states.values.shape[1], len(self.policy.components)
        _require(width == known, f"visited states have {width} of {known} components")
        if not len(states.iteration):
            return
        stages = len({node.stage_id for node in self.policy.nodes})
        _require(
            states.iteration.max() <= self.policy.completed_iterations, "a state is of a later iteration"
        )
        _require(states.stage.max() < stages, "a visited state is of a stage that the policy does not have")
        _require(states.forward_pass.max() < self.policy.forward_passes, "a state is of an unknown pass")


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _require_array(name: str, array: NDArray[np.generic], dtype: object, shape: tuple[int, ...]) -> None:
    _require(
        array.dtype == dtype and array.shape == shape,
        f"{name} is {array.dtype}{list(array.shape)}; expected {np.dtype(dtype)}{list(shape)}",  # type: ignore[call-overload]
    )


def _require_unique(what: str, keys: Sequence[object]) -> None:
    twice = (
        next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if len(set(keys)) != len(keys)
        else None
    )
    _require(twice is None, f"{what} {twice} is there twice")
