"""The Python driver: sets training up, calls the iteration kernel, and reports between iterations."""

from __future__ import annotations

import gc
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
from cobre.lp.engines.choice import chosen_forms, used_engine
from cobre.lp.engines.own.setup import OwnEngine
from cobre.lp.engines.own.stored_bases import BasisPacker
from cobre.lp.highs import HighsModel
from cobre.native import compile_guard
from cobre.policy import (
    Fingerprint,
    LoadedCuts,
    LowerBoundKind,
    LpEngines,
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
from cobre.sddp.compilation import compiling_engine_ahead
from cobre.sddp.costs import CostBreakdown, cost_breakdown, own_costs
from cobre.sddp.entry import entry_of
from cobre.sddp.events import checkpoint_complete, event_log, iteration_events
from cobre.sddp.failure import raise_failure
from cobre.sddp.kernel import buffers as fields
from cobre.sddp.kernel import counts
from cobre.sddp.kernel.draws import draw_passes, draw_points
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.kernel.records import ITERATION_FAILED, ITERATION_OK
from cobre.sddp.kernel.structs import StudyStructs
from cobre.sddp.lp_statistics import IterationLps, iteration_lps, own_counts
from cobre.sddp.pass_schedule import pass_models
from cobre.sddp.plan import TrainingPlan
from cobre.sddp.progress import History, IterationRecord, TrainingResult
from cobre.sddp.ranks.agreement import failing_together, gather_parts, gather_rows, require_same_study
from cobre.sddp.ranks.memory import FileMemory, memory_bytes, return_unused_memory
from cobre.sddp.ranks.partition import block_of
from cobre.sddp.ranks.sharing import share_stage_lps, shared_cut_pool, shared_numbers
from cobre.sddp.ranks.threads import kernel_lock, use_threads
from cobre.sddp.rules.selection import CutSelector, SelectionRecord
from cobre.sddp.rules.stopping import StoppingRules
from cobre.sddp.timing import RankTiming, WorkerInfo, iteration_timings, worker_infos
from cobre.sddp.upper_bound import MOST_VERTICES, UpperBoundEvaluator, UpperBoundResult, not_convex
from cobre.sddp.upper_bound.allowance import HOW_TO_ASK, allowed_vertices, too_many_states
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
        result = _Session(plan, comm, resources).run(on_iteration)
    # Before tables of the results are made. Callbacks refer back to the session, so that it has to be found.
    gc.collect()
    return_unused_memory()
    return result


TANGENT_CUTS = (
    "tangent cuts of truncated inflow; modeling.inflow_non_negativity.truncation_cuts: valid gives a bound"
)
FOREIGN_CUTS = "training started with cuts that another study, or another program, made"


class _Session:
    """One training run on this rank: the arrays, the LP objects and the loop."""

    def __init__(self, plan: TrainingPlan, comm: Communicator, resources: ExitStack) -> None:
        self.case, self.storage, self.threads = plan.case, plan.storage, plan.threads
        self.events = event_log(plan.output if comm.rank == 0 else None)
        resources.callback(self.events.close)
        self.failure_directory = plan.failure_directory
        self.asked_engine = plan.lp_engine
        self.comm = comm
        self.selection: list[SelectionRecord] = []
        self.cuts_removed = 0
        self.began = time.perf_counter()
        self.timings: list[RankTiming] = []
        self.lp_statistics: list[IterationLps] = []
        # The first rank of a host compiles; the others load.
        first = any(comm.rank == host.ranks[0] for host in comm.topology().hosts)
        with compiling_engine_ahead(first):
            self._set_up(resources, first)
        self.own.load_engine()
        self.compile_time_ms = (time.perf_counter() - self.began) * 1e3

    def _set_up(self, resources: ExitStack, first: bool) -> None:
        """Make everything that iterations need but the LP engine."""
        comm = self.comm
        # What compiles is guarded, so that processes starting together compile once. Ranks that wait for each
        # other must do so outside, or one would wait for the lock and hold up its holder.
        return_unused_memory()  # of reading the case
        with failing_together(comm), compile_guard("study"):
            self.entry = entry_of(comm)
            use_threads(self.threads)
            return_unused_memory()
            self._build()
        require_same_study(comm, *self._study_facts())
        self.lower_bound_note = self._agreed_note()
        self._allocate(resources)
        del self.scaled  # kernels have arrays of their own
        self._give_back()
        self.history = self.checkpointer.restore()
        self.lp_engine = self.engines_here
        if self.history:
            self.lp_engine = self.engines_here.going_on_from(self.checkpointer.engines_before)
        if self.lower_bound_note is None and self.history and self.history[-1].lower_bound_kind == "estimate":
            self.lower_bound_note = FOREIGN_CUTS
        if self.storage.resume_from is not None:
            require_same_study(comm, self.pool.num_cuts, self.pool.intercept, self.pool.active)
        with failing_together(comm):
            if first:
                self._compile()
        if not first:
            self._compile()
        return_unused_memory()

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
        templates = self._stage_lps()
        self.floors = [float(part.col_lower[part.theta_col]) * part.cost_scale for part in templates]
        self.warm: LoadedCuts | None = None
        if self.storage.warm_start is not None:
            source, fingerprint = self.storage.warm_start, self.storage.fingerprint
            self.warm = warm_cuts(source, case, self.layout, templates, fingerprint)
        self.scaled, self.scaling = scale_templates(templates)
        self.costs = cost_map(self.scaled)
        self.payers = self.costs.payers
        self.cost_scale = self.scaled[0].cost_scale

    def _stage_lps(self) -> tuple[StageTemplate, ...]:
        floor = None if self.boundary is None else partial(future_cost_floor, self.boundary)
        return build_templates(self.case, self.tree, self.layout, floor)

    def _agreed_note(self) -> str | None:
        """Return why the lower bound is but an estimate, or ``None``; the same on all ranks."""
        if self.case.training.truncation_cuts == "tangent" and not_convex(self.scaled) is not None:
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
        limits = (training.iteration_limit, training.forward_passes, training.pass_schedule, self.tree.seed)
        return self.scaled, self.tree, self.layout.initial, self.boundary, limits, self.asked_engine

    def _allocate(self, resources: ExitStack) -> None:
        training = self.case.training
        self.graph = graph_arrays(self.case, self.tree.num_openings)
        # One LP for each node of a stage is loaded at a time.
        model = np.arange(len(self.scaled)) - self.graph.stage_start[self.graph.node_stage]
        self.for_highs = FileMemory()
        self._give_back()
        # Ranks of a host share some of these parts, and HiGHS reads them where it was asked for.
        alone = self.comm.size == 1 and self.asked_engine != "highs"
        keep = (self.for_highs.keep,) if alone else ()
        flat = lp_arrays.lp_arrays(self.scaled, model, self.costs, *keep)
        self.lp, self.lp_region = share_stage_lps(self.comm, flat)
        self.scaled = lp_arrays.in_arrays(self.scaled, self.lp)
        del flat, self.costs
        self.passes = passes = len(self.graph.path_weight) or training.forward_passes
        source = training.source
        drawn_elsewhere = {source.inflow, source.load, source.ncs} != {"in_sample"}
        self.sampled_elsewhere = drawn_elsewhere and not training.enumerated
        single = self.case.graph.is_chain and int(self.tree.num_openings.max()) == 1
        self.one_or_all_paths = training.enumerated or (single and not drawn_elsewhere)
        # What follows the last stage is certain, and so is all of a single path.
        measures = [stage.risk for stage in self.case.stages[:-1]]
        measures.append(self.case.graph.root_risk or self.case.stages[0].risk)
        self.risk_averse = not single and not all(measure.is_expectation for measure in measures)
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
        forms = chosen_forms(self.asked_engine, self.scaled)
        self.engines_here = LpEngines(self.asked_engine, used_engine(forms))
        self._give_back()
        self.own = OwnEngine(
            self.lp,
            self.pool,
            forms,
            [template.opening_values for template in self.scaled],
            self.threads,
            max(own, 1),
            self._make_archive,
        )
        arrays = (self.lp, self.graph, self.pool, self.work, self.basis, self.buffers, self.own.arrays)
        self.structs = StudyStructs(*arrays)
        self.visited = VisitedStates(len(self.case.stages), states)
        self.evaluator: UpperBoundEvaluator | None = None
        self.upper_bound_note = self._why_no_upper_bound(states)
        if self.upper_bound_note is None:
            self.evaluator = UpperBoundEvaluator(
                training.upper_bound,
                self.scaled,
                self.graph,
                self.visited,
                self.layout.initial,
                self.boundary,
                self.comm,
                threads=self.threads,
            )
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
            self.own.arrays.uses_own,
            BasisPacker(self.own.store, forms),
            None if self.evaluator is None else self.evaluator.known,
        )

    def _give_back(self) -> None:
        """Give back what set-up no longer needs, and unmap what only HiGHS reads."""
        return_unused_memory()
        self.for_highs.unmap()

    def _why_no_upper_bound(self, states: int) -> str | None:
        """Return why visited states need not be kept; a matter of the study, not of its iterations."""
        enabled = self.case.training.upper_bound.enabled
        if enabled is None:
            return too_many_states(states)
        return None if enabled else "upper_bound_evaluation.enabled is false"

    def _make_archive(self, count: int) -> NDArray[np.float64]:
        numbers, self.archive_region = shared_numbers(self.comm, count)
        return numbers

    def _arguments(self, iteration: int) -> tuple[Any, ...]:
        return self.comm.kernel_arguments, self.structs.addresses, iteration

    def _draw(self, iteration: int) -> None:
        schedule = self.case.training.pass_schedule
        self.buffers.model_all[:] = pass_models(iteration + 1, self.passes, schedule)
        if len(self.sampler.fresh_stage):
            draw_points(self.sampler, iteration)
        draw_passes(
            self.sampler, self.structs.addresses, self.comm.rank, np.uint64(self.tree.seed), iteration
        )

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
            self.events.write(iteration_events(record, self.selected))
            asked = self._asked_to_stop(on_iteration)
            # All ranks leave at the same boundary: one that left alone would keep the others waiting. So they
            # agree on whether anybody asked, and go by the clock of the one that has trained longest.
            own = np.array([time.perf_counter() - self.began, asked], np.float64)
            elapsed_s, stop = gather_rows(self.comm, own).max(axis=0)
            reason = rules.check(history, float(elapsed_s))
            if stop:
                reason = reason or "graceful_shutdown"
            if reason is None and self.checkpointer.due(len(history)):
                self._write_checkpoint(self._policy())
        policy = self._policy()
        self._write_last_checkpoint(policy)
        policy = replace(policy, first_bases=self.checkpointer.first_bases())
        last = history[-1]
        if costs is not None and costs.iteration < last.iteration:
            _, _, costs = self._gather_reports(last.iteration, split_costs=True)
        bound = self._last_bound(reason)
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
            history=History(history),
            scaling=self.scaling,
            selection=tuple(self.selection),
            warnings=self._all_warnings() + (() if costs is None else costs.warnings()),
            timings=tuple(self.timings),
            workers=self._workers(total_time_ms),
            deterministic_bound=bound,
            upper_bound_note=self.upper_bound_note,
            out_of_sample=self.sampled_elsewhere,
            costs=costs,
            policy_mode=self.storage.policy_mode,
            lp_engine=self.lp_engine,
            lp_statistics=tuple(self.lp_statistics),
        )

    def _asked_to_stop(self, on_iteration: OnIteration | None) -> bool:
        """Return what the caller's function answers; if it fails, what was trained is kept first."""
        if on_iteration is None:
            return False
        try:
            return bool(on_iteration(self.history[-1]))
        except Exception:
            if self.comm.size == 1:  # other ranks would have to take part, but do not learn of this
                self._write_last_checkpoint(self._policy())
            raise

    def _write_checkpoint(self, policy: Policy) -> None:
        if self.checkpointer.write(policy, self.history):
            self.events.write([checkpoint_complete(len(self.history))])

    def _write_last_checkpoint(self, policy: Policy) -> None:
        """Keep all that was trained before anything else is done; what cannot be kept becomes a warning.

        The results, which are still to be written, hold the policy too: they must not be given up here.
        """
        self._give_back()
        try:
            self._write_checkpoint(policy)
        except OutputError as error:
            text = f"the last checkpoint was not written, so that this run cannot be resumed: {error.message}"
            self.warnings += (Problem("CheckpointNotWritten", text, error.context, error.suggestion),)

    def _all_warnings(self) -> tuple[Problem, ...]:
        boundary = () if self.boundary is None else self.boundary.warnings
        warm = () if self.warm is None else self.warm.warnings
        notes = self.layout.inflow.notes + self.scaling.problems
        return notes + self.warnings + boundary + warm + self.checkpointer.warnings + self.events.problems()

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
        if not self.case.training.upper_bound.enabled:
            return record
        return replace(record, deterministic_upper_bound=self.evaluator.after(record.iteration))

    def _last_bound(self, reason: str) -> UpperBoundResult | None:
        """Evaluate the deterministic bound after the last iteration, if it is asked for or cheap."""
        if self.evaluator is None:
            return None
        if not self.case.training.upper_bound.enabled:
            self.upper_bound_note = self._limit_bound(self.evaluator, reason)
            if self.upper_bound_note is not None:
                return None
        bound = self.evaluator.finish(len(self.history))
        self.upper_bound_note = bound.reason_unavailable
        return bound

    def _limit_bound(self, evaluator: UpperBoundEvaluator, reason: str) -> str | None:
        """Limit a bound that nobody asked for to what it may take; return why there is none."""
        if reason == "graceful_shutdown":
            return f"not computed by a run that was stopped; {HOW_TO_ASK}"
        if self.visited.count != len(self.history) * self.passes:
            return f"not computed: the checkpoint held no visited states; {HOW_TO_ASK}"
        lps = sum(record.lp_solves for record in self.history)
        states, columns = self.lp.state_col.shape[1], int(self.lp.num_cols.max())
        most = min(MOST_VERTICES, self.visited.count)
        sizes = self.graph, self.tree.num_openings, states, columns, lps, most
        evaluator.most_vertices = allowed_vertices(*sizes)
        if evaluator.most_vertices:
            return None
        return f"not computed: it would take more than a third of the run; {HOW_TO_ASK}"

    def _iterate(self, iteration: int, split_costs: bool) -> IterationRecord:
        """Run one iteration (from 0) and report it, with what its cost was paid for if asked."""
        began = time.perf_counter()
        cuts_before = int(self.pool.num_cuts.sum())
        self.buffers.lp_counts[:] = 0
        self.selector.prepare(iteration + 1)
        self._draw(iteration)
        with kernel_lock:
            status = self.entry(*self._arguments(iteration))
        if status != ITERATION_OK:
            self._raise_failure(status, iteration)
        ranks, lps, costs = self._gather_reports(iteration + 1, split_costs)
        lower_bound = float(ranks[timing.ROOT, timing.LOWER_BOUND_VALUE])
        if np.isnan(lower_bound):
            self._raise_failure(ITERATION_FAILED, iteration)
        self.timings += iteration_timings(iteration + 1, ranks)
        self.lp_statistics.append(lps)
        selected = self.selector.select(iteration + 1)
        self.selection += selected
        self.selected = selected
        removed = sum(record.cuts_deactivated + (record.budget_evicted or 0) for record in selected)
        self.cuts_removed += removed
        longest = ranks.max(axis=0)
        outcome = self.buffers.outcome
        cuts = int(self.pool.num_cuts.sum())
        now = time.perf_counter()
        return IterationRecord(
            iteration=iteration + 1,
            lower_bound=lower_bound,
            upper_bound=float(outcome[fields.UPPER_BOUND]),
            upper_bound_std=float(outcome[fields.UPPER_BOUND_STD]),
            upper_bound_kind="exact" if self.one_or_all_paths else "statistical",
            lower_bound_kind=self.lower_bound_kind,
            risk_averse=self.risk_averse,
            forward_passes=int(self._passes_made().sum()),
            cuts_added=cuts - cuts_before,
            cuts_active=cuts - self.cuts_removed,
            lp_solves=lps.total(counts.LP_SOLVES),
            lp_retries=lps.total(counts.LP_RETRIES),
            simplex_iterations=lps.total(counts.SIMPLEX_ITERATIONS),
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
        lps = (self._stage_lps(), self.graph, self.pool, self.buffers)
        raise_failure(status, iteration, self.comm, *lps, self.failure_directory)

    def _gather_reports(
        self, iteration: int, split_costs: bool
    ) -> tuple[NDArray[np.float64], IterationLps, CostBreakdown | None]:
        """Return the rows of all ranks, their LPs, and what passes were paid for if asked; collective."""
        own = own_costs(self.buffers) if split_costs else np.zeros((len(self.buffers.pass_own), 0))
        solved = own_counts(self.buffers.lp_counts)
        words, columns = own.shape[1], timing.RANK_COLUMNS
        head = columns + len(solved)
        lengths = head + self.buffers.pass_count * words
        parts = gather_parts(self.comm, np.concatenate([self._own_row(), solved, own.reshape(-1)]), lengths)
        rows = np.stack([part[:columns] for part in parts])
        lps = iteration_lps(iteration, [part[columns:head] for part in parts])
        if not split_costs:
            return rows, lps, None
        costs = np.concatenate([part[head:] for part in parts]).reshape(-1, words)
        stages = [stage.id for stage in self.case.stages]
        payers = self.payers
        return rows, lps, cost_breakdown(costs, self._pass_weights(), iteration, stages, payers)

    def _own_row(self) -> NDArray[np.float64]:
        """Return what this rank reports of an iteration; see :mod:`cobre.sddp.timing`."""
        row = np.zeros(timing.RANK_COLUMNS)
        elapsed = self.buffers.elapsed_ns
        for column, timer in (
            (timing.FORWARD, fields.FORWARD_NS),
            (timing.BACKWARD, fields.BACKWARD_NS),
            (timing.LOWER_BOUND, fields.LOWER_BOUND_NS),
            (timing.COMMUNICATION, fields.COMMUNICATION_NS),
        ):
            row[column] = elapsed[timer] / _NS_PER_MS
        row[timing.LP_SOLVES] = self.buffers.lp_counts[:, :, counts.LP_SOLVES].sum()
        first = self.buffers.pass_start[self.comm.rank]
        row[timing.SCENARIOS] = self._passes_made()[first : first + len(self.buffers.pass_own)].sum()
        row[timing.LOWER_BOUND_VALUE] = self.buffers.outcome[fields.LOWER_BOUND]
        return row

    def _stage_costs(self) -> tuple[float, ...]:
        """Return the mean cost of each stage, summed in the order of passes; empty unless a rule needs it."""
        if not any(rule.needs_stage_costs for rule in self.case.training.stopping_rules):
            return ()
        costs, weights = self.buffers.stage_cost_all, self._pass_weights()
        return tuple(float(sum(weights * costs[:, stage])) for stage in range(costs.shape[1]))

    def _pass_weights(self) -> NDArray[np.float64]:
        """Return the weight of each forward pass in means: its probability, 0 where it is not made."""
        weights = self.graph.path_weight
        made = self._passes_made()
        return weights if len(weights) else made / made.sum()

    def _passes_made(self) -> NDArray[np.bool_]:
        """Return which passes the last iteration made."""
        made: NDArray[np.bool_] = self.buffers.model_all == np.arange(self.passes)
        return made

    def _policy(self) -> Policy:
        """Return the cuts of the pool, and what the iterations so far have found."""
        counts, pool, history = [int(count) for count in self.pool.num_cuts], self.pool, self.history
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
                for node, part in zip(case_nodes(self.case, self.floors), cuts, strict=True)
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
            cost_scale_factor=self.cost_scale,
            started_from=self.storage.started_from,
            lower_bound_kind=history[-1].lower_bound_kind if history else "bound",
            lp_engine=self.lp_engine,
        )
