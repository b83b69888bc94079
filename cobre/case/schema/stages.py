"""``stages.json``: the horizon, its seasons and the graph of the policy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from cobre.case.schema.base import (
    FormatModel,
    Hours,
    Id,
    IsoDate,
    NonNegative,
    PositiveCount,
    RootModel,
    unsupported,
)

DiscountOverride = Annotated[float, Field(gt=-1)]
"""An annual rate; -1 or less has no discount factor."""

Month = Annotated[int, Field(ge=1, le=12)]
Day = Annotated[int, Field(ge=1, le=31)]


class BlockEntry(FormatModel):
    """A load block of a stage."""

    id: Id
    """0, 1, 2, ...; in a chronological stage also the order in time."""
    name: str
    hours: Hours
    """Duration, h."""


class StateVariables(FormatModel):
    """Which quantities are carried to the next stage."""

    storage: bool | None = None
    """true unless given."""
    # Without an autoregressive inflow model there is no lag to carry, so both values mean the same.
    inflow_lags: bool | None = None
    """false unless given."""


class CvarParameters(FormatModel):
    """``(1 - lambda) * expectation + lambda * CVaR`` of the worst share ``alpha``."""

    alpha: Annotated[float, Field(gt=0, le=1)]
    """Share of the worst outcomes."""
    weight: Annotated[float, Field(ge=0, le=1, alias="lambda")]
    """Weight of the CVaR."""


class CvarEntry(FormatModel):
    """The risk measure CVaR, mixed with the expectation."""

    cvar: CvarParameters


def _check_risk_shape(value: Any) -> Any:
    if value is None or value == "expectation":
        return None
    if isinstance(value, dict) and set(value) == {"cvar"} and isinstance(value["cvar"], dict):
        return value
    raise PydanticCustomError(
        "risk_measure", 'must be "expectation" or {"cvar": {"alpha": ..., "lambda": ...}}'
    )


_RISK_SCHEMA = {
    "anyOf": [
        {"const": "expectation"},
        {
            "type": "object",
            "properties": {
                "cvar": {
                    "type": "object",
                    "properties": {
                        "alpha": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        "lambda": {"type": "number", "minimum": 0, "maximum": 1},
                    },
                    "required": ["alpha", "lambda"],
                    "additionalProperties": False,
                }
            },
            "required": ["cvar"],
            "additionalProperties": False,
        },
        {"type": "null"},
    ],
    "description": "Expectation, or a mix of expectation and CVaR.",
}


class StageEntry(FormatModel):
    """One stage."""

    id: Id
    """Study stages have ids >= 0; a negative id makes a pre-study stage."""
    start_date: IsoDate
    end_date: IsoDate
    """First day after the stage."""
    blocks: list[BlockEntry]
    num_openings: PositiveCount | None = None
    """Generated openings; left out only where all nodes of the stage take an external scenario."""
    season_id: Id | None = None
    """Season; from the start date unless given."""
    block_mode: Literal["parallel", "chronological"] | None = None
    """``parallel`` unless given."""
    state_variables: StateVariables | None = None
    risk_measure: Annotated[
        CvarEntry | None, BeforeValidator(_check_risk_shape), WithJsonSchema(_RISK_SCHEMA)
    ] = None
    sampling_method: Annotated[
        Literal["saa", "lhs", "qmc_sobol", "qmc_halton", "historical_residuals", "selective"] | None,
        unsupported("a sampling method other than 'saa'", "saa"),
    ] = None
    """``saa`` unless given."""
    annual_discount_rate_override: DiscountOverride | None = None
    """Annual discount rate of the cost of later stages, as a fraction."""


class TransitionEntry(FormatModel):
    """A transition between two stages, or between two nodes where nodes are given."""

    source_id: Id
    target_id: Id
    probability: Annotated[float, Field(ge=0, le=1)]
    annual_discount_rate_override: DiscountOverride | None = None
    """Annual discount rate of the source stage, as a fraction; not with nodes."""


class NodeEntry(FormatModel):
    """A node of the policy graph: a stage, under one external scenario or any opening."""

    id: Id
    stage_id: Id
    scenario_id: Id | None = None
    """Scenario of the external libraries at this stage; generated openings unless given."""
    label: str | None = None


class PolicyGraph(FormatModel):
    """How stages (or nodes) follow each other."""

    type: Annotated[
        Literal["finite_horizon", "cyclic"], unsupported("a cyclic policy graph", "finite_horizon")
    ]
    annual_discount_rate: NonNegative
    """As a fraction (0.12 = 12 % a year)."""
    transitions: list[TransitionEntry] | None = None
    """A plain chain in the order of ids unless given."""
    nodes: list[NodeEntry] | None = None
    """One for each stage unless given."""


class SeasonEntry(FormatModel):
    """A season of the cycle."""

    id: Id
    label: str
    month_start: Month
    day_start: Day | None = None
    """First day; custom cycles only."""
    month_end: Month | None = None
    """Month of the last day; custom cycles only."""
    day_end: Day | None = None
    """Last day, which belongs to the season; custom cycles only."""


class SeasonDefinitions(FormatModel):
    """How dates map to seasons."""

    cycle_type: Literal["monthly", "weekly", "custom"]
    seasons: Annotated[list[SeasonEntry], Field(min_length=1)]


class PreStudyStageEntry(FormatModel):
    """A period before the study, to which rows of seasonal statistics may refer."""

    id: Annotated[int, Field(ge=-(2**31), le=-1)]
    start_date: IsoDate
    end_date: IsoDate
    """First day after the period."""
    season_id: Id | None = None


class StagesFile(RootModel):
    """The whole file."""

    policy_graph: PolicyGraph
    stages: list[StageEntry]
    season_definitions: SeasonDefinitions | None = None
    pre_study_stages: list[PreStudyStageEntry] | None = None
