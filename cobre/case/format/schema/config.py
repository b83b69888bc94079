"""``config.json``: how to train and simulate."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from cobre.fields import (
    Count,
    FormatModel,
    Int64,
    NonNegative,
    OneOf,
    Positive,
    PositiveCount,
    RootModel,
    SampleCount,
    unsupported,
)
from cobre.rules.contracts import CutMethodEntry, StoppingRule
from cobre.rules.selection import CUT_METHODS
from cobre.rules.stopping import RULES

Scheme = Literal["in_sample", "out_of_sample", "external"]
InflowScheme = Literal["in_sample", "out_of_sample", "external", "historical"]


class SampledTraining(FormatModel):
    """Forward passes drawn at random."""

    method: Literal["sampled"]
    """Names this form."""
    forward_passes: SampleCount
    """Forward passes of one iteration."""
    initial_passes: PositiveCount | None = None
    """Forward passes of the first iterations, less than forward_passes; all unless given."""
    double_every: PositiveCount | None = None
    """Iterations after which the initial passes double, up to forward_passes; 10 unless given."""


class EnumeratedTraining(FormatModel):
    """Every path through the scenario tree is a forward pass, weighted by its probability."""

    method: Literal["enumerated"]
    """Names this form."""


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
    """Noise of inflows; in-sample unless given."""
    load: ClassSource | None = None
    """Noise of loads; in-sample unless given."""
    ncs: ClassSource | None = None
    """Noise of non-controllable sources; in-sample unless given."""
    historical_years: list[int] | YearRange | None = None
    """Years whose inflows are replayed; only with the scheme ``historical``."""


class TrainingScenarioSource(SimulationScenarioSource):
    """Scenario source of training; the seed has no effect on in-sample schemes."""

    openings: OpeningsSource | None = None
    """Openings of the backward pass; generated unless given."""


class CutSelection(FormatModel):
    """Which cuts stay in the LPs."""

    row_activity_tolerance: NonNegative | None = None
    """Distance below the highest cut at which a cut counts as active, $; 0 unless given."""
    max_active_per_stage: Count | None = None
    """Most cuts in the LP of a stage, those of the present iteration aside; unlimited unless given."""
    selection: Annotated[CutMethodEntry, OneOf(CUT_METHODS, "method")] | None = None
    """How cuts are chosen; all of them unless given."""


class ByScenario(FormatModel):
    """Backward work split by trial point."""

    method: Literal["by_scenario"]
    """Names this form."""


class ByNode(FormatModel):
    """Backward work split by trial point and block of openings."""

    method: Literal["by_node"]
    """Names this form."""
    block_size: PositiveCount | None = None
    """Openings of one piece of work."""


class Parallelism(FormatModel):
    """How work is split over workers; never changes the result."""

    backward_scheduler: Annotated[ByScenario | ByNode, Field(discriminator="method")] | None = None
    """How the backward pass is split; ``by_scenario`` unless given."""


class PhaseSolverProfile(FormatModel):
    """Options of the peer's LP solver for one phase; checked, without effect here."""

    dual_edge_weight: Literal["devex", "steepest_edge", "dantzig"] | None = None
    """Pricing rule of the dual simplex."""
    scale: Literal["off", "solver_scaling"] | None = None
    """Whether the solver scales the LP."""
    price: Literal["row", "row_hyper_sparse"] | None = None
    """How rows are priced."""
    primal_feasibility_tolerance: float | None = None
    """Largest violation of a row or bound."""
    dual_feasibility_tolerance: float | None = None
    """Largest wrong-signed reduced cost."""
    presolve: Literal["on", "off", "choose"] | None = None
    """Whether the LP is presolved."""
    simplex_update_limit: Count | None = None
    """Most updates of a basis factorisation."""
    cost_perturbation: float | None = None
    """Factor on the perturbation of costs."""
    refactor_error_tolerance: float | None = None
    """Error from which a basis is factorised anew."""
    factor_pivot_threshold: float | None = None
    """Threshold of pivots in the factorisation."""
    use_warm_start: bool | None = None
    """Whether an LP starts from the basis of the one before."""
    steepest_edge_devex_fallback_threshold: float | None = None
    """Error from which steepest edge gives way to devex."""


class TrainingSolver(FormatModel):
    """Retries and solver options of training; checked, without effect here."""

    retry_max_attempts: Count | None = None
    """Most attempts to solve an LP again; 5 unless given."""
    retry_time_budget_seconds: NonNegative | None = None
    """Longest time for these attempts, s; 30 unless given."""
    forward: PhaseSolverProfile | None = None
    """Options of the forward pass."""
    backward: PhaseSolverProfile | None = None
    """Options of the backward pass."""


class Training(FormatModel):
    """Section ``training``."""

    enabled: bool | None = None
    """Whether ``cobre run`` trains a policy; true unless given. Otherwise it simulates the stored one."""
    tree_seed: Int64 | None = None
    """Seed of the opening tree, taken without its sign; 42 unless given."""
    selection: Annotated[SampledTraining | EnumeratedTraining, Field(discriminator="method")]
    """Which forward passes an iteration has."""
    stopping_rules: list[Annotated[StoppingRule, OneOf(RULES, "type")]]
    """When to stop; at least one iteration limit."""
    stopping_mode: Literal["any", "all"] | None = None
    """Whether one rule is enough or all must agree; the largest iteration limit caps in any case."""
    cut_selection: CutSelection | None = None
    """Which cuts stay in the LPs; all unless given."""
    parallelism: Parallelism | None = None
    """How work is split; never changes the result."""
    scenario_source: TrainingScenarioSource | None = None
    """Where the noise of forward and backward passes comes from; in-sample unless given."""
    solver: TrainingSolver | None = None
    """Options of the LP solver."""


