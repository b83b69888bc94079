"""``scenarios/load_factors.json``: how load varies over the blocks of a stage."""

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
