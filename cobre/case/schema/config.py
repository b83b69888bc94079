"""``config.json``: how to train and simulate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cobre.case.schema.base import (
    Count,
    FormatModel,
    Int64,
    JsonObject,
    Positive,
    PositiveCount,
    RootModel,
    unsupported,
)

Scheme = Literal["in_sample", "out_of_sample", "external"]


class SampledTraining(FormatModel):
    """Forward passes drawn at random."""

    method: Literal["sampled"]
    forward_passes: PositiveCount


class EnumeratedTraining(FormatModel):
    """Every scenario once."""

    method: Annotated[Literal["enumerated"], unsupported("the selection method 'enumerated'")]


class IterationLimit(FormatModel):
    """Stop after so many iterations."""

    type: Literal["iteration_limit"]
    limit: PositiveCount


class TimeLimit(FormatModel):
    """Stop after so many seconds."""

    type: Annotated[Literal["time_limit"], unsupported("the stopping rule 'time_limit'")]
    seconds: Positive


class BoundStalling(FormatModel):
    """Stop when the lower bound hardly moves."""

    type: Annotated[Literal["bound_stalling"], unsupported("the stopping rule 'bound_stalling'")]
    iterations: PositiveCount
    tolerance: float


class Gap(FormatModel):
    """Stop when upper and lower bound are close."""

    type: Annotated[Literal["gap"], unsupported("the stopping rule 'gap'")]
    tolerance: float | None = None
    relative_tolerance: float | None = None


StoppingRule = Annotated[IterationLimit | TimeLimit | BoundStalling | Gap, Field(discriminator="type")]


class ClassSource(FormatModel):
    """Where the forward noise of load or non-controllable sources comes from."""

    scheme: Scheme | None = None


class InflowSource(FormatModel):
    """Where the forward noise of inflows comes from."""

    scheme: Literal["in_sample", "out_of_sample", "external", "historical"] | None = None


class InSample(ClassSource):
    """As :class:`ClassSource`, restricted to what training honours."""

    scheme: Annotated[Scheme | None, unsupported("a scenario scheme other than 'in_sample'", "in_sample")] = (
        None
    )


class InflowInSample(InflowSource):
    """As :class:`InflowSource`, restricted to what training honours."""

    scheme: Annotated[
        Literal["in_sample", "out_of_sample", "external", "historical"] | None,
        unsupported("a scenario scheme other than 'in_sample'", "in_sample"),
    ] = None


class YearRange(FormatModel):
    """Historical years from ... to, both included."""

    from_: int = Field(alias="from")
    to: int


class OpeningsSource(FormatModel):
    """Where the openings of the backward pass come from."""

    source: Annotated[
        Literal["generated", "file"] | None,
        unsupported("openings read from scenarios/noise_openings.parquet", "generated"),
    ] = None


class SimulationScenarioSource(FormatModel):
    """Scenario source of a simulation."""

    seed: Int64 | None = None
    inflow: InflowSource | None = None
    load: ClassSource | None = None
    ncs: ClassSource | None = None
    historical_years: list[int] | YearRange | None = None


class TrainingScenarioSource(FormatModel):
    """Scenario source of training; the seed has no effect on in-sample schemes."""

    seed: Int64 | None = None
    inflow: InflowInSample | None = None
    load: InSample | None = None
    ncs: InSample | None = None
    historical_years: Annotated[list[int] | YearRange | None, unsupported("historical years")] = None
    openings: OpeningsSource | None = None


class CutSelection(FormatModel):
    """Which cuts stay in the LPs; only "all" is honoured."""

    row_activity_tolerance: Annotated[float | None, unsupported("a row activity tolerance", 0.0)] = None
    max_active_per_stage: Annotated[Count | None, unsupported("a limit on active cuts")] = None
    selection: Annotated[JsonObject | None, unsupported("cut selection")] = None


class ByScenario(FormatModel):
    """Backward work split by trial point."""

    method: Literal["by_scenario"]


class ByNode(FormatModel):
    """Backward work split by trial point and block of openings."""

    method: Annotated[Literal["by_node"], unsupported("the backward scheduler 'by_node'")]
    block_size: PositiveCount | None = None


class Parallelism(FormatModel):
    """How work is split over workers; never changes the result."""

    backward_scheduler: Annotated[ByScenario | ByNode, Field(discriminator="method")] | None = None


class PhaseSolverProfile(FormatModel):
    """Options of the LP solver for one phase."""

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


_NO_PROFILE = PhaseSolverProfile()


class TrainingSolver(FormatModel):
    """Retries and solver options of training; only the defaults are honoured."""

    retry_max_attempts: Annotated[Count | None, unsupported("a number of solver retries", 5)] = None
    retry_time_budget_seconds: Annotated[float | None, unsupported("a solver retry time budget", 30.0)] = None
    forward: Annotated[PhaseSolverProfile | None, unsupported("solver options", _NO_PROFILE)] = None
    backward: Annotated[PhaseSolverProfile | None, unsupported("solver options", _NO_PROFILE)] = None


class Training(FormatModel):
    """Section ``training``."""

    enabled: Annotated[bool | None, unsupported("simulating without training", True)] = None
    tree_seed: Int64 | None = None
    selection: Annotated[SampledTraining | EnumeratedTraining, Field(discriminator="method")]
    stopping_rules: list[StoppingRule]
    stopping_mode: Literal["any", "all"] | None = None
    cut_selection: CutSelection | None = None
    parallelism: Parallelism | None = None
    scenario_source: TrainingScenarioSource | None = None
    solver: TrainingSolver | None = None


class SampledSimulation(FormatModel):
    """Scenarios drawn at random."""

    method: Literal["sampled"]
    num_scenarios: Count


class EnumeratedSimulation(FormatModel):
    """Every scenario once."""

    method: Literal["enumerated"]


class Simulation(FormatModel):
    """Section ``simulation``; checked in shape, used by no command yet."""

    enabled: bool | None = None
    selection: Annotated[SampledSimulation | EnumeratedSimulation, Field(discriminator="method")] | None = (
        None
    )
    io_channel_capacity: Count | None = None
    scenario_source: SimulationScenarioSource | None = None
    solver: PhaseSolverProfile | None = None


class InflowNonNegativity(FormatModel):
    """What happens when sampled inflow is negative."""

    method: Literal["none", "truncation", "penalty", "truncation_with_penalty"] | None = None


class Modeling(FormatModel):
    """Section ``modeling``."""

    inflow_non_negativity: InflowNonNegativity | None = None
    cost_scale_factor: Positive | None = None


class Checkpointing(FormatModel):
    """When to write checkpoints; the other keys matter only when enabled."""

    enabled: Annotated[bool | None, unsupported("checkpointing", False)] = None
    initial_iteration: Count | None = None
    interval_iterations: PositiveCount | None = None
    store_basis: bool | None = None
    compress: bool | None = None


class Policy(FormatModel):
    """Section ``policy``; only a fresh policy at the default place is honoured."""

    path: Annotated[str | None, unsupported("a policy path of one's own", "./policy", "policy")] = None
    mode: Annotated[
        Literal["fresh", "warm_start", "resume"] | None, unsupported("starting from a stored policy", "fresh")
    ] = None
    checkpointing: Checkpointing | None = None
    boundary: Annotated[JsonObject | None, unsupported("a boundary policy")] = None


class Exports(FormatModel):
    """Section ``exports``; nothing but "off" is honoured."""

    states: Annotated[bool | None, unsupported("exporting states", False)] = None
    stochastic: Annotated[bool | None, unsupported("exporting the stochastic model", False)] = None
    fpha_deviation_points: Annotated[bool | None, unsupported("exporting FPHA deviations", False)] = None


class Estimation(FormatModel):
    """Section ``estimation``; only the defaults are accepted since there is no history to estimate from."""

    max_order: Annotated[Count | None, unsupported("estimating inflow models", 6)] = None
    order_selection: Annotated[
        Literal["pacf", "pacf_annual"] | None, unsupported("estimating inflow models", "pacf")
    ] = None
    min_observations_per_season: Annotated[Count | None, unsupported("estimating inflow models", 30)] = None
    max_coefficient_magnitude: Annotated[float | None, unsupported("estimating inflow models")] = None


class UpperBoundEvaluation(FormatModel):
    """Section ``upper_bound_evaluation``; the other keys matter only when enabled."""

    enabled: Annotated[bool | None, unsupported("upper bound evaluation", False)] = None
    initial_iteration: Count | None = None
    interval_iterations: Count | None = None
    lipschitz: JsonObject | None = None


class ConfigFile(RootModel):
    """The whole file."""

    training: Training
    simulation: Simulation | None = None
    modeling: Modeling | None = None
    policy: Policy | None = None
    exports: Exports | None = None
    estimation: Estimation | None = None
    upper_bound_evaluation: UpperBoundEvaluation | None = None
