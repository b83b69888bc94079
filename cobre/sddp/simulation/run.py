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
from cobre.sddp.ranks.placement import Processes, backend_of_one, share_of_processors
from cobre.sddp.simulation.plan import (
    SimulationArguments,
    SimulationPlan,
    make_simulation_plan,
    plan_simulation_together,
)
from cobre.sddp.simulation.result import SimulationResult

if TYPE_CHECKING:
    from cobre.lp import StageTemplate, StateLayout
    from cobre.sddp.simulation.session import OnProgress, ResultWriter

OnStart = Callable[[SimulationPlan], object]


def simulate_case(
    case: Case,
    options: SimulationArguments,
    processes: Processes | None,
    *,
    threads: int | None,
    backend: str,
    on_start: OnStart | None,
    on_progress: OnProgress | None,
    communicator: Communicator | None,
) -> SimulationResult:
    """Carry out :meth:`cobre.Study.simulate`, whose arguments are checked, there or in this process."""
    from cobre.sddp.ranks.cpus import requested_threads

    if processes is not None:
        plan = make_simulation_plan(case, options, processes.ranks, processes.threads)
        if on_start is not None:
            on_start(plan)
        return _simulate_on_ranks(plan, processes, on_progress)
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
    plan: SimulationPlan, processes: Processes, on_progress: OnProgress | None
) -> SimulationResult:
    """Simulate in several processes; the result is that of rank 0."""
    from cobre.sddp.ranks.losses import AFTER_A_LOSS_SIMULATING
    from cobre.sddp.ranks.workers import run_on_ranks

    sent = replace(plan, warnings=())
    result: SimulationResult = run_on_ranks(
        _simulate_rank, processes, sent, on_progress, AFTER_A_LOSS_SIMULATING
    )
    return replace(result, warnings=plan.warnings + result.warnings)


def _simulate_rank(comm: Communicator, plan: SimulationPlan) -> SimulationResult | None:
    from cobre.sddp.ranks.workers import StopRequest

    with StopRequest(comm) as stop:
        result = _simulate(comm, plan, stop.asked)
    return result if comm.rank == 0 else None
