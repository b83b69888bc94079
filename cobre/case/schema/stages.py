"""``stages.json``: the horizon."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from cobre.case.schema.base import (
    ACCEPT_UNSUPPORTED,
    NOT_SUPPORTED,
    FormatModel,
    Id,
    IsoDate,
    JsonObject,
    NonNegative,
    Positive,
    PositiveCount,
    RootModel,
    unsupported,
)

DiscountOverride = Annotated[float, Field(gt=-1)]
"""An annual rate; -1 or less has no discount factor."""


class BlockEntry(FormatModel):
    """A load block of a stage."""

    id: Id
    name: str
    hours: Positive


class StateVariables(FormatModel):
    """Which quantities are carried to the next stage."""

    storage: Annotated[bool | None, unsupported("a stage without storage as state", True)] = None
    # Without an autoregressive inflow model there is no lag to carry, so both values mean the same.
    inflow_lags: bool | None = None


def _check_risk_shape(value: Any) -> Any:
    if value is None or value == "expectation":
        return value
    if isinstance(value, dict) and set(value) == {"cvar"} and isinstance(value["cvar"], dict):
        return value
    raise PydanticCustomError(
        "risk_measure", 'must be "expectation" or {"cvar": {"alpha": ..., "lambda": ...}}'
    )


def _check_study_id(value: int, info: ValidationInfo) -> int:
    if value >= 0 or (info.context and info.context.get(ACCEPT_UNSUPPORTED)):
        return value
    raise PydanticCustomError(
        NOT_SUPPORTED, "not supported yet", {"feature": "pre-study stages (negative ids)"}
    )


class StageEntry(FormatModel):
    """One stage."""

    id: Annotated[Id, AfterValidator(_check_study_id)]
    start_date: IsoDate
    end_date: IsoDate
    blocks: list[BlockEntry]
    num_openings: PositiveCount
    season_id: Id | None = None
    block_mode: Annotated[
        Literal["parallel", "chronological"] | None, unsupported("chronological blocks", "parallel")
    ] = None
    state_variables: StateVariables | None = None
    risk_measure: Annotated[
        str | JsonObject | None,
        BeforeValidator(_check_risk_shape),
        unsupported("the risk measure 'cvar'", "expectation"),
    ] = None
    sampling_method: Annotated[
        Literal["saa", "lhs", "qmc_sobol", "qmc_halton", "historical_residuals", "selective"] | None,
        unsupported("a sampling method other than 'saa'", "saa"),
    ] = None
    annual_discount_rate_override: DiscountOverride | None = None


class TransitionEntry(FormatModel):
    """A transition between two stages."""

    source_id: Id
    target_id: Id
    probability: Annotated[float, Field(ge=0, le=1)]
    annual_discount_rate_override: DiscountOverride | None = None


class PolicyGraph(FormatModel):
    """How stages follow each other."""

    type: Annotated[
        Literal["finite_horizon", "cyclic"], unsupported("a cyclic policy graph", "finite_horizon")
    ]
    annual_discount_rate: NonNegative
    transitions: list[TransitionEntry] | None = None
    nodes: Annotated[list[JsonObject] | None, unsupported("a policy graph with nodes", [])] = None


class StagesFile(RootModel):
    """The whole file."""

    policy_graph: PolicyGraph
    stages: list[StageEntry]
    season_definitions: Annotated[JsonObject | None, unsupported("season definitions", {})] = None
    pre_study_stages: Annotated[list[JsonObject] | None, unsupported("pre-study stages", [])] = None
