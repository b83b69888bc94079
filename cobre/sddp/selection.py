"""Which cuts stay in the LPs.

A selection goes through the stages from the second to the last but one; the cuts of the first stage, which
the lower bound rests on, and those of the present iteration always stay. It compares cuts at the states that
forward passes visited so far:

- ``level1`` and ``domination`` keep a cut that comes within the tolerance of the highest one somewhere;
- ``lml1`` keeps for each visited state the oldest cut that does.

So the highest cut at any visited state is the same before and after. A cap on the number of cuts drops those
that were active longest ago, then least often, then the oldest; a cut is active where it comes within the
activity tolerance of the highest one at a trial point of the iteration. ``dynamic`` drops nothing: cuts older
than a window enter an LP only where its solution violates them (:func:`cobre.lp.engine.solve_with_cuts`).

Everything is computed from what all ranks have gathered, in the same way on each of them; threads take a
stage each. What is kept between selections (``best``, ``holder``, ``witness``) saves work only: it is a
function of the pool and the visited states.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from cobre.case.model import CutSelection
from cobre.lp.arrays import B8_2D, F64_2D, F64_3D, I32_2D, I64_1D, I64_2D, CutPool
from cobre.native import array_struct, inner_kernel, monotonic_ns
from cobre.sddp.buffers import IterationBuffers
from cobre.sddp.graph import GraphArrays
from cobre.sddp.threads import kernel_lock

# Columns of SelectionArrays.report.
POPULATED = 0
ACTIVE_BEFORE = 1
DEACTIVATED = 2
EVICTED = 3
ELAPSED_NS = 4
_REPORT_FIELDS = 5

_BY_STATE = ("level1", "lml1", "domination")
_NS_PER_MS = 1.0e6


class SelectionArrays(NamedTuple):
    """What selection works on; T stages, N nodes, C slots, M passes, n states, S visited states of a stage.

    Attributes
    ----------
    intercept, slope, num_cuts, iteration, active, version
        Of the cut pool.
    stage_start, state_all, node_all, leader_all
        Of graph and buffers: nodes of each stage, trial points of the iteration.
    visited, visited_node, num_visited
        float64[T, S, n], int64[T, S], int64[T]: trial points of all iterations; S = 0 unless needed.
    best, holder
        float64[T, S], int64[T, S]: highest active cut at a visited state, and the oldest that comes close.
    known_states, known_cuts
        int64[T], int64[N]: how many visited states and slots ``best`` takes account of.
    witness
        int64[N, C]: a visited state that kept the cut last time, or -1.
    keep
        bool[N, C]: scratch.
    last_active, times_active
        int64[N, C]: when a cut was active last, and at how many trial points; C = 0 without a cap.
    value
        float64[T, C]: scratch.
    report
        int64[T, fields]: what was done, for Python.
    """

    intercept: F64_2D
    slope: F64_3D
    num_cuts: I64_1D
    iteration: I32_2D
    active: B8_2D
    version: I64_1D
    stage_start: I64_1D
    state_all: F64_3D
    node_all: I64_2D
    leader_all: I64_2D
    visited: F64_3D
    visited_node: I64_2D
    num_visited: I64_1D
    best: F64_2D
    holder: I64_2D
    known_states: I64_1D
    known_cuts: I64_1D
    witness: I64_2D
    keep: B8_2D
    last_active: I64_2D
    times_active: I64_2D
    value: F64_2D
    report: I64_2D


_SelectionStruct = array_struct(SelectionArrays)


@dataclass(frozen=True)
class SelectionRecord:
    """What a selection did to the cuts of one stage.

    Attributes
    ----------
    cuts_populated
        Cuts ever made.
    cuts_deactivated
        By the method; those beyond the cap are ``budget_evicted``, ``None`` without a cap.
    """

    iteration: int
    stage: int
    cuts_populated: int
    cuts_active_before: int
    cuts_deactivated: int
    budget_evicted: int | None
    selection_time_ms: float

    @property
    def cuts_active_after(self) -> int:
        """Active cuts after the method, before the cap."""
        return self.cuts_active_before - self.cuts_deactivated

    @property
    def active_after_budget(self) -> int | None:
        """Active cuts after the cap, ``None`` without one."""
        return None if self.budget_evicted is None else self.cuts_active_after - self.budget_evicted


class CutSelector:
    """Chooses the active cuts of a pool between iterations.

    Parameters
    ----------
    options
        What the study asks for.
    graph, pool, buffers
        Of this training run; the pool is changed in place.
    iterations
        Most iterations of the run.
    """

    def __init__(
        self,
        options: CutSelection,
        graph: GraphArrays,
        pool: CutPool,
        buffers: IterationBuffers,
        iterations: int,
    ) -> None:
        self.options = options
        self.pool = pool
        self.drops_cuts = options.method in _BY_STATE or options.max_active_per_stage is not None
        self.stages = len(graph.stage_start) - 1
        nodes, capacity, states = pool.slope.shape
        passes = len(buffers.cost_all)
        by_state = options.method in _BY_STATE
        visited = iterations * passes if by_state else 0
        slots = capacity if by_state else 0
        counted = capacity if options.max_active_per_stage is not None else 0
        self.arrays = SelectionArrays(
            intercept=pool.intercept,
            slope=pool.slope,
            num_cuts=pool.num_cuts,
            iteration=pool.iteration,
            active=pool.active,
            version=pool.version,
            stage_start=graph.stage_start,
            state_all=buffers.state_all,
            node_all=buffers.node_all,
            leader_all=buffers.leader_all,
            visited=np.zeros((self.stages, visited, states)),
            visited_node=np.zeros((self.stages, visited), np.int64),
            num_visited=np.zeros(self.stages, np.int64),
            best=np.zeros((self.stages, visited)),
            holder=np.zeros((self.stages, visited), np.int64),
            known_states=np.zeros(self.stages, np.int64),
            known_cuts=np.zeros(nodes, np.int64),
            witness=np.full((nodes, slots), -1, np.int64),
            keep=np.zeros((nodes, slots), np.bool_),
            last_active=np.zeros((nodes, counted), np.int64),
            times_active=np.zeros((nodes, counted), np.int64),
            value=np.zeros((self.stages, counted)),
            report=np.zeros((self.stages, _REPORT_FIELDS), np.int64),
        )

    def compile(self) -> None:
        """Compile what :meth:`select` runs, or load it from the cache."""
        if self.drops_cuts:
            select_cuts.compile(tuple(numba.typeof(argument) for argument in self._arguments(1)))

    def prepare(self, iteration: int) -> None:
        """Choose the cuts that LPs start with in ``iteration`` (from 1)."""
        options, pool = self.options, self.pool
        if options.method != "dynamic" or iteration < options.start_iteration:
            return
        recency = options.candidate_recency
        for node, count in enumerate(pool.num_cuts):
            made_in = pool.iteration[node, :count]
            first = int(np.searchsorted(made_in, iteration - options.seed_window))
            candidate = 0 if recency is None else int(np.searchsorted(made_in, iteration - recency))
            if (first, candidate) != (pool.first_loaded[node], pool.first_candidate[node]):
                pool.first_loaded[node] = first
                pool.first_candidate[node] = candidate
                pool.version[node] += 1

    def select(self, iteration: int) -> tuple[SelectionRecord, ...]:
        """Choose the active cuts after ``iteration`` (from 1); empty where nothing was to be chosen."""
        if not self.drops_cuts:
            return ()
        with kernel_lock:
            select_cuts(*self._arguments(iteration))
        capped = self.options.max_active_per_stage is not None
        if not capped and not self._is_due(iteration):
            return ()
        return tuple(
            SelectionRecord(
                iteration=iteration,
                stage=stage,
                cuts_populated=int(row[POPULATED]),
                cuts_active_before=int(row[ACTIVE_BEFORE]),
                cuts_deactivated=int(row[DEACTIVATED]),
                budget_evicted=int(row[EVICTED]) if capped else None,
                selection_time_ms=float(row[ELAPSED_NS]) / _NS_PER_MS,
            )
            for stage, row in enumerate(self.arrays.report)
            if 0 < stage < self.stages - 1
        )

    def memory(self) -> dict[str, NDArray[Any]]:
        """Return what later selections depend on besides the pool, for a checkpoint; empty where nothing."""
        if not self.drops_cuts:
            return {}
        arrays, seen = self.arrays, int(self.arrays.num_visited.max(initial=0))
        used = int(self.pool.num_cuts.max(initial=0))
        return {
            "selection_visited": arrays.visited[:, :seen].copy(),
            "selection_visited_node": arrays.visited_node[:, :seen].copy(),
            "selection_num_visited": arrays.num_visited.copy(),
            "selection_last_active": arrays.last_active[:, :used].copy(),
            "selection_times_active": arrays.times_active[:, :used].copy(),
        }

    def remember(self, memory: Mapping[str, NDArray[Any]]) -> None:
        """Take over what :meth:`memory` gave, from a run of the same study.

        Raises
        ------
        ValueError
            When an array has a shape that the study does not give it.
        """
        if not self.drops_cuts:
            return
        arrays = self.arrays
        for name, target in (
            ("selection_visited", arrays.visited),
            ("selection_visited_node", arrays.visited_node),
            ("selection_last_active", arrays.last_active),
            ("selection_times_active", arrays.times_active),
        ):
            target[:, : memory[name].shape[1]] = memory[name]
        arrays.num_visited[:] = memory["selection_num_visited"]

    def _is_due(self, iteration: int) -> bool:
        return self.options.method in _BY_STATE and iteration % self.options.check_frequency == 0

    def _arguments(self, iteration: int) -> tuple[Any, ...]:
        options = self.options
        cap = options.max_active_per_stage
        return (
            self.arrays,
            iteration,
            self._is_due(iteration),
            options.method == "lml1",
            options.tolerance,
            -1 if cap is None else cap,
            options.activity_tolerance,
        )


@inner_kernel
def _height(intercept, slope, state):
    """Value of a cut at a state."""
    total = intercept
    for component in range(len(state)):
        total += slope[component] * state[component]
    return total


@inner_kernel
def _record_states(cuts, stage):
    """Remember the trial points of this iteration, each once."""
    if cuts.visited.shape[1] == 0:
        return
    for forward_pass in range(cuts.state_all.shape[1]):
        if cuts.leader_all[stage, forward_pass] != forward_pass:
            continue
        place = cuts.num_visited[stage]
        cuts.visited_node[stage, place] = cuts.node_all[stage, forward_pass]
        for component in range(cuts.visited.shape[2]):
            cuts.visited[stage, place, component] = cuts.state_all[stage, forward_pass, component]
        cuts.num_visited[stage] = place + 1


@inner_kernel
def _count_activity(cuts, stage, iteration, tolerance):
    """Note which cuts are the highest, or nearly so, at the trial points of this iteration."""
    for forward_pass in range(cuts.state_all.shape[1]):
        if cuts.leader_all[stage, forward_pass] != forward_pass:
            continue
        node = cuts.node_all[stage, forward_pass]
        state = cuts.state_all[stage, forward_pass]
        best = -np.inf
        for slot in range(cuts.num_cuts[node]):
            if cuts.active[node, slot]:
                height = _height(cuts.intercept[node, slot], cuts.slope[node, slot], state)
                cuts.value[stage, slot] = height
                best = max(best, height)
        for slot in range(cuts.num_cuts[node]):
            if cuts.active[node, slot] and cuts.value[stage, slot] >= best - tolerance:
                cuts.last_active[node, slot] = iteration
                cuts.times_active[node, slot] += 1


@inner_kernel
def _update_best(cuts, stage):
    """Take account of the states and cuts that are new since the last time."""
    for place in range(cuts.num_visited[stage]):
        node = cuts.visited_node[stage, place]
        first = cuts.known_cuts[node]
        if place >= cuts.known_states[stage]:
            first = 0
            cuts.best[stage, place] = -np.inf
            cuts.holder[stage, place] = -1
        for slot in range(first, cuts.num_cuts[node]):
            if cuts.active[node, slot]:
                height = _height(
                    cuts.intercept[node, slot], cuts.slope[node, slot], cuts.visited[stage, place]
                )
                cuts.best[stage, place] = max(cuts.best[stage, place], height)
    cuts.known_states[stage] = cuts.num_visited[stage]
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        cuts.known_cuts[node] = cuts.num_cuts[node]


@inner_kernel
def _comes_close(cuts, stage, place, slot, tolerance):
    node = cuts.visited_node[stage, place]
    height = _height(cuts.intercept[node, slot], cuts.slope[node, slot], cuts.visited[stage, place])
    return height >= cuts.best[stage, place] - tolerance


@inner_kernel
def _keep_oldest(cuts, stage, tolerance):
    """Mark the oldest cut that comes close at each visited state.

    As the best rises, fewer of the old cuts come close: the search goes on where it ended last time.
    """
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        for slot in range(cuts.num_cuts[node]):
            cuts.keep[node, slot] = False
    for place in range(cuts.num_visited[stage]):
        node = cuts.visited_node[stage, place]
        slot = max(cuts.holder[stage, place], 0)
        while slot < cuts.num_cuts[node] and not (
            cuts.active[node, slot] and _comes_close(cuts, stage, place, slot, tolerance)
        ):
            slot += 1
        if slot < cuts.num_cuts[node]:
            cuts.holder[stage, place] = slot
            cuts.keep[node, slot] = True


@inner_kernel
def _keep_close(cuts, stage, tolerance):
    """Mark every active cut that comes close at some visited state."""
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        for slot in range(cuts.num_cuts[node]):
            cuts.keep[node, slot] = False
            if not cuts.active[node, slot]:
                continue
            place = cuts.witness[node, slot]
            if place >= 0 and _comes_close(cuts, stage, place, slot, tolerance):
                cuts.keep[node, slot] = True
                continue
            cuts.witness[node, slot] = -1
            for place in range(cuts.num_visited[stage]):
                if cuts.visited_node[stage, place] == node and _comes_close(
                    cuts, stage, place, slot, tolerance
                ):
                    cuts.keep[node, slot] = True
                    cuts.witness[node, slot] = place
                    break


@inner_kernel
def _deactivate(cuts, stage, iteration):
    """Drop what is not marked and not of this iteration; return how many."""
    dropped = 0
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        changed = False
        for slot in range(cuts.num_cuts[node]):
            if (
                cuts.active[node, slot]
                and not cuts.keep[node, slot]
                and cuts.iteration[node, slot] != iteration
            ):
                cuts.active[node, slot] = False
                changed = True
                dropped += 1
        if changed:
            cuts.version[node] += 1
    return dropped


@inner_kernel
def _comes_first(cuts, node, one, other):
    """Whether the cut ``one`` is dropped before ``other``, which is younger."""
    if cuts.last_active[node, one] != cuts.last_active[node, other]:
        return cuts.last_active[node, one] < cuts.last_active[node, other]
    return cuts.times_active[node, one] <= cuts.times_active[node, other]


@inner_kernel
def _evict(cuts, stage, iteration, cap):
    """Drop cuts of each node beyond the cap; return how many."""
    dropped = 0
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        active = 0
        for slot in range(cuts.num_cuts[node]):
            active += cuts.active[node, slot]
        before = dropped
        while active > cap:
            least = -1
            for slot in range(cuts.num_cuts[node]):
                if not cuts.active[node, slot] or cuts.iteration[node, slot] == iteration:
                    continue
                if least < 0 or not _comes_first(cuts, node, least, slot):
                    least = slot
            if least < 0:
                break
            cuts.active[node, least] = False
            active -= 1
            dropped += 1
        if dropped > before:
            cuts.version[node] += 1
            # A cut that was highest somewhere may be gone.
            cuts.known_states[stage] = 0
    return dropped


@inner_kernel
def _select_stage(cuts, stage, iteration, is_due, oldest_only, tolerance, cap, activity_tolerance):
    start = monotonic_ns()
    report = cuts.report[stage]
    for field in range(len(report)):
        report[field] = 0
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        report[POPULATED] += cuts.num_cuts[node]
        for slot in range(cuts.num_cuts[node]):
            report[ACTIVE_BEFORE] += cuts.active[node, slot]
    _record_states(cuts, stage)
    if cap >= 0:
        _count_activity(cuts, stage, iteration, activity_tolerance)
    if is_due:
        _update_best(cuts, stage)
        if oldest_only:
            _keep_oldest(cuts, stage, tolerance)
        else:
            _keep_close(cuts, stage, tolerance)
        report[DEACTIVATED] = _deactivate(cuts, stage, iteration)
    if cap >= 0:
        report[EVICTED] = _evict(cuts, stage, iteration, cap)
    report[ELAPSED_NS] = monotonic_ns() - start


@njit(cache=True, nogil=True, parallel=True)
def _select_stages(cuts, iteration, is_due, oldest_only, tolerance, cap, activity_tolerance):
    for stage in prange(1, len(cuts.stage_start) - 2):
        _select_stage(
            cuts, np.int64(stage), iteration, is_due, oldest_only, tolerance, cap, activity_tolerance
        )


@njit(cache=True, nogil=True)
def select_cuts(arrays, iteration, is_due, oldest_only, tolerance, cap, activity_tolerance):
    """Remember the trial points of ``iteration`` (from 1) and choose the active cuts of all stages.

    Parameters
    ----------
    arrays
        :class:`SelectionArrays`.
    is_due
        Whether cuts are compared at the visited states now.
    oldest_only
        Whether only the oldest cut that comes close is kept for each state, or all of them.
    tolerance
        What counts as close, $.
    cap
        Most active cuts of a node, or -1.
    activity_tolerance
        Distance below the highest cut at which a cut still counts as active, $.
    """
    _select_stages(
        _SelectionStruct(arrays), iteration, is_due, oldest_only, tolerance, cap, activity_tolerance
    )
