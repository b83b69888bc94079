"""Reads expressions of generic constraints by recursive descent.

An expression is a list of ``(coefficient, variable)`` and a constant; ``@name`` is looked up while reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

TOKEN = re.compile(r"\s*(?:(<=|>=|==)|(@?[A-Za-z_]\w*)|(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|(.))")


@dataclass(frozen=True)
class Variable:
    """``name(entity[, block][, bus=bus])``."""

    name: str
    entity: int
    block: int | None = None
    bus: int | None = None


@dataclass
class Linear:
    """Terms and a constant."""

    terms: list[tuple[float, Variable]] = field(default_factory=list)
    constant: float = 0.0

    def plus(self, other: Linear, factor: float) -> None:
        """Add a multiple of another expression."""
        self.terms += [(factor * value, variable) for value, variable in other.terms]
        self.constant += factor * other.constant


Lookup = Callable[[str], "float | Linear"]
"""Value of ``@name``: a number (parameter) or a named expression."""


def read_expression(text: str, lookup: Lookup) -> tuple[Linear, str | None]:
    """Return ``left - right`` and the relation between them, ``None`` where there is none."""
    reader = _Reader(text, lookup)
    left = reader.sum()
    relation = None
    if reader.peek() in ("<=", ">=", "=="):
        relation = reader.take()
        left.plus(reader.sum(), -1.0)
    assert reader.peek() == "", f"what is {reader.peek()!r} in {text!r}?"
    return left, relation


class _Reader:
    def __init__(self, text: str, lookup: Lookup) -> None:
        found = (match.group(match.lastindex or 0) for match in TOKEN.finditer(text.strip()))
        self.tokens = [token for token in found if token.strip()]
        self.lookup = lookup
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        assert expected is None or token == expected, f"{expected!r} instead of {token!r}"
        self.at += 1
        return token

    def sum(self) -> Linear:
        total = Linear()
        sign = 1.0
        if self.peek() in ("+", "-"):
            sign = -1.0 if self.take() == "-" else 1.0
        total.plus(self.product(), sign)
        while self.peek() in ("+", "-"):
            sign = -1.0 if self.take() == "-" else 1.0
            total.plus(self.product(), sign)
        return total

    def product(self) -> Linear:
        number, value = 1.0, self.factor()
        while self.peek() == "*":
            self.take()
            assert not value.terms, "a product of variables"
            number *= value.constant
            value = self.factor()
        result = Linear()
        result.plus(value, number)
        return result

    def factor(self) -> Linear:
        token = self.take()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token.startswith("@"):
            value = self.lookup(token[1:])
            return Linear(constant=value) if isinstance(value, float) else value
        if token[0].isdigit() or token[0] == ".":
            return Linear(constant=float(token))
        return Linear([(1.0, self.variable(token))])

    def variable(self, name: str) -> Variable:
        self.take("(")
        entity, block, bus = self.integer(), None, None
        while self.peek() == ",":
            self.take()
            if self.peek() == "bus":
                self.take()
                self.take("=")
                bus = self.integer()
            else:
                block = self.integer()
        self.take(")")
        return Variable(name, entity, block, bus)

    def integer(self) -> int:
        sign = -1 if self.peek() == "-" else 1
        if sign < 0:
            self.take()
        return sign * int(self.take())
