"""The driver of a simulation: sets it up, calls the sweeps block by block, and adds up what they find.

Scenarios form blocks whose size depends on the case alone, so that memory does not grow with their number.
In a round every rank takes one block, writes its tables, and all ranks gather what is kept of their blocks,
with whether anybody asks to stop. Blocks end as they would on one rank with one thread; they are added up in
their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from cobre._version import __version__
from cobre.case.model import Case
from cobre.comm import Communicator
from cobre.distribution import distribution_of
from cobre.errors import Problem
from cobre.lp import StageTemplate, StateLayout, build_templates, scale_templates
from cobre.lp import arrays as lp_arrays
from cobre.lp.cost_components import component_names, cost_map
from cobre.lp.engine import OK
from cobre.lp.engines.choice import chosen_forms, used_engine
from cobre.lp.engines.own.setup import OwnEngine
from cobre.lp.engines.own.stored_bases import BasisPacker
from cobre.lp.highs import HighsModel
from cobre.lp.index import ABSENT
from cobre.native import compile_guard
from cobre.policy import LpEngines, boundary_cuts, cuts_to_simulate, future_cost_floor, read_policy
from cobre.sddp.compilation import compiling_engine_ahead
from cobre.sddp.costs import cost_breakdown
from cobre.sddp.failure import LpPlace, explained_failure
from cobre.sddp.kernel.buffers import LP_COUNTS
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.ranks.agreement import (
    failing_together,
    gather_parts,
    gather_rows,
    require_same_study,
    text_of_root,
)
from cobre.sddp.ranks.memory import return_unused_memory
from cobre.sddp.ranks.sharing import share_stage_lps, shared_cut_pool, shared_numbers
from cobre.sddp.ranks.threads import kernel_lock, use_threads
from cobre.sddp.simulation.arrays import (
    FAILED_STAGE,
    FAILED_STATUS,
    FIRST_SCENARIO,
    NUM_SCENARIOS,
    SimulationStructs,
    scenario_arrays,
    scenario_words,
)
from cobre.sddp.simulation.block import SimulatedBlock, SimulatedStage
from cobre.sddp.simulation.draws import draw_scenarios, draw_shared_points
from cobre.sddp.simulation.plan import SimulationPlan
from cobre.sddp.simulation.result import SimulationProgress, SimulationResult
from cobre.sddp.simulation.storage import SimulationStore, topics_of
from cobre.sddp.simulation.sweep import bind_worker, simulate_stage
from cobre.sddp.simulation.totals import Totals
from cobre.stochastic import build_opening_tree, make_sampler

FloatArray = NDArray[np.float64]
OnProgress = Callable[[SimulationProgress], object]

GROUP: Final = 16
"""Scenarios of which one worker takes all at a stage."""

_LARGEST_BLOCK: Final = 128
_BLOCK_BYTES: Final = 1 << 27
_WORD_BYTES: Final = 8


class ResultWriter(Protocol):
    """Writes what a simulation leaves; one for each rank."""

    def write_block(self, number: int, block: SimulatedBlock) -> None:
        """Write the tables of block ``number``; they are complete on disk when it returns."""

    def finish(self, blocks: int, result: SimulationResult, study: Mapping[str, Any]) -> None:
        """Write what belongs to all ``blocks`` blocks, ``study`` too; on one rank, when all are written."""


MakeWriter = Callable[[Path, SimulationPlan, Sequence[StageTemplate], StateLayout], ResultWriter]
"""Makes a writer for a directory."""


def simulate_together(
    plan: SimulationPlan,
    comm: Communicator,
    on_progress: OnProgress | None = None,
    make_writer: MakeWriter | None = None,
) -> SimulationResult:
    """Simulate a policy on the ranks of a communicator; collective.

    All ranks call it with the same case, policy and options and get the same result. Neither the number of
    ranks nor that of threads changes a bit of the tables or of the result.

    Parameters
    ----------
    on_progress
        Called after each round of blocks, on the ranks that give one; a true return value on any rank stops
        all of them.
    make_writer
        Makes what writes results; nothing is written without.

    Raises
    ------
    ValidationError
        When the policy does not fit the case, or an interrupted simulation is of something else.
    SolverError
        When a stage LP cannot be solved; on all ranks.
    OutputError
        When tables cannot be written; on all ranks.
    """
    with ExitStack() as resources:
        return _Session(plan, comm, resources, make_writer).run(on_progress)


class _Session:
    """One simulation on this rank: the arrays, the LP objects and the loop."""

    def __init__(
        self, plan: SimulationPlan, comm: Communicator, resources: ExitStack, make_writer: MakeWriter | None
    ) -> None:
        self.plan, self.case, self.comm = plan, plan.case, comm
        self.began = time.perf_counter()
        first = any(comm.rank == host.ranks[0] for host in comm.topology().hosts)
        with compiling_engine_ahead(first):
            self._set_up(resources, first)
        self.own.load_engine()
        self.compile_time_ms = (time.perf_counter() - self.began) * 1e3
        self.store: SimulationStore | None = None
        self.writer: ResultWriter | None = None
        if plan.output is not None and make_writer is not None:
            self.store = SimulationStore(plan.output)
            self.writer = make_writer(self.store.directory, plan, self.templates, self.layout)

    def _set_up(self, resources: ExitStack, first: bool) -> None:
        comm = self.comm
        with failing_together(comm):
            use_threads(self.plan.threads)
            self._build()
        require_same_study(
            comm, self.scaled, self.tree, self.layout.initial, self.boundary, self.cuts, self.plan.seed
        )
        self._allocate(resources)
        del self.scaled, self.cuts, self.forms
        return_unused_memory()
        # The first rank of a host compiles; the others load.
        with failing_together(comm):
            if first:
                self._compile()
        if not first:
            self._compile()

    def _build(self) -> None:
        """Make the numbers of the study, the same on all ranks."""
        case, plan = self.case, self.plan
        self.layout = StateLayout(case)
        self.tree = build_opening_tree(case, model=self.layout.inflow)
        components = [(part.kind, part.entity_id, part.offset) for part in self.layout.components]
        self.boundary = boundary_cuts(case, components)
        floor = None if self.boundary is None else partial(future_cost_floor, self.boundary)
        self.templates = build_templates(case, self.tree, self.layout, floor)
        self.scaled, self.scaling = scale_templates(self.templates)
        self.payers = cost_map(self.scaled).payers
        policy = plan.policy
        if policy is None:
            assert plan.policy_path is not None
            policy = read_policy(plan.policy_path, case, self.layout)
        loaded = cuts_to_simulate(policy, case, self.layout, self.templates, plan.fingerprint)
        self.cuts, self.policy_warnings = loaded.cuts, loaded.warnings
        self.first_bases = loaded.first_bases
        self.graph = graph_arrays(case, self.tree.num_openings, section="simulation")
        self.forms = chosen_forms(plan.lp_engine, self.scaled)
        self.engines = LpEngines(plan.lp_engine, used_engine(self.forms))

    def _allocate(self, resources: ExitStack) -> None:
        _plan, graph, comm, threads = self.plan, self.graph, self.comm, self.plan.threads
        # One LP for each node of a stage is loaded at a time.
        model = np.arange(len(self.scaled)) - graph.stage_start[graph.node_stage]
        self.lp, self.lp_region = share_stage_lps(comm, lp_arrays.lp_arrays(self.scaled, model))
        ends = 0 if self.boundary is None else len(self.boundary.intercepts)
        capacity = max(ends, *(len(intercepts) for intercepts, _ in self.cuts))
        nodes, states = self.lp.state_col.shape
        handles = np.zeros((threads, int(model.max()) + 1), np.intp)
        for place in np.ndindex(handles.shape):
            handles[place] = resources.enter_context(HighsModel(None)).handle
        self.pool, self.region, self.warnings = shared_cut_pool(comm, nodes, capacity, states)
        for node, (intercepts, slopes) in enumerate(self.cuts):
            self._put_cuts(slice(node, node + 1), intercepts, slopes)
        if self.boundary is not None:
            last = slice(int(graph.stage_start[-2]), nodes)
            self._put_cuts(last, self.boundary.intercepts, self.boundary.slopes)
        self.total = len(graph.path_weight) or self.case.simulation.num_scenarios
        self.size = _block_size(scenario_words(self.lp, graph), self.total)
        groups = -(-self.size // GROUP)
        work = lp_arrays.lp_workspace(self.lp, handles, capacity, self.pool.added_per_round)
        self.basis = lp_arrays.basis_store(self.lp, groups, capacity)
        self.own = OwnEngine(
            self.lp,
            self.pool,
            self.forms,
            [template.opening_values for template in self.scaled],
            threads,
            groups,
            self._make_archive,
        )
        self.starts = BasisPacker(self.own.store, self.forms)
        self.block = scenario_arrays(
            self.lp, graph, self.layout, self.scaled, self.forms, self.size, GROUP, threads
        )
        self.sampler = make_sampler(
            self.case,
            self.layout.inflow,
            self.tree,
            source=self.case.simulation.source,
            passes=self.total,
            block=(0, self.size),
        )
        self.structs = SimulationStructs(
            self.lp, graph, self.pool, work, self.basis, self.block, self.own.arrays
        )
        self.deficit = [
            _deficit_columns(self.case, graph, node, part) for node, part in enumerate(self.templates)
        ]
        stages = len(self.case.stages)
        # What is kept of a block: by scenario, then sums over its scenarios.
        self.totals = Totals((stages * len(component_names()), len(self.payers), stages * LP_COUNTS))

    def _put_cuts(self, nodes: slice, intercepts: FloatArray, slopes: FloatArray) -> None:
        count = len(intercepts)
        if count:
            self.pool.intercept[nodes, :count] = intercepts
            self.pool.slope[nodes, :count] = slopes
        self.pool.num_cuts[nodes] = count

    def _make_archive(self, count: int) -> FloatArray:
        numbers, self.archive_region = shared_numbers(self.comm, count)
        return numbers

    def _compile(self) -> None:
        """Compile the kernels, or load them."""
        bind_worker()
        with compile_guard("simulate"):
            arguments = (self.structs.addresses, np.int64(0), np.int64(self.plan.threads))
            simulate_stage.compile(tuple(numba.typeof(argument) for argument in arguments))
            if len(self.sampler.fresh_stage):
                self._draw(0, 0)
            draw_scenarios.compile(
                tuple(
                    numba.typeof(argument)
                    for argument in (self.sampler, self.structs.addresses, np.uint64(self.plan.seed))
                )
            )

    # The loop.

    def run(self, on_progress: OnProgress | None) -> SimulationResult:
        """Take the blocks round by round until all are done or a rank's callback asks to stop."""
        known, warnings = self._begin()
        resumed = sum(self._count(number) for number in known)
        stop = False
        try:
            self._add_up({}, known)
            self._report(on_progress, resumed)
            left = [number for number in range(self._blocks) if number not in known]
            for start in range(0, len(left), self.comm.size):
                self._add_up(self._round(left[start : start + self.comm.size]), known)
                stop = self._report(on_progress, resumed)
                if stop:
                    break
        except BaseException:
            if self.store is not None and self.comm.rank == 0:
                self.store.discard_if_empty()
            raise
        result = self._outcome(resumed, warnings)
        return result if self.totals.next_block < self._blocks else self._finished(result)

    def _add_up(self, records: dict[int, FloatArray], known: frozenset[int]) -> None:
        """Add up blocks in their order: those of a round, and those that are known before they come."""
        with failing_together(self.comm):
            while (number := self.totals.next_block) in records or number in known:
                record = records.get(number)
                if record is None:
                    assert self.store is not None
                    record = self.store.record(number, self.totals.length(self._count(number)))
                self.totals.add(record, self._count(number))

    def _finished(self, result: SimulationResult) -> SimulationResult:
        """Write what belongs to all blocks, and give the simulation its name; collective."""
        with failing_together(self.comm):
            if self.comm.rank == 0 and self.store is not None and self.writer is not None:
                self.writer.finish(self._blocks, result, self.study())
                self.store.finish()
        return result

    @property
    def _blocks(self) -> int:
        return -(-self.total // self.size)

    def _count(self, number: int) -> int:
        """Return how many scenarios a block has."""
        return min(self.size, self.total - number * self.size)

    def _begin(self) -> tuple[frozenset[int], tuple[Problem, ...]]:
        """Make the directory of the results, or find the blocks of the one that is gone on with."""
        if self.store is None:
            return frozenset(), ()
        warnings: tuple[Problem, ...] = ()
        done: list[int] = []
        with failing_together(self.comm):
            if self.comm.rank == 0:
                done, warnings = self.store.begin(self.study(), resume=self.plan.resume)
        text = text_of_root(self.comm, ",".join(map(str, done)))
        return frozenset(int(number) for number in text.split(",") if number), warnings

    def study(self) -> dict[str, Any]:
        """Return everything that the results depend on, for JSON; on the rank that writes."""
        plan, simulation = self.plan, self.case.simulation
        fingerprint = plan.fingerprint
        source = asdict(simulation.source)
        years = source["historical_years"]
        return {
            "software_version": __version__,
            "topics": {} if fingerprint is None else topics_of(fingerprint),
            "policy_sha256": plan.policy_sha256,
            "scenarios": "enumerated" if simulation.enumerated else simulation.num_scenarios,
            "source": {**source, "historical_years": None if years is None else list(years)},
            "seed": plan.seed,
            "lp_engine": plan.lp_engine,
            "first_bases": None if self.first_bases is None else self.first_bases.sha256(),
            "block": self.size,
        }

    def _round(self, taken: Sequence[int]) -> dict[int, FloatArray]:
        """Simulate a block on each rank that has one, and gather what is kept of them; collective."""
        own = np.zeros(0)
        with failing_together(self.comm):
            if self.comm.rank < len(taken):
                own = self._take(taken[self.comm.rank])
        lengths = np.zeros(self.comm.size, np.int64)
        lengths[: len(taken)] = [self.totals.length(self._count(number)) for number in taken]
        parts = gather_parts(self.comm, own, lengths)
        return dict(zip(taken, parts, strict=False))

    def _take(self, number: int) -> FloatArray:
        """Simulate a block, write its tables, and return what is kept of it."""
        count = self._count(number)
        self._draw(number, count)
        start = () if self.first_bases is None else self.first_bases.by_node()
        self.starts.unpack_as_start(start, self.pool.num_cuts)
        self.basis.num_rows[:] = 0
        self.block.lp_counts[:] = 0
        self.block.failure[:] = OK
        workers = np.int64(self.plan.threads)
        with kernel_lock:
            for stage in range(len(self.case.stages)):
                self._put_in_order(stage, count)
                simulate_stage(self.structs.addresses, np.int64(stage), workers)
        failed = np.flatnonzero(self.block.failure[:count, FAILED_STATUS] != OK)
        if len(failed):
            self._raise_failure(number, int(failed[0]))
        block = self._simulated(number, count)
        record = self._record(block, count)
        if self.writer is not None and self.store is not None:
            self.writer.write_block(number, block)
            self.store.put_record(number, record)
        return record

    def _put_in_order(self, stage: int, count: int) -> None:
        """Let scenarios that are alike follow each other: by node, what flows in, and the water there is."""
        block, hydros = self.block, len(self.case.hydros)
        inflow = block.noise[:count, stage, :hydros].sum(axis=1)
        stored = block.state[stage, :count, :hydros].sum(axis=1)
        block.order[:count] = np.lexsort((stored, inflow, block.node_all[:count, stage]))

    def _draw(self, number: int, count: int) -> None:
        first = number * self.size
        self.block.counts[NUM_SCENARIOS] = count
        self.block.counts[FIRST_SCENARIO] = first
        sampler = self.sampler
        if len(sampler.fresh_stage):
            fresh = sampler.fresh
            if count < self.size:
                fresh = np.zeros((len(fresh), count, fresh.shape[2]))
            sampler = sampler._replace(passes=np.array([self.total, first, count], np.int64), fresh=fresh)
            draw_shared_points(sampler)
        draw_scenarios(sampler, self.structs.addresses, np.uint64(self.plan.seed))

    def _simulated(self, number: int, count: int) -> SimulatedBlock:
        """Return the block as views of the buffers, which the next block overwrites."""
        block, weight = self.block, self.graph.path_weight
        first = number * self.size
        stages = []
        for stage in range(len(self.case.stages)):
            stages.append(
                SimulatedStage(
                    node=block.node_all[:count, stage],
                    columns=self._part(block.column, block.column_start, block.column_width, stage)[:count],
                    duals=self._part(block.dual, block.dual_start, block.dual_width, stage)[:count],
                    realised=block.realised[stage, :count],
                    incoming=block.state[stage, :count],
                    discount=block.discount[stage, :count],
                )
            )
        probability = weight[first : first + count] if len(weight) else None
        return SimulatedBlock(first, probability, tuple(stages))

    def _part(
        self, flat: FloatArray, start: NDArray[np.int64], width: NDArray[np.int64], stage: int
    ) -> FloatArray:
        first, wide = int(start[stage]), int(width[stage])
        return flat[first : first + self.size * wide].reshape(self.size, wide)

    def _record(self, block: SimulatedBlock, count: int) -> FloatArray:
        """Return what is kept of a block: of scenarios cost, terminal value and deficit; then sums."""
        arrays, last = self.block, len(self.case.stages) - 1
        cost = np.zeros(count)
        deficit = np.zeros(count)
        for stage, part in enumerate(block.stages):
            cost += part.discount * arrays.stage_cost[:count, stage]
            for node in np.unique(part.node):
                ids, hours = self.deficit[node]
                here = np.flatnonzero(part.node == node)
                deficit[here] += _weighted_rows(part.columns[np.ix_(here, ids)], hours)
        terminal = block.stages[last].discount * arrays.future_cost[:count, last]
        weights = np.ones(count) if block.probability is None else block.probability
        by_component = arrays.component_cost[:count].reshape(count, -1)
        sums = [
            _folded(by_component, weights),
            _folded(arrays.payer_cost[:count], weights)[: len(self.payers)],
            arrays.lp_counts.sum(axis=0).astype(np.float64).ravel(),
        ]
        return np.concatenate([cost, terminal, deficit, *sums])

    def _report(self, on_progress: OnProgress | None, resumed: int) -> bool:
        """Report how far the simulation is; return whether any rank asks to stop; collective."""
        asked = False
        if on_progress is not None:
            totals, elapsed_ms = self.totals, (time.perf_counter() - self.began) * 1e3
            progress = SimulationProgress(totals.scenarios, self.total, resumed, totals.mean_cost, elapsed_ms)
            asked = bool(on_progress(progress))
        return bool(gather_rows(self.comm, np.array([asked], np.float64)).any())

    def _raise_failure(self, number: int, place: int) -> NoReturn:
        block, failed = self.block, self.block.failure[place]
        stage = int(failed[FAILED_STAGE])
        node = int(block.node_all[place, stage])
        template = self.templates[node]
        where = LpPlace(
            stage=template.stage_id,
            node=node,
            scenario=number * self.size + place,
            opening=int(block.opening_all[place, stage]),
            phase="simulation",
            iteration=0,
        )
        raise explained_failure(
            int(failed[FAILED_STATUS]),
            where,
            template,
            self.pool,
            noise=block.noise[place, stage],
            state=block.state[stage, place],
            directory=self.plan.failure_directory,
        )

    # The result.

    def _outcome(self, resumed: int, warnings: tuple[Problem, ...]) -> SimulationResult:
        cost, terminal, deficit = self.totals.by_scenario()
        sums = self.totals.sums
        weight = self.graph.path_weight
        done = len(cost)
        probability = weight[:done] / weight[:done].sum() if len(weight) and done < self.total else weight
        weighted = len(weight) > 0
        scale = np.array([1.0 / (weight[:done].sum() if weighted else done)])
        costs = cost_breakdown(
            np.concatenate(sums[:2])[None],
            scale,
            0,
            [stage.id for stage in self.case.stages],
            self.payers,
        )
        mean_terminal = float(terminal @ probability) if weighted else float(np.sum(terminal)) / done
        return SimulationResult(
            scenarios=done,
            scenarios_planned=self.total,
            kind="exact" if weighted else "sample",
            cost=distribution_of(cost, probability if weighted else None),
            scenario_cost=cost,
            probability=probability if weighted else None,
            scenario_deficit_mwh=deficit,
            terminal_value=mean_terminal,
            costs=costs,
            lp_counts=sums[2].astype(np.int64).reshape(-1, LP_COUNTS),
            lp_engine=self.engines,
            output=self.plan.output if self.store is not None else None,
            policy_sha256=self.plan.policy_sha256,
            seed=self.plan.seed,
            backend=self.comm.backend,
            ranks=self.comm.size,
            threads=self.plan.threads,
            total_time_ms=(time.perf_counter() - self.began) * 1e3,
            compile_time_ms=self.compile_time_ms,
            scenarios_resumed=resumed,
            warnings=self._all_warnings() + warnings,
        )

    def _all_warnings(self) -> tuple[Problem, ...]:
        boundary = () if self.boundary is None else self.boundary.warnings
        return self.plan.warnings + self.scaling.problems + self.warnings + boundary + self.policy_warnings


def _block_size(words: int, total: int) -> int:
    """Return how many scenarios a block has: whole groups, as many as fit into its memory."""
    most = _BLOCK_BYTES // (words * _WORD_BYTES) // GROUP * GROUP
    return max(GROUP, min(most, _LARGEST_BLOCK, -(-total // GROUP) * GROUP))


def _deficit_columns(
    case: Case, graph: Any, node: int, template: StageTemplate
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the columns of load that is not served, and the hours of each."""
    family = template.index.columns.get("bus_deficit")
    if family is None:
        return np.zeros(0, np.int64), np.zeros(0)
    hours = np.array([block.hours for block in case.stages[int(graph.node_stage[node])].blocks])
    present = family.ids != ABSENT
    return family.ids[present].astype(np.int64), np.broadcast_to(hours, family.ids.shape)[present]


def _weighted_rows(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of each row, added up column by column whatever the number of rows."""
    total = np.zeros(len(values))
    for column, weight in enumerate(weights.tolist()):
        total += weight * values[:, column]
    return total


def _folded(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of rows, added up in their order."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights.tolist(), rows, strict=True):
        total += weight * row
    return total


__all__ = ["MakeWriter", "OnProgress", "ResultWriter", "simulate_together"]
