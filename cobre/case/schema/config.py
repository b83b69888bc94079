"""``config.json``: how to train and simulate."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from cobre.case.schema.base import (
    Count,
    FormatModel,
    Int64,
    NonNegative,
    Positive,
    PositiveCount,
    RootModel,
    unsupported,
)

Scheme = Literal["in_sample", "out_of_sample", "external"]
InflowScheme = Literal["in_sample", "out_of_sample", "external", "historical"]


class SampledTraining(FormatModel):
    """Forward passes drawn at random."""

    method: Literal["sampled"]
    forward_passes: PositiveCount
    """Forward passes of one iteration."""


class EnumeratedTraining(FormatModel):
    """Every path through the scenario tree is a forward pass, weighted by its probability."""

    method: Literal["enumerated"]


class IterationLimit(FormatModel):
    """Stop after so many iterations."""

    type: Literal["iteration_limit"]
    limit: PositiveCount
    """Iterations."""


class TimeLimit(FormatModel):
    """Stop after so many seconds."""

    type: Annotated[Literal["time_limit"], unsupported("the stopping rule 'time_limit'")]
    seconds: Positive
    """Seconds since training started."""


class BoundStalling(FormatModel):
    """Stop when the lower bound hardly moves."""

    type: Annotated[Literal["bound_stalling"], unsupported("the stopping rule 'bound_stalling'")]
    iterations: PositiveCount
    """Length of the window, in iterations."""
    tolerance: NonNegative
    """Relative improvement of the lower bound over the window below which training stops."""


class Gap(FormatModel):
    """Stop when upper and lower bound are close."""

    type: Annotated[Literal["gap"], unsupported("the stopping rule 'gap'")]
    tolerance: NonNegative | None = None
    """Absolute gap, $."""
    relative_tolerance: NonNegative | None = None
    """Gap relative to the upper bound, %."""


StoppingRule = Annotated[IterationLimit | TimeLimit | BoundStalling | Gap, Field(discriminator="type")]


class ClassSource(FormatModel):
    """Where the forward noise of load or non-controllable sources comes from."""

    scheme: Scheme | None = None
    """``in_sample`` unless given."""


class InflowSource(FormatModel):
    """Where the forward noise of inflows comes from."""

    scheme: InflowScheme | None = None
    """``in_sample`` unless given."""


class YearRange(FormatModel):
    """Historical years from ... to, both included."""

    from_: int = Field(alias="from", description="First year.")
    to: int
    """Last year."""


class OpeningsSource(FormatModel):
    """Where the openings of the backward pass come from."""

    source: Literal["generated", "file"] | None = None
    """``file`` reads scenarios/noise_openings.parquet; ``generated`` unless given."""


class SimulationScenarioSource(FormatModel):
    """Scenario source of a simulation."""

    seed: Int64 | None = None
    """Seed of forward sampling; needed by the schemes ``out_of_sample`` and ``external``."""
    inflow: InflowSource | None = None
    load: ClassSource | None = None
    ncs: ClassSource | None = None
    historical_years: list[int] | YearRange | None = None
    """Years whose inflows are replayed; only with the scheme ``historical``."""


class TrainingScenarioSource(SimulationScenarioSource):
    """Scenario source of training; the seed has no effect on in-sample schemes."""

    openings: OpeningsSource | None = None


class Level1(FormatModel):
    """Keep cuts that are (nearly) highest at some visited state."""

    method: Literal["level1"]
    check_frequency: PositiveCount | None = None
    tie_tolerance: NonNegative | None = None


class LimitedMemoryLevel1(FormatModel):
    """Keep the oldest of the highest cuts at each visited state."""

    method: Literal["lml1"]
    check_frequency: PositiveCount | None = None
    tie_tolerance: NonNegative | None = None


class Domination(FormatModel):
    """Drop cuts that others dominate."""

    method: Literal["domination"]
    check_frequency: PositiveCount | None = None
    domination_tolerance: NonNegative


class Dynamic(FormatModel):
    """Add cuts to the LPs as they are violated."""

    method: Literal["dynamic"]
    start_iteration: PositiveCount | None = None
    seed_window: Count | None = None
    candidate_recency: PositiveCount | None = None
    max_added_per_round: PositiveCount | None = None
    violation_tolerance: Positive | None = None


CutMethod = Annotated[Level1 | LimitedMemoryLevel1 | Domination | Dynamic, Field(discriminator="method")]


class CutSelection(FormatModel):
    """Which cuts stay in the LPs; only "all" is honoured."""

    row_activity_tolerance: Annotated[NonNegative | None, unsupported("a row activity tolerance", 0.0)] = None
    max_active_per_stage: Annotated[Count | None, unsupported("a limit on active cuts")] = None
    selection: Annotated[CutMethod | None, unsupported("cut selection")] = None


class ByScenario(FormatModel):
    """Backward work split by trial point."""

    method: Literal["by_scenario"]


class ByNode(FormatModel):
    """Backward work split by trial point and block of openings."""

    method: Literal["by_node"]
    block_size: PositiveCount | None = None
    """Openings of one piece of work."""


class Parallelism(FormatModel):
    """How work is split over workers; never changes the result."""

    backward_scheduler: Annotated[ByScenario | ByNode, Field(discriminator="method")] | None = None


class PhaseSolverProfile(FormatModel):
    """Options of the peer's LP solver for one phase; checked, without effect here."""

    dual_edge_weight: Literal["devex", "steepest_edge", "dantzig"] | None = None
    scale: Literal["off", "solver_scaling"] | None = None
    price: Literal["row", "row_hyper_sparse"] | None = None
    primal_feasibility_tolerance: float | None = None
    dual_feasibility_tolerance: float | None = None
    presolve: Literal["on", "off", "choose"] | None = None
    simplex_update_limit: Count | None = None
    cost_perturbation: float | None = None
    refactor_error_tolerance: float | None = None
    factor_pivot_threshold: float | None = None
    use_warm_start: bool | None = None
    steepest_edge_devex_fallback_threshold: float | None = None


