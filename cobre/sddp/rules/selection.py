"""Which cuts stay in the LPs, and which of them HiGHS starts with.

An LP of HiGHS starts with the cuts of the latest iterations; all others that are active enter it where its
solution violates them, so that it ends with the optimum of all of them. (The own engine starts with the cuts
of a stored basis, and prices all others.)

A selection goes through the stages from the second to the last but one; the cuts of the first stage, which
the lower bound rests on, and those of the present iteration always stay. The method is one of
:mod:`cobre.rules.selection`. A cap on the number of cuts drops those that were active longest ago, then least
often, then the oldest; a cut is active where it comes within the activity tolerance of the highest one at a
trial point of the iteration.

Everything is computed from what all ranks have gathered, in the same way on each of them; threads take a
stage each. What is kept between selections (``best``, ``holder``, ``witness``) saves work only: it is a
function of the pool and the visited states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from cobre.case.model import CutSelection
from cobre.lp.arrays import CutPool
from cobre.rules.selection import METHODS
from cobre.sddp.kernel.buffers import IterationBuffers
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.kernel.selection_kernels import (
    ACTIVE_BEFORE,
    DEACTIVATED,
    ELAPSED_NS,
    EVICTED,
    METHOD_CODES,
    POPULATED,
    REPORT_FIELDS,
    SelectionArrays,
    select_cuts,
)
from cobre.sddp.ranks.threads import kernel_lock

_NS_PER_MS = 1.0e6


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


def _recent_first(options: CutSelection, made_in: NDArray[np.int32], iteration: int) -> tuple[int, int]:
    """Return the first slot that LPs start with, and the first that enters where it is violated."""
    return int(np.searchsorted(made_in, iteration - options.seed_window)), 0


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
        self.method = METHODS.get(options.method)
        self.marks_cuts = self.method is not None and self.method.mark is not None
        self.drops_cuts = self.marks_cuts or options.max_active_per_stage is not None
        self.stages = len(graph.stage_start) - 1
        nodes, capacity, states = pool.slope.shape
        passes = len(buffers.pass_all)
        visited = iterations * passes if self.marks_cuts else 0
        slots = capacity if self.marks_cuts else 0
        counted = capacity if options.max_active_per_stage is not None else 0
        self.arrays = SelectionArrays(
            record=pool.record,
            num_cuts=pool.num_cuts,
            iteration=pool.iteration,
            active=pool.active,
            version=pool.version,
            stage_start=graph.stage_start,
            pass_all=buffers.pass_all,
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
            parameters=np.array(options.parameters, np.float64),
            last_active=np.zeros((nodes, counted), np.int64),
            times_active=np.zeros((nodes, counted), np.int64),
            value=np.zeros((self.stages, counted)),
            report=np.zeros((self.stages, REPORT_FIELDS), np.int64),
        )

    def compile(self) -> None:
        """Compile what :meth:`select` runs, or load it from the cache."""
        if self.drops_cuts:
            select_cuts.compile(tuple(numba.typeof(argument) for argument in self._arguments(1)))

    def prepare(self, iteration: int) -> None:
        """Choose the cuts that LPs start with in ``iteration`` (from 1)."""
        options, pool = self.options, self.pool
        loads = (None if self.method is None else self.method.loads) or _recent_first
        for node, count in enumerate(pool.num_cuts):
            first_slots = loads(options, pool.iteration[node, :count], iteration)
            if first_slots not in (None, (pool.first_loaded[node], pool.first_candidate[node])):
                pool.first_loaded[node], pool.first_candidate[node] = first_slots
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
        return self.marks_cuts and iteration % self.options.check_frequency == 0

    def _arguments(self, iteration: int) -> tuple[Any, ...]:
        options = self.options
        cap = options.max_active_per_stage
        return (
            self.arrays,
            iteration,
            self._is_due(iteration),
            METHOD_CODES.get(options.method, -1),
            options.tolerance,
            -1 if cap is None else cap,
            options.activity_tolerance,
        )
