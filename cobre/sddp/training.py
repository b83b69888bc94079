"""The Python driver: sets training up, calls the iteration kernel, and reports between iterations."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from cobre.case.model import Case
from cobre.comm import Communicator, create_communicator
from cobre.comm.status import error_from_status
from cobre.errors import CobreError, Problem, SolverError, ValidationError
from cobre.lp import StageTemplate, StateLayout, build_templates, diagnose, scale_templates
from cobre.lp import arrays as lp_arrays
from cobre.lp.highs import HighsModel
from cobre.native import compile_guard
from cobre.policy_files import boundary_cuts, future_cost_floor
from cobre.sddp import buffers as fields
from cobre.sddp.graph import graph_arrays
from cobre.sddp.iteration import (
    BAD_RECORD,
    COMMUNICATION_FAILED,
    ITERATION_FAILED,
    ITERATION_OK,
    iterate_local,
)
from cobre.sddp.policy import Policy
from cobre.sddp.progress import IterationRecord, TrainingResult
from cobre.sddp.threads import kernel_lock, use_threads
from cobre.sddp.upper_bound import UpperBoundEvaluator
from cobre.sddp.visited import VisitedStates
from cobre.stochastic import OpeningTree, build_opening_tree

OnIteration = Callable[[IterationRecord], object]

_ENTRIES: dict[str, Any] = {"local": iterate_local}
_PHASES = {
    fields.PHASE_FORWARD: "forward pass",
    fields.PHASE_BACKWARD: "backward pass",
    fields.PHASE_LOWER_BOUND: "lower bound",
}
_NS_PER_MS = 1.0e6
_NAMED_ROWS = 5


def train(
    case: Case,
    *,
    iterations: int | None = None,
    seed: int | None = None,
    threads: int = 1,
    backend: str = "auto",
    on_iteration: OnIteration | None = None,
    failure_directory: Path | None = None,
) -> TrainingResult:
    """Train a policy by SDDP.

    Parameters
    ----------
    case
        The study, see :func:`cobre.case.load`.
    iterations
        Iteration limit in place of the case's.
    seed
        Seed of the opening tree and of the forward draws in place of the case's ``tree_seed``.
    threads
        Threads of this rank. Neither their number nor their timing changes a bit of the result.
    backend
        Communicator, or ``"auto"`` to let the environment decide.
    on_iteration
        Called after each iteration with its :class:`IterationRecord`; a true return value stops training.
    failure_directory
        Where an LP that cannot be solved is written; by default ``output`` in the case directory.

    Raises
    ------
    ValidationError
        When an argument is out of range, or the boundary policy of the case does not fit it.
    SolverError
        When a stage LP cannot be solved.
    """
    _check_arguments(iterations, seed, threads)
    changes: dict[str, Any] = {}
    if iterations is not None:
        changes["iteration_limit"] = iterations
    if seed is not None:
        changes["tree_seed"] = seed
    case = replace(case, training=replace(case.training, **changes))
    with ExitStack() as resources:
        comm = resources.enter_context(create_communicator(backend))
        session = _Session(case, comm, threads, failure_directory or case.path / "output", resources)
        return session.run(on_iteration)


def _check_arguments(iterations: int | None, seed: int | None, threads: int) -> None:
    problems = [
        Problem("InvalidValue", f"{name} must be {rule}, not {value}", {"field": name, "value": value})
        for name, value, lowest, rule in (
            ("iterations", iterations, 1, "1 or more"),
            ("seed", seed, 0, "0 or more"),
            ("threads", threads, 1, "1 or more"),
        )
        if value is not None and value < lowest
    ]
    if problems:
        raise ValidationError(problems, source="arguments")


def _entry_of(comm: Communicator) -> Any:
    """Return the iteration kernel compiled for the communicator's backend."""
    if comm.backend not in _ENTRIES:
        raise CobreError(
            "IncompatibleSettings",
            f"training does not run on the {comm.backend!r} communicator yet "
            f"(this is rank {comm.rank} of {comm.size})",
            {"setting": "backend", "requested_value": comm.backend, "available_backends": list(_ENTRIES)},
            "start one process, and use --threads for its cores",
        )
    return _ENTRIES[comm.backend]