class TrainingSolver(FormatModel):
    """Retries and solver options of training; checked, without effect here."""

    retry_max_attempts: Count | None = None
    retry_time_budget_seconds: NonNegative | None = None
    forward: PhaseSolverProfile | None = None
    backward: PhaseSolverProfile | None = None


class Training(FormatModel):
    """Section ``training``."""

    enabled: Annotated[bool | None, unsupported("simulating without training", True)] = None
    tree_seed: Int64 | None = None
    """Seed of the opening tree, taken without its sign; 42 unless given."""
    selection: Annotated[SampledTraining | EnumeratedTraining, Field(discriminator="method")]
    stopping_rules: list[StoppingRule]
    """When to stop; at least one iteration limit."""
    stopping_mode: Literal["any", "all"] | None = None
    """Whether one rule is enough or all must agree; the largest iteration limit caps in any case."""
    cut_selection: CutSelection | None = None
    parallelism: Parallelism | None = None
    scenario_source: TrainingScenarioSource | None = None
    solver: TrainingSolver | None = None


class SampledSimulation(FormatModel):
    """Scenarios drawn at random."""

    method: Literal["sampled"]
    num_scenarios: Count
    """Scenarios; 0 skips the simulation."""


class EnumeratedSimulation(FormatModel):
    """Every scenario once."""

    method: Literal["enumerated"]


class Simulation(FormatModel):
    """Section ``simulation``; checked in shape, used by no command yet."""

    enabled: bool | None = None
    selection: Annotated[SampledSimulation | EnumeratedSimulation, Field(discriminator="method")] | None = (
        None
    )
    """2000 sampled scenarios unless given."""
    io_channel_capacity: Count | None = None
    scenario_source: SimulationScenarioSource | None = None
    """Training's unless given."""
    solver: PhaseSolverProfile | None = None


class InflowNonNegativity(FormatModel):
    """What happens when sampled inflow is negative."""

    method: Literal["none", "truncation", "penalty", "truncation_with_penalty"] | None = None
    """``penalty`` unless given; its price is hydro.inflow_nonnegativity_cost."""


