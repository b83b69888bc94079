"""The Python driver: sets training up, calls the iteration kernel, and reports between iterations."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numba
import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.errors import OutputError, Problem
from cobre.lp import StageTemplate, StateLayout, build_templates, scale_templates
from cobre.lp import arrays as lp_arrays
from cobre.lp.cost_components import cost_map
from cobre.lp.highs import HighsModel
from cobre.native import compile_guard
from cobre.policy import (
    Fingerprint,
    LoadedCuts,
    LowerBoundKind,
    NodeCuts,
    Policy,
    VisitedStates,
    boundary_cuts,
    case_nodes,
    case_transitions,
    future_cost_floor,
    state_entries,
    warm_cuts,
)
from cobre.sddp import timing
from cobre.sddp.checkpointing import Checkpointer
from cobre.sddp.costs import CostBreakdown, cost_breakdown, own_costs
from cobre.sddp.entry import entry_of
from cobre.sddp.failure import raise_failure
from cobre.sddp.kernel import buffers as fields
from cobre.sddp.kernel.draws import draw_passes, draw_points
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.kernel.records import ITERATION_FAILED, ITERATION_OK
from cobre.sddp.kernel.structs import study_structs
from cobre.sddp.plan import TrainingPlan
from cobre.sddp.progress import IterationRecord, TrainingResult
from cobre.sddp.ranks.agreement import failing_together, gather_parts, gather_rows, require_same_study
from cobre.sddp.ranks.partition import block_of
from cobre.sddp.ranks.sharing import memory_bytes, share_stage_lps, shared_cut_pool
from cobre.sddp.ranks.threads import kernel_lock, use_threads
from cobre.sddp.rules.selection import CutSelector, SelectionRecord
from cobre.sddp.rules.stopping import StoppingRules
from cobre.sddp.timing import RankTiming, WorkerInfo, iteration_timings, worker_infos
from cobre.sddp.upper_bound import UpperBoundEvaluator, not_convex
from cobre.stochastic import OpeningTree, build_opening_tree, make_sampler

OnIteration = Callable[[IterationRecord], object]

_NS_PER_MS = 1.0e6


def train_together(
    plan: TrainingPlan, comm: Communicator, on_iteration: OnIteration | None = None
) -> TrainingResult:
    """Train a policy by SDDP on the ranks of a communicator; collective. Writes checkpoints, not results.

    All ranks call it with the same case and options and get the same result. Neither the number of ranks nor
    that of threads changes a bit of the policy or of the bounds.

    Parameters
    ----------
    plan
        What to do; its threads are those of this rank.
    on_iteration
        Called after each iteration with its :class:`IterationRecord`, on the ranks that give one; a true
        return value on any rank stops all of them after this iteration.

    Raises
    ------
    ValidationError
        When the boundary policy of the case does not fit it, or what it is to start from does not.
    SolverError
        When a stage LP cannot be solved; on all ranks.
    CollectiveFailed
        When another rank is gone.
    """
    with ExitStack() as resources:
        return _Session(plan, comm, resources).run(on_iteration)


TANGENT_CUTS = (
    "tangent cuts of truncated inflow; modeling.inflow_non_negativity.truncation_cuts: valid gives a bound"
)
FOREIGN_CUTS = "training started with cuts that another study, or another program, made"


class _Session:
    """One training run on this rank: the arrays, the LP objects and the loop."""

    def __init__(self, plan: TrainingPlan, comm: Communicator, resources: ExitStack) -> None:
        self.case, self.storage, self.threads = plan.case, plan.storage, plan.threads
        self.failure_directory = plan.failure_directory
        self.comm = comm
        self.selection: list[SelectionRecord] = []
        self.cuts_removed = 0
        self.began = time.perf_counter()
        self.timings: list[RankTiming] = []
        # What compiles is guarded, so that processes starting together compile once. Ranks that wait for each
        # other must do so outside, or one would wait for the lock and hold up its holder.
        with failing_together(comm), compile_guard("study"):
            self.entry = entry_of(comm)
            use_threads(self.threads)
            self._build()
        require_same_study(comm, *self._study_facts())
        self.lower_bound_note = self._agreed_note()
        self._allocate(resources)
        self.history = self.checkpointer.restore()
        if self.lower_bound_note is None and self.history and self.history[-1].lower_bound_kind == "estimate":
            self.lower_bound_note = FOREIGN_CUTS
        if self.storage.resume_from is not None:
            require_same_study(comm, self.pool.num_cuts, self.pool.intercept, self.pool.active)
        # The first rank of a host has compiled most of what its collectives are made of; the others load.
        first = any(comm.rank == host.ranks[0] for host in comm.topology().hosts)
        with failing_together(comm):
            if first:
                self._compile()
        if not first:
            self._compile()
        self.compile_time_ms = (time.perf_counter() - self.began) * 1e3

    def _compile(self) -> None:
        """Compile the kernels of an iteration, or load them."""
        with compile_guard(f"train-{self.comm.backend}-{self.entry.__name__}"):
            self._draw(0)
            self.entry.compile(tuple(numba.typeof(argument) for argument in self._arguments(0)))
            self.selector.compile()

    def _build(self) -> None:
        """Make the study's numbers, the same on all ranks."""
        case = self.case
        self.layout = StateLayout(case)
        self.tree: OpeningTree = build_opening_tree(case, model=self.layout.inflow)
        components = [(part.kind, part.entity_id, part.offset) for part in self.layout.components]
        self.boundary = boundary_cuts(case, components)
        floor = None if self.boundary is None else partial(future_cost_floor, self.boundary)
        self.templates: tuple[StageTemplate, ...] = build_templates(case, self.tree, self.layout, floor)
        self.scaled, self.scaling = scale_templates(self.templates)
        self.warm: LoadedCuts | None = None
        if self.storage.warm_start is not None:
            source, fingerprint = self.storage.warm_start, self.storage.fingerprint
            self.warm = warm_cuts(source, case, self.layout, self.templates, fingerprint)

    def _agreed_note(self) -> str | None:
        """Return why the lower bound is but an estimate, or ``None``; the same on all ranks."""
        if self.case.training.truncation_cuts == "tangent" and not_convex(self.templates) is not None:
            return TANGENT_CUTS
        uncertain = self.warm is not None and not self.warm.certain
        return FOREIGN_CUTS if gather_rows(self.comm, np.array([uncertain], np.float64)).any() else None

    @property
    def lower_bound_kind(self) -> LowerBoundKind:
        """Whether cuts are known to lie below the future cost."""
        return "bound" if self.lower_bound_note is None else "estimate"

    def _study_facts(self) -> tuple[Any, ...]:
        """Return everything that the ranks must have in common."""
        training = self.case.training
        limits = (training.iteration_limit, training.forward_passes, self.tree.seed)
        return self.scaled, self.tree, self.layout.initial, self.boundary, limits

    def _allocate(self, resources: ExitStack) -> None:
        training = self.case.training
        self.graph = graph_arrays(self.case, self.tree.num_openings)
        # One LP for each node of a stage is loaded at a time.
        model = np.arange(len(self.scaled)) - self.graph.stage_start[self.graph.node_stage]
        self.lp, self.lp_region = share_stage_lps(self.comm, lp_arrays.lp_arrays(self.scaled, model))
        self.passes = passes = len(self.graph.path_weight) or training.forward_passes
        self.loaded_cuts = 0 if self.boundary is None else len(self.boundary.intercepts)
        # Training adds no cuts to the last stage, which boundary cuts are for.
        warm = 0 if self.warm is None else max(len(intercepts) for intercepts, _ in self.warm.cuts)
        loaded = max(warm, self.storage.loaded_before)
        capacity = max(training.iteration_limit * passes + loaded, self.loaded_cuts)
        nodes, states = self.lp.state_col.shape
        handles = np.zeros((self.threads, int(model.max()) + 1), np.intp)
        for place in np.ndindex(handles.shape):
            handles[place] = resources.enter_context(HighsModel(None)).handle
        options = training.cut_selection
        self.pool, self.region, self.warnings = shared_cut_pool(
            self.comm, nodes, capacity, states, options.max_added_per_round, options.tolerance
        )
        if self.boundary is not None:
            last = int(self.graph.stage_start[-2])
            self.pool.intercept[last:, : self.loaded_cuts] = self.boundary.intercepts
            self.pool.slope[last:, : self.loaded_cuts] = self.boundary.slopes
            self.pool.num_cuts[last:] = self.loaded_cuts
        for node, (intercepts, slopes) in enumerate(() if self.warm is None else self.warm.cuts):
            if len(intercepts):
                self.pool.intercept[node, : len(intercepts)] = intercepts
                self.pool.slope[node, : len(intercepts)] = slopes
                self.pool.num_cuts[node] = len(intercepts)
        self.work = lp_arrays.lp_workspace(self.lp, handles, capacity, self.pool.added_per_round)
        self.buffers = fields.iteration_buffers(
            self.lp,
            self.graph,
            self.layout,
            passes,
            self.comm.rank,
            self.comm.size,
            self.threads,
        )
        block = block_of(passes, self.comm.size, self.comm.rank)
        self.sampler = make_sampler(self.case, self.layout.inflow, self.tree, passes=passes, block=block)
        self.selector = CutSelector(options, self.graph, self.pool, self.buffers, training.iteration_limit)
        own = len(self.buffers.pass_own)
        self.basis = lp_arrays.basis_store(self.lp, max(own, 1), capacity)
        arrays = (self.lp, self.graph, self.pool, self.work, self.basis, self.buffers)
        self.structs = resources.enter_context(study_structs(*arrays))
        self.visited = VisitedStates(len(self.case.stages), states)
        self.checkpointer = Checkpointer(
            self.storage,
            self.case,
            self.comm,
            self.lp,
            self.pool,
            self.basis,
            self.buffers,
            self.selector,
            self.visited,
        )
        self.evaluator = None
        if training.upper_bound.enabled:
            self.evaluator = UpperBoundEvaluator(
                training.upper_bound,
                self.scaled,
                self.graph,
                self.visited,
                self.layout.initial,
                self.boundary,
                self.comm,
            )

    def _arguments(self, iteration: int) -> tuple[Any, ...]:
        return self.comm.kernel_arguments, self.structs, iteration

    def _draw(self, iteration: int) -> None:
        if len(self.sampler.fresh_stage):
            draw_points(self.sampler, iteration)
        draw_passes(self.sampler, self.structs, self.comm.rank, np.uint64(self.tree.seed), iteration)

    def run(self, on_iteration: OnIteration | None) -> TrainingResult:
        """Iterate until a stopping rule is met or a rank's callback asks to stop."""
        history = self.history
        self.cuts_removed = sum(record.cuts_removed for record in history)
        if self.evaluator is not None:
            self.evaluator.remember([record.deterministic_upper_bound for record in history])
        rules = StoppingRules(self.case.training)
        reason = rules.check(history, 0.0) if history else None
        costs: CostBreakdown | None = None
        while reason is None:
            record = self._bounded(self._iterate(len(history), split_costs=costs is None))
            costs = record.costs or costs
            history.append(record)
            asked = self._asked_to_stop(on_iteration)
            # All ranks leave at the same boundary: one that left alone would keep the others waiting. So they
            # agree on whether anybody asked, and go by the clock of the one that has trained longest.
            own = np.array([time.perf_counter() - self.began, asked], np.float64)
            elapsed_s, stop = gather_rows(self.comm, own).max(axis=0)
            reason = rules.check(history, float(elapsed_s))
            if stop:
                reason = reason or "graceful_shutdown"
            if reason is None and self.checkpointer.due(len(history)):
                self._write_checkpoint()
        policy = self._policy()
        self._write_last_checkpoint()
        last = history[-1]
        if costs is not None and costs.iteration < last.iteration:
            _, costs = self._gather_reports(last.iteration, split_costs=True)
        bound = None if self.evaluator is None else self.evaluator.finish(len(history))
        total_time_ms = (time.perf_counter() - self.began) * 1e3
        return TrainingResult(
            iterations=len(history),
            lower_bound=last.lower_bound,
            upper_bound=last.upper_bound,
            upper_bound_std=last.upper_bound_std,
            termination_reason=reason,
            total_time_ms=total_time_ms,
            compile_time_ms=self.compile_time_ms,
            lp_solves=sum(record.lp_solves for record in history),
            backend=self.comm.backend,
            ranks=self.comm.size,
            threads=self.threads,
            seed=self.tree.seed,
            policy=policy,
            policy_sha256=policy.sha256(),
            lower_bound_kind=self.lower_bound_kind,
            lower_bound_note=self.lower_bound_note,
            history=tuple(history),
            scaling=self.scaling,
            selection=tuple(self.selection),
            warnings=self._all_warnings() + (() if costs is None else costs.warnings()),
            timings=tuple(self.timings),
            workers=self._workers(total_time_ms),
            deterministic_bound=bound,
            costs=costs,
            policy_mode=self.storage.policy_mode,
        )

    def _asked_to_stop(self, on_iteration: OnIteration | None) -> bool:
        """Return what the caller's function answers; if it fails, what was trained is kept first."""
        if on_iteration is None:
            return False
        try:
            return bool(on_iteration(self.history[-1]))
        except Exception:
            if self.comm.size == 1:  # other ranks would have to take part, but do not learn of this
                self._write_last_checkpoint()
            raise

    def _write_checkpoint(self) -> None:
        self.checkpointer.write(self._policy(), self.history)

    def _write_last_checkpoint(self) -> None:
        """Keep all that was trained before anything else is done; what cannot be kept becomes a warning.

        The results, which are still to be written, hold the policy too: they must not be given up here.
        """
        try:
            self._write_checkpoint()
        except OutputError as error:
            text = f"the last checkpoint was not written, so that this run cannot be resumed: {error.message}"
            self.warnings += (Problem("CheckpointNotWritten", text, error.context, error.suggestion),)

    def _all_warnings(self) -> tuple[Problem, ...]:
        boundary = () if self.boundary is None else self.boundary.warnings
        warm = () if self.warm is None else self.warm.warnings
        notes = self.layout.inflow.notes + self.scaling.problems
        return notes + self.warnings + boundary + warm + self.checkpointer.warnings

    def _workers(self, wall_time_ms: float) -> tuple[WorkerInfo, ...]:
        ends = gather_rows(self.comm, np.array([wall_time_ms, *memory_bytes()], np.float64))
        hosts = {rank: host.hostname for host in self.comm.topology().hosts for rank in host.ranks}
        names = [hosts.get(rank, "unknown") for rank in range(self.comm.size)]
        return worker_infos(self.timings, self.comm.backend, names, ends)

    def _bounded(self, record: IterationRecord) -> IterationRecord:
        """Keep the states of the iteration, and evaluate the deterministic bound if its turn has come."""
        if self.evaluator is None:
            return record
        self.visited.append(self.buffers.state_all.swapaxes(0, 1), self.buffers.node_all.T)
        return replace(record, deterministic_upper_bound=self.evaluator.after(record.iteration))

    def _iterate(self, iteration: int, split_costs: bool) -> IterationRecord:
        """Run one iteration (from 0) and report it, with what its cost was paid for if asked."""
        began = time.perf_counter()
        cuts_before = int(self.pool.num_cuts.sum())
        self.work.counters[:] = 0
        self.selector.prepare(iteration + 1)
        self._draw(iteration)
        with kernel_lock:
            status = self.entry(*self._arguments(iteration))
        if status != ITERATION_OK:
            self._raise_failure(status, iteration)
        ranks, costs = self._gather_reports(iteration + 1, split_costs)
        lower_bound = float(ranks[timing.ROOT, timing.LOWER_BOUND_VALUE])
        if np.isnan(lower_bound):
            self._raise_failure(ITERATION_FAILED, iteration)
        self.timings += iteration_timings(iteration + 1, ranks)
        selected = self.selector.select(iteration + 1)
        self.selection += selected
        removed = sum(record.cuts_deactivated + (record.budget_evicted or 0) for record in selected)
        self.cuts_removed += removed
        total, longest = ranks.sum(axis=0), ranks.max(axis=0)
        outcome = self.buffers.outcome
        cuts = int(self.pool.num_cuts.sum())
        now = time.perf_counter()
        return IterationRecord(
            iteration=iteration + 1,
            lower_bound=lower_bound,
            upper_bound=float(outcome[fields.UPPER_BOUND]),
            upper_bound_std=float(outcome[fields.UPPER_BOUND_STD]),
            upper_bound_kind="exact" if self.case.training.enumerated else "statistical",
            lower_bound_kind=self.lower_bound_kind,
            forward_passes=self.passes,
            cuts_added=cuts - cuts_before,
            cuts_active=cuts - self.cuts_removed,
            lp_solves=int(total[timing.LP_SOLVES]),
            lp_retries=int(total[timing.LP_RETRIES]),
            simplex_iterations=int(total[timing.SIMPLEX_ITERATIONS]),
            forward_time_ms=float(longest[timing.FORWARD]),
            backward_time_ms=float(longest[timing.BACKWARD]),
            communication_time_ms=float(longest[timing.COMMUNICATION]),
            iteration_time_ms=(now - began) * 1e3,
            wall_time_ms=(now - self.began) * 1e3,
            cuts_removed=removed,
            stage_costs=self._stage_costs(),
            costs=costs,
        )

    def _raise_failure(self, status: int, iteration: int) -> NoReturn:
        lps = (self.templates, self.graph, self.pool, self.buffers)
        raise_failure(status, iteration, self.comm, *lps, self.failure_directory)

    def _gather_reports(
        self, iteration: int, split_costs: bool
    ) -> tuple[NDArray[np.float64], CostBreakdown | None]:
        """Return the rows of all ranks, and what the passes just run were paid for if asked; collective."""
        own = own_costs(self.buffers) if split_costs else np.zeros((len(self.buffers.pass_own), 0))
        words, columns = own.shape[1], timing.RANK_COLUMNS
        lengths = columns + self.buffers.pass_count * words
        parts = gather_parts(self.comm, np.concatenate([self._own_row(), own.reshape(-1)]), lengths)
        rows = np.stack([part[:columns] for part in parts])
        if not split_costs:
            return rows, None
        costs = np.concatenate([part[columns:] for part in parts]).reshape(-1, words)
        stages = [stage.id for stage in self.case.stages]
        payers = cost_map(self.scaled).payers
        return rows, cost_breakdown(costs, self._pass_weights(), iteration, stages, payers)

    def _own_row(self) -> NDArray[np.float64]:
        """Return what this rank reports of an iteration; see :mod:`cobre.sddp.timing`."""
        row = np.zeros(timing.RANK_COLUMNS)
        elapsed, counters = self.buffers.elapsed_ns, self.work.counters.sum(axis=0)
        for column, timer in (
            (timing.FORWARD, fields.FORWARD_NS),
            (timing.BACKWARD, fields.BACKWARD_NS),
            (timing.LOWER_BOUND, fields.LOWER_BOUND_NS),
            (timing.COMMUNICATION, fields.COMMUNICATION_NS),
        ):
            row[column] = elapsed[timer] / _NS_PER_MS
        row[timing.LP_SOLVES] = counters[lp_arrays.LP_SOLVES]
        row[timing.LP_RETRIES] = counters[lp_arrays.LP_RETRIES]
        row[timing.SIMPLEX_ITERATIONS] = counters[lp_arrays.SIMPLEX_ITERATIONS]
        row[timing.SCENARIOS] = len(self.buffers.pass_own)
        row[timing.LOWER_BOUND_VALUE] = self.buffers.outcome[fields.LOWER_BOUND]
        return row

    def _stage_costs(self) -> tuple[float, ...]:
        """Return the mean cost of each stage, summed in the order of passes; empty unless a rule needs it."""
        if not any(rule.needs_stage_costs for rule in self.case.training.stopping_rules):
            return ()
        costs, weights = self.buffers.stage_cost_all, self._pass_weights()
        return tuple(float(sum(weights * costs[:, stage])) for stage in range(costs.shape[1]))

    def _pass_weights(self) -> NDArray[np.float64]:
        """Return the probability of each forward pass."""
        weights = self.graph.path_weight
        return weights if len(weights) else np.full(self.passes, 1 / self.passes)

    def _policy(self) -> Policy:
        """Return the cuts of the pool, and what the iterations so far have found."""
        counts, pool, history = [int(count) for count in self.pool.num_cuts], self.pool, self.history
        floors = [float(part.col_lower[part.theta_col]) * part.cost_scale for part in self.templates]
        cuts = tuple(
            NodeCuts(
                slot=np.arange(count, dtype=np.int64),
                iteration=pool.iteration[node, :count].astype(np.int64),
                forward_pass=pool.forward_pass[node, :count].astype(np.int64),
                intercept=pool.intercept[node, :count].copy(),
                slopes=pool.slope[node, :count].copy(),
                active=pool.active[node, :count].copy(),
            )
            for node, count in enumerate(counts)
        )
        return Policy(
            components=state_entries(self.layout),
            nodes=tuple(
                replace(node, loaded_cuts=int((part.iteration == 0).sum()))
                for node, part in zip(case_nodes(self.case, floors), cuts, strict=True)
            ),
            transitions=case_transitions(self.case),
            cuts=cuts,
            is_chain=self.case.graph.is_chain,
            forward_passes=self.passes,
            seed=self.tree.seed,
            completed_iterations=len(history),
            lower_bounds=np.array([record.lower_bound for record in history]),
            upper_bounds=np.array([record.upper_bound for record in history]),
            fingerprint=self.storage.fingerprint or Fingerprint({}),
            cost_scale_factor=self.scaled[0].cost_scale,
            started_from=self.storage.started_from,
            lower_bound_kind=history[-1].lower_bound_kind if history else "bound",
        )
