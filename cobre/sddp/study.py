"""A study as an object: a case, and the whole way from it to a trained policy and results on disk.

Python, the command line and the ranks of a job all train by :meth:`Study.train`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from cobre.case.model import Case
from cobre.display import html_table
from cobre.errors import Problem, ValidationError
from cobre.machine import check_compiler, check_process, check_workers
from cobre.sddp.outcome import logged, now, placed, written
from cobre.sddp.ranks.cpus import requested_threads
from cobre.sddp.ranks.placement import backend_of_one, pool_problems, processes_for, share_of_processors

if TYPE_CHECKING:
    from cobre.comm import Communicator
    from cobre.policy import LpEngine
    from cobre.sddp.plan import TrainingPlan
    from cobre.sddp.progress import IterationRecord, TrainingResult
    from cobre.sddp.ranks.pool import WorkerPool
    from cobre.sddp.simulation.plan import PolicySource, SimulationPlan
    from cobre.sddp.simulation.result import SimulationProgress, SimulationResult

    OnStart = Callable[[TrainingPlan], object]
    OnProgress = Callable[[SimulationProgress], object]
    OnIteration = Callable[[IterationRecord], object]
    OnTrained = Callable[[TrainingResult], object]


class Study:
    """A case to plan.

    >>> import cobre
    >>> study = cobre.Study("examples/random-inflow")
    >>> study.case.hydros[0].name
    'Serra'
    >>> result = study.train(ranks=4, iterations=100, output="results")  # doctest: +SKIP

    Parameters
    ----------
    case
        A case, as it is in memory, or the directory of one.

    Raises
    ------
    ValidationError
        When the directory does not hold a valid case; names everything that is wrong.
    """

    def __init__(self, case: Case | str | os.PathLike[str]) -> None:
        self._case = _loaded(case)

    @property
    def case(self) -> Case:
        """The case."""
        return self._case

    def __repr__(self) -> str:
        return f"Study({str(self._case.path)!r})"

    def _repr_html_(self) -> str:
        return html_table("Study", self._case.summary().rows())

    def train(
        self,
        *,
        ranks: int | None = None,
        threads: int | None = None,
        backend: str = "auto",
        iterations: int | None = None,
        seed: int | None = None,
        output: str | os.PathLike[str] | bool | None = None,
        resume: bool = False,
        warm_start: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        keep_checkpoints: int | None = None,
        force: bool = False,
        lp_engine: LpEngine | None = None,
        on_start: OnStart | None = None,
        on_iteration: OnIteration | None = None,
        on_trained: OnTrained | None = None,
        communicator: Communicator | None = None,
        pool: WorkerPool | None = None,
    ) -> TrainingResult:
        """Train a policy by SDDP, and write it; the same bytes for any number of ranks and threads.

        With one rank training runs in this process, as a rank of the job that it was launched in, if any.
        With several it runs in new processes, which end with this call, or in those of a pool; a script needs
        ``if __name__ == "__main__":`` around it only where it defines things that the case holds. The first
        Ctrl-C stops other processes after the iteration at hand, with a checkpoint, the second at once.

        Parameters
        ----------
        ranks
            Processes to start; 1 unless given.
        threads
            Threads of each; by default ``COBRE_NUM_THREADS``, else ``SLURM_CPUS_PER_TASK``, else processors ÷
            ranks for several ranks of a machine and 1 for one.
        backend
            How the processes communicate: ``"shm"``, ``"tcp"`` or an installed one of another distribution;
            ``"auto"`` is shm for several ranks, and what the environment asks for with one. ``"local"`` is
            this process alone, whatever ``ranks`` is.
        iterations, seed
            In place of the case's.
        output
            Directory of the results: policy, checkpoints, convergence. By default nothing is written, unless
            the case or another argument asks for it (``policy.mode``, ``policy.checkpointing``, ``exports``;
            ``resume``, ``checkpoint_every``, ``keep_checkpoints``): then, and with ``True``, it is ``output``
            in the case directory.
        resume
            Go on from the newest checkpoint in ``output``; the limit of iterations counts those before.
        warm_start
            Policy directory (of cobre, or of cobre-rs) whose cuts the run starts with, in place of
            ``policy.mode``.
        checkpoint_every, keep_checkpoints
            A checkpoint after so many iterations, of which the last few stay (3), in place of the schedule of
            the case, or of the run that is resumed. One at the end is always written.
        force
            Replace what ``output`` holds, even if that is another study's or longer.
        lp_engine
            What solves LPs: ``"own"``, ``"highs"``, or ``"auto"``, a fixed rule of their sizes. By default
            that of the run that is resumed, else ``"auto"``. Optimal values are the same; where an LP has
            several solutions, policies differ.
        on_start
            Called once everything is decided, with the :class:`~cobre.sddp.plan.TrainingPlan`.
        on_iteration
            Called in this process after each iteration with its ``IterationRecord``; a true return value
            stops all ranks after that iteration.
        on_trained
            Called with the result before it is written.
        communicator
            To train on, in place of one for ``backend``; it stays open.
        pool
            Processes to train on that are there already; they have their own ranks, threads and backend.

        Raises
        ------
        ValidationError
            When an argument is out of range, or what to start from does not fit the study.
        OutputError
            When the output directory cannot be written, holds work that would be lost, or nothing to resume;
            before training. When results cannot be written, after it: ``result`` then holds them.
        SolverError
            When a stage LP cannot be solved, with one rank.
        WorkerError
            When one of several ranks fails; ``inner`` is what it raised.
        """
        from cobre.sddp.plan import TrainingArguments, make_plan, plan_together

        began = now()
        options = TrainingArguments(
            iterations, seed, output, resume, warm_start, checkpoint_every, keep_checkpoints, force, lp_engine
        )
        options.check(ranks=ranks, threads=threads)
        check_workers(ranks, threads)
        check_process(threads or 1)
        check_compiler()
        _check_enabled(self._case)
        problems = [] if pool is None else pool_problems(pool, communicator, ranks, threads, backend)
        callbacks = {"on_start": on_start, "on_iteration": on_iteration, "on_trained": on_trained}
        _check_collaborators(problems, communicator, ranks, callbacks)
        processes = processes_for(ranks, threads, backend, pool)
        if processes is not None:
            from cobre.sddp.ranks.workers import train_on_ranks

            plan = make_plan(self._case, options, processes.ranks, processes.threads)
            with logged(plan) as finish:
                _call(on_start, plan)
                result = placed(plan, train_on_ranks(plan, processes, on_iteration))
                _call(on_trained, result)
                return finish(written(plan, result, began))
        from cobre.comm import create_communicator
        from cobre.sddp.ranks.agreement import failing_together
        from cobre.sddp.training import train_together

        with ExitStack() as resources:
            comm = communicator or resources.enter_context(create_communicator(backend_of_one(backend)))
            plan = plan_together(
                comm, self._case, options, threads or requested_threads() or share_of_processors(comm)
            )
            finish = resources.enter_context(logged(plan if comm.rank == 0 else None))
            _call(on_start, plan)
            result = placed(plan, train_together(plan, comm, on_iteration))
            _call(on_trained, result)
            with failing_together(comm):
                if comm.rank == 0:
                    result = written(plan, result, began)
            return finish(result)

    def simulate(
        self,
        policy: PolicySource = None,
        *,
        scenarios: int | None = None,
        ranks: int | None = None,
        threads: int | None = None,
        backend: str = "auto",
        seed: int | None = None,
        output: str | os.PathLike[str] | bool | None = None,
        resume: bool | Literal["auto"] = False,
        force: bool = False,
        lp_engine: LpEngine | None = None,
        on_start: Callable[[SimulationPlan], object] | None = None,
        on_progress: OnProgress | None = None,
        communicator: Communicator | None = None,
        pool: WorkerPool | None = None,
    ) -> SimulationResult:
        """Operate the system under a policy in many scenarios; the same bytes for any ranks and threads.

        >>> import cobre
        >>> study = cobre.Study("examples/random-inflow")
        >>> result = study.simulate(study.train(iterations=20), scenarios=500)  # doctest: +SKIP

        Parameters
        ----------
        policy
            What training returned, a policy, or the directory of one (of cobre or of cobre-rs); by default
            the one in ``output``.
        scenarios
            So many sampled ones, in place of ``simulation.selection`` of the case.
        ranks, threads, backend, communicator, pool
            As for :meth:`train`.
        seed
            By which scenarios draw openings and fresh noise, in place of the case's; the tree of openings
            stays as it is.
        output
            Directory of the results, written to its folder ``simulation``. By default nothing is written
            for a policy that is given; without one, with ``True`` and with ``resume``, it is ``output`` in
            the case directory.
        resume
            Go on with an interrupted simulation of the same study, policy and seed in ``output``;
            ``"auto"`` does so where there is one, and begins where there is none.
        force
            Replace the simulation in ``output`` even if it is another study's or has more scenarios.
        lp_engine
            As for :meth:`train`; ``"auto"`` unless given.
        on_start
            Called once everything is decided, with the plan.
        on_progress
            Called in this process after each round of scenarios with a ``SimulationProgress``; a true return
            value stops all ranks. What is complete then can be gone on with.

        Raises
        ------
        ValidationError
            When an argument is out of range, there is no policy, or it does not fit the case.
        OutputError
            When the output directory cannot be written, holds what would be lost, or nothing to resume.
        SolverError
            When a stage LP cannot be solved, with one rank.
        WorkerError
            When one of several ranks fails; ``inner`` is what it raised.
        """
        from cobre.sddp.simulation.plan import SimulationArguments
        from cobre.sddp.simulation.run import simulate_case

        options = SimulationArguments(policy, scenarios, seed, output, resume, force, lp_engine)
        options.check(ranks=ranks, threads=threads)
        check_workers(ranks, threads)
        check_process(threads or 1)
        check_compiler()
        problems = [] if pool is None else pool_problems(pool, communicator, ranks, threads, backend)
        callbacks = {"on_start": on_start, "on_progress": on_progress}
        _check_collaborators(problems, communicator, ranks, callbacks)
        return simulate_case(
            self._case,
            options,
            processes_for(ranks, threads, backend, pool),
            threads=threads,
            backend=backend,
            on_start=on_start,
            on_progress=on_progress,
            communicator=communicator,
        )

    def run(
        self,
        *,
        ranks: int | None = None,
        threads: int | None = None,
        backend: str = "auto",
        scenarios: int | None = None,
        output: str | os.PathLike[str] | bool | None = True,
        force: bool = False,
        lp_engine: LpEngine | None = None,
        on_progress: OnProgress | None = None,
        communicator: Communicator | None = None,
        pool: WorkerPool | None = None,
        **training: Any,
    ) -> RunResult:
        """Do what the case asks for: train a policy and, where ``simulation.enabled`` is true, simulate it.

        With ``training.enabled`` false it simulates the policy that ``output`` holds.

        Parameters
        ----------
        ranks, threads, backend, output, force, lp_engine, communicator, pool
            Of both, as for :meth:`train`.
        scenarios
            In place of the case's; simulates even where the case does not ask for it.
        on_progress
            As for :meth:`simulate`.
        **training
            Further arguments of :meth:`train`. With ``resume`` the simulation is gone on with, too, where one
            of this policy was interrupted.
        """
        common: dict[str, Any] = {
            "ranks": ranks,
            "threads": threads,
            "backend": backend,
            "output": output,
            "force": force,
            "lp_engine": lp_engine,
            "communicator": communicator,
            "pool": pool,
        }
        trained = None
        if self._case.training.enabled:
            trained = self.train(**common, **training)
        simulated = None
        if simulates(self._case, scenarios):
            common["resume"] = "auto" if training.get("resume") else False
            simulated = self.simulate(trained, scenarios=scenarios, on_progress=on_progress, **common)
        return RunResult(trained, simulated)

    async def train_async(self, **arguments: Any) -> TrainingResult:
        """Train without blocking the event loop: as :meth:`train`, with the same arguments.

        >>> import asyncio, cobre
        >>> study = cobre.Study("examples/random-inflow")
        >>> result = asyncio.run(study.train_async(iterations=20))  # doctest: +SKIP

        It runs in a thread of its own, where compiled code does not hold Python's lock. ``on_start``,
        ``on_iteration`` and ``on_trained`` are called in the thread of the event loop, and may be coroutine
        functions; training waits for them. Several studies can run at the same time: each in a pool of its
        own, or in this process, where they take turns by iterations.

        Raises
        ------
        asyncio.CancelledError
            When it was cancelled, by a timeout too: after the iteration at hand and with a checkpoint, if
            there is an output directory. It is not raised before training has ended.
        """
        from cobre.sddp.asynchronous import call_in_thread

        return await call_in_thread(self.train, arguments, "on_iteration", "on_start", "on_trained")

    async def simulate_async(self, policy: PolicySource = None, **arguments: Any) -> SimulationResult:
        """Simulate without blocking the event loop: as :meth:`simulate`, with the same arguments.

        It runs as :meth:`train_async` does; when it is cancelled it stops after the scenarios at hand, and
        can be gone on with if there is an output directory.
        """
        from cobre.sddp.asynchronous import call_in_thread

        options = {"policy": policy, **arguments}
        return await call_in_thread(self.simulate, options, "on_progress", "on_start")

    async def run_async(
        self, *, scenarios: int | None = None, on_progress: OnProgress | None = None, **arguments: Any
    ) -> RunResult:
        """Do what the case asks for without blocking the event loop: as :meth:`run`, with its arguments.

        It runs as :meth:`train_async` and :meth:`simulate_async` do.
        """
        common: dict[str, Any] = {"output": True}
        common |= {name: arguments.pop(name) for name in _OF_BOTH if name in arguments}
        trained = None
        if self._case.training.enabled:
            trained = await self.train_async(**common, **arguments)
        simulated = None
        if simulates(self._case, scenarios):
            common["resume"] = "auto" if arguments.get("resume") else False
            simulated = await self.simulate_async(
                trained, scenarios=scenarios, on_progress=on_progress, **common
            )
        return RunResult(trained, simulated)


_OF_BOTH: Final = (
    *("ranks", "threads", "backend", "output", "force", "lp_engine"),
    *("communicator", "pool"),
)
"""Arguments of training and of simulation."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """What a run did: the result of training and that of simulation, ``None`` for what it did not do."""

    training: TrainingResult | None
    simulation: SimulationResult | None


def simulates(case: Case, scenarios: int | None = None) -> bool:
    """Return whether a run of a case simulates: it is asked for, or all that the run could do."""
    simulation = case.simulation
    wanted = simulation.enabled or scenarios is not None or not case.training.enabled
    return wanted and (scenarios is not None or simulation.enumerated or simulation.num_scenarios > 0)


def train(case: Case | str | os.PathLike[str], **options: Any) -> TrainingResult:
    """Train a policy by SDDP: ``Study(case).train(...)``, see :meth:`Study.train`.

    Parameters
    ----------
    case
        A case, or the directory of one.
    """
    return Study(case).train(**options)


def simulate(
    case: Case | str | os.PathLike[str], policy: PolicySource = None, **options: Any
) -> SimulationResult:
    """Simulate a policy: ``Study(case).simulate(policy, ...)``, see :meth:`Study.simulate`.

    Parameters
    ----------
    case
        A case, or the directory of one.
    policy
        What training returned, a policy, or the directory of one; by default the one in the output directory.
    """
    return Study(case).simulate(policy, **options)


def _loaded(case: Any) -> Case:
    if isinstance(case, Case):
        return case
    if isinstance(case, (str, os.PathLike)):
        from cobre.case import load

        return load(Path(case))
    problem = Problem(
        "InvalidValue",
        f"case must be a case or the directory of one, not {case!r:.80}",
        {"field": "case", "value": type(case).__name__},
        "give the directory that holds config.json, or what cobre.load_case returns",
    )
    raise ValidationError([problem], source="arguments")


def _check_enabled(case: Case) -> None:
    """Refuse to train a case that says it is not to be trained."""
    if not case.training.enabled:
        problem = Problem(
            "IncompatibleSettings",
            "config.json: training.enabled is false: this study is only simulated",
            {"file": "config.json", "field": "training.enabled", "value": False},
            "simulate its policy (cobre simulate, cobre run), or set training.enabled to true",
        )
        raise ValidationError([problem], source="config.json")


def _check_collaborators(
    problems: list[Problem], communicator: Any, ranks: int | None, callbacks: Mapping[str, Any]
) -> None:
    """Refuse what would be noticed only once training is under way, or not at all, and these problems."""
    problems += [
        Problem("InvalidValue", f"{name} must be a function, not {value!r:.80}", {"field": name})
        for name, value in callbacks.items()
        if value is not None and not callable(value)
    ]
    if communicator is not None and not (hasattr(communicator, "rank") and hasattr(communicator, "size")):
        text = f"communicator must be what cobre.comm.create_communicator returns, not {communicator!r:.80}"
        problems.append(Problem("InvalidValue", text, {"field": "communicator"}))
    elif communicator is not None and (ranks or 1) > 1:
        text = f"communicator and ranks={ranks} exclude each other: it has its own number of ranks"
        problems.append(Problem("InvalidValue", text, {"field": "communicator"}, "leave ranks out"))
    if problems:
        raise ValidationError(problems, source="arguments")


def _call(function: Callable[[Any], object] | None, value: Any) -> None:
    if function is not None:
        function(value)
