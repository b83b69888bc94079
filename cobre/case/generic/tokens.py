"""Text of an expression to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cobre.case.generic.expression import ExpressionError

TokenKind = Literal["number", "name", "reference", "symbol", "end"]

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|@(?P<reference>\w+)"
    r"|(?P<symbol><=|>=|==|[-+*(),=])"
)
_KINDS: tuple[TokenKind, ...] = ("number", "name", "reference", "symbol")
_HINTS = {
    "/": "There is no division; multiply by the inverse, as in 0.5 * thermal_generation(0).",
    "<": "Relational operators are <=, >= and ==.",
    ">": "Relational operators are <=, >= and ==.",
    "@": "Write the name right after the @, as in @my_parameter.",
    "^": "An expression is linear; there are no powers.",
}


@dataclass(frozen=True)
class Token:
    """A piece of an expression; a reference comes without its ``@``."""

    kind: TokenKind
    text: str
    position: int

    @property
    def shown(self) -> str:
        """How the token is called in messages."""
        if self.kind == "end":
            return "the end of the expression"
        return f"'@{self.text}'" if self.kind == "reference" else f"'{self.text}'"


def tokenize(text: str) -> list[Token]:
    """Return the tokens of an expression, closed by one of kind ``end``.

    Raises
    ------
    ExpressionError
        At a character that begins no token.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            letter = text[position]
            raise ExpressionError(
                f"'{letter}' is not part of the grammar", text, position, _HINTS.get(letter)
            )
        for kind in _KINDS:
            if match.group(kind) is not None:
                tokens.append(Token(kind, match.group(kind), position))
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens
