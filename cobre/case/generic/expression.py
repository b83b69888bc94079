"""The parts of an expression as it is written, and the error of one that cannot be understood.

Positions count characters from 0; they serve messages only and do not take part in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cobre.case.model import VariableKind

Operator = Literal["<=", ">=", "=="]

_EXCERPT_SIDE = 40
"""Characters of a long expression shown on either side of an error."""


@dataclass(frozen=True)
class Variable:
    """A variable with its arguments.

    Attributes
    ----------
    block
        Id of the block, or ``None`` where none was written.
    bus_id
        Only the unit groups on this bus count.
    """

    kind: VariableKind
    entity_id: int
    block: int | None = None
    bus_id: int | None = None
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        block = "" if self.block is None else f", {self.block}"
        bus = "" if self.bus_id is None else f", bus={self.bus_id}"
        return f"{self.kind}({self.entity_id}{block}{bus})"


@dataclass(frozen=True)
class Product:
    """``scale * @parameter * variable``; the parameter may be absent."""

    scale: float
    parameter: str | None
    variable: Variable
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Reference:
    """``scale * @name``: a named expression, or a parameter used as a constant."""

    scale: float
    name: str
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Constant:
    """A number on its own."""

    value: float
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Group:
    """``scale * (...)``."""

    scale: float
    parts: tuple[Part, ...]
    position: int = field(default=0, compare=False)


Part = Product | Reference | Constant | Group
Side = tuple[Part, ...]


@dataclass(frozen=True)
class Expression:
    """``left``, or ``left operator right``."""

    left: Side
    operator: Operator | None = None
    right: Side = ()
    text: str = field(default="", compare=False)


class ExpressionError(ValueError):
    """An expression breaks the grammar, or its parts do not fit together.

    Attributes
    ----------
    message
        What is wrong, without the place.
    position
        Where in ``text``.
    suggestion
        What to write instead, if known.
    """

    def __init__(self, message: str, text: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(f"{message} at column {position + 1}:\n{excerpt(text, position)}")
        self.message = message
        self.text = text
        self.position = position
        self.suggestion = suggestion


def excerpt(text: str, position: int) -> str:
    """Return two lines: the text around a position, and a caret below that position."""
    start = max(0, position - _EXCERPT_SIDE)
    end = min(len(text), position + _EXCERPT_SIDE)
    head = "..." if start > 0 else ""
    tail = "..." if end < len(text) else ""
    # One column for each character, so that the caret is below the right one.
    shown = "".join(letter if letter.isprintable() else " " for letter in text[start:end])
    return f"    {head}{shown}{tail}\n    {' ' * (len(head) + position - start)}^"
