"""Simulating a policy from beginning to end: plan, sweeps, results on disk.

Python, the command line and the ranks of a job all simulate by :func:`simulate_case`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.case.model import Case
from cobre.comm import Communicator
from cobre.sddp.simulation.plan import (
    SimulationArguments,
    SimulationPlan,
    make_simulation_plan,
    plan_simulation_together,
)
from cobre.sddp.simulation.result import SimulationProgress, SimulationResult

if TYPE_CHECKING:
    from cobre.lp import StageTemplate, StateLayout
    from cobre.sddp.simulation.session import OnProgress, ResultWriter

OnStart = Callable[[SimulationPlan], object]


def simulate_case(
    case: Case,
    options: SimulationArguments,
    *,
    ranks: int,
    threads: int | None,
    backend: str,
    on_start: OnStart | None,
    on_progress: OnProgress | None,
    communicator: Communicator | None,
) -> SimulationResult:
    """Carry out :meth:`cobre.Study.simulate`; arguments but their combination are checked."""
    from cobre.sddp.ranks.cpus import requested_threads, threads_of_ranks
    from cobre.sddp.study import backend_of_one, refuse_nested_job, share_of_processors

    if ranks > 1 and backend != "local":
        from cobre.sddp.ranks.workers import check_backend

        backend = check_backend(backend)
        refuse_nested_job(ranks)
        plan = make_simulation_plan(case, options, ranks, threads or threads_of_ranks(ranks))
        if on_start is not None:
            on_start(plan)
        return _simulate_on_ranks(plan, backend, on_progress)
    from cobre.comm import create_communicator

    with ExitStack() as resources:
        comm = communicator or resources.enter_context(create_communicator(backend_of_one(backend)))
        own = threads or requested_threads() or share_of_processors(comm)
        plan = plan_simulation_together(comm, case, options, own)
        if on_start is not None:
            on_start(plan)
        return _simulate(comm, plan, on_progress)


def _simulate(comm: Communicator, plan: SimulationPlan, on_progress: OnProgress | None) -> SimulationResult:
    from cobre.sddp.simulation.session import simulate_together

    began = datetime.datetime.now(datetime.timezone.utc)

    def make_writer(
        directory: Path,
        plan: SimulationPlan,
        templates: Sequence[StageTemplate],
        layout: StateLayout,
    ) -> ResultWriter:
        return _Writer(directory, plan, templates, layout, began)

    return simulate_together(plan, comm, on_progress, make_writer)


class _Writer:
    """Writes the tables of blocks, and at the end what belongs to all of them."""

    def __init__(
        self,
        directory: Path,
        plan: SimulationPlan,
        templates: Sequence[StageTemplate],
        layout: StateLayout,
        began: datetime.datetime,
    ) -> None:
        from cobre.results.simulation import SimulationTables, SimulationWriter

        self._directory, self._plan, self._began = directory, plan, began
        self._tables = SimulationWriter(directory, SimulationTables(plan.case, templates, layout))
        self.write_block = self._tables.write_block

    def finish(self, blocks: int, result: SimulationResult, study: Mapping[str, Any]) -> None:
        """Write the single files, the solver's tables and the description; ``_SUCCESS`` comes last."""
        from cobre.results.simulation.run_files import write_run_files

        self._tables.finish(blocks)
        write_run_files(self._directory, self._plan.case, result, study, self._began)


def _simulate_on_ranks(
    plan: SimulationPlan, backend: str, on_progress: OnProgress | None
) -> SimulationResult:
    """Simulate on several new processes, which end with this call; the result is that of rank 0."""
    from cobre.comm.errors import CollectiveFailed
    from cobre.comm.launch import launch
    from cobre.errors import WorkerError
    from cobre.sddp.ranks.cpus import rank_environment
    from cobre.sddp.ranks.losses import AFTER_A_LOSS_SIMULATING

    try:
        results = launch(
            _simulate_rank,
            plan.ranks,
            backend=backend,
            args=(replace(plan, warnings=()), on_progress is not None),
            on_progress=None if on_progress is None else lambda rank, item: on_progress(item),
            environment=rank_environment(plan.threads),
        )
    except WorkerError as error:
        killed = error.exit_code is not None and error.exit_code < 0
        if killed or isinstance(error.inner, CollectiveFailed):
            error.suggestion = AFTER_A_LOSS_SIMULATING
        raise
    result: SimulationResult = results[0]
    return replace(result, warnings=plan.warnings + result.warnings)


def _simulate_rank(comm: Communicator, plan: SimulationPlan, watched: bool) -> SimulationResult | None:
    """Simulate on one rank; rank 0 asks the parent after each round whether to go on."""
    from cobre.comm.launch import ask
    from cobre.sddp.ranks.workers import StopRequest

    stop = StopRequest()

    def on_progress(progress: SimulationProgress) -> bool:
        asked = watched and comm.rank == 0 and ask(progress)
        return asked or stop.came

    result = _simulate(comm, plan, on_progress)
    return result if comm.rank == 0 else None
