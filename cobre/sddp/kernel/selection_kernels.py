"""The kernels of cut selection; :mod:`cobre.sddp.rules.selection` defines which cuts are kept, and when."""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from cobre.lp.arrays import B8_2D, CUT_INTERCEPT, CUT_SLOPES, F64_1D, F64_2D, F64_3D, I32_2D, I64_1D, I64_2D
from cobre.native import array_struct, inner_kernel, monotonic_ns
from cobre.rules.selection import METHODS
from cobre.sddp.kernel.buffers import outgoing_of

METHOD_CODES = {name: code for code, name in enumerate(METHODS)}
"""Numbers of the methods in kernels."""

# Columns of SelectionArrays.report.
POPULATED = 0
ACTIVE_BEFORE = 1
DEACTIVATED = 2
EVICTED = 3
ELAPSED_NS = 4
REPORT_FIELDS = 5


class SelectionArrays(NamedTuple):
    """What selection works on; T stages, N nodes, C slots, M passes, n components, S visited states a stage.

    Attributes
    ----------
    record, num_cuts, iteration, active, version
        Of the cut pool.
    stage_start, pass_all, node_all, leader_all
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
        bool[N, C]: whether the method keeps a cut.
    parameters
        float64: of the method, if it has any besides the tolerance.
    last_active, times_active
        int64[N, C]: when a cut was active last, and at how many trial points; C = 0 without a cap.
    value
        float64[T, C]: scratch.
    report
        int64[T, fields]: what was done, for Python.
    """

    record: F64_3D
    num_cuts: I64_1D
    iteration: I32_2D
    active: B8_2D
    version: I64_1D
    stage_start: I64_1D
    pass_all: F64_2D
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
    parameters: F64_1D
    last_active: I64_2D
    times_active: I64_2D
    value: F64_2D
    report: I64_2D


_SelectionStruct = array_struct(SelectionArrays)


@inner_kernel
def _height(record, state):
    """Value of a cut at a state."""
    total = record[CUT_INTERCEPT]
    for component in range(len(state)):
        total += record[CUT_SLOPES + component] * state[component]
    return total


@inner_kernel
def _trial_state(cuts, forward_pass, stage):
    stages, components = cuts.node_all.shape[1], cuts.visited.shape[2]
    return outgoing_of(cuts.pass_all, stages, components, forward_pass, stage)


@inner_kernel
def _record_states(cuts, stage):
    """Remember the trial points of this iteration, each once."""
    if cuts.visited.shape[1] == 0:
        return
    for forward_pass in range(len(cuts.pass_all)):
        if cuts.leader_all[forward_pass, stage] != forward_pass:
            continue
        place = cuts.num_visited[stage]
        cuts.visited_node[stage, place] = cuts.node_all[forward_pass, stage]
        state = _trial_state(cuts, forward_pass, stage)
        for component in range(len(state)):
            cuts.visited[stage, place, component] = state[component]
        cuts.num_visited[stage] = place + 1


@inner_kernel
def _count_activity(cuts, stage, iteration, tolerance):
    """Note which cuts are the highest, or nearly so, at the trial points of this iteration."""
    for forward_pass in range(len(cuts.pass_all)):
        if cuts.leader_all[forward_pass, stage] != forward_pass:
            continue
        node = cuts.node_all[forward_pass, stage]
        state = _trial_state(cuts, forward_pass, stage)
        best = -np.inf
        for slot in range(cuts.num_cuts[node]):
            if cuts.active[node, slot]:
                height = _height(cuts.record[node, slot], state)
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
                height = _height(cuts.record[node, slot], cuts.visited[stage, place])
                cuts.best[stage, place] = max(cuts.best[stage, place], height)
    cuts.known_states[stage] = cuts.num_visited[stage]
    for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
        cuts.known_cuts[node] = cuts.num_cuts[node]


@inner_kernel
def _comes_close(cuts, stage, place, slot, tolerance):
    node = cuts.visited_node[stage, place]
    height = _height(cuts.record[node, slot], cuts.visited[stage, place])
    return height >= cuts.best[stage, place] - tolerance


def _either(code, mark, others):
    @inner_kernel
    def mark_cuts(method, cuts, stage, tolerance):
        if method == code:
            mark(cuts, stage, tolerance, cuts.parameters)
        else:
            others(method, cuts, stage, tolerance)

    return mark_cuts


@inner_kernel
def _none_of_them(method, cuts, stage, tolerance):
    raise ValueError("no such method of cut selection")


_mark_cuts = _none_of_them
for _name, _code in METHOD_CODES.items():
    if (_mark := METHODS[_name].mark) is not None:
        _mark_cuts = _either(_code, inner_kernel(_mark(_comes_close)), _mark_cuts)


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
def _select_stage(cuts, stage, iteration, is_due, method, tolerance, cap, activity_tolerance):
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
        _mark_cuts(method, cuts, stage, tolerance)
        report[DEACTIVATED] = _deactivate(cuts, stage, iteration)
    if cap >= 0:
        report[EVICTED] = _evict(cuts, stage, iteration, cap)
    report[ELAPSED_NS] = monotonic_ns() - start


@njit(cache=True, nogil=True, parallel=True)
def _select_stages(cuts, iteration, is_due, method, tolerance, cap, activity_tolerance):
    for stage in prange(1, len(cuts.stage_start) - 2):
        _select_stage(cuts, np.int64(stage), iteration, is_due, method, tolerance, cap, activity_tolerance)


@njit(cache=True, nogil=True)
def select_cuts(arrays, iteration, is_due, method, tolerance, cap, activity_tolerance):
    """Record the trial points of ``iteration`` (from 1) and choose the active cuts of all nodes.

    Parameters
    ----------
    arrays
        :class:`SelectionArrays`.
    is_due
        Whether cuts are compared at the visited states now.
    method
        How cuts are chosen then: one of ``METHOD_CODES``.
    tolerance
        What counts as close, $.
    cap
        Most active cuts of a node, or -1.
    activity_tolerance
        Distance below the highest cut at which a cut still counts as active, $.
    """
    _select_stages(_SelectionStruct(arrays), iteration, is_due, method, tolerance, cap, activity_tolerance)
