"""Expressions to linear forms: named expressions put in, groups opened, equal terms added up.

A linear form is ``sum of scale * parameter * variable + sum of scale * parameter``, a parameter being absent
in most. Forms of named expressions are built once and shared, so that deep nesting costs no more than its
distinct terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from cobre.case.generic.expression import (
    Constant,
    Expression,
    ExpressionError,
    Group,
    Part,
    Product,
    Reference,
    Side,
    Variable,
)
from cobre.case.problems import did_you_mean


@dataclass
class LinearForm:
    """Scales by (variable, parameter), and of the constant part by parameter.

    The parameter is ``None`` for a number alone.
    """

    terms: dict[tuple[Variable, str | None], float] = field(default_factory=dict)
    constants: dict[str | None, float] = field(default_factory=dict)

    def add(self, other: LinearForm, scale: float) -> None:
        """Add ``scale`` times another form."""
        for key, value in other.terms.items():
            self.terms[key] = self.terms.get(key, 0.0) + scale * value
        for name, value in other.constants.items():
            self.constants[name] = self.constants.get(name, 0.0) + scale * value

    @property
    def parameters(self) -> frozenset[str]:
        """Names of all parameters in use."""
        used = {name for _, name in self.terms} | set(self.constants)
        return frozenset(name for name in used if name is not None)


def references(side: Side) -> Iterator[Reference]:
    """Yield every ``@name`` without a variable, in groups too."""
    for part in side:
        if isinstance(part, Reference):
            yield part
        elif isinstance(part, Group):
            yield from references(part.parts)


def mentioned(side: Side) -> Iterator[str]:
    """Yield every name behind an ``@``, those of coefficients too."""
    for part in side:
        if isinstance(part, Reference):
            yield part.name
        elif isinstance(part, Product) and part.parameter is not None:
            yield part.parameter
        elif isinstance(part, Group):
            yield from mentioned(part.parts)


def linear_form(
    expression: Expression,
    parameters: Collection[str],
    expressions: Mapping[str, LinearForm],
    declared: Collection[str] = (),
) -> LinearForm:
    """Return ``left - right`` of an expression as a linear form.

    Parameters
    ----------
    parameters
        Names of the parameters.
    expressions
        Forms of the named expressions this one may refer to.
    declared
        Names of all named expressions, for messages.

    Raises
    ------
    ExpressionError
        For unknown names, constants without a relational operator, products that are not linear, numbers
        that overflow.
    """
    form = LinearForm()
    builder = _Builder(expression, parameters, expressions, declared)
    builder.collect(expression.left, 1.0, form)
    builder.collect(expression.right, -1.0, form)
    if not all(map(math.isfinite, (*form.terms.values(), *form.constants.values()))):
        raise ExpressionError("the numbers multiply to more than a double holds", expression.text, 0)
    return form


class _Builder:
    def __init__(
        self,
        expression: Expression,
        parameters: Collection[str],
        expressions: Mapping[str, LinearForm],
        declared: Collection[str],
    ) -> None:
        self.text = expression.text
        self.constants_allowed = expression.operator is not None
        self.parameters = parameters
        self.expressions = expressions
        self.declared = {*declared, *expressions}

    def collect(self, side: Side, scale: float, form: LinearForm) -> None:
        for part in side:
            self.collect_part(part, scale, form)

    def collect_part(self, part: Part, scale: float, form: LinearForm) -> None:
        if isinstance(part, Product):
            self.check_coefficient(part)
            form.add(LinearForm({(part.variable, part.parameter): part.scale}), scale)
        elif isinstance(part, Group):
            self.collect(part.parts, scale * part.scale, form)
        elif isinstance(part, Constant):
            self.check_constant(part.position)
            form.add(LinearForm({}, {None: part.value}), scale)
        elif part.name in self.expressions:
            form.add(self.expressions[part.name], scale * part.scale)
        elif part.name in self.parameters:
            self.check_constant(part.position)
            form.add(LinearForm({}, {part.name: part.scale}), scale)
        else:
            raise self.unknown(part.name, part.position, [*self.parameters, *self.declared])

    def check_coefficient(self, part: Product) -> None:
        if part.parameter is None or part.parameter in self.parameters:
            return
        if part.parameter in self.declared:
            raise ExpressionError(
                f"'@{part.parameter}' is a named expression and cannot multiply a variable",
                self.text,
                part.position,
                "Only a parameter can be a coefficient.",
            )
        raise self.unknown(part.parameter, part.position, self.parameters)

    def check_constant(self, position: int) -> None:
        if not self.constants_allowed:
            raise ExpressionError(
                "a constant needs a relational operator in the expression",
                self.text,
                position,
                "Add <=, >= or == with the bound, or give bounds in generic_constraint_bounds.parquet.",
            )

    def unknown(self, name: str, position: int, known: Collection[str]) -> ExpressionError:
        close = did_you_mean(name, known)
        listing = f"Known names: {', '.join(sorted(known)) if known else '(none)'}."
        return ExpressionError(
            f"'@{name}' is neither a parameter nor a named expression",
            self.text,
            position,
            f"Did you mean '@{close}'? {listing}" if close else listing,
        )
