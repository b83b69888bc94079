"""``stages.json``: the horizon, its seasons and the graph of the policy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cobre.case.format.schema.risk import RiskField
from cobre.fields import (
    FormatModel,
    Hours,
    Id,
    IsoDate,
    NonNegative,
    RootModel,
    SampleCount,
    unsupported,
)

DiscountOverride = Annotated[float, Field(gt=-1)]
"""An annual rate; -1 or less has no discount factor."""

Month = Annotated[int, Field(ge=1, le=12)]
Day = Annotated[int, Field(ge=1, le=31)]


SAMPLING_METHODS = (
    "saa",
    "lhs",
    "qmc_sobol",
    "qmc_halton",
    "owen_sobol",
    "owen_halton",
    "historical_residuals",
)


class BlockEntry(FormatModel):
    """A load block of a stage."""

    id: Id
    """0, 1, 2, ...; in a chronological stage also the order in time."""
    name: str
    """Shown in problems and results."""
    hours: Hours
    """Duration, h."""


class StateVariables(FormatModel):
    """Which quantities are carried to the next stage."""

    storage: bool | None = None
    """true unless given."""
    # Without an autoregressive inflow model there is no lag to carry, so both values mean the same.
    inflow_lags: bool | None = None
    """false unless given."""


class StageEntry(FormatModel):
    """One stage."""

    id: Id
    """Study stages have ids >= 0; a negative id makes a pre-study stage."""
    start_date: IsoDate
    """First day."""
    end_date: IsoDate
    """First day after the stage."""
    blocks: list[BlockEntry]
    """Load blocks; their hours make the stage's hours."""
    num_openings: SampleCount | None = None
    """Generated openings; left out only where all nodes of the stage take an external scenario."""
    season_id: Id | None = None
    """Season; from the start date unless given."""
    block_mode: Literal["parallel", "chronological"] | None = None
    """``parallel`` unless given."""
    state_variables: StateVariables | None = None
    """What is carried to the next stage."""
    risk_measure: RiskField = None
    """How the cost of later stages is weighed; the expectation unless given."""
    sampling_method: Annotated[
        Literal[
            "saa",
            "lhs",
            "qmc_sobol",
            "qmc_halton",
            "owen_sobol",
            "owen_halton",
            "historical_residuals",
            "selective",
        ]
        | None,
        unsupported("selecting representative openings", *SAMPLING_METHODS),
    ] = None
    """How openings are drawn, and fresh noise of forward passes; ``saa`` unless given."""
    annual_discount_rate_override: DiscountOverride | None = None
    """Annual discount rate of the cost of later stages, as a fraction."""


class TransitionEntry(FormatModel):
    """A transition between two stages, or between two nodes where nodes are given."""

    source_id: Id
    """Where the transition starts."""
    target_id: Id
    """Where the transition ends."""
    probability: Annotated[float, Field(ge=0, le=1)]
    """Probability, 0-1; those of one source add up to 1."""
    annual_discount_rate_override: DiscountOverride | None = None
    """Annual discount rate of the source stage, as a fraction; not with nodes."""


class NodeEntry(FormatModel):
    """A node of the policy graph: a stage, under one external scenario or any opening."""

    id: Id
    """Unique among the nodes."""
    stage_id: Id
    """The stage."""
    scenario_id: Id | None = None
    """Scenario of the external libraries at this stage; generated openings unless given."""
    label: str | None = None
    """Free text."""


class PolicyGraph(FormatModel):
    """How stages (or nodes) follow each other."""

    type: Annotated[
        Literal["finite_horizon", "cyclic"], unsupported("a cyclic policy graph", "finite_horizon")
    ]
    """``finite_horizon``: the study ends with its last stage."""
    annual_discount_rate: NonNegative
    """As a fraction (0.12 = 12 % a year)."""
    transitions: list[TransitionEntry] | None = None
    """A plain chain in the order of ids unless given."""
    nodes: list[NodeEntry] | None = None
    """One for each stage unless given."""
    root_risk_measure: RiskField = None
    """How the openings of the first stage are weighed; by that stage's own measure unless given."""


class SeasonEntry(FormatModel):
    """A season of the cycle."""

    id: Id
    """Unique among the seasons."""
    label: str
    """Shown in problems."""
    month_start: Month
    """Month of the first day, 1-12."""
    day_start: Day | None = None
    """First day; custom cycles only."""
    month_end: Month | None = None
    """Month of the last day; custom cycles only."""
    day_end: Day | None = None
    """Last day, which belongs to the season; custom cycles only."""


class SeasonDefinitions(FormatModel):
    """How dates map to seasons."""

    cycle_type: Literal["monthly", "weekly", "custom"]
    """What a season is: a month, a week, or a range of days."""
    seasons: Annotated[list[SeasonEntry], Field(min_length=1)]
    """The seasons of a year."""


class PreStudyStageEntry(FormatModel):
    """A period before the study, to which rows of seasonal statistics may refer."""

    id: Annotated[int, Field(ge=-(2**31), le=-1)]
    """Negative, unique."""
    start_date: IsoDate
    """First day."""
    end_date: IsoDate
    """First day after the period."""
    season_id: Id | None = None
    """Season; from the start date unless given."""


class StagesFile(RootModel):
    """``stages.json``: the horizon, its seasons and the graph of the policy."""

    policy_graph: PolicyGraph
    """How stages follow each other, and the discount rate."""
    stages: list[StageEntry]
    """All stages, in any order; at least 2 in the study."""
    season_definitions: SeasonDefinitions | None = None
    """How dates map to seasons; needed by seasonal data and autoregressive inflows."""
    pre_study_stages: list[PreStudyStageEntry] | None = None
    """Periods before the study that seasonal statistics refer to."""
