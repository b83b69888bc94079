"""Tools of jobs: train, resume, simulate, run both; status with progress, cancel, list."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from cobre.errors import CobreError
from cobre.mcp.case_files import build_case, case_contents, snapshot_contents
from cobre.mcp.contract import Answer, Arguments, Issue, Place, Settings, Tool, Wait
from cobre.mcp.jobs.state import CASE, JobState, Kind
from cobre.mcp.jobs.store import JobStore
from cobre.mcp.paths import PRIVATE_DIRECTORY, clean
from cobre.mcp.tools.case import CasePlace
from cobre.mcp.tools.editing import refuse_private

_MOST: Final = 2**31 - 1
_MOST_ISSUES: Final = 100
_OF_TRAINING: Final = frozenset({"iterations", "checkpoint_every", "seed", "lp_engine"})
_OF_SIMULATION: Final = frozenset({"scenarios", "policy", "seed", "lp_engine"})
"""Options of a job that the one which resumes it keeps."""

Seed = Annotated[int | None, Field(ge=0, le=2**64 - 1)]
Count = Annotated[int | None, Field(ge=1, le=_MOST)]
Workers = Annotated[int | None, Field(ge=1, le=100_000)]
JobId = Annotated[str, Field(max_length=80, description="Of a job, such as train-1.")]
OutputOfJob = Annotated[
    Place | None, Field(description="Where results go, below the root; CASE/output unless given.")
]


class JobArguments(Arguments):
    """What every new job takes."""

    case: CasePlace
    output: OutputOfJob = None
    seed: Seed = None
    ranks: Annotated[
        Workers, Field(description="Processes; 1 unless given. Results do not depend on it.")
    ] = None
    threads: Annotated[
        Workers,
        Field(
            description="Of each process; all that the server allows unless given. Results do not depend "
            "on it."
        ),
    ] = None
    lp_engine: Literal["auto", "highs", "own"] | None = None
    force: Annotated[
        bool, Field(description="Replace what the output holds even if it is another study's, or longer.")
    ] = False
    wait_s: Wait = 0.0


class TrainArguments(JobArguments):
    """Arguments of ``cobre_train``."""

    iterations: Annotated[Count, Field(description="In place of the case's limit.")] = None
    checkpoint_every: Annotated[Count, Field(description="Iterations between two checkpoints.")] = None
    warm_start: Annotated[
        Place | None, Field(description="A policy directory whose cuts training starts with.")
    ] = None


class SimulateArguments(JobArguments):
    """Arguments of ``cobre_simulate``."""

    scenarios: Annotated[Count, Field(description="In place of the case's number.")] = None
    policy: Annotated[
        Place | None, Field(description="A policy directory; the policy in the output unless given.")
    ] = None


class RunArguments(JobArguments):
    """Arguments of ``cobre_run``."""

    iterations: Annotated[Count, Field(description="In place of the case's limit.")] = None
    scenarios: Annotated[Count, Field(description="To simulate; those of the case unless given.")] = None


class ResumeArguments(Arguments):
    """Arguments of ``cobre_resume``."""

    job: JobId
    iterations: Annotated[Count, Field(description="A new limit of training; it counts those before.")] = None
    ranks: Workers = None
    threads: Workers = None
    wait_s: Wait = 0.0


class StatusArguments(Arguments):
    """Arguments of ``cobre_job_status``."""

    job: JobId
    wait_s: Wait = 0.0


class CancelArguments(Arguments):
    """Arguments of ``cobre_cancel_job``."""

    job: JobId
    at_once: Annotated[
        bool,
        Field(
            description="Do not wait for the end of the iteration: what is since the last checkpoint is lost."
        ),
    ] = False
    wait_s: Wait = 0.0


class JobsArguments(Arguments):
    """Arguments of ``cobre_jobs``."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50


class Job(Answer):
    """A job: what it is, how far it is, how it ended."""

    job: str
    kind: Kind
    status: Literal["queued", "running", "complete", "stopped", "cancelled", "failed", "interrupted"]
    """stopped: by a limit of time or a signal, with what it had; interrupted: its process was lost."""
    ended: bool
    case: str
    output: str
    options: dict[str, Any]
    resumes: str | None
    resumable: bool
    """Whether cobre_resume can go on with it."""
    cancel_requested: bool
    progress: int
    """Iterations, and behind their limit scenarios."""
    progress_total: int | None
    message: str
    """Progress in words."""
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    result: dict[str, Any] | None
    """What the command reports: bounds, verdict, costs."""
    errors: list[Issue]
    warnings: list[Issue]

    def headline(self) -> str:
        """Return its status."""
        text = f"Job {self.job}: {self.status}"
        if self.status in ("queued", "running") and self.cancel_requested:
            text += " (asked to stop)"
        if self.message:
            text += f", {self.message}"
        if self.errors:
            text += f"; {self.errors[0].kind}: {self.errors[0].message}"
        if self.ended and self.resumable and self.status != "complete":
            text += "; cobre_resume goes on with it"
        return f"{text}."