class _Session:
    """One training run on this rank: the arrays, the LP objects and the loop."""

    def __init__(
        self, case: Case, comm: Communicator, threads: int, failure_directory: Path, resources: ExitStack
    ) -> None:
        self.case = case
        self.comm = comm
        self.threads = threads
        self.failure_directory = failure_directory
        self.began = time.perf_counter()
        self.entry = _entry_of(comm)
        use_threads(threads)
        # Everything that compiles happens in here, so that processes starting together compile once.
        with compile_guard(f"train-{comm.backend}"):
            compile_start = time.perf_counter()
            self.tree: OpeningTree = build_opening_tree(case)
            self.layout = StateLayout(case)
            components = [(part.kind, part.entity_id, part.offset) for part in self.layout.components]
            self.boundary = boundary_cuts(case, components)
            floor = None if self.boundary is None else partial(future_cost_floor, self.boundary)
            self.templates: tuple[StageTemplate, ...] = build_templates(case, self.tree, self.layout, floor)
            self.scaled, self.scaling = scale_templates(self.templates)
            self._allocate(resources)
            self.entry.compile(tuple(numba.typeof(argument) for argument in self._arguments(0)))
            self.compile_time_ms = (time.perf_counter() - compile_start) * 1e3

    def _allocate(self, resources: ExitStack) -> None:
        training = self.case.training
        self.lp = lp_arrays.lp_arrays(self.scaled)
        self.graph = graph_arrays(self.case, self.tree.num_openings)
        self.passes = passes = len(self.graph.path_weight) or training.forward_passes
        self.loaded_cuts = 0 if self.boundary is None else len(self.boundary.intercepts)
        # Training adds no cuts to the last stage, the only one that may start with some.
        capacity = max(training.iteration_limit * passes, self.loaded_cuts)
        nodes, states = self.lp.state_col.shape
        handles = np.zeros((self.threads, nodes), np.intp)
        for worker in range(self.threads):
            for node, template in enumerate(self.scaled):
                model = HighsModel(template)
                resources.callback(model.close)
                handles[worker, node] = model.handle
        self.pool = lp_arrays.cut_pool(nodes, capacity, states)
        if self.boundary is not None:
            last = int(self.graph.stage_start[-2])
            self.pool.intercept[last:, : self.loaded_cuts] = self.boundary.intercepts
            self.pool.slope[last:, : self.loaded_cuts] = self.boundary.slopes
            self.pool.num_cuts[last:] = self.loaded_cuts
        self.work = lp_arrays.lp_workspace(self.lp, handles, capacity, batch=passes)
        self.buffers = fields.iteration_buffers(
            self.lp, self.graph, self.layout.initial, passes, self.comm.rank, self.comm.size, self.threads
        )
        own = len(self.buffers.cost_own)
        self.basis = lp_arrays.basis_store(self.lp, max(own, 1), capacity)
        self.visited = VisitedStates(len(self.case.stages), states)
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
        seed = np.uint64(self.tree.seed)
        study = (self.lp, self.graph, self.pool, self.work, self.basis, self.buffers)
        return (*self.comm.kernel_arguments, *study, seed, iteration)

    def run(self, on_iteration: OnIteration | None) -> TrainingResult:
        """Iterate until the limit or until the callback asks to stop."""
        history: list[IterationRecord] = []
        reason = "iteration_limit"
        for iteration in range(self.case.training.iteration_limit):
            history.append(self._bounded(self._iterate(iteration)))
            if on_iteration is not None and on_iteration(history[-1]):
                if iteration + 1 < self.case.training.iteration_limit:
                    reason = "graceful_shutdown"
                break
        policy = self._policy()
        last = history[-1]
        bound = None if self.evaluator is None else self.evaluator.finish(len(history))
        return TrainingResult(
            iterations=len(history),
            lower_bound=last.lower_bound,
            upper_bound=last.upper_bound,
            upper_bound_std=last.upper_bound_std,
            termination_reason=reason,
            total_time_ms=(time.perf_counter() - self.began) * 1e3,
            compile_time_ms=self.compile_time_ms,
            lp_solves=sum(record.lp_solves for record in history),
            backend=self.comm.backend,
            ranks=self.comm.size,
            threads=self.threads,
            seed=self.tree.seed,
            policy=policy,
            policy_sha256=policy.sha256(),
            history=tuple(history),
            scaling=self.scaling,
            warnings=() if self.boundary is None else self.boundary.warnings,
            deterministic_bound=bound,
        )

    def _bounded(self, record: IterationRecord) -> IterationRecord:
        """Keep the states of the iteration, and evaluate the deterministic bound if its turn has come."""
        if self.evaluator is None:
            return record
        self.visited.append(self.buffers.state_all, self.buffers.node_all)
        return replace(record, deterministic_upper_bound=self.evaluator.after(record.iteration))

    def _iterate(self, iteration: int) -> IterationRecord:
        began = time.perf_counter()
        cuts_before = int(self.pool.num_cuts.sum())
        self.work.counters[:] = 0
        with kernel_lock:
            status = self.entry(*self._arguments(iteration))
        if status != ITERATION_OK:
            raise self._failure(status, iteration)
        counters = self.work.counters.sum(axis=0)
        outcome, elapsed = self.buffers.outcome, self.buffers.elapsed_ns
        cuts = int(self.pool.num_cuts.sum())
        now = time.perf_counter()
        return IterationRecord(
            iteration=iteration + 1,
            lower_bound=float(outcome[fields.LOWER_BOUND]),
            upper_bound=float(outcome[fields.UPPER_BOUND]),
            upper_bound_std=float(outcome[fields.UPPER_BOUND_STD]),
            upper_bound_kind="exact" if self.case.training.enumerated else "statistical",
            forward_passes=self.passes,
            cuts_added=cuts - cuts_before,
            cuts_active=cuts,
            lp_solves=int(counters[lp_arrays.LP_SOLVES]),
            lp_retries=int(counters[lp_arrays.LP_RETRIES]),
            simplex_iterations=int(counters[lp_arrays.SIMPLEX_ITERATIONS]),
            forward_time_ms=float(elapsed[fields.FORWARD_NS]) / _NS_PER_MS,
            backward_time_ms=float(elapsed[fields.BACKWARD_NS]) / _NS_PER_MS,
            communication_time_ms=float(elapsed[fields.COMMUNICATION_NS]) / _NS_PER_MS,
            iteration_time_ms=(now - began) * 1e3,
            wall_time_ms=(now - self.began) * 1e3,
        )

    def _policy(self) -> Policy:
        counts = [int(count) for count in self.pool.num_cuts]
        return Policy(
            stage_ids=tuple(template.stage_id for template in self.templates),
            node_ids=None if self.case.graph.is_chain else tuple(node.id for node in self.case.graph.nodes),
            state_names=self.layout.names,
            forward_passes=self.passes,
            intercepts=tuple(self.pool.intercept[t, :n].copy() for t, n in enumerate(counts)),
            slopes=tuple(self.pool.slope[t, :n].copy() for t, n in enumerate(counts)),
            future_cost_floor=tuple(
                float(template.col_lower[template.theta_col]) * template.cost_scale
                for template in self.templates
            ),
            boundary_cuts=self.loaded_cuts,
        )

    def _failure(self, status: int, iteration: int) -> BaseException:
        """Turn a kernel status into the whole story."""
        if status >= COMMUNICATION_FAILED:
            return error_from_status(status - COMMUNICATION_FAILED, self.comm.detail)
        failed = np.flatnonzero(self.buffers.failure[:, fields.FAILED_STATUS])
        if status == ITERATION_FAILED and len(failed):
            return self._solver_error(int(failed[0]), iteration)
        what = {
            BAD_RECORD: "a cut record with an impossible slot was received",
            ITERATION_FAILED: "another rank could not solve a stage LP",
        }.get(status, f"the iteration kernel returned status {status}")
        return CobreError("MpiError", what, {"iteration": iteration + 1, "rank": self.comm.rank})

    def _solver_error(self, own_pass: int, iteration: int) -> SolverError:
        """Explain the LP that failed, and write it as a file."""
        _, node, opening, phase = (int(value) for value in self.buffers.failure[own_pass])
        template, stage = self.templates[node], int(self.graph.node_stage[node])
        scenario = int(self.buffers.pass_start[self.comm.rank]) + own_pass
        state = self.buffers.initial_state if stage == 0 else self.buffers.state_own[stage - 1, own_pass]
        cuts = int(self.pool.num_cuts[node])
        name = f"failed_stage{template.stage_id}_scenario{scenario}_opening{opening}.mps"
        diagnosis = diagnose(
            template,
            self.pool.intercept[node, :cuts],
            self.pool.slope[node, :cuts],
            state,
            opening,
            self.failure_directory / name,
        )
        rows = [f"{violation.row} by {violation.amount:.6g}" for violation in diagnosis.violations]
        shown = "; ".join(rows[:_NAMED_ROWS]) or "none found when solved from scratch"
        return SolverError(
            f"the LP of stage {template.stage_id}, scenario {scenario}, opening {opening} ({_PHASES[phase]}, "
            f"iteration {iteration + 1}) could not be solved: {diagnosis.status}; "
            f"rows that cannot hold: {shown}",
            stage=template.stage_id,
            iteration=iteration + 1,
            scenario=scenario,
            opening=opening,
            solver_status=diagnosis.status,
            context={
                "phase": _PHASES[phase],
                "violated_rows": rows,
                "model_file": None if diagnosis.model_file is None else str(diagnosis.model_file),
                "model_file_error": diagnosis.model_file_error,
                "state": [float(value) for value in state],
            },
            suggestion="look at the limits and inflows of the entities named; "
            "negative inflows need inflow_non_negativity 'penalty' or 'truncation'",
        )
