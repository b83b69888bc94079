"""``config.json`` beyond single fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cobre.case.format import layout
from cobre.case.format.schema.config import (
    ByNode,
    ClassSource,
    ConfigFile,
    EnumeratedTraining,
    Estimation,
    InflowSource,
    SampledTraining,
    SimulationScenarioSource,
    TrainingScenarioSource,
)
from cobre.case.format.sources import Sources
from cobre.case.model.options import ClassName
from cobre.case.problems import Reporter
from cobre.rules.stopping.iteration_limit import IterationLimit

_FILE = layout.CONFIG
_SOLVER_DEFAULTS = {"retry_max_attempts": 5, "retry_time_budget_seconds": 30.0}
_DEFAULT_ESTIMATION = (
    None,
    Estimation(),
    Estimation(max_order=6, order_selection="pacf", min_observations_per_season=30),
)


def check_config(root: Path, sources: Sources, reporter: Reporter) -> None:
    """Check what keys of ``config.json`` require together, and report those without effect."""
    config = sources.config.root
    if config is None:
        return
    _check_stopping(config, reporter)
    _check_pass_schedule(config, reporter)
    _warn_upper_bound_under_risk(config, sources, reporter)
    _check_source(config.training.scenario_source, "training", reporter)
    _check_training_schemes(config.training.scenario_source, sources, reporter)
    if config.simulation is not None:
        _check_source(config.simulation.scenario_source, "simulation", reporter)
    _check_policy(root, config, reporter)
    _warn_no_effect(config, sources, reporter)


def external_classes(sources: Sources) -> tuple[ClassName, ...]:
    """Return the classes whose training scheme is ``external``."""
    config = sources.config.root
    source = config.training.scenario_source if config is not None else None
    return tuple(name for name, scheme in _schemes(source) if scheme == "external")


def simulated_external_classes(sources: Sources) -> tuple[ClassName, ...]:
    """Return the classes whose own simulation scheme is ``external``."""
    config = sources.config.root
    source = config.simulation.scenario_source if config is not None and config.simulation else None
    return tuple(name for name, scheme in _schemes(source) if scheme == "external")


def has_scenario_nodes(sources: Sources) -> bool:
    """Return whether a node of the policy graph takes an external scenario."""
    stages = sources.stages.root
    if stages is None:
        return True  # Unknown; the faults of the file itself are reported.
    return any(node.scenario_id is not None for node in stages.policy_graph.nodes or ())


def _schemes(source: SimulationScenarioSource | None) -> list[tuple[ClassName, str]]:
    if source is None:
        return []
    classes: tuple[tuple[ClassName, ClassSource | InflowSource | None], ...] = (
        ("inflow", source.inflow),
        ("load", source.load),
        ("ncs", source.ncs),
    )
    return [(name, entry.scheme) for name, entry in classes if entry is not None and entry.scheme is not None]


def _check_stopping(config: ConfigFile, reporter: Reporter) -> None:
    rules = config.training.stopping_rules
    if not any(isinstance(rule, IterationLimit) for rule in rules):
        reporter.error(
            "BusinessRuleViolation",
            f"{_FILE}: training.stopping_rules has no rule of type iteration_limit.",
            file=_FILE,
            field="training.stopping_rules",
            value=[rule.type for rule in rules],
            suggestion='Add {"type": "iteration_limit", "limit": N}.',
        )
    for index, rule in enumerate(rules):
        for fault in rule.faults(config):
            field = f"training.stopping_rules[{index}]"
            _refuse(fault.what, field, fault.value, fault.suggestion, reporter)


def _check_pass_schedule(config: ConfigFile, reporter: Reporter) -> None:
    selection = config.training.selection
    if not isinstance(selection, SampledTraining):
        return
    first, passes = selection.initial_passes, selection.forward_passes
    if first is not None and first >= passes:
        _refuse(
            f"must be less than forward_passes ({passes})",
            "training.selection.initial_passes",
            first,
            "Give fewer initial passes, or none to make all passes in every iteration.",
            reporter,
        )
    if first is None and selection.double_every is not None:
        _refuse(
            "needs initial_passes, which it doubles",
            "training.selection.double_every",
            selection.double_every,
            'Add "initial_passes": 1, or remove it.',
            reporter,
        )


def _warn_upper_bound_under_risk(config: ConfigFile, sources: Sources, reporter: Reporter) -> None:
    averse = [
        stage.id
        for stage in sources.stages.items
        if stage.risk_measure is not None and not stage.risk_measure.is_expectation
    ]
    rule = next((rule for rule in config.training.stopping_rules if rule.takes_upper_bound), None)
    if averse and rule is not None:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: training.stopping_rules has a {rule.type} rule, but the cost of forward "
            f"passes bounds nothing where stages have a risk measure (stage {averse[0]} has one): only a "
            "deterministic upper bound can close the gap.",
            file=_FILE,
            field="training.stopping_rules",
            value=rule.type,
            suggestion="Use a rule of type bound_stalling, or upper_bound_evaluation at an interval.",
        )


def _refuse(what: str, field: str, value: Any, suggestion: str, reporter: Reporter) -> None:
    reporter.error(
        "BusinessRuleViolation",
        f"{_FILE}: {field} {what}.",
        file=_FILE,
        field=field,
        value=value,
        suggestion=suggestion,
    )


def _check_source(source: SimulationScenarioSource | None, section: str, reporter: Reporter) -> None:
    if source is None:
        return
    schemes = dict(_schemes(source))
    place = f"{section}.scenario_source"
    seeded = sorted({scheme for scheme in schemes.values() if scheme in ("out_of_sample", "external")})
    if seeded and source.seed is None:
        names = " and ".join(f"'{scheme}'" for scheme in seeded)
        _refuse(
            f"is missing, but the scheme {names} needs it", f"{place}.seed", None, "Give a seed.", reporter
        )
    years = source.historical_years
    if years is None:
        return
    field = f"{place}.historical_years"
    if "historical" not in schemes.values():
        _refuse(
            "is given, but no class has the scheme 'historical'",
            field,
            _plain_years(years),
            "Remove the years, or set inflow.scheme to historical.",
            reporter,
        )
    first, last = (None, None) if isinstance(years, list) else (years.from_, years.to)
    if first is not None and last is not None and first > last:
        _refuse(f"runs from {first} back to {last}", field, _plain_years(years), "Swap the years.", reporter)
    if years == []:
        _refuse("holds no year", field, [], "List years, or remove the key.", reporter)


def _plain_years(years: Any) -> Any:
    return years if isinstance(years, list) else {"from": years.from_, "to": years.to}


def _check_training_schemes(
    source: TrainingScenarioSource | None, sources: Sources, reporter: Reporter
) -> None:
    config = sources.config.root
    enumerated = config is not None and isinstance(config.training.selection, EnumeratedTraining)
    for name, scheme in _schemes(source):
        if enumerated and scheme in ("out_of_sample", "historical"):
            _refuse(
                f"is '{scheme}', but enumerated passes take the openings of the tree",
                f"training.scenario_source.{name}.scheme",
                scheme,
                'Use "selection": {"method": "sampled", ...}, or the scheme \'in_sample\'.',
                reporter,
            )


def _check_policy(root: Path, config: ConfigFile, reporter: Reporter) -> None:
    policy = config.policy
    if policy is None:
        return
    checkpointing = policy.checkpointing
    if checkpointing and checkpointing.enabled and checkpointing.interval_iterations is None:
        _refuse(
            "is missing, but checkpointing is enabled",
            "policy.checkpointing.interval_iterations",
            None,
            "Give the number of iterations between two checkpoints.",
            reporter,
        )
    if policy.boundary is None:
        return
    try:
        found = boundary_path(root, policy.boundary.path).is_dir()
    except (OSError, ValueError):  # A name that is too long or that no file can have.
        found = False
    if not found:
        reporter.error(
            "FileNotFound",
            f"{_FILE}: policy.boundary.path is {policy.boundary.path!r}, but there is no such directory.",
            file=_FILE,
            field="policy.boundary.path",
            value=policy.boundary.path,
            suggestion="Give the directory of a policy, relative to the case directory.",
        )


def boundary_path(root: Path, path: str) -> Path:
    """Return the directory of the boundary policy; ``path`` is relative to the case directory."""
    return root / path


def _warn_no_effect(config: ConfigFile, sources: Sources, reporter: Reporter) -> None:
    keys = _tuning_keys(config)
    if keys:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: options that tune another solver have no effect here: {', '.join(keys)}.",
            file=_FILE,
            field=", ".join(keys),
            suggestion="They never change the optimum; remove them to silence this.",
        )
    source = config.training.scenario_source
    drawn = {scheme for _, scheme in _schemes(source)} - {"in_sample"}
    if source is not None and source.seed is not None and not drawn:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: training.scenario_source.seed has no effect; passes drawn in sample follow tree_seed.",
            file=_FILE,
            field="training.scenario_source.seed",
            value=source.seed,
            suggestion="Set training.tree_seed to draw other passes.",
        )
    upper = config.upper_bound_evaluation
    if upper is not None and upper.initial_iteration is not None and upper.interval_iterations is None:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: upper_bound_evaluation.initial_iteration has no effect without "
            "interval_iterations; the bound is evaluated at the end only.",
            file=_FILE,
            field="upper_bound_evaluation.initial_iteration",
            value=upper.initial_iteration,
            suggestion="Give interval_iterations, too.",
        )
    if config.estimation not in _DEFAULT_ESTIMATION and layout.INFLOW_HISTORY not in sources.present:
        reporter.warning(
            "SemanticAmbiguity",
            f"{_FILE}: estimation has no effect without {layout.INFLOW_HISTORY}.",
            file=_FILE,
            field="estimation",
            suggestion="Add the history, or remove the section.",
        )


def _tuning_keys(config: ConfigFile) -> list[str]:
    """Return the keys that only tune the peer's solver, and how its results wait for their writer."""
    keys = []
    if config.training.solver is not None:
        for name, value in config.training.solver.model_dump(exclude_none=True).items():
            inner = value if isinstance(value, dict) else {"": value}
            if _SOLVER_DEFAULTS.get(name) != value:
                keys += [f"training.solver.{name}.{key}".rstrip(".") for key in inner]
    parallelism = config.training.parallelism
    if parallelism is not None and isinstance(parallelism.backward_scheduler, ByNode):
        keys.append("training.parallelism.backward_scheduler")
    simulation = config.simulation
    if simulation is not None:
        given = {} if simulation.solver is None else simulation.solver.model_dump(exclude_none=True)
        keys += [f"simulation.solver.{name}" for name in given]
        if simulation.io_channel_capacity is not None:
            keys.append("simulation.io_channel_capacity")
    return keys
