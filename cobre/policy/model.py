"""The one model of a policy, and of a checkpoint around it: what training makes, files hold and studies load.

Objects check themselves when they are made, so what is written and what was read obey the same rules.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cobre.display import html_table
from cobre.policy.bases import FirstBases, StartingBases
from cobre.policy.checks import require, require_array, require_unique
from cobre.policy.digest import policy_digest
from cobre.policy.evaluate import future_cost, water_values
from cobre.policy.fingerprint import Fingerprint
from cobre.policy.history import HistoryColumn, column_type
from cobre.policy.matching import Interval, described
from cobre.policy.visited import VisitedRows

if TYPE_CHECKING:
    from cobre.case.model import Case

LowerBoundKind = Literal["bound", "estimate"]
LpEngine = Literal["auto", "highs", "own"]
"""What training can be asked to solve LPs with; ``auto`` chooses by the sizes of an LP."""

State = Sequence[float] | NDArray[np.float64] | Mapping[str, float] | Mapping[int, float]
"""A state: a number for each component, or some of them by plant."""

Column = NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]

_AT_START: Final[Mapping[str, float]] = MappingProxyType({})
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
_LARGEST: Final = 2**63 - 1
ARRAY_DTYPES: Final = frozenset(
    np.dtype(name) for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)
"""Types that ``extra_arrays`` may have."""


@dataclass(frozen=True)
class LpEngines:
    """Which engines solved the stage LPs of training.

    Attributes
    ----------
    asked
        What training was asked to use.
    used
        What the LPs were given to; HiGHS as a fall-back for single LPs does not count.
    """

    asked: LpEngine
    used: Literal["own", "highs", "both"]

    def __post_init__(self) -> None:
        require(self.asked in get_args(LpEngine), f"the LP engine asked for is {self.asked!r}")
        require(self.used in ("own", "highs", "both"), f"the LP engine used is {self.used!r}")

    def going_on_from(self, earlier: LpEngines | None) -> LpEngines:
        """Return what holds for a run that resumes another; older checkpoints, of HiGHS, have no record."""
        before = "highs" if earlier is None else earlier.used
        return self if before == self.used else LpEngines(self.asked, "both")


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

    >>> StateEntry("storage", 3, 0, "Itaipu").key
    ('storage', 3, 0)
    """

    kind: str
    entity_id: int
    offset: int
    name: str

    def __post_init__(self) -> None:
        require(_NAME.match(self.kind), f"a state component has the impossible kind {self.kind!r}")
        require(0 <= self.offset <= _LARGEST, f"{self.name}: offset {self.offset} is negative or too large")

    @property
    def key(self) -> tuple[str, int, int]:
        """What identifies the component."""
        return self.kind, self.entity_id, self.offset

    def __str__(self) -> str:
        return described(*self.key)


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
        How many cuts came from another policy (boundary, warm start); they come first.
    """

    id: int
    stage_id: int
    start_date: datetime.date
    end_date: datetime.date
    future_cost_floor: float
    loaded_cuts: int = 0

    def __post_init__(self) -> None:
        require(self.start_date < self.end_date, f"node {self.id} ends on {self.end_date}, before it starts")
        require(
            self.future_cost_floor == self.future_cost_floor, f"node {self.id}: its cost floor is no number"
        )
        require(self.loaded_cuts >= 0, f"node {self.id}: loaded_cuts is {self.loaded_cuts}")


@dataclass(frozen=True)
class TransitionEntry:
    """An edge of the policy graph, between ids of nodes."""

    source_id: int
    target_id: int
    probability: float

    def __post_init__(self) -> None:
        require(0.0 <= self.probability <= 1.0, f"a transition has the probability {self.probability!r}")


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
        require_array("slopes", self.slopes, np.float64, (count, self.slopes.shape[-1]))
        for name in ("slot", "iteration", "forward_pass"):
            require_array(name, getattr(self, name), np.int64, (count,))
        require_array("intercept", self.intercept, np.float64, (count,))
        require_array("active", self.active, np.bool_, (count,))
        for name, values in self.activity.items():
            require(_NAME.match(name), f"activity column {name!r}: names are lower-case identifiers")
            require(values.dtype in (np.int64, np.float64, np.bool_), f"{name} has type {values.dtype}")
            require_array(name, values, values.dtype, (count,))
        require(
            count == 0 or (self.slot[0] >= 0 and bool((np.diff(self.slot) > 0).all())),
            "slots of cuts do not ascend",
        )
        require(not np.isnan(self.intercept).any(), "an intercept of a cut is NaN")
        require(not np.isnan(self.slopes).any(), "a slope of a cut is NaN")

    def __len__(self) -> int:
        return len(self.slot)

    def __repr__(self) -> str:
        return f"NodeCuts({len(self)} cuts, {int(self.active.sum())} active, {self.slopes.shape[1]} states)"


@dataclass(frozen=True, eq=False)
class Policy:
    """A trained policy: cuts of every node, and what they are cuts of; on a chain the nodes are the stages.

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
        Iterations that made the cuts.
    lower_bounds, upper_bounds
        float64[completed_iterations], $; of each iteration the lower bound, and the mean cost of its forward
        passes (as in ``convergence.parquet``: a bound only of enumerated passes without risk measures).
    lower_bound_kind
        ``estimate`` where cuts may lie above the future cost.
    fingerprint
        Of the study, see :mod:`cobre.policy.fingerprint`; without topics where the study is not known.
    cost_scale_factor
        $ per unit of objective in the LPs; cuts do not depend on it.
    started_from
        Digest of the policy whose cuts training began with; ``None`` = it began without any.
    lp_engine
        What solved the LPs; ``None`` = unknown.
    first_bases
        What simulations start from; ``None`` = they start from nothing.
    study
        The case, where it is known: fills in what a state leaves out. Files do not hold it.
    found_in
        The directory it was read from: its case may be around it.
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
    fingerprint: Fingerprint = field(default_factory=lambda: Fingerprint({}))
    cost_scale_factor: float = 1.0
    started_from: str | None = None
    lower_bound_kind: LowerBoundKind = "bound"
    lp_engine: LpEngines | None = None
    first_bases: FirstBases | None = field(default=None, repr=False)
    study: Case | None = field(default=None, repr=False)
    found_in: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require(
            self.lower_bound_kind in get_args(LowerBoundKind),
            f"lower_bound_kind is {self.lower_bound_kind!r}",
        )
        require(self.nodes, "a policy without nodes")
        require(len(self.cuts) == len(self.nodes), f"cuts of {len(self.cuts)} of {len(self.nodes)} nodes")
        require_unique("node", [node.id for node in self.nodes])
        require_unique("state component", [component.key for component in self.components])
        require(1 <= self.forward_passes <= 2**32, f"forward_passes is {self.forward_passes}")
        require(0 <= self.seed < 2**64, f"seed {self.seed} does not fit into 64 bits")
        require(0 <= self.completed_iterations <= 2**32, f"iterations: {self.completed_iterations}")
        require(
            0.0 < self.cost_scale_factor < float("inf"), f"cost_scale_factor is {self.cost_scale_factor!r}"
        )
        known = {node.id for node in self.nodes}
        for edge in self.transitions:
            require({edge.source_id, edge.target_id} <= known, f"{edge} is between unknown nodes")
        for name in ("lower_bounds", "upper_bounds"):
            require_array(name, getattr(self, name), np.float64, (self.completed_iterations,))
        names = list(self.cuts[0].activity)
        for node, cuts in zip(self.nodes, self.cuts, strict=True):
            self._check_cuts(node, cuts, names)

    def _check_cuts(self, node: NodeEntry, cuts: NodeCuts, names: Sequence[str]) -> None:
        where = f"node {node.id}"
        states = len(self.components)
        require(
            cuts.slopes.shape[1] == states, f"{where}: slopes of {cuts.slopes.shape[1]} of {states} states"
        )
        require(list(cuts.activity) == names, f"{where} has other activity columns than the first node")
        require(node.loaded_cuts <= len(cuts), f"{where}: {node.loaded_cuts} of {len(cuts)} cuts were loaded")
        require(not cuts.iteration[: node.loaded_cuts].any(), f"{where}: a loaded cut has an iteration")
        made, passes = cuts.iteration[node.loaded_cuts :], cuts.forward_pass
        last = self.completed_iterations
        require(
            bool(((made >= 1) & (made <= last)).all()),
            f"{where}: a cut is of an iteration outside 1 to {last}",
        )
        require(
            bool(((passes >= 0) & (passes < self.forward_passes)).all()),
            f"{where}: a cut is of a forward pass outside 0 to {self.forward_passes - 1}",
        )

    @property
    def stage_ids(self) -> tuple[int, ...]:
        """Declared id of each node's stage."""
        return tuple(node.stage_id for node in self.nodes)

    @property
    def node_ids(self) -> tuple[int, ...] | None:
        """Declared ids of the nodes; ``None`` on a chain."""
        return None if self.is_chain else tuple(node.id for node in self.nodes)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Name of each state component; storages are in hm3."""
        return tuple(component.name for component in self.components)

    @property
    def intercepts(self) -> tuple[NDArray[np.float64], ...]:
        """Of each node float64[cuts], $."""
        return tuple(cuts.intercept for cuts in self.cuts)

    @property
    def slopes(self) -> tuple[NDArray[np.float64], ...]:
        """Of each node float64[cuts, states], $ per unit of each component."""
        return tuple(cuts.slopes for cuts in self.cuts)

    @property
    def iterations(self) -> tuple[NDArray[np.int64], ...]:
        """Of each node int64[cuts]: the iteration that made each cut, from 1; 0 is another policy."""
        return tuple(cuts.iteration for cuts in self.cuts)

    @property
    def passes(self) -> tuple[NDArray[np.int64], ...]:
        """Of each node int64[cuts]: the forward pass that made each cut, from 0."""
        return tuple(cuts.forward_pass for cuts in self.cuts)

    @property
    def active(self) -> tuple[NDArray[np.bool_], ...]:
        """Of each node bool[cuts]: whether cut selection left it in the LPs; other cuts are valid, too."""
        return tuple(cuts.active for cuts in self.cuts)

    @property
    def future_cost_floor(self) -> tuple[float, ...]:
        """Of each node the bound on the future cost that holds without any cut, $."""
        return tuple(node.future_cost_floor for node in self.nodes)

    @property
    def boundary_cuts(self) -> int:
        """How many cuts at each node of the last stage came from another policy; they come first."""
        return self.nodes[-1].loaded_cuts

    def evaluate(self, stage: int, state: State = _AT_START) -> float:
        """Return the future cost ($) that the cuts of a stage give at the state it leaves behind.

        It is the cost of all later stages in money of the beginning of the next one: the stage's discount
        factor times it is in money of the stage. All cuts count, also those that cut selection has dropped.

        Parameters
        ----------
        stage
            Position of the stage, from 0, not its declared id; with a policy graph position of the node.
        state
            A number for each component, in the order of ``state_names``; or a mapping from plants (name or
            id) to storages in hm3, and from names of ``state_names`` to values of other components. What it
            leaves out is as at the start of the study, if the policy knows that (one that was just trained,
            or was loaded with ``case=`` or from the output directory inside its case).

        Raises
        ------
        ValidationError
            When the policy has no such stage or component, or components are left out and the study is not
            known.

        Examples
        --------
        Two cuts, 900 $ - 3 $/hm3 and 500 $ - 1 $/hm3, of one reservoir:

        >>> first = NodeEntry(0, 0, datetime.date(2025, 1, 1), datetime.date(2025, 2, 1), 0.0)
        >>> cuts = NodeCuts(
        ...     slot=np.array([0, 1]), iteration=np.array([1, 1]), forward_pass=np.array([0, 1]),
        ...     intercept=np.array([900.0, 500.0]), slopes=np.array([[-3.0], [-1.0]]),
        ...     active=np.ones(2, bool),
        ... )
        >>> policy = Policy(
        ...     components=(StateEntry("storage", 0, 0, "Lake"),), nodes=(first,), transitions=(),
        ...     cuts=(cuts,), is_chain=True, forward_passes=2, seed=42, completed_iterations=1,
        ...     lower_bounds=np.array([600.0]), upper_bounds=np.array([650.0]),
        ... )
        >>> [policy.evaluate(0, [storage]) for storage in (100.0, 300.0, 800.0)]
        [600.0, 200.0, 0.0]
        >>> policy.evaluate(0, {"Lake": 300.0}), policy.water_value(0, {"Lake": 300.0})
        (200.0, {'Lake': 1.0})
        """
        return future_cost(self, stage, state)

    def water_value(self, stage: int, state: State = _AT_START) -> dict[str, float]:
        """Return what another hm3 in each reservoir at the end of a stage saves later, $/hm3, by plant.

        Positive where water is worth money: minus the slope of the highest cut (the first of several), 0
        where the future cost is at its floor. Column ``water_value_per_hm3`` of simulated ``hydros`` has
        the opposite sign and another place: the dual of the stage's own water balance, so of water at its
        beginning.

        Parameters
        ----------
        stage, state
            As of :meth:`evaluate`; money is that of the beginning of the next stage.

        Raises
        ------
        ValidationError
            As of :meth:`evaluate`.
        """
        return water_values(self, stage, state)

    def plot(
        self,
        plant: str | int | None = None,
        stage: int = 0,
        state: State | None = None,
        *,
        storage: tuple[float, float] | None = None,
        points: int = 101,
    ) -> Any:
        """Return a plotly figure: future cost and water value against the storage of a plant.

        Parameters
        ----------
        plant
            Name or id; by default the first with a reservoir.
        stage, state
            As of :meth:`evaluate`; the storage of the plant itself varies.
        storage
            Least and largest storage, hm3; by default the plant's limits where the study is known, else
            from 0 to twice that of ``state``.
        points
            Storages that are evaluated.

        Raises
        ------
        CobreError
            Kind ``ReportExtraMissing`` when plotly is not installed (extra ``report``).
        """
        from cobre.policy.plots import future_cost_figure

        return future_cost_figure(self, plant, stage, state, storage, points)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the policy as a directory, complete or not at all; return its path.

        A policy directory that is there is replaced, anything else is not. Where the study is known, its
        fingerprint is written too, without which a later warm start can prove no bound.

        Raises
        ------
        OutputError
            When it cannot be written, or the place holds something else.
        """
        from cobre.policy.fingerprint import with_fingerprint
        from cobre.policy.store.directory import write_policy_directory

        path = Path(directory)
        write_policy_directory(path, self if self.study is None else with_fingerprint(self, self.study))
        return path

    def valuation(self, node: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intercepts ($) and slopes of a node's active cuts, the floor of its future cost behind them.

        Where no cut is active there is no floor either: nothing is known of the states that it values.
        """
        cuts, floor = self.cuts[node], self.nodes[node].future_cost_floor
        intercepts, slopes = cuts.intercept[cuts.active], cuts.slopes[cuts.active]
        if len(intercepts) and np.isfinite(floor):
            intercepts = np.append(intercepts, floor)
            slopes = np.vstack([slopes, np.zeros((1, slopes.shape[1]))])
        return intercepts, slopes

    def __repr__(self) -> str:
        cuts = sum(len(part) for part in self.cuts)
        return f"Policy({len(self.nodes)} nodes, {len(self.components)} state components, {cuts} cuts)"

    def _repr_html_(self) -> str:
        bound = (
            f"{self.lower_bounds[-1]:,.6g} $ ({self.lower_bound_kind})"
            if self.completed_iterations
            else "none"
        )
        first, last = self.nodes[0], self.nodes[-1]
        rows = {
            "stages"
            if self.is_chain
            else "nodes": f"{len(self.nodes)}, {first.start_date} to {last.end_date}",
            "state": f"{len(self.components)} components",
            "cuts": f"{sum(len(part) for part in self.cuts):,}, "
            f"{sum(int(c.active.sum()) for c in self.cuts):,} active",
            "iterations": f"{self.completed_iterations}, forward passes in each: {self.forward_passes}",
            "lower bound": bound,
            "sha256": self.sha256(),
        }
        return html_table("Policy", rows)

    def stage_days(self) -> list[Interval]:
        """Return first day, and day after the last, of each stage, in their order."""
        return sorted({(node.start_date, node.end_date) for node in self.nodes})

    def sha256(self) -> str:
        """Return a digest over every bit of every cut, and over which of them are active."""
        return policy_digest(
            stage_ids=self.stage_ids,
            node_ids=self.node_ids,
            states=len(self.components),
            forward_passes=self.forward_passes,
            intercepts=self.intercepts,
            slopes=self.slopes,
            active=self.active,
        )


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

    policy: Policy
    history: Mapping[str, HistoryColumn] = field(default_factory=dict)
    bases: StartingBases | None = None
    states: VisitedRows | None = None
    extra_arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    checkpointing: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.policy.completed_iterations
        for name, column in self.history.items():
            require(_NAME.match(name), f"history column {name!r}: names are lower-case identifiers")
            require(
                len(column) == rows, f"history column {name} has {len(column)} rows for {rows} iterations"
            )
            column_type(column)
        for name, array in self.extra_arrays.items():
            require(_NAME.match(name), f"array {name!r}: names are lower-case identifiers")
            require(array.dtype in ARRAY_DTYPES, f"array {name} has type {array.dtype}")
        if self.bases is not None:
            self.bases.check(self.policy.forward_passes, len(self.policy.nodes))
        if self.states is not None:
            self._check_states(self.states)

    def _check_states(self, states: VisitedRows) -> None:
        width, known = states.values.shape[1], len(self.policy.components)
        require(width == known, f"visited states have {width} of {known} components")
        if not len(states.iteration):
            return
        stages = len({node.stage_id for node in self.policy.nodes})
        require(states.iteration.max() <= self.policy.completed_iterations, "a state is of a later iteration")
        require(states.stage.max() < stages, "a visited state is of a stage that the policy does not have")
        require(states.forward_pass.max() < self.policy.forward_passes, "a state is of an unknown pass")

    def __repr__(self) -> str:
        return f"CheckpointData({self.policy!r}, {self.policy.completed_iterations} iterations)"
