"""The grammar of generic constraints.

::

    expression := sum [("<=" | ">=" | "==") sum]
    sum        := [sign] term (("+" | "-") [sign] term)*
    term       := [coefficient "*"] variable
                | [number "*"] "(" sum ")"
                | [number "*"] "@" name
                | number
    coefficient := number | "@" name | number "*" "@" name
    variable   := name "(" id ["," block] ["," "bus" "=" bus_id] ")"

There is no division and no product without a sign. Whether ``@name`` is a parameter or a named expression,
and whether a constant is allowed at its place, is checked in :mod:`cobre.case.generic.linear`.
"""

from __future__ import annotations

import math

from cobre.case.generic.catalogue import BY_NAME, VARIABLES
from cobre.case.generic.expression import (
    Constant,
    Expression,
    ExpressionError,
    Group,
    Operator,
    Part,
    Product,
    Reference,
    Variable,
)
from cobre.case.generic.tokens import Token, tokenize
from cobre.case.problems import did_you_mean

MAX_DEPTH = 50
"""Deepest nesting of parentheses; far more than anyone writes, far less than Python's recursion limit."""

_OPERATORS: dict[str, Operator] = {"<=": "<=", ">=": ">=", "==": "=="}
_ID_LIMIT = 2**31


def parse_expression(text: str) -> Expression:
    """Parse one expression.

    Raises
    ------
    ExpressionError
        With the place and the reason.

    Examples
    --------
    >>> parsed = parse_expression("2 * thermal_generation(0) - hydro_generation(1, 0) <= 40")
    >>> [(term.scale, str(term.variable.kind), term.variable.block) for term in parsed.left], parsed.operator
    ([(2.0, 'thermal_generation', None), (-1.0, 'hydro_generation', 0)], '<=')
    >>> parse_expression("3 line_exchange(0)")
    Traceback (most recent call last):
    cobre.case.generic.expression.ExpressionError: expected an operator before 'line_exchange' at column 3:
        3 line_exchange(0)
          ^
    """
    return _Parser(text).expression()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.index]

    def take(self) -> Token:
        token = self.here
        self.index += 1
        return token

    def at(self, *symbols: str) -> bool:
        return self.here.kind == "symbol" and self.here.text in symbols

    def expect(self, symbol: str, what: str) -> None:
        if not self.at(symbol):
            raise self.error(f"expected '{symbol}' {what}, found {self.here.shown}")
        self.take()

    def error(
        self, message: str, position: int | None = None, suggestion: str | None = None
    ) -> ExpressionError:
        place = self.here.position if position is None else position
        return ExpressionError(message, self.text, place, suggestion)

    def expression(self) -> Expression:
        left = self.sum(0)
        operator: Operator | None = None
        right: tuple[Part, ...] = ()
        if self.at(*_OPERATORS):
            operator = _OPERATORS[self.take().text]
            right = self.sum(0)
        if self.here.kind != "end":
            raise self.unexpected()
        return Expression(left, operator, right, self.text)

    def unexpected(self) -> ExpressionError:
        """Return the error for a token that cannot follow a complete term."""
        if self.at(*_OPERATORS):
            return self.error(
                "an expression has at most one relational operator, outside of parentheses",
                suggestion="Give the other side of a range in generic_constraint_bounds.parquet.",
            )
        if self.at("="):
            return self.error("'=' is no operator", suggestion="Write == for an equality.")
        if self.at("*"):
            return self.error(
                "the coefficient must stand before what it multiplies",
                suggestion="Write number * @parameter * variable, in that order.",
            )
        if self.at(")"):
            return self.error("')' has no '(' that belongs to it")
        if self.here.kind != "symbol":
            return self.error(
                f"expected an operator before {self.here.shown}",
                suggestion="Write a product with *, as in 2 * thermal_generation(0).",
            )
        return self.error(f"{self.here.shown} cannot stand here")

    def sum(self, depth: int) -> tuple[Part, ...]:
        parts = [self.term(1.0, depth)]
        while self.at("+", "-"):
            parts.append(self.term(-1.0 if self.take().text == "-" else 1.0, depth))
        return tuple(parts)

    def term(self, sign: float, depth: int) -> Part:
        if self.at("+", "-"):
            sign *= -1.0 if self.take().text == "-" else 1.0
        start = self.here.position
        if self.here.kind != "number":
            return self.scaled(sign, start, depth, explicit=False)
        value = sign * self.number()
        if self.at("*"):
            self.take()
            return self.scaled(value, start, depth, explicit=True)
        return Constant(value, start)

    def scaled(self, scale: float, start: int, depth: int, *, explicit: bool) -> Part:
        """Parse what a number multiplies; ``explicit``: whether there is one."""
        if self.here.kind == "reference":
            return self.reference(scale, start)
        if self.here.kind == "name":
            return Product(scale, None, self.variable(), start)
        if self.at("("):
            return self.group(scale, start, depth)
        if self.here.kind == "number":
            raise self.error("a product of two numbers", suggestion="Write their product as one number.")
        what = "a variable, '@' or '(' after '*'" if explicit else "a term"
        raise self.error(f"expected {what}, found {self.here.shown}")

    def group(self, scale: float, start: int, depth: int) -> Group:
        if depth >= MAX_DEPTH:
            raise self.error(f"parentheses are nested more than {MAX_DEPTH} deep")
        opening = self.take().position
        parts = self.sum(depth + 1)
        if self.here.kind == "end":
            raise self.error("the '(' is never closed", opening)
        if not self.at(")"):
            raise self.unexpected()
        self.take()
        return Group(scale, parts, start)

    def reference(self, scale: float, start: int) -> Part:
        name = self.take()
        if not self.at("*"):
            return Reference(scale, name.text, start)
        self.take()
        if self.here.kind == "name":
            return Product(scale, name.text, self.variable(), start)
        if self.at("("):
            raise self.error(
                f"'@{name.text}' cannot multiply a group",
                name.position,
                "Multiply each variable in the parentheses by the parameter.",
            )
        if self.here.kind == "reference":
            raise self.error(
                "a term has at most one '@'", suggestion="The product of two would not be linear."
            )
        if self.here.kind == "number":
            raise self.error(
                "the number must stand before the parameter",
                suggestion=f"Write {self.here.text} * @{name.text} * variable.",
            )
        raise self.error(f"expected a variable after '@{name.text} *', found {self.here.shown}")

    def variable(self) -> Variable:
        name = self.take()
        kind = BY_NAME.get(name.text)
        if kind is None:
            close = did_you_mean(name.text, BY_NAME)
            hint = f"Did you mean '{close}'? " if close else ""
            raise self.error(
                f"unknown variable '{name.text}'",
                name.position,
                f"{hint}Known variables: {', '.join(BY_NAME)}.",
            )
        rule = VARIABLES[kind]
        self.expect("(", f"and an id after {kind}")
        entity = self.integer(f"the id of the {rule.registry}")
        block = bus = None
        while self.at(","):
            comma = self.take().position
            place = self.here.position
            if self.here.kind == "name":
                if bus is not None:
                    raise self.error(f"{kind} has more arguments than it takes", comma)
                bus = self.bus(kind)
            elif block is not None or bus is not None:
                raise self.error(
                    f"{kind} has more arguments than it takes",
                    comma,
                    "The order is id, block, bus=bus_id." if bus is not None else None,
                )
            else:
                block = self.integer("the id of a block")
                if rule.scope == "stage":
                    raise self.error(
                        f"{kind} has one value for the whole stage and takes no block",
                        place,
                        f"Write {kind}({entity}).",
                    )
        self.expect(")", f"after the arguments of {kind}")
        return Variable(kind, entity, block, bus, name.position)

    def bus(self, kind: str) -> int:
        word = self.take()
        takes = [str(known) for known, rule in VARIABLES.items() if rule.takes_bus]
        if word.text != "bus":
            raise self.error(f"unknown argument '{word.text}'", word.position, "The only one is bus=bus_id.")
        if kind not in takes:
            raise self.error(f"{kind} takes no bus", word.position, f"Only {' and '.join(takes)} take a bus.")
        self.expect("=", "after bus")
        return self.integer("the id of a bus")

    def number(self) -> float:
        token = self.take()
        value = float(token.text)
        if not math.isfinite(value):
            raise self.error(f"the number {_shorten(token.text)} is too large", token.position)
        return value

    def integer(self, what: str) -> int:
        negative = self.at("-")
        if negative:
            self.take()
        if self.here.kind != "number" or not self.here.text.isdigit():
            raise self.error(f"expected {what} (an integer), found {self.here.shown}")
        token = self.take()
        digits = token.text.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 10 else _ID_LIMIT
        value = -value if negative else value
        if not -_ID_LIMIT <= value < _ID_LIMIT:
            raise self.error(f"{_shorten(token.text)} does not fit a 32-bit id", token.position)
        return value


def _shorten(digits: str) -> str:
    return digits if len(digits) <= 30 else f"{digits[:30]}..."