class Jobs(Answer):
    """All jobs below the root, the latest first."""

    jobs: list[Job]
    jobs_total: int
    truncated: bool

    def headline(self) -> str:
        """Return how many there are."""
        active = sum(not job.ended for job in self.jobs)
        return f"{self.jobs_total} jobs, of which {active} run or wait."


def train(settings: Settings, arguments: TrainArguments) -> Job:
    """Submit a training."""
    names = ("iterations", "checkpoint_every", "warm_start")
    return _submit(settings, "train", arguments, {name: getattr(arguments, name) for name in names})


def simulate(settings: Settings, arguments: SimulateArguments) -> Job:
    """Submit a simulation."""
    return _submit(
        settings, "simulate", arguments, {"scenarios": arguments.scenarios, "policy": arguments.policy}
    )


def run(settings: Settings, arguments: RunArguments) -> Job:
    """Submit a training with a simulation."""
    options = {"iterations": arguments.iterations, "scenarios": arguments.scenarios}
    return _submit(settings, "run", arguments, options)


def _submit(settings: Settings, kind: Kind, arguments: JobArguments, options: dict[str, Any]) -> Job:
    root, place = settings.root, clean(arguments.case)
    output = clean(arguments.output if arguments.output is not None else f"{place}/output")
    refuse_private(output)
    if output in (".", place):
        raise CobreError(
            "InvalidArgument",
            f"the output cannot be {output!r} itself",
            {"output": output},
            "such as CASE/output",
        )
    for name in ("policy", "warm_start"):
        if options.get(name) is not None:
            options[name] = clean(options[name])
            with root.directory(options[name]) as descriptor:
                root.check_tree(options[name], descriptor)
    options |= _workers(settings, arguments.ranks, arguments.threads)
    options |= {"seed": arguments.seed, "lp_engine": arguments.lp_engine, "force": arguments.force or None}
    contents = snapshot_contents(root, place, case_contents(root, place))
    build_case(root, place, contents)  # all problems now, not when the job's turn has come
    with root.directory(output, create=True) as descriptor:
        root.check_tree(output, descriptor)
        output = root.inside(output)
    store = JobStore(settings)
    given = {name: value for name, value in options.items() if value is not None}
    return job_answer(settings, store.state(store.submit(kind, place, contents, output, given)))


