"""What a run of training does, decided before it starts: the keys of the case, and arguments in their place.

This is the one place where arguments override keys, and where a run is refused that would destroy earlier
work (:mod:`cobre.policy.protection`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from cobre.case.model import Case, CheckpointOptions
from cobre.comm.contract import Communicator
from cobre.errors import OutputError, Problem, ValidationError
from cobre.output import choose_output
from cobre.policy import (
    FoundCheckpoint,
    LpEngine,
    PlannedWork,
    StoredDirectory,
    StoredWork,
    described_work,
    latest_checkpoint,
    objection,
    protected_work,
    require_same,
    source_digest,
    study_fingerprint,
)
from cobre.sddp.checkpointing import (
    KEEP_LAST,
    KEEP_LAST_OPTION,
    Storage,
    too_many_iterations,
)
from cobre.sddp.ranks.agreement import failing_together, text_of_root

CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints in the output directory."""
_POSITIVE, _SEED = (1, 2**31 - 1), (0, 2**64 - 1)
_SCHEDULE_FIELDS = frozenset(entry.name for entry in fields(CheckpointOptions))


@dataclass(frozen=True)
class TrainingArguments:
    """Arguments of :meth:`cobre.Study.train` that replace keys of the case; ``None`` = the key."""

    iterations: int | None = None
    seed: int | None = None
    output: str | os.PathLike[str] | bool | None = None
    resume: bool = False
    warm_start: str | os.PathLike[str] | None = None
    checkpoint_every: int | None = None
    keep_checkpoints: int | None = None
    force: bool = False
    lp_engine: LpEngine | None = None

    def check(self, **others: int | None) -> None:
        """Check these arguments, and ``others`` that must be positive.

        Raises
        ------
        ValidationError
            Naming every argument that is out of range or of another type.
        """
        positive = {
            "iterations": self.iterations,
            "checkpoint_every": self.checkpoint_every,
            "keep_checkpoints": self.keep_checkpoints,
            **others,
        }
        ranges = {**dict.fromkeys(positive, _POSITIVE), "seed": _SEED}
        problems = [
            Problem(
                "InvalidValue",
                f"{name} must be a whole number, {least} or more and at most {most}, not {value!r:.80}",
                {"field": name, "value": value},
            )
            for name, value in {**positive, "seed": self.seed}.items()
            for least, most in [ranges[name]]
            if value is not None and not (is_whole(value) and least <= value <= most)
        ]
        for name, place in (("output", self.output), ("warm_start", self.warm_start)):
            if place is not None and place is not True and not isinstance(place, (str, os.PathLike)):
                problems.append(
                    Problem(
                        "InvalidValue",
                        f"{name} must be a directory, not {place!r}",
                        {"field": name, "value": repr(place)},
                    )
                )
        if self.lp_engine is not None and self.lp_engine not in get_args(LpEngine):
            problems.append(
                Problem(
                    "InvalidValue",
                    f"lp_engine must be one of {', '.join(get_args(LpEngine))}, not {self.lp_engine!r:.80}",
                    {"field": "lp_engine", "value": repr(self.lp_engine)},
                )
            )
        if self.resume and self.warm_start is not None:
            problems.append(
                Problem(
                    "InvalidValue",
                    "resume and warm_start exclude each other",
                    {"field": "warm_start", "value": str(self.warm_start)},
                )
            )
        if problems:
            raise ValidationError(problems, source="arguments")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, of whatever type."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


@dataclass(frozen=True)
class TrainingPlan:
    """A run that is about to start.

    Attributes
    ----------
    case
        With the arguments in place of its keys.
    ranks, threads
        Processes, and threads of each.
    output
        Where results go; ``None`` = nowhere.
    planned
        What will be in the output directory; on the process that writes there.
    lp_engine
        What solves LPs: as asked for, else as in the run that is resumed, else ``auto``.
    """

    case: Case
    ranks: int
    threads: int
    output: Path | None
    storage: Storage
    force: bool = False
    warnings: tuple[Problem, ...] = ()
    planned: PlannedWork | None = field(default=None, repr=False)
    lp_engine: LpEngine = "auto"

    @property
    def failure_directory(self) -> Path:
        """Where an LP that cannot be solved is written."""
        return self.output or self.case.path / "output"


