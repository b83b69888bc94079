"""What ``config.json`` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cobre.rules.contracts import StoppingRule

InflowMethod = Literal["none", "penalty", "truncation", "truncation_with_penalty"]
PolicyMode = Literal["fresh", "warm_start", "resume"]
ClassName = Literal["inflow", "load", "ncs"]
"""What noise is about: inflow of hydros, load of buses, availability of non-controllable sources."""
Scheme = Literal["in_sample", "out_of_sample", "external", "historical"]


@dataclass(frozen=True)
class ScenarioSource:
    """Where the noise of forward passes comes from, by class; and, in training, the openings."""

    inflow: Scheme = "in_sample"
    load: Scheme = "in_sample"
    ncs: Scheme = "in_sample"
    seed: int | None = None
    """Of fresh noise; the opening tree has a seed of its own."""
    historical_years: Sequence[int] | None = None
    """Years whose inflows are replayed; ``None`` = all that the history covers."""
    openings: Literal["generated", "file"] = "generated"

    def scheme(self, name: ClassName) -> Scheme:
        """Return the scheme of a class."""
        schemes: dict[ClassName, Scheme] = {"inflow": self.inflow, "load": self.load, "ncs": self.ncs}
        return schemes[name]


@dataclass(frozen=True)
class CutSelection:
    """Which cuts stay in the LPs."""

    method: str = "all"
    """``all``, or the name of a module of :mod:`cobre.rules.selection`."""
    tolerance: float = 1e-10
    """In $: distance below the highest cut that counts as a tie (``level1``, ``lml1``) or as not dominated
    (``domination``), or violation from which a cut enters an LP (``dynamic``)."""
    check_frequency: int = 5
    """Iterations between two selections."""
    start_iteration: int = 2
    """First iteration of ``dynamic``."""
    seed_window: int = 5
    """Latest iterations whose cuts an LP of HiGHS starts with."""
    candidate_recency: int | None = None
    """Latest iterations whose cuts are candidates (``dynamic``); ``None`` = all."""
    max_added_per_round: int = 10
    """Most cuts added to an LP of HiGHS at once."""
    max_active_per_stage: int | None = None
    """Most active cuts of a node, those of the present iteration aside; ``None`` = no limit."""
    activity_tolerance: float = 0.0
    """Distance below the highest cut at which a cut still counts as active, $."""
    parameters: tuple[float, ...] = field(default=(), metadata={"extension": True})
    """Of methods that have further ones."""


@dataclass(frozen=True)
class UpperBoundOptions:
    """The deterministic upper bound: whether and when it is evaluated, and with which prices."""

    enabled: bool | None = None
    """At the end of training; and on the way there if there is an interval. ``None`` = at the end, where a
    rule of sizes finds it cheap."""
    initial_iteration: int = 1
    """First iteration after which it is evaluated on the way."""
    interval_iterations: int | None = None
    """Iterations from one evaluation to the next; ``None`` = only at the end."""
    fallback_price: float | None = None
    """$ per unit of a state component where no valid price is found; ``None`` = no such moves."""
    price_factor: float = 1.0
    """Margin on the prices that are found, 1 or more."""


@dataclass(frozen=True)
class PassSchedule:
    """How the number of forward passes of an iteration grows."""

    initial: int
    """Of the first iterations."""
    double_every: int
    """Iterations after which they are twice as many, up to all of them."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of training."""

    tree_seed: int
    forward_passes: int
    """Of one iteration; 0 with ``enumerated``."""
    iteration_limit: int
    inflow_method: InflowMethod
    cost_scale_factor: float | None
    """$ per unit of objective in the LPs; ``None`` lets the LP builder choose."""
    truncation_cuts: Literal["tangent", "valid"] = "tangent"
    """Slope of cuts in past inflow where truncation may bind: of the untruncated model, or of a chord."""
    enumerated: bool = False
    """Every path through the tree is a forward pass, weighted by its probability."""
    source: ScenarioSource = field(default_factory=ScenarioSource)
    stopping_rules: tuple[StoppingRule, ...] = ()
    """Besides the iteration limit."""
    stopping_mode: Literal["any", "all"] = "any"
    """Whether one of the rules is enough or all must agree."""
    cut_selection: CutSelection = CutSelection()
    upper_bound: UpperBoundOptions = field(default_factory=UpperBoundOptions)
    enabled: bool = True
    """Whether a run trains a policy; else it simulates the stored one."""
    pass_schedule: PassSchedule | None = field(default=None, metadata={"extension": True})
    """``None``: all forward passes in every iteration."""

    def __repr__(self) -> str:
        passes = "enumerated" if self.enumerated else f"{self.forward_passes} forward passes"
        return f"TrainingOptions({self.iteration_limit} iterations, {passes}, seed={self.tree_seed})"


@dataclass(frozen=True)
class SimulationOptions:
    """Options of simulation."""

    enabled: bool = False
    """Whether a run simulates the policy that it has trained."""
    num_scenarios: int = 2000
    """0 with ``enumerated``."""
    enumerated: bool = False
    source: ScenarioSource = field(default_factory=ScenarioSource)


@dataclass(frozen=True)
class CheckpointOptions:
    """When training writes checkpoints, and what is in them."""

    interval_iterations: int
    initial_iteration: int = 0
    """First iteration with a checkpoint; 0 = the interval."""
    store_basis: bool = True
    """Whether starting bases are stored; without them a resume is not bit for bit."""
    compress: bool = True

    def due(self, iteration: int) -> bool:
        """Whether a checkpoint follows ``iteration`` (from 1)."""
        after = iteration - self.initial_iteration
        return after >= 0 and after % self.interval_iterations == 0


@dataclass(frozen=True)
class PolicyOptions:
    """Where the policy is kept, and where cuts come from besides training."""

    boundary_path: Path | None = None
    """Policy directory whose cuts value the final state; ``None`` = the end is worth nothing."""
    boundary_strict: bool = False
    path: str = "policy"
    """Folder of the policy inside the output directory, with ``/`` and without ``.`` or ``..``."""
    mode: PolicyMode = "fresh"
    """What training starts from: nothing, the cuts of the stored policy, or the last checkpoint."""
    checkpointing: CheckpointOptions | None = None
    """``None`` = no checkpoints."""


@dataclass(frozen=True)
class ExportOptions:
    """What training writes besides its results."""

    stochastic: bool = False
    """The stochastic model, in the form of input files."""


@dataclass(frozen=True)
class EstimationOptions:
    """How inflow models are estimated from history."""

    max_order: int = 6
    """Largest autoregressive order."""
    order_selection: Literal["pacf", "pacf_annual"] = "pacf"
    """By partial autocorrelations; ``pacf_annual`` adds the annual component."""
    min_observations_per_season: int = 30
    """Observations of a season below which its estimates are doubtful."""
    max_coefficient_magnitude: float | None = None
    """Largest coefficient that is kept; ``None`` = any."""