class SampledSimulation(FormatModel):
    """Scenarios drawn at random."""

    method: Literal["sampled"]
    """Names this form."""
    num_scenarios: Count
    """Scenarios; with 0 ``cobre run`` skips the simulation."""


class EnumeratedSimulation(FormatModel):
    """Every scenario once."""

    method: Literal["enumerated"]
    """Names this form."""


class Simulation(FormatModel):
    """Section ``simulation``."""

    enabled: bool | None = None
    """Whether ``cobre run`` simulates the policy that it has trained; false unless given."""
    selection: Annotated[SampledSimulation | EnumeratedSimulation, Field(discriminator="method")] | None = (
        None
    )
    """2000 sampled scenarios unless given."""
    io_channel_capacity: Count | None = None
    """Without effect: a block of scenarios is written before the next is simulated."""
    scenario_source: SimulationScenarioSource | None = None
    """Training's unless given."""
    solver: PhaseSolverProfile | None = None
    """Options of the LP solver."""


class InflowNonNegativity(FormatModel):
    """What happens when sampled inflow is negative."""

    method: Literal["none", "truncation", "penalty", "truncation_with_penalty"] | None = None
    """``penalty`` unless given; its price is hydro.inflow_nonnegativity_cost."""
    truncation_cuts: Literal["tangent", "valid"] | None = None
    """Cuts where truncated inflow follows earlier inflow. ``tangent`` unless given: the slope of inflow that
    is not truncated, better policies, but an estimate in place of the lower bound; ``valid`` cuts never lie
    above the cost, and their bound is one."""


class Modeling(FormatModel):
    """Section ``modeling``."""

    inflow_non_negativity: InflowNonNegativity | None = None
    """What happens when sampled inflow is negative."""
    cost_scale_factor: Positive | None = None
    """$ per unit of the LPs' objective."""


class Checkpointing(FormatModel):
    """When to write checkpoints; the other keys matter only when enabled."""

    enabled: bool | None = None
    """Whether checkpoints are written; false unless given."""
    initial_iteration: Count | None = None
    """First iteration with a checkpoint; the interval unless given."""
    interval_iterations: PositiveCount | None = None
    """Iterations between two checkpoints; required when enabled."""
    store_basis: bool | None = None
    """Whether starting bases are stored too; true unless given. Without them training goes on validly after a
    resume, but not bit for bit as if it had not stopped."""
    compress: bool | None = None
    """Whether checkpoints are compressed; true unless given."""


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
    """Section ``policy``."""

    path: Annotated[str | None, AfterValidator(_check_policy_path)] = None
    """Folder of the policy, relative to the output directory; ``./policy`` unless given."""
    mode: Literal["fresh", "warm_start", "resume"] | None = None
    """What training starts from: nothing, the cuts of the stored policy, or the last checkpoint; ``fresh``
    unless given."""
    checkpointing: Checkpointing | None = None
    """When the policy is saved while training goes on."""
    boundary: Boundary | None = None
    """What the state is worth at the end of the study; nothing unless given."""


class Exports(FormatModel):
    """Section ``exports``: what is written besides results."""

    states: Annotated[bool | None, unsupported("exporting states", False)] = None
    """Whether visited states are written; false unless given."""
    stochastic: bool | None = None
    """Whether training writes the stochastic model, in the form of input files; false unless given."""
    fpha_deviation_points: Annotated[bool | None, unsupported("exporting FPHA deviations", False)] = None
    """Whether the error of fitted production functions is written; false unless given."""


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
    """Lipschitz constants of an upper bound: what one unit more or less of the state costs at most."""

    mode: Literal["auto"] | None = None
    """How the constants are found: from the stage LPs."""
    fallback_value: NonNegative | None = None
    """Constant where the stage LPs give none, $ per unit of state; nothing proves that it is large enough."""
    scale_factor: Annotated[float, Field(ge=1.0)] | None = None
    """Factor on the constants, 1 or more; 1 unless given."""


class UpperBoundEvaluation(FormatModel):
    """Section ``upper_bound_evaluation``: a deterministic upper bound over the states visited."""

    enabled: bool | None = None
    """Whether the bound is computed, at the end of training at least; unless given, at the end of training
    where it is cheap by a fixed rule of sizes."""
    initial_iteration: PositiveCount | None = None
    """First iteration with the bound; 1 unless given."""
    interval_iterations: PositiveCount | None = None
    """Iterations from one evaluation to the next; only at the end unless given."""
    lipschitz: Lipschitz | None = None
    """Lipschitz constants of the bound."""


class ConfigFile(RootModel):
    """``config.json``: how to train and simulate."""

    training: Training
    """How the policy is trained."""
    simulation: Simulation | None = None
    """How the policy is simulated."""
    modeling: Modeling | None = None
    """Options of the stage problems."""
    policy: Policy | None = None
    """Where the policy is kept, and what it starts from."""
    exports: Exports | None = None
    """Further outputs."""
    estimation: Estimation | None = None
    """How inflow models are estimated."""
    upper_bound_evaluation: UpperBoundEvaluation | None = None
    """A deterministic upper bound."""
