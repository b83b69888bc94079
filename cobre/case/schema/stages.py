"""``stages.json``: the horizon, its seasons and the graph of the policy."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from cobre.case.schema.base import (
    FormatModel,
    Hours,
    Id,
    IsoDate,
    NonNegative,
    Positive,
    RootModel,
    SampleCount,
    unsupported,
)

DiscountOverride = Annotated[float, Field(gt=-1)]
"""An annual rate; -1 or less has no discount factor."""

_WEIGHT_SLACK = 1e-6
"""How far the weights of a risk measure may be from a sum of 1."""

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


class CvarParameters(FormatModel):
    """``(1 - lambda) * expectation + lambda * CVaR`` of the worst share ``alpha``."""

    alpha: Annotated[float, Field(gt=0, le=1)]
    """Share of the worst outcomes."""
    weight: Annotated[float, Field(ge=0, le=1, alias="lambda")]
    """Weight of the CVaR."""


class EntropicParameters(FormatModel):
    """``log(E[exp(gamma Z)]) / gamma``."""

    gamma: Positive
    """Aversion to risk, 1/$."""


def _check_weights(value: list[float]) -> list[float]:
    if any(after > before for before, after in itertools.pairwise(value)):
        raise PydanticCustomError(
            "risk_weights", "must not rise from the worst outcome to the best, or the measure is not coherent"
        )
    if abs(math.fsum(value) - 1.0) > _WEIGHT_SLACK:
        raise PydanticCustomError("risk_weights", "must have the sum 1")
    return value


class RiskEntry(FormatModel):
    """A risk measure other than the expectation: one of these, or none of them for the worst case."""

    cvar: CvarParameters | None = None
    """CVaR, mixed with the expectation."""
    entropic: EntropicParameters | None = None
    """The entropic measure."""
    weights: Annotated[list[NonNegative], Field(min_length=1), AfterValidator(_check_weights)] | None = None
    """How much each equal part of the probability counts, from the worst outcomes on; never rising, sum 1."""

    @property
    def is_expectation(self) -> bool:
        """Whether the measure is the expectation after all."""
        return self.cvar is not None and (self.cvar.weight == 0.0 or self.cvar.alpha == 1.0)


def _check_risk_shape(value: Any) -> Any:
    if value is None:
        return None
    if value == "expectation":
        return RiskEntry(cvar=CvarParameters.model_validate({"alpha": 1.0, "lambda": 0.0}))
    if value == "worst_case":
        return RiskEntry()
    shapes: dict[str, type] = {"cvar": dict, "entropic": dict, "weights": list}
    if isinstance(value, dict) and len(value) == 1:
        ((name, content),) = value.items()
        if name in shapes and isinstance(content, shapes[name]):
            return value
    raise PydanticCustomError(
        "risk_measure",
        'must be "expectation", "worst_case", {"cvar": {"alpha": ..., "lambda": ...}}, '
        '{"entropic": {"gamma": ...}} or {"weights": [...]}',
    )


def _risk_object(name: str, content: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: content},
        "required": [name],
        "additionalProperties": False,
    }


_RISK_SCHEMA = {
    "anyOf": [
        {"enum": ["expectation", "worst_case"]},
        _risk_object(
            "cvar",
            {
                "type": "object",
                "description": "(1 - lambda) * expectation + lambda * CVaR of the worst share alpha.",
                "properties": {
                    "alpha": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "maximum": 1,
                        "description": "Share of the worst outcomes.",
                    },
                    "lambda": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 1,
                        "description": "Weight of the CVaR.",
                    },
                },
                "required": ["alpha", "lambda"],
                "additionalProperties": False,
            },
        ),
        _risk_object(
            "entropic",
            {
                "type": "object",
                "description": "log(E[exp(gamma Z)]) / gamma.",
                "properties": {
                    "gamma": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "description": "Aversion to risk, 1/$.",
                    }
                },
                "required": ["gamma"],
                "additionalProperties": False,
            },
        ),
        _risk_object(
            "weights",
            {
                "type": "array",
                "description": "How much each equal part of the probability counts, from the worst outcomes "
                "on; never rising, with the sum 1.",
                "items": {"type": "number", "minimum": 0},
                "minItems": 1,
            },
        ),
        {"type": "null"},
    ],
    "description": "Expectation, worst case, a mix of expectation and CVaR, entropic or spectral measure.",
}


RiskField = Annotated[RiskEntry | None, BeforeValidator(_check_risk_shape), WithJsonSchema(_RISK_SCHEMA)]


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