def _workers(settings: Settings, ranks: int | None, threads: int | None) -> dict[str, int]:
    """Return ranks and threads within the limits of the server.

    Raises
    ------
    CobreError
        Kind ``OverBudget``.
    """
    chosen_ranks = ranks or 1
    chosen_threads = threads or max(1, settings.max_threads // chosen_ranks)
    for name, value, most in (
        ("ranks", chosen_ranks, settings.max_ranks),
        ("threads", chosen_ranks * chosen_threads, settings.max_threads),
    ):
        if value > most:
            raise CobreError(
                "OverBudget",
                f"{value} {name} are more than this server allows for a job: {most}",
                {name: value},
                "results do not depend on it; leave ranks and threads out",
            )
    return {"ranks": chosen_ranks, "threads": chosen_threads}


def resume(settings: Settings, arguments: ResumeArguments) -> Job:
    """Submit a job that goes on with another one."""
    store = JobStore(settings)
    old = store.state(arguments.job)
    if not old.ended:
        raise CobreError(
            "JobRuns",
            f"job {arguments.job} has not ended",
            {"job": arguments.job},
            "cancel it first, or wait",
        )
    kind = _resumed_as(settings, old)
    if kind is None:
        raise CobreError(
            "NothingToResume",
            f"job {arguments.job} has left no checkpoint and no interrupted simulation",
            {"job": arguments.job},
            "submit it again",
        )
    names = _OF_TRAINING if kind == "train" else _OF_SIMULATION
    options = {name: value for name, value in old.request.options.items() if name in names}
    options |= {"resume": True} | _workers(settings, arguments.ranks, arguments.threads)
    if arguments.iterations is not None:
        if kind != "train":
            raise CobreError("InvalidArgument", "iterations are for a training", {"job": arguments.job})
        options["iterations"] = arguments.iterations
    kept = f"{PRIVATE_DIRECTORY}/{arguments.job}/{CASE}"
    contents = snapshot_contents(settings.root, kept, case_contents(settings.root, kept))
    number = store.submit(kind, old.request.case, contents, old.request.output, options, arguments.job)
    return job_answer(settings, store.state(number))


def status(settings: Settings, arguments: StatusArguments) -> Job:
    """Return a job."""
    return job_answer(settings, JobStore(settings).state(arguments.job))


def cancel(settings: Settings, arguments: CancelArguments) -> Job:
    """Ask a job to stop."""
    return job_answer(settings, JobStore(settings).cancel(arguments.job, at_once=arguments.at_once))


def jobs(settings: Settings, arguments: JobsArguments) -> Jobs:
    """Return all jobs."""
    states = JobStore(settings).states()
    shown = [job_answer(settings, state) for state in states[: arguments.limit]]
    return Jobs(jobs=shown, jobs_total=len(states), truncated=len(shown) < len(states))


def job_answer(settings: Settings, state: JobState) -> Job:
    """Return a job for clients."""
    hider, request, envelope = settings.hider, state.request, state.result or {}
    found: dict[str, list[Issue]] = {}
    for name in ("errors", "warnings"):
        listed = envelope.get(name) or []
        found[name] = [Issue(**hider.value(problem)) for problem in listed[:_MOST_ISSUES]]
    if state.status == "interrupted" or (state.status == "failed" and not found["errors"]):
        found["errors"] = [_lost(state, hider.text(state.messages[-2_000:]))]
    return Job(
        job=request.id,
        kind=request.kind,
        status=state.status,
        ended=state.ended,
        case=request.case,
        output=request.output,
        options=request.options,
        resumes=request.resumes,
        resumable=state.ended and _resumed_as(settings, state) is not None,
        cancel_requested=state.cancel_requested,
        progress=state.progress.done,
        progress_total=state.progress.total,
        message=state.progress.message(),
        submitted_at=request.submitted_at,
        started_at=state.started_at,
        ended_at=state.ended_at,
        result=hider.value(envelope.get("data")),
        errors=found["errors"],
        warnings=found["warnings"],
    )


def _lost(state: JobState, messages: str) -> Issue:
    code = state.exit_code
    how = f"was ended by signal {-code}" if code is not None and code < 0 else "ended without a result"
    return Issue(
        kind="JobLost",
        message=f"the process of the job {how}",
        context={"exit_code": code, "messages": messages},
        suggestion="go on with cobre_resume where there is a checkpoint; signal 9 is often a lack of memory",
    )


def _resumed_as(settings: Settings, state: JobState) -> Kind | None:
    """Return what goes on where a job stopped: of a run that was training, the training."""
    output, kind = state.request.output, state.request.kind
    try:
        if kind != "train" and settings.root.exists(f"{output}/.simulation.partial"):
            return "simulate"
        if kind != "simulate" and settings.root.exists(f"{output}/checkpoints/latest"):
            return "train"
    except CobreError:
        return None
    return None


_QUEUE: Final = (
    "Returns at once with a job, or waits up to wait_s seconds with notifications of progress. Jobs take "
    "turns, keep a copy of the case, and survive a restart of the server; cobre_job_status follows one."
)

TOOLS: Final = (
    Tool(
        "cobre_train",
        "Train a policy",
        f"Submit the training of a policy as a job. {_QUEUE}",
        TrainArguments,
        Job,
        train,
        writes=True,
        destructive=True,
        follows=True,
    ),
    Tool(
        "cobre_simulate",
        "Simulate a policy",
        f"Submit a simulation of the system under the trained policy as a job. {_QUEUE}",
        SimulateArguments,
        Job,
        simulate,
        writes=True,
        destructive=True,
        follows=True,
    ),
    Tool(
        "cobre_run",
        "Train and simulate",
        f"Submit a training, followed by a simulation where the case asks for it or scenarios are given. "
        f"{_QUEUE}",
        RunArguments,
        Job,
        run,
        writes=True,
        destructive=True,
        follows=True,
    ),
    Tool(
        "cobre_resume",
        "Resume a job",
        "Submit a job that goes on where another one stopped (of cobre_run: its training, or its "
        f"simulation): from its last checkpoint, to the same bytes as a run that was never stopped. {_QUEUE}",
        ResumeArguments,
        Job,
        resume,
        writes=True,
        follows=True,
    ),
    Tool(
        "cobre_job_status",
        "Follow a job",
        "Status, progress and result of a job; with wait_s waits for its end, with notifications of "
        "progress.",
        StatusArguments,
        Job,
        status,
        place="thread",
        follows=True,
    ),
    Tool(
        "cobre_cancel_job",
        "Cancel a job",
        "Ask a job to stop: a training ends after the iteration at hand, with results and a checkpoint.",
        CancelArguments,
        Job,
        cancel,
        place="thread",
        writes=True,
        follows=True,
    ),
    Tool(
        "cobre_jobs",
        "List jobs",
        "All jobs below the root, the latest first, also of earlier servers.",
        JobsArguments,
        Jobs,
        jobs,
        place="thread",
    ),
)