def with_options(case: Case, options: TrainingArguments) -> Case:
    """Return the case with its keys replaced by the arguments that are given."""
    changes: dict[str, Any] = {}
    if options.iterations is not None:
        changes["iteration_limit"] = int(options.iterations)
    if options.seed is not None:
        changes["tree_seed"] = int(options.seed)
    return replace(case, training=replace(case.training, **changes))


def make_plan(case: Case, options: TrainingArguments, ranks: int, threads: int) -> TrainingPlan:
    """Decide what a run does, on the only process that writes; changes nothing on disk.

    Raises
    ------
    OutputError
        When the output directory cannot be written, holds work that the run would destroy, or there is
        nothing to resume.
    ValidationError
        When the checkpoint to resume is of another study, damaged, or longer than the run.
    """
    case = with_options(case, options)
    output, warnings = _output_of(case, options)
    resume = options.resume or (case.policy.mode == "resume" and options.warm_start is None)
    warm_start = None if options.warm_start is None else Path(options.warm_start).absolute()
    if case.policy.mode == "warm_start" and not resume and warm_start is None and output is not None:
        warm_start = output / case.policy.path
    if output is None:
        fingerprint = None if warm_start is None else study_fingerprint(case)
        storage = Storage(warm_start=warm_start, fingerprint=fingerprint)
        return TrainingPlan(case, ranks, threads, None, storage, lp_engine=options.lp_engine or "auto")
    fingerprint = study_fingerprint(case)
    checkpoints, limit = output / CHECKPOINTS, case.training.iteration_limit
    begun: StoredWork | None = None
    opened: StoredDirectory | None = None
    if resume:
        found = _found(case, output, checkpoints)
        begun, opened = described_work(found.directory.manifest), found.directory
        warnings += found.warnings
        require_same(begun.fingerprint, fingerprint, str(begun.path))
        if begun.iterations > limit:
            raise too_many_iterations(begun.path, begun.iterations, limit)
        started_from = begun.started_from
    else:
        started_from = None if warm_start is None else source_digest(warm_start)
    planned = PlannedWork(fingerprint, limit, started_from)
    held = None if options.force else begun or _newest(checkpoints)
    for work in (protected_work(output / case.policy.path, force=options.force), held):
        problem = None if work is None else objection(work, planned)
        if problem is not None:
            raise OutputError(problem.kind, problem.message, problem.context, problem.suggestion)
    known = {} if begun is None else begun.checkpointing
    storage = Storage(
        checkpoints=checkpoints,
        schedule=_schedule(case, options, known),
        resume_from=None if begun is None else begun.path,
        opened=opened,
        loaded_before=0 if begun is None else begun.loaded_cuts,
        warm_start=warm_start,
        keep_last=options.keep_checkpoints or known.get(KEEP_LAST_OPTION, KEEP_LAST),
        # Shorter checkpoints of the same training hold nothing that this one does not.
        held_iterations=held.iterations if held is not None and held.started_from == started_from else 0,
        started_from=started_from,
        fingerprint=fingerprint,
    )
    before = None if begun is None else begun.lp_engine
    return TrainingPlan(
        case,
        ranks,
        threads,
        output,
        storage,
        options.force,
        tuple(warnings),
        planned,
        options.lp_engine or before or "auto",
    )


def plan_together(comm: Communicator, case: Case, options: TrainingArguments, threads: int) -> TrainingPlan:
    """Decide what a run does on rank 0, for all ranks; collective."""
    plan: TrainingPlan | None = None
    with failing_together(comm):
        if comm.rank == 0:
            plan = make_plan(case, options, comm.size, threads)
    text = text_of_root(comm, "" if plan is None else _plan_text(plan))
    if plan is not None:
        return plan
    document = json.loads(text)
    output = None if document["output"] is None else Path(document["output"])
    return TrainingPlan(
        with_options(case, options),
        comm.size,
        threads,
        output,
        _read_storage(document["storage"]),
        options.force,
        lp_engine=document["lp_engine"],
    )


