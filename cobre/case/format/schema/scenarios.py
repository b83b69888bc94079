"""``scenarios/*_factors.json``: how load and availability vary over the blocks of a stage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cobre.fields import FormatModel, Id, Positive, RootModel


class BlockFactor(FormatModel):
    """Factor of one block."""

    block_id: Id
    """The block."""
    factor: Positive
    """What the value of the stage is multiplied by."""


class LoadFactorEntry(FormatModel):
    """Factors of one bus at one stage; a block without one has factor 1."""

    bus_id: Id
    """The bus."""
    stage_id: Id
    """The stage."""
    block_factors: list[BlockFactor]
    """Factors of load by block."""


class LoadFactorsFile(RootModel):
    """``scenarios/load_factors.json``: how load varies over the blocks of a stage."""

    load_factors: list[LoadFactorEntry]
    """One entry for each pair of bus and stage."""


class NonControllableFactorEntry(FormatModel):
    """Factors of one non-controllable source at one stage; a block without one has factor 1."""

    ncs_id: Id
    """The source."""
    stage_id: Id
    """The stage."""
    block_factors: list[BlockFactor]
    """Factors of availability by block."""


class NonControllableFactorsFile(RootModel):
    """``scenarios/non_controllable_factors.json``: how availability varies over the blocks of a stage."""

    non_controllable_factors: list[NonControllableFactorEntry]
    """One entry for each pair of source and stage."""


class CorrelatedEntity(FormatModel):
    """A member of a correlation group."""

    type: Literal["inflow", "load", "ncs"]
    """Whose noise: the inflow of a hydro plant, the load of a bus, the availability of a source."""
    id: Id
    """Of the plant, bus or source."""


class CorrelationGroup(FormatModel):
    """Entities of one kind whose noise is correlated."""

    name: str
    """Shown in problems."""
    entities: list[CorrelatedEntity]
    """The members, all of one kind."""
    matrix: list[list[Annotated[float, Field(ge=-1, le=1)]]]
    """Correlation matrix in the order of ``entities``."""


class CorrelationProfile(FormatModel):
    """Groups that hold at the same stages; entities in none are independent."""

    correlation_groups: list[CorrelationGroup]
    """All groups of the profile."""


class ProfileAtStage(FormatModel):
    """Which profile holds at a stage."""

    stage_id: Id
    """The stage."""
    profile_name: str
    """A name in ``profiles``."""


class CorrelationFile(RootModel):
    """``scenarios/correlation.json``: how the noise of entities is correlated."""

    method: Literal["spectral"]
    """How noise is made from the matrices: by their symmetric square root."""
    profiles: dict[str, CorrelationProfile]
    """By name; with several, the one called ``default`` holds where the schedule names none."""
    schedule: list[ProfileAtStage] | None = None
    """Stages at which another profile than the default holds."""
