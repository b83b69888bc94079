"""The grammar of expressions: what is read, what is refused, and where."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.case.generic.catalogue import VARIABLES
from cobre.case.generic.expression import (
    Constant,
    Expression,
    ExpressionError,
    Group,
    Product,
    Reference,
    Variable,
    excerpt,
)
from cobre.case.generic.linear import LinearForm, linear_form
from cobre.case.generic.parser import MAX_DEPTH, parse_expression
from cobre.case.model import VariableKind

T0 = Variable("thermal_generation", 0)
T1 = Variable("thermal_generation", 1)


def form_of(text: str, parameters: tuple[str, ...] = (), **named: str) -> LinearForm:
    forms: dict[str, LinearForm] = {}
    for name, inner in named.items():
        forms[name] = linear_form(parse_expression(inner), parameters, forms)
    return linear_form(parse_expression(text), parameters, forms)


def test_catalogue_has_every_variable_of_the_model() -> None:
    assert set(VARIABLES) == set(get_args(VariableKind))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thermal_generation(0)", (Product(1.0, None, T0),)),
        ("  - thermal_generation ( 0 )", (Product(-1.0, None, T0),)),
        ("2.5e1 * thermal_generation(0)", (Product(25.0, None, T0),)),
        (
            ".5*thermal_generation(0) - 3.*thermal_generation(1)",
            (Product(0.5, None, T0), Product(-3.0, None, T1)),
        ),
        ("thermal_generation(0) + -2 * @p * thermal_generation(1)", None),
        ("@p*thermal_generation(0)", (Product(1.0, "p", T0),)),
        ("2 * @sub - @sub", (Reference(2.0, "sub"), Reference(-1.0, "sub"))),
        ("-2 * (thermal_generation(0) - 1)", (Group(-2.0, (Product(1.0, None, T0), Constant(-1.0))),)),
        (
            "hydro_generation(-7, 2, bus=3)",
            (Product(1.0, None, Variable("hydro_generation", -7, 2, 3)),),
        ),
        ("hydro_turbined(4,bus = -1)", (Product(1.0, None, Variable("hydro_turbined", 4, None, -1)),)),
        ("hydro_storage_initial(1, 0)", (Product(1.0, None, Variable("hydro_storage_initial", 1, 0)),)),
    ],
)
def test_terms(text: str, expected: Any) -> None:
    if expected is None:
        expected = (Product(1.0, None, T0), Product(-2.0, "p", T1))
    assert parse_expression(text) == Expression(expected)


@pytest.mark.parametrize("operator", ["<=", ">=", "=="])
def test_operators(operator: str) -> None:
    parsed = parse_expression(f"thermal_generation(0) {operator} 3 + @p")
    assert parsed.operator == operator
    assert parsed.right == (Constant(3.0), Reference(1.0, "p"))


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "expected a term, found the end"),
        ("   ", 4, "expected a term, found the end"),
        ("thermal_generation(0) +", 24, "expected a term"),
        ("2 thermal_generation(0)", 3, "expected an operator"),
        ("2 * 3 * thermal_generation(0)", 5, "product of two numbers"),
        ("thermal_generation(0) * 2", 23, "coefficient must stand before"),
        ("thermal_generation(0) / 2", 23, "'/' is not part"),
        ("thermal_generaton(0)", 1, "unknown variable 'thermal_generaton'"),
        ("thermal_generation 0", 20, "expected '('"),
        ("thermal_generation()", 20, "id of the thermal"),
        ("thermal_generation(1.0)", 20, "integer"),
        ("thermal_generation(99999999999)", 20, "32-bit"),
        ("thermal_generation(0, 1, 2)", 24, "more arguments"),
        ("thermal_generation(0, bus=1)", 23, "takes no bus"),
        ("hydro_turbined(0, bus=1, 2)", 24, "more arguments"),
        ("hydro_turbined(0, bus=1, bus=2)", 24, "more arguments"),
        ("hydro_turbined(0, block=1)", 19, "unknown argument 'block'"),
        ("hydro_storage(0, 1)", 18, "takes no block"),
        ("hydro_withdrawal(0, 1)", 21, "takes no block"),
        ("anticipated_decision(0, 1)", 25, "takes no block"),
        ("(thermal_generation(0)", 1, "never closed"),
        ("thermal_generation(0))", 22, "no '('"),
        ("@p * (thermal_generation(0))", 1, "cannot multiply a group"),
        ("@p * @q", 6, "at most one '@'"),
        ("@p * 2 * thermal_generation(0)", 6, "number must stand before"),
        ("@ p", 1, "'@' is not part"),
        ("1 <= thermal_generation(0) <= 2", 28, "at most one relational"),
        ("2 * (thermal_generation(0) <= 1)", 28, "at most one relational"),
        ("thermal_generation(0) = 1", 23, "'=' is no operator"),
        ("thermal_generation(0) < 1", 23, "'<' is not part"),
        ("1e400 * thermal_generation(0)", 1, "too large"),
        ("- - - thermal_generation(0)", 3, "expected a term"),
    ],
)
def test_errors_name_the_place(text: str, column: int, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert words in caught.value.message
    assert caught.value.position + 1 == column
    assert f"column {column}:\n" in str(caught.value)


def test_unknown_variable_suggests_the_nearest() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression("thermal_generaton(0)")
    assert "Did you mean 'thermal_generation'?" in str(caught.value.suggestion)


def test_nesting_is_bounded() -> None:
    depth = MAX_DEPTH
    parse_expression("(" * depth + "thermal_generation(0)" + ")" * depth)
    with pytest.raises(ExpressionError, match="nested"):
        parse_expression("(" * 100_000)


def test_excerpt_marks_the_place_in_a_long_text() -> None:
    text = "a" * 100 + "X" + "b" * 100
    line, caret = excerpt(text, 100).split("\n")
    assert line[caret.index("^")] == "X"
    assert len(line) < 100
    assert excerpt("a\tb\n?", 4) == "    a b ?\n        ^"


# -----------------------------------------------------------------------------------------------------------
# Linear forms


def test_equal_terms_add_up_and_sides_move_left() -> None:
    form = form_of("2 * thermal_generation(0) + 3 <= thermal_generation(0) + 5 - thermal_generation(1)")
    assert form.terms == {(T0, None): 1.0, (T1, None): 1.0}
    assert form.constants == {None: -2.0}


def test_named_expressions_nest() -> None:
    form = form_of(
        "2 * @outer - @inner",
        ("p",),
        inner="thermal_generation(0) + @p * thermal_generation(1)",
        outer="3 * @inner - (thermal_generation(0) - thermal_generation(1))",
    )
    assert form.terms == {(T0, None): 3.0, (T1, "p"): 5.0, (T1, None): 2.0}


def test_nested_references_cost_their_distinct_terms_only() -> None:
    named = {"e0": "thermal_generation(0)"}
    named |= {f"e{level}": f"@e{level - 1} + @e{level - 1}" for level in range(1, 61)}
    assert form_of("@e60", **named).terms == {(T0, None): 2.0**60}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thermal_generation(0) + 1", "constant needs a relational operator"),
        ("thermal_generation(0) + @p", "constant needs a relational operator"),
        ("thermal_generation(0) + 2 * (thermal_generation(0) + 1)", "constant needs"),
        ("@nothing", "neither a parameter nor a named expression"),
        ("@nothing * thermal_generation(0)", "neither a parameter nor a named expression"),
        ("@sub * thermal_generation(0)", "cannot multiply a variable"),
        ("1e200 * (1e200 * thermal_generation(0))", "more than a double"),
    ],
)
def test_forms_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        form_of(text, ("p",), sub="thermal_generation(1)")


# -----------------------------------------------------------------------------------------------------------
# Properties

numbers = st.floats(0.0, 1e6, allow_subnormal=False)
variables = st.builds(
    Variable,
    st.sampled_from([kind for kind, rule in VARIABLES.items() if rule.scope == "block"]),
    st.integers(-5, 5),
    st.none() | st.integers(0, 3),
)
products = st.builds(Product, numbers, st.none() | st.sampled_from(["p", "q"]), variables)
leaves = products | st.builds(Reference, numbers, st.sampled_from(["p", "q"])) | st.builds(Constant, numbers)
parts = st.recursive(
    leaves,
    lambda inner: st.builds(Group, numbers, st.lists(inner, min_size=1, max_size=4).map(tuple)),
    max_leaves=12,
)
sides = st.lists(parts, min_size=1, max_size=4).map(tuple)


def write(part: Any) -> str:
    if isinstance(part, Constant):
        return repr(part.value)
    if isinstance(part, Reference):
        return f"{part.scale!r} * @{part.name}"
    if isinstance(part, Product):
        parameter = f"@{part.parameter} * " if part.parameter else ""
        return f"{part.scale!r}*{parameter}{part.variable}"
    return f"{part.scale!r} * ({' + '.join(map(write, part.parts))})"


def value(side: Any, assignment: dict[Any, float]) -> float:
    """Return the value of a side straight from its parts, without linear forms."""
    total = 0.0
    for part in side:
        if isinstance(part, Constant):
            total += part.value
        elif isinstance(part, Reference):
            total += part.scale * assignment[part.name]
        elif isinstance(part, Product):
            factor = assignment[part.parameter] if part.parameter else 1.0
            total += part.scale * factor * assignment[part.variable]
        else:
            total += part.scale * value(part.parts, assignment)
    return total


@given(sides, sides, st.sampled_from(["<=", ">=", "=="]), st.randoms(use_true_random=False))
def test_written_expressions_come_back(left: Any, right: Any, operator: Any, random: Any) -> None:
    text = f"{' + '.join(map(write, left))} {operator} {' + '.join(map(write, right))}"
    parsed = parse_expression(text)
    assert parsed == Expression(left, operator, right)
    form = linear_form(parsed, ("p", "q"), {})
    assignment: dict[Any, float] = defaultdict(lambda: random.uniform(0.0, 1.0))
    expected = value(left, assignment) - value(right, assignment)
    found = sum(
        scale * assignment[variable] * (assignment[name] if name else 1.0)
        for (variable, name), scale in form.terms.items()
    )
    found += sum(scale * (assignment[name] if name else 1.0) for name, scale in form.constants.items())
    size = value(left, assignment) + value(right, assignment)
    assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9 * max(1.0, size))


WORDS = (
    "thermal_generation thermal_generation(0) hydro_storage bus ( ) , = == <= + - * @p @ 2 0.5 1e999 / ² é"
)
pieces = st.sampled_from([*WORDS.split(), " ", "\n", "\x00", "9" * 5000])


@given(st.text(max_size=60) | st.lists(pieces, max_size=25).map("".join))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        form = linear_form(parse_expression(text), ("p",), {})
    except ExpressionError as error:
        position, message = error.position, error.message
    else:
        position, message = 0, "read"
        assert all(map(math.isfinite, [*form.terms.values(), *form.constants.values()]))
    assert 0 <= position <= len(text)
    assert message