def _plan_text(plan: TrainingPlan) -> str:
    """Return what ranks other than the one that writes need of a plan."""
    storage = asdict(replace(plan.storage, fingerprint=None, opened=None))
    document = {"output": plan.output, "storage": storage, "lp_engine": plan.lp_engine}
    return json.dumps(document, default=str)


def _read_storage(entries: dict[str, Any]) -> Storage:
    for name in ("checkpoints", "resume_from", "warm_start"):
        entries[name] = None if entries[name] is None else Path(entries[name])
    schedule: Mapping[str, Any] | None = entries["schedule"]
    entries["schedule"] = None if schedule is None else CheckpointOptions(**schedule)
    return Storage(**entries)


def _output_of(case: Case, options: TrainingArguments) -> tuple[Path | None, list[Problem]]:
    """Return the output directory: the one asked for, else the usual one where the case has a use for it."""
    policy = case.policy
    wanted = options.resume or options.checkpoint_every is not None or options.keep_checkpoints is not None
    by_case = policy.mode != "fresh" or policy.checkpointing is not None or case.exports.stochastic
    place = options.output
    if place is None and not wanted and not by_case:
        return None, []
    return choose_output(case.path, None if place is None or isinstance(place, bool) else Path(place))


def _found(case: Case, output: Path, checkpoints: Path) -> FoundCheckpoint:
    """Return the newest intact checkpoint, which there must be."""
    found = latest_checkpoint(checkpoints)
    if found is None:
        policy = output / case.policy.path
        suggestion = "train without resuming first"
        if policy.exists():
            suggestion = f"start from the cuts of {policy} (--warm-start), or {suggestion}"
        raise OutputError(
            "NothingToResume",
            f"there is nothing to resume: {checkpoints} holds no checkpoint",
            {"file": str(checkpoints), "field": "resume", "value": True},
            suggestion,
        )
    return found


def _newest(checkpoints: Path) -> StoredWork | None:
    """Return the newest intact checkpoint, ``None`` where there is none to be lost."""
    try:
        found = latest_checkpoint(checkpoints)
    except ValidationError:
        return None
    return None if found is None else described_work(found.directory.manifest)


def _schedule(case: Case, options: TrainingArguments, known: Mapping[str, Any]) -> CheckpointOptions | None:
    """Return when checkpoints are written: by the arguments, those of the run that is resumed, the case."""
    schedule = case.policy.checkpointing
    given = {name: value for name, value in known.items() if name in _SCHEDULE_FIELDS}
    if given:
        schedule = CheckpointOptions(**given)
    if options.checkpoint_every is not None:
        kept = schedule or CheckpointOptions(options.checkpoint_every)
        schedule = replace(kept, interval_iterations=int(options.checkpoint_every), initial_iteration=0)
    return schedule


def kept_instead(plan: TrainingPlan, iterations: int) -> Problem | None:
    """Return a warning where the output directory holds more of this study than the run has made.

    Raises
    ------
    OutputError
        When another run has put other work there meanwhile.
    """
    if plan.output is None or plan.planned is None or plan.force:
        return None
    held = protected_work(plan.output / plan.case.policy.path, force=False)
    if held is None:
        return None
    made = replace(plan.planned, iterations=iterations)
    problem = objection(held, made)
    if problem is None:
        return None
    if objection(held, replace(made, iterations=held.iterations)) is not None:
        raise OutputError(problem.kind, problem.message, problem.context, problem.suggestion)
    return Problem(
        "LongerPolicyKept",
        f"{held.path} holds {held.iterations} iterations of this study and stays as it is, with the results "
        f"beside it; this run ended after {iterations}",
        problem.context,
        "go on from it with --resume, or replace it with --force",
    )
