"""``scenarios/*_factors.json``: how load and availability vary over the blocks of a stage."""

from __future__ import annotations

from cobre.case.schema.base import FormatModel, Id, Positive, RootModel


class BlockFactor(FormatModel):
    """Factor of one block."""

    block_id: Id
    factor: Positive


class LoadFactorEntry(FormatModel):
    """Factors of one bus at one stage; a block without one has factor 1."""

    bus_id: Id
    stage_id: Id
    block_factors: list[BlockFactor]


class LoadFactorsFile(RootModel):
    """The whole file."""

    load_factors: list[LoadFactorEntry]


class NonControllableFactorEntry(FormatModel):
    """Factors of one non-controllable source at one stage; a block without one has factor 1."""

    ncs_id: Id
    """The source."""
    stage_id: Id
    """The stage."""
    block_factors: list[BlockFactor]
    """Factors of availability by block."""


class NonControllableFactorsFile(RootModel):
    """``scenarios/non_controllable_factors.json``."""

    non_controllable_factors: list[NonControllableFactorEntry]
    """One entry for each pair of source and stage."""
