"""Which block of a stage a term refers to."""

from __future__ import annotations

from cobre.case.generic.catalogue import VARIABLES
from cobre.case.generic.expression import Variable


def block_fault(variable: Variable, blocks: int, chronological: bool) -> str | None:
    """Return why a variable does not exist in a stage with so many blocks, or ``None`` if it does.

    Inside of a stage, storage and evaporation by block exist with chronological blocks only; parallel blocks
    share the storage at the start and at the end of the stage.
    """
    scope, block = VARIABLES[variable.kind].scope, variable.block
    if block is not None and not 0 <= block < blocks:
        return f"there is no block {block}"
    if scope == "evaporation":
        if block is None and chronological and blocks > 1:
            return "with chronological blocks every block evaporates by itself, so a block must be named"
        if block and not chronological:
            return "parallel blocks evaporate as one, so only block 0 (or none) can be named"
    elif scope == "boundary" and block is not None and not chronological:
        initial = variable.kind.endswith("_initial")
        if initial and block != 0:
            return "between parallel blocks there is no storage; the initial one is that of block 0"
        if not initial and block != blocks - 1:
            return f"between parallel blocks there is no storage; the final one is that of block {blocks - 1}"
    return None


def follows_row(variable: Variable) -> bool:
    """Return whether the variable is that of the row's block."""
    return variable.block is None and VARIABLES[variable.kind].scope == "block"


def term_block(variable: Variable, row_block: int | None, chronological: bool) -> int | None:
    """Return the block of a term in a row, ``None`` for a value of the whole stage.

    Only for variables without a :func:`block_fault`.
    """
    if follows_row(variable):
        return row_block
    if not chronological and VARIABLES[variable.kind].scope != "block":
        return None
    return variable.block
