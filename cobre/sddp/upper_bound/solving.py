"""Values of the LPs of a node at many states, by the own engine, shared among threads.

A task is a block of states at one opening (see :mod:`state_order`). Every task starts from the one basis that
was prepared for the node, whatever its worker solved before.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.lp.engines.own.core import (
    AWAKE,
    DUAL_VALUE,
    GAVE_UP,
    INFEASIBLE,
    MOST_ITERATIONS,
    OPTIMAL,
    PRIMAL_VALUE,
    BasisStore,
    CoreStruct,
    CutStruct,
    SavedStates,
    SavedStruct,
    StoreStruct,
    Workspace,
    WorkStruct,
    new_basis_store,
    new_saved_states,
    new_workspace,
)
from cobre.lp.engines.own.entry import FROM_STORE, INTO_STORE, engine_function, solve_at
from cobre.native import HeldStruct, array_struct, atomic_fetch_add, compile_for, engine_kernel, struct_at
from cobre.sddp.upper_bound.linked_core import Dynamics, InnerCore
from cobre.sddp.upper_bound.state_order import StateOrder

FloatArray = NDArray[np.float64]

_SLOTS = 64
"""Boundary cuts that an LP holds at a time."""

DynamicsStruct = array_struct(Dynamics)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_tasks(addresses, prepares, largest_cost, openings, states, order, tasks, results):
    """Take the next task, counted in ``tasks[0]``, until ``tasks[1]``; a task is opening x blocks + block.

    ``addresses`` are those of the engine and of the structs of core, workspace, cuts, saved states, stored
    basis and dynamics. ``results`` are status and value by (opening, position), the value in units of the
    core. Who ``prepares`` stores the basis of the first optimum and stops there, or where the engine gives
    up.
    """
    engine, at_core, at_work, at_cuts, at_saved, at_store, at_data = addresses
    core = struct_at(CoreStruct, at_core)
    work = struct_at(WorkStruct, at_work)
    pool = struct_at(CutStruct, at_cuts)
    data = struct_at(DynamicsStruct, at_data)
    realised = np.zeros(openings.shape[1])
    extended = np.zeros(len(data.base))
    start, place, parent, keep = order
    status, value = results
    blocks = len(start) - 1
    while True:
        task = atomic_fetch_add(tasks, 0, 1)
        if task >= tasks[1]:
            return
        opening = task // blocks
        block = task % blocks
        for position in range(start[block], start[block + 1]):
            _extend(data, openings[opening], states[place[position]], realised, extended)
            _set_right_hand_side(core, work, pool, data, extended)
            begin = FROM_STORE if position == start[block] else np.int64(parent[position])
            end = INTO_STORE if prepares else np.int64(keep[position])
            found = solve_at(engine, at_core, at_work, at_cuts, at_saved, at_store, np.int64(0), begin, end)
            status[opening, position] = found
            value[opening, position] = _value_above(core, work, largest_cost)
            if prepares and found in (OPTIMAL, GAVE_UP):
                return


@engine_kernel
def _extend(data, opening, state, realised, extended):
    """Write the extended right-hand side of an opening at a state."""
    for entity in range(len(opening)):
        realised[entity] = opening[entity]
    for plant in range(len(data.psi_start) - 1):
        for entry in range(data.psi_start[plant], data.psi_start[plant + 1]):
            realised[plant] += data.psi_value[entry] * state[data.psi_component[entry]]
    for plant in range(len(data.truncated)):
        if data.truncated[plant] and realised[plant] < 0.0:
            realised[plant] = 0.0
    for row in range(len(data.base)):
        extended[row] = data.base[row]
    for entity in range(len(data.noise_start) - 1):
        for entry in range(data.noise_start[entity], data.noise_start[entity + 1]):
            extended[data.noise_row[entry]] += data.noise_value[entry] * realised[entity]
    for component in range(len(data.state_start) - 1):
        for entry in range(data.state_start[component], data.state_start[component + 1]):
            extended[data.state_row[entry]] += data.state_value[entry] * state[component]


@engine_kernel
def _set_right_hand_side(core, work, pool, data, extended):
    for row in range(core.num_rows):
        work.rhs[row] = extended[row]
    for cut in range(pool.num_cuts[0]):
        constant = data.cut_constant[cut]
        for fixed in range(len(extended) - core.num_rows):
            constant += data.fixed_slope[fixed, cut] * extended[core.num_rows + fixed]
        work.cut_constant[cut] = constant


@engine_kernel
def _value_above(core, work, largest_cost):
    """Return an upper bound of the optimal value: that found, and what making good for violations costs."""
    num_cols = core.num_cols
    num_rows = core.num_rows
    violated = 0.0
    largest = largest_cost
    for row in range(num_rows):
        residual = work.value[num_cols + row] - work.rhs[row]
        for entry in range(core.row_start[row], core.row_start[row + 1]):
            residual += core.row_value[entry] * work.value[core.row_col[entry]]
        violated += abs(residual)
        largest = max(largest, abs(work.price[num_cols + row]))
    for var in range(num_cols + num_rows):
        violated += max(work.low[var] - work.value[var], work.value[var] - work.high[var], 0.0)
    for entry in range(work.sizes[AWAKE]):
        slot = num_rows + work.awake[entry]
        residual = work.value[num_cols + slot] - work.rhs[slot]
        for col in range(num_cols):
            residual += work.cut_row[work.awake[entry], col] * work.value[col]
        violated += abs(residual) + max(-work.value[num_cols + slot], 0.0)
        largest = max(largest, abs(work.price[num_cols + slot]))
    return max(work.result[PRIMAL_VALUE], work.result[DUAL_VALUE]) + violated * largest


class Tasks(NamedTuple):
    """Which tasks to solve: from the first up to the last."""

    first: int
    last: int


class Solver:
    """The engine with workspaces for some threads, which grow with the LPs they are used for."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._workers: list[tuple[Workspace, SavedStates]] = []
        self._store: BasisStore | None = None
        self._held: list[list[HeldStruct]] = []
        self._compiled = False

    def prepare(self, lp: InnerCore, openings: FloatArray, states: FloatArray, order: StateOrder) -> bool:
        """Solve one LP for the others to start from; return whether the engine is fit for them."""
        self._make_room(lp, order.num_kept)
        self._hold(lp)
        count = len(states)
        alone = np.arange(count + 1, dtype=np.int32)  # a block for each state: all start from the slack basis
        no_place = np.full(count, -1, np.int32)
        status = np.full((1, count), INFEASIBLE, np.int8)
        arguments = (
            self._addresses(0),
            True,
            lp.largest_cost,
            openings[:1],
            states,
            (alone, order.order, no_place, no_place),
            np.array([0, count]),
            (status, np.zeros((1, count))),
        )
        if not self._compiled:
            compile_for(_solve_tasks, "upper-bound", *arguments)
            self._compiled = True
        _solve_tasks(*arguments)
        return bool((status != GAVE_UP).all())

    def solve(
        self, lp: InnerCore, openings: FloatArray, states: FloatArray, order: StateOrder, tasks: Tasks
    ) -> tuple[NDArray[np.int8], FloatArray]:
        """Return status and value ($) by (opening, position in order) of the LPs of the tasks.

        ``prepare`` was called before with the same LP. A value is that of an optimum, or without meaning.
        """
        shape = (len(openings), len(states))
        status, value = np.full(shape, GAVE_UP, np.int8), np.full(shape, np.inf)
        shared = np.array(tasks, np.int64)

        def run(thread: int) -> None:
            _solve_tasks(
                self._addresses(thread),
                False,
                lp.largest_cost,
                openings,
                states,
                order[:4],
                shared,
                (status, value),
            )

        self.on_threads(run)
        return status, value * lp.cost_scale + lp.offset

    def _hold(self, lp: InnerCore) -> None:
        """Lay out the structs of an LP for all threads, with no basis stored."""
        assert self._store is not None
        self._store.known[0] = 0
        core, cuts = HeldStruct(CoreStruct, lp.core), HeldStruct(CutStruct, lp.cuts)
        store, data = HeldStruct(StoreStruct, self._store), HeldStruct(DynamicsStruct, lp.dynamics)
        self._held = []
        for work, saved in self._workers:
            work.limits[MOST_ITERATIONS] = 200 + 20 * (lp.core.num_cols + lp.core.num_rows)
            self._held.append(
                [core, HeldStruct(WorkStruct, work), cuts, HeldStruct(SavedStruct, saved), store, data]
            )

    def _addresses(self, thread: int) -> tuple[int, ...]:
        return (engine_function().address, *(struct.address for struct in self._held[thread]))

    def on_threads(self, run: Callable[[int], None]) -> None:
        """Call ``run`` with the number of each thread on that thread, and wait for all."""
        if self.threads == 1:
            run(0)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in pool.map(run, range(self.threads)):
                pass

    def _make_room(self, lp: InnerCore, num_kept: int) -> None:
        cuts = int(lp.cuts.num_cuts[0])
        sizes = [lp.core.num_cols, lp.core.num_rows, min(cuts, _SLOTS), cuts]
        if self._workers:
            work, saved = self._workers[0]
            slots = len(work.slot_cut)
            rows = len(work.kernel_of_row) - slots
            present = [len(work.kernel_of_col), rows, slots, len(work.cut_constant)]
            if all(a >= b for a, b in zip(present, sizes, strict=True)) and len(saved.kernel) >= num_kept:
                return
            sizes = [max(pair) for pair in zip(present, sizes, strict=True)]
            num_kept = max(num_kept, len(saved.kernel))
        cols, rows, slots, cuts = sizes
        self._workers = []
        for _ in range(self.threads):
            work = new_workspace(cols, rows, slots, cuts)
            self._workers.append((work, new_saved_states(work, num_kept)))
        self._store = new_basis_store(self._workers[0][0], 1)