class Modeling(FormatModel):
    """Section ``modeling``."""

    inflow_non_negativity: InflowNonNegativity | None = None
    cost_scale_factor: Positive | None = None
    """$ per unit of the LPs' objective."""


class Checkpointing(FormatModel):
    """When to write checkpoints; the other keys matter only when enabled."""

    enabled: Annotated[bool | None, unsupported("checkpointing", False)] = None
    initial_iteration: Count | None = None
    interval_iterations: PositiveCount | None = None
    """Iterations between two checkpoints; required when enabled."""
    store_basis: bool | None = None
    compress: bool | None = None


_CLEARED = ("training", "simulation")
"""Folders of the output directory that a run empties."""


def _check_policy_path(value: str | None) -> str | None:
    if value is None:
        return None
    depth, lowest, parts = 0, 0, []
    for part in PurePosixPath(value).parts:
        depth += -1 if part == ".." else 1
        lowest = min(lowest, depth)
        parts.append(part)
    inside = not value.startswith("/") and lowest == 0 and depth > 0
    if not inside or "\0" in value or parts[0] in _CLEARED:
        raise PydanticCustomError(
            "policy_path",
            "must be a folder inside the output directory other than training and simulation",
        )
    return value


def _check_not_empty(value: str) -> str:
    if not value or "\0" in value:
        raise PydanticCustomError("path", "must be the path of a directory")
    return value


class Boundary(FormatModel):
    """A stored policy that values the state at the end of the study."""

    path: Annotated[str, AfterValidator(_check_not_empty)]
    """Policy directory, relative to the case directory."""
    strict: bool | None = None
    """Whether state variables that the policy lacks or has in excess are an error."""


class Policy(FormatModel):
    """Section ``policy``; only a fresh policy at the default place is honoured."""

    path: Annotated[
        str | None,
        AfterValidator(_check_policy_path),
        unsupported("a policy path of one's own", "./policy", "policy"),
    ] = None
    """Folder of the policy, relative to the output directory; ``./policy`` unless given."""
    mode: Annotated[
        Literal["fresh", "warm_start", "resume"] | None, unsupported("starting from a stored policy", "fresh")
    ] = None
    checkpointing: Checkpointing | None = None
    boundary: Boundary | None = None


class Exports(FormatModel):
    """Section ``exports``; nothing but "off" is honoured."""

    states: Annotated[bool | None, unsupported("exporting states", False)] = None
    stochastic: Annotated[bool | None, unsupported("exporting the stochastic model", False)] = None
    fpha_deviation_points: Annotated[bool | None, unsupported("exporting FPHA deviations", False)] = None


class Estimation(FormatModel):
    """Section ``estimation``: how inflow models are estimated from scenarios/inflow_history.parquet."""

    max_order: Count | None = None
    """Largest autoregressive order; 6 unless given."""
    order_selection: Literal["pacf", "pacf_annual"] | None = None
    """``pacf`` unless given."""
    min_observations_per_season: Count | None = None
    """Observations of a season below which its estimates are doubtful; 30 unless given."""
    max_coefficient_magnitude: Positive | None = None
    """Largest coefficient that is kept; unlimited unless given."""


class Lipschitz(FormatModel):
    """Lipschitz constants of an upper bound."""

    mode: str | None = None
    fallback_value: float | None = None
    scale_factor: float | None = None


class UpperBoundEvaluation(FormatModel):
    """Section ``upper_bound_evaluation``; checked, without effect."""

    enabled: bool | None = None
    initial_iteration: Count | None = None
    interval_iterations: Count | None = None
    lipschitz: Lipschitz | None = None


class ConfigFile(RootModel):
    """The whole file."""

    training: Training
    simulation: Simulation | None = None
    modeling: Modeling | None = None
    policy: Policy | None = None
    exports: Exports | None = None
    estimation: Estimation | None = None
    upper_bound_evaluation: UpperBoundEvaluation | None = None
