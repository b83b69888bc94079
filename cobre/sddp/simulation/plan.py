"""What a simulation does, decided before it starts: the keys of the case, and arguments in their place."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from cobre.case.model import Case, ScenarioSource
from cobre.comm.contract import Communicator
from cobre.errors import OutputError, Problem, ValidationError
from cobre.output import choose_output
from cobre.policy import (
    Fingerprint,
    LpEngine,
    Policy,
    format_of,
    source_digest,
    study_fingerprint,
)
from cobre.sddp.plan import is_whole
from cobre.sddp.progress import TrainingResult
from cobre.sddp.ranks.agreement import failing_together, text_of_root
from cobre.sddp.simulation.storage import Resume, check_place, interrupted_simulation

PolicySource = Policy | TrainingResult | str | os.PathLike[str] | None

_COUNT, _SEED = (1, 2**31 - 1), (0, 2**64 - 1)


@dataclass(frozen=True)
class SimulationArguments:
    """Arguments of :meth:`cobre.Study.simulate` that replace keys of the case; ``None`` = the key."""

    policy: PolicySource = field(default=None, repr=False)
    scenarios: int | None = None
    seed: int | None = None
    output: str | os.PathLike[str] | bool | None = None
    resume: Resume = False
    force: bool = False
    lp_engine: LpEngine | None = None

    def check(self, **others: int | None) -> None:
        """Check these arguments, and ``others`` that must be positive.

        Raises
        ------
        ValidationError
            Naming every argument that is out of range or of another type.
        """
        ranges = {**dict.fromkeys(("scenarios", *others), _COUNT), "seed": _SEED}
        problems = [
            Problem(
                "InvalidValue",
                f"{name} must be a whole number, {least} or more and at most {most}, not {value!r:.80}",
                {"field": name, "value": value},
            )
            for name, value in {"scenarios": self.scenarios, **others, "seed": self.seed}.items()
            for least, most in [ranges[name]]
            if value is not None and not (is_whole(value) and least <= value <= most)
        ]
        wrong = {
            "output": self.output not in (None, True, False)
            and not isinstance(self.output, (str, os.PathLike)),
            "policy": self.policy is not None
            and not isinstance(self.policy, (Policy, TrainingResult, str, os.PathLike)),
            "lp_engine": self.lp_engine is not None and self.lp_engine not in get_args(LpEngine),
            "resume": self.resume not in (True, False, "auto"),
        }
        wanted = {
            "output": "a directory",
            "policy": "a policy, the result of training or the directory of a policy",
            "lp_engine": f"one of {', '.join(get_args(LpEngine))}",
            "resume": "True, False or 'auto'",
        }
        problems += [
            Problem(
                "InvalidValue",
                f"{name} must be {wanted[name]}, not {getattr(self, name)!r:.80}",
                {"field": name, "value": f"{getattr(self, name)!r:.80}"},
            )
            for name, is_wrong in wrong.items()
            if is_wrong
        ]
        if self.resume and self.force:
            text = "resume and force exclude each other: force replaces what resume would go on from"
            problems.append(Problem("InvalidValue", text, {"field": "force", "value": True}))
        if problems:
            raise ValidationError(problems, source="arguments")


@dataclass(frozen=True)
class SimulationPlan:
    """A simulation that is about to start.

    Attributes
    ----------
    case
        With the arguments in place of its keys.
    ranks, threads
        Processes, and threads of each.
    output
        Where results go; ``None`` = nowhere.
    policy, policy_path, policy_sha256
        What is simulated: in memory, or a directory; and its digest.
    seed
        By which scenarios draw openings and nodes.
    resume, force
        Whether to go on from an interrupted simulation (``"auto"``: from one of the same study, if there is
        one), or to replace whatever is there.
    fingerprint
        Of the study; on the process that writes.
    """

    case: Case
    ranks: int
    threads: int
    output: Path | None
    policy: Policy | None = field(repr=False)
    policy_path: Path | None
    policy_sha256: str
    seed: int
    resume: Resume = False
    force: bool = False
    warnings: tuple[Problem, ...] = ()
    fingerprint: Fingerprint | None = field(default=None, repr=False)
    lp_engine: LpEngine = "auto"

    @property
    def enumerated(self) -> bool:
        """Whether every path through the tree is a scenario."""
        return self.case.simulation.enumerated

    @property
    def failure_directory(self) -> Path:
        """Where an LP that cannot be solved is written."""
        return self.output or self.case.path / "output"


def with_simulation_options(case: Case, options: SimulationArguments) -> Case:
    """Return the case with its keys replaced by the arguments that are given."""
    simulation = case.simulation
    if options.scenarios is not None:
        simulation = replace(simulation, num_scenarios=int(options.scenarios), enumerated=False)
    if options.seed is not None:
        simulation = replace(simulation, source=replace(simulation.source, seed=int(options.seed)))
    return replace(case, simulation=simulation)


def make_simulation_plan(
    case: Case, options: SimulationArguments, ranks: int, threads: int
) -> SimulationPlan:
    """Decide what a simulation does, on the only process that writes; changes nothing on disk.

    Raises
    ------
    OutputError
        When the output directory cannot be written, holds what the simulation would destroy, or there is
        nothing to resume.
    ValidationError
        When there is no policy, or the selection of scenarios is impossible.
    """
    case = with_simulation_options(case, options)
    _check_selection(case)
    output, warnings = _output_of(case, options)
    policy, path, digest = _policy_of(case, options, output)
    fingerprint = study_fingerprint(case)
    if output is not None:
        if options.resume is True and not interrupted_simulation(output):
            raise OutputError(
                "NothingToResume",
                f"there is nothing to resume: {output} holds no interrupted simulation",
                {"file": str(output), "field": "resume", "value": True},
                "simulate without resuming: leave out --resume (resume=False)",
            )
        check_place(output, fingerprint, digest, _count(case), force=options.force)
    return SimulationPlan(
        case=case,
        ranks=ranks,
        threads=threads,
        output=output,
        policy=policy,
        policy_path=path,
        policy_sha256=digest,
        seed=case.training.tree_seed if options.seed is None else int(options.seed),
        resume=options.resume,
        force=options.force,
        warnings=tuple(warnings),
        fingerprint=fingerprint,
        lp_engine=options.lp_engine or "auto",
    )


def plan_simulation_together(
    comm: Communicator, case: Case, options: SimulationArguments, threads: int
) -> SimulationPlan:
    """Decide what a simulation does on rank 0, for all ranks; collective."""
    plan: SimulationPlan | None = None
    with failing_together(comm):
        if comm.rank == 0:
            plan = make_simulation_plan(case, options, comm.size, threads)
    text = text_of_root(comm, "" if plan is None else _plan_text(plan))
    if plan is not None:
        return plan
    known = json.loads(text)
    return SimulationPlan(
        case=with_simulation_options(case, options),
        ranks=comm.size,
        threads=threads,
        output=None if known["output"] is None else Path(known["output"]),
        policy=_in_memory(options.policy),
        policy_path=None if known["policy_path"] is None else Path(known["policy_path"]),
        policy_sha256=known["policy_sha256"],
        seed=known["seed"],
        resume=known["resume"],
        force=known["force"],
        lp_engine=known["lp_engine"],
    )


def _in_memory(given: PolicySource) -> Policy | None:
    if isinstance(given, TrainingResult):
        return given.policy
    return given if isinstance(given, Policy) else None


def _plan_text(plan: SimulationPlan) -> str:
    names = ("output", "policy_path", "policy_sha256", "seed", "resume", "force", "lp_engine")
    return json.dumps({name: getattr(plan, name) for name in names}, default=str)


def _count(case: Case) -> int | None:
    return None if case.simulation.enumerated else case.simulation.num_scenarios


def _check_selection(case: Case) -> None:
    """Refuse scenarios that cannot be: none at all, or all of what cannot be counted."""
    simulation = case.simulation
    if not simulation.enumerated:
        if simulation.num_scenarios < 1:
            raise _refused(
                "simulation.selection.num_scenarios is 0: there is nothing to simulate",
                "simulation.selection.num_scenarios",
                0,
                "give a number of scenarios: --scenarios N (scenarios=N)",
            )
        return
    fresh = {
        name: scheme
        for name in ("inflow", "load", "ncs")
        for scheme in [_scheme(simulation.source, name)]
        if scheme != "in_sample" and not (scheme == "external" and case.graph.has_scenarios)
    }
    if fresh:
        name, scheme = next(iter(fresh.items()))
        raise _refused(
            f"scenarios cannot be enumerated: {name} is drawn by the scheme {scheme!r}, not from the tree",
            f"simulation.scenario_source.{name}.scheme",
            scheme,
            "use the scheme in_sample, or the selection 'sampled'",
        )


def _scheme(source: ScenarioSource, name: Any) -> str:
    return source.scheme(name)


def _refused(message: str, place: str, value: object, suggestion: str) -> ValidationError:
    context = {"file": "config.json", "field": place, "value": value}
    return ValidationError([Problem("InvalidValue", message, context, suggestion)], source="config.json")


def _output_of(case: Case, options: SimulationArguments) -> tuple[Path | None, list[Problem]]:
    """Return the output directory: the one asked for, else the usual one where its policy is simulated."""
    place = options.output
    if place in (None, False) and not options.resume and options.policy is not None:
        return None, []
    return choose_output(case.path, None if place is None or isinstance(place, bool) else Path(place))


def _policy_of(
    case: Case, options: SimulationArguments, output: Path | None
) -> tuple[Policy | None, Path | None, str]:
    """Return what is simulated: a policy in memory or its directory, and its digest."""
    given = options.policy
    if isinstance(given, TrainingResult):
        return given.policy, None, given.policy_sha256
    if isinstance(given, Policy):
        return given, None, given.sha256()
    if given is not None:
        path = Path(given).absolute()
        format_of(path)
    else:
        path = _output_policy(case, output)
    return None, path, source_digest(path)


def _output_policy(case: Case, output: Path | None) -> Path:
    """Return the policy in the output directory."""
    path = (output or case.path / "output") / case.policy.path
    try:
        format_of(path)
    except ValidationError as error:
        problem = Problem(
            "FileNotFound",
            f"there is no policy to simulate: {error.message}",
            {"file": str(path)},
            f"train one first (cobre train {case.path}), or give one: --policy DIR (policy=)",
        )
        raise ValidationError([problem], source="the policy") from None
    return path


__all__ = [
    "PolicySource",
    "SimulationArguments",
    "SimulationPlan",
    "make_simulation_plan",
    "plan_simulation_together",
]
