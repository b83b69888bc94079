"""Generic constraints of a whole case: rows by stage and block, and everything that can be wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from builders.base_case import SINCE, base_files, errors_of, only, pick, warnings_of, write_case
from builders.spoilt import judge, mutants

from cobre.case import load
from cobre.case.generic.expression import Variable
from cobre.case.generic.scope import block_fault, term_block
from cobre.case.model import GenericRow, GenericTerm

CONSTRAINTS = "constraints/generic_constraints.json"
PARAMETERS = "constraints/generic_parameters.json"
BOUNDS = "constraints/generic_constraint_bounds.parquet"
INF = math.inf


def constraint(
    expression: str, number: int = 1, penalty: float | None = None, name: str = "c"
) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "expression": expression,
        "slack": {"enabled": penalty is not None, "penalty": penalty},
    }


def files(
    constraints: str | list[dict[str, Any]],
    bounds: list[tuple[Any, ...]] | None,
    parameters: list[dict[str, Any]] | None = None,
    expressions: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the extra files: rows of bounds are (constraint, stage, block, lower, upper)."""
    listed = [constraint(constraints)] if isinstance(constraints, str) else constraints
    content: dict[str, Any] = {CONSTRAINTS: {"constraints": listed}}
    if expressions is not None:
        content[CONSTRAINTS]["expressions"] = [
            {"name": name, "expression": text} for name, text in expressions.items()
        ]
    if bounds is not None:
        names = ("constraint_id", "stage_id", "block_id", "bound_lower", "bound_upper")
        content[BOUNDS] = {name: [row[at] for row in bounds] for at, name in enumerate(names)}
    if parameters is not None:
        content[PARAMETERS] = {"scalar_parameters": parameters}
    return content


def rows_of(path: Path, *args: Any, **kwargs: Any) -> tuple[tuple[GenericRow, ...], ...]:
    changes = kwargs.pop("changes", {})
    return load(write_case(path, files(*args, **kwargs), **changes)).generic


def parameter(name: str, kind: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "kind": kind, **fields}


def test_one_row_for_each_block(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        [constraint("thermal_generation(0) - 2 * line_exchange(0)", 7, 50.0, "cap")],
        [(7, 1, None, None, 30.0), (7, 2, 1, 5.0, 5.0)],
    )
    assert [len(at_stage) for at_stage in rows] == [0, 2, 1]

    def terms(block: int) -> tuple[GenericTerm, ...]:
        return (
            GenericTerm(1.0, "thermal_generation", 0, block),
            GenericTerm(-2.0, "line_exchange", 0, block),
        )

    assert rows[1] == (
        GenericRow(7, "cap", 1, 0, terms(0), -INF, 30.0, 50.0),
        GenericRow(7, "cap", 1, 1, terms(1), -INF, 30.0, 50.0),
    )
    assert rows[2] == (GenericRow(7, "cap", 2, 1, terms(1), 5.0, 5.0, 50.0),)


def test_stage_level_terms_make_one_row(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "hydro_storage(1) + hydro_storage_initial(4)", [(1, 0, None, 20.0, None)])
    (row,) = rows[0]
    assert row.block is None
    assert [(term.kind, term.block) for term in row.terms] == [
        ("hydro_storage", None),
        ("hydro_storage_initial", None),
    ]
    assert (row.lower, row.upper, row.penalty) == (20.0, INF, None)


def test_stage_level_terms_keep_the_block_of_their_bound(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, "hydro_storage(1)", [(1, 0, 1, 20.0, None)])[0]
    assert row.block == 1
    assert row.terms[0].block is None


def test_terms_that_name_their_block_make_one_row(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "thermal_generation(0, 1) - thermal_generation(0, 0)", [(1, 0, None, -5.0, 5.0)])
    (row,) = rows[0]
    assert row.block is None
    assert [(term.coefficient, term.block) for term in row.terms] == [(-1.0, 0), (1.0, 1)]


def test_a_mixed_row_has_its_block_where_none_is_named(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        "thermal_generation(0) - thermal_generation(0, 0) + hydro_storage(1)",
        [(1, 0, None, 0.0, None)],
    )
    first, second = rows[0]
    # In block 0 the two thermal terms are the same variable and cancel.
    assert [term.kind for term in first.terms] == ["hydro_storage"]
    assert [(term.coefficient, term.block) for term in second.terms] == [(1.0, None), (-1.0, 0), (1.0, 1)]


def test_rows_are_ordered_by_constraint_and_block(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        [constraint("thermal_generation(2)", 9), constraint("thermal_generation(0)", 3)],
        [(9, 0, None, 0.0, None), (3, 0, 1, 0.0, None), (3, 0, 0, 1.0, None), (3, 0, None, None, 8.0)],
    )
    assert [(row.constraint_id, row.block, row.upper) for row in rows[0]] == [
        (3, 0, 8.0),
        (3, 0, INF),
        (3, 1, 8.0),
        (3, 1, INF),
        (9, 0, INF),
        (9, 1, INF),
    ]


@pytest.mark.parametrize(
    ("expression", "lower", "upper", "expected"),
    [
        ("thermal_generation(0) >= 50", 10.0, None, (60.0, INF)),
        ("thermal_generation(0) <= 50", 10.0, None, (10.0, 50.0)),
        ("thermal_generation(0) >= 50", None, 70.0, (50.0, 70.0)),
        ("thermal_generation(0) <= 50", None, -5.0, (-INF, 45.0)),
        ("thermal_generation(0) == 50", None, None, (50.0, 50.0)),
        ("thermal_generation(0) == 50", -1.0, 2.0, (49.0, 52.0)),
        ("50 >= thermal_generation(0)", None, None, (-50.0, INF)),
        ("2 * (thermal_generation(0) - 3) <= @p", None, None, (-INF, 10.0)),
        ("thermal_generation(0) + 2 * @p >= 1", None, None, (-7.0, INF)),
    ],
)
def test_bounds_of_operators(
    tmp_path: Path, expression: str, lower: Any, upper: Any, expected: tuple[float, float]
) -> None:
    rows = rows_of(tmp_path, expression, [(1, 0, 0, lower, upper)], [parameter("p", "constant", value=4.0)])
    assert (rows[0][0].lower, rows[0][0].upper) == expected


def test_useful_volume_is_storage_above_the_dead_volume(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        "3 * hydro_useful_volume_final(1) - hydro_storage_final(1) - hydro_useful_volume_initial(4)",
        [(1, 2, None, 100.0, 200.0)],
    )
    (row,) = rows[2]
    assert row.terms == (
        GenericTerm(-1.0, "hydro_storage_initial", 4, None),
        GenericTerm(2.0, "hydro_storage_final", 1, None),
    )
    # Dead volumes of 10 hm3: 3 * 10 - 1 * 10.
    assert (row.lower, row.upper) == (120.0, 220.0)


def test_boundary_storages_of_the_outer_parallel_blocks(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path, "hydro_storage_final(1, 1) - hydro_storage_initial(1, 0)", [(1, 0, None, 0.0, None)]
    )
    (row,) = rows[0]
    assert {term.block for term in row.terms} == {None}


def test_bus_selector(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "hydro_generation(4, bus=3) + hydro_generation(4)", [(1, 0, 0, None, 9.0)])
    assert [(term.bus_id, term.coefficient) for term in rows[0][0].terms] == [(None, 1.0), (3, 1.0)]


def test_named_expressions_and_parameters_of_every_kind(tmp_path: Path) -> None:
    parameters = [
        parameter("flat", "constant", 1, value=2.0),
        parameter("staged", "per_stage", 2, values=[[2, 30.0], [0, 10.0], [1, 20.0]]),
        parameter("seasonal", "seasonal", 3, values=[[5, 0.5], [6, 0.25]]),
        parameter(
            "blocked",
            "per_stage_block",
            4,
            block_values=[
                [stage, block, 1.0 + stage + 0.1 * block] for stage in range(3) for block in range(2)
            ],
        ),
        parameter("rho", "computed", 5, computed_spec={"tag": "accumulated_productivity", "hydro_id": 1}),
    ]

    def seasons(file: dict[str, Any]) -> None:
        for stage, season in zip(file["stages"], (5, 6, 5), strict=True):
            stage["season_id"] = season

    rows = rows_of(
        tmp_path,
        "@both + @seasonal * hydro_spillage(1) <= @staged + 2 * @blocked",
        [(1, 1, None, None, None)],
        parameters,
        {"both": "-2 * @inner + 3 * @rho * hydro_turbined(1)", "inner": "@flat * thermal_generation(0)"},
        changes={"stages": seasons},
    )
    for block, row in enumerate(rows[1]):
        found = {term.kind: term.coefficient for term in row.terms}
        # Productivity of UPPER is 1.1 and of LOWER, downstream of it, 1.4.
        assert found == pytest.approx(
            {"thermal_generation": -4.0, "hydro_turbined": 7.5, "hydro_spillage": 0.25}
        )
        assert row.upper == pytest.approx(20.0 + 2.0 * (2.0 + 0.1 * block))


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("equivalent_productivity", 1.1),
        ("accumulated_productivity", 2.5),
        ("integrated_equivalent_productivity", 1.1),
        ("integrated_accumulated_productivity", 2.5),
        ("max_stored_energy", 2.5 * 190.0),
        ("reference_volume", 10.0 + 0.65 * 190.0),
        ("reference_turbine", 100.0),
        ("min_storage", 10.0),
        ("max_storage", 200.0),
        ("specific_productivity", 0.009),
    ],
)
def test_computed_parameters(tmp_path: Path, tag: str, expected: float) -> None:
    def specific(file: dict[str, Any]) -> None:
        file["hydros"][0]["specific_productivity_mw_per_m3s_per_m"] = 0.009

    spec = parameter("p", "computed", computed_spec={"tag": tag, "hydro_id": 1})
    rows = rows_of(
        tmp_path,
        "@p * hydro_storage(1)",
        [(1, 2, None, 1.0, None)],
        [spec],
        changes={"hydros": specific},
    )
    assert rows[2][0].terms[0].coefficient == pytest.approx(expected)


def test_specific_productivity_must_be_given(tmp_path: Path) -> None:
    spec = parameter("p", "computed", computed_spec={"tag": "specific_productivity", "hydro_id": 1})
    path = write_case(tmp_path, files("@p * hydro_storage(1)", [(1, 0, None, 1.0, None)], [spec]))
    problem = only(path, "DimensionMismatch", file=PARAMETERS, rule="scalar_parameters.A")
    assert "hydro 1 (UPPER)" in problem.message


def test_order_in_files_does_not_matter(tmp_path: Path) -> None:
    constraints = [constraint("@e + thermal_generation(2)", 2), constraint("@p * thermal_generation(0)", 1)]
    bounds = [(1, 0, None, 0.0, None), (2, 1, 1, None, 4.0), (2, 0, None, None, 3.0), (1, 2, 0, 1.0, 2.0)]
    parameters = [parameter("p", "constant", 5, value=3.0), parameter("q", "constant", 2, value=1.5)]
    expressions = {"e": "@f", "f": "@q * thermal_generation(0)"}
    one = rows_of(tmp_path / "a", constraints, bounds, parameters, expressions)
    other = rows_of(
        tmp_path / "b",
        constraints[::-1],
        bounds[::-1],
        parameters[::-1],
        dict(reversed(expressions.items())),
    )
    assert one == other
    assert sum(map(len, one)) == 6


# -----------------------------------------------------------------------------------------------------------
# Blocks


@pytest.mark.parametrize(
    ("variable", "chronological", "sound", "block"),
    [
        (Variable("thermal_generation", 0), False, True, 1),
        (Variable("thermal_generation", 0, 2), False, True, 2),
        (Variable("thermal_generation", 0, 3), False, False, None),
        (Variable("thermal_generation", 0, -1), True, False, None),
        (Variable("hydro_storage_initial", 0), True, True, None),
        (Variable("hydro_storage_initial", 0, 0), False, True, None),
        (Variable("hydro_storage_initial", 0, 1), False, False, None),
        (Variable("hydro_storage_initial", 0, 1), True, True, 1),
        (Variable("hydro_storage_final", 0, 2), False, True, None),
        (Variable("hydro_useful_volume_final", 0, 0), False, False, None),
        (Variable("hydro_useful_volume_final", 0, 0), True, True, 0),
        (Variable("hydro_evaporation", 0), False, True, None),
        (Variable("hydro_evaporation", 0, 0), False, True, None),
        (Variable("hydro_evaporation", 0, 1), False, False, None),
        (Variable("hydro_evaporation", 0), True, False, None),
        (Variable("hydro_evaporation", 0, 2), True, True, 2),
    ],
)
def test_block_of_a_term(variable: Variable, chronological: bool, sound: bool, block: int | None) -> None:
    """Three blocks; the row is that of block 1."""
    assert (block_fault(variable, 3, chronological) is None) == sound
    if sound:
        assert term_block(variable, 1, chronological) == block


def test_evaporation_of_a_single_chronological_block_needs_no_block() -> None:
    assert block_fault(Variable("hydro_evaporation", 0), 1, True) is None


def test_block_that_a_stage_does_not_have(tmp_path: Path) -> None:
    def one_block(file: dict[str, Any]) -> None:
        file["stages"][1]["blocks"] = [{"id": 0, "name": "ALL", "hours": 696.0}]

    path = write_case(
        tmp_path,
        files("thermal_generation(0, 1)", [(1, 0, None, 1.0, None), (1, 1, None, 1.0, None)]),
        stages=one_block,
        load_factors=None,
    )
    problem = only(path, "BusinessRuleViolation", file=CONSTRAINTS, rule="5a.20")
    assert "stage 1" in problem.message
    assert problem.context["value"] == "thermal_generation(0, 1)"


# -----------------------------------------------------------------------------------------------------------
# Faults


def faulty(tmp_path: Path, *args: Any, **kwargs: Any) -> Path:
    return write_case(tmp_path, files(*args, **kwargs))


SOME = [(1, 0, None, 1.0, None)]


@pytest.mark.parametrize(
    ("expression", "rule", "words"),
    [
        ("hydro_turbined(9)", "referential.9", "no hydro 9"),
        ("thermal_generation(1)", "referential.9", "no thermal 1"),
        ("bus_deficit(1)", "referential.9", "no bus 1"),
        ("line_direct(1)", "referential.9", "no line 1"),
        ("pumping_flow(0)", "referential.9", "no pumping station 0"),
        ("non_controllable_generation(0)", "referential.9", "no source 0"),
        ("contract_import(0)", "referential.9", "no contract 0"),
        ("anticipated_decision(0)", "referential.9", "not committed ahead"),
        ("hydro_generation(1, bus=3)", "referential.10", "no unit group on bus 3"),
    ],
)
def test_entities_that_do_not_have_the_variable(
    tmp_path: Path, expression: str, rule: str, words: str
) -> None:
    problem = only(faulty(tmp_path, expression, SOME), "InvalidReference", file=CONSTRAINTS, rule=rule)
    assert words in problem.message
    assert problem.context["entity"] == "constraint 1 (c)"


def test_contract_of_the_other_direction(tmp_path: Path) -> None:
    extra = files("contract_import(5)", SOME)
    extra["system/energy_contracts.json"] = {
        "contracts": [
            {
                "id": 5,
                "name": "SALE",
                "operational_start_date": SINCE,
                "bus_id": 0,
                "type": "export",
                "price_per_mwh": -10.0,
                "limits": {"min_mw": 0.0, "max_mw": 5.0},
            }
        ]
    }
    problem = pick(errors_of(write_case(tmp_path, extra)), "InvalidReference", rule="referential.11")
    assert "export" in problem.message


@pytest.mark.parametrize(
    ("bounds", "kind", "rule", "words"),
    [
        ([(1, 0, None, None, None)], "SchemaViolation", "referential.4", "neither"),
        ([(1, 0, None, 2.0, 1.0)], "InvalidValue", "referential.5", "above"),
        ([(2, 0, None, 2.0, None), *SOME], "InvalidReference", "referential.1", "constraint_id is 2"),
        ([(1, 9, None, 2.0, None), *SOME], "BusinessRuleViolation", "5a.49", "stage_id 9"),
        ([(1, 0, 2, 2.0, None)], "InvalidReference", "5a.35", "block 2 of stage 0"),
        ([(1, 0, -1, 2.0, None)], "InvalidReference", "5a.35", "block -1 of stage 0"),
        ([(1, 0, 1, 2.0, None), (1, 0, 1, None, 3.0)], "DuplicateId", None, "block 1 of stage 0"),
        ([(1, 0, None, 2.0, None), (1, 0, None, 3.0, None)], "DuplicateId", None, "stage 0"),
        ([(1, 0, None, INF, None), *SOME], "InvalidValue", None, "must be finite"),
    ],
)
def test_bounds_that_are_wrong(tmp_path: Path, bounds: Any, kind: str, rule: str | None, words: str) -> None:
    errors = errors_of(faulty(tmp_path, "thermal_generation(0)", bounds))
    problem = pick(errors, kind, file=BOUNDS)
    assert words in problem.message
    assert problem.context.get("rule") == rule


def test_bounds_without_constraints(tmp_path: Path) -> None:
    extra = files("thermal_generation(0)", SOME)
    del extra[CONSTRAINTS]
    only(write_case(tmp_path, extra), "InvalidReference", file=BOUNDS, field="constraint_id")


def test_operator_without_rows(tmp_path: Path) -> None:
    path = faulty(tmp_path, "thermal_generation(0) <= 5", None)
    only(path, "BusinessRuleViolation", file=CONSTRAINTS, rule="referential.6")


def test_resolved_bounds_that_cross(tmp_path: Path) -> None:
    path = faulty(
        tmp_path, "thermal_generation(0) <= 50", [(1, 0, None, 60.0, None), (1, 1, None, 40.0, None)]
    )
    problem = only(path, "InvalidValue", file=CONSTRAINTS, rule="referential.5")
    assert problem.message.endswith("at stage 0.")


def test_hard_constraint_without_variables_that_cannot_be_met(tmp_path: Path) -> None:
    zero = [parameter("p", "constant", value=0.0)]
    path = faulty(tmp_path / "hard", "@p * thermal_generation(0)", SOME, zero)
    assert "cannot be met" in only(path, "InvalidValue", file=CONSTRAINTS).message
    met = rows_of(tmp_path / "met", "@p * thermal_generation(0)", [(1, 0, None, -1.0, None)], zero)
    assert met[0] == ()
    soft = rows_of(tmp_path / "soft", [constraint("@p * thermal_generation(0)", penalty=3.0)], SOME, zero)
    assert [row.terms for row in soft[0]] == [(), ()]


@pytest.mark.parametrize("penalty", [0.0, -1.0, None])
def test_slack_needs_a_price(tmp_path: Path, penalty: float | None) -> None:
    entry = constraint("thermal_generation(0)") | {"slack": {"enabled": True, "penalty": penalty}}
    only(faulty(tmp_path, [entry], SOME), "InvalidValue", field="slack.penalty", value=penalty)


def test_expression_error_shows_the_place(tmp_path: Path) -> None:
    path = faulty(tmp_path, "thermal_generation(0) + 2 thermal_generation(2)", SOME)
    problem = only(path, "ParseError", file=CONSTRAINTS, entity="constraint 1 (c)", field="expression")
    assert problem.context["column"] == 27
    _, line, caret = problem.message.split("\n")
    assert line[caret.index("^") :].startswith("thermal_generation(2)")


def test_expression_without_variables(tmp_path: Path) -> None:
    problem = only(faulty(tmp_path, "5 <= 6", SOME), "ParseError", file=CONSTRAINTS)
    assert "no variable" in problem.message


def test_several_faults_at_once(tmp_path: Path) -> None:
    path = faulty(
        tmp_path,
        [constraint("thermal_generation(77)", 1), constraint("oops", 2), constraint("@nothing", 3)],
        [(1, 8, None, 1.0, None)],
    )
    errors = errors_of(path)
    assert sorted(problem.kind for problem in errors) == [
        "BusinessRuleViolation",
        "InvalidReference",
        "ParseError",
        "ParseError",
    ]


@pytest.mark.parametrize(
    ("expressions", "kind", "words"),
    [
        ({"e": "@e"}, "CycleDetected", "@e -> @e"),
        ({"e": "@f", "f": "thermal_generation(0) + @g", "g": "@e"}, "CycleDetected", "@e -> @f -> @g -> @e"),
        ({"e": "thermal_generation(0) <= 3"}, "ParseError", "no relational operator"),
        ({"e": "thermal_generation(0) + 3"}, "ParseError", "constant needs"),
        ({"e": "thermal_generation(0) + @p"}, "ParseError", "constant needs"),
        ({"e": "thermal_generation("}, "ParseError", "integer"),
        ({"e": "@f * thermal_generation(0)", "f": "thermal_generation(0)"}, "ParseError", "cannot multiply"),
        ({"e": "thermal_generation(0)", "p": "thermal_generation(0)"}, "DuplicateId", "called 'p'"),
    ],
)
def test_named_expressions_that_are_wrong(
    tmp_path: Path, expressions: dict[str, str], kind: str, words: str
) -> None:
    path = faulty(tmp_path, "@e", SOME, [parameter("p", "constant", value=1.0)], expressions)
    assert words in only(path, kind, file=CONSTRAINTS).message


def test_repeated_named_expression(tmp_path: Path) -> None:
    extra = files("@e", SOME, expressions={"e": "thermal_generation(0)"})
    extra[CONSTRAINTS]["expressions"] *= 2
    only(write_case(tmp_path, extra), "DuplicateId", file=CONSTRAINTS, value="e")


@pytest.mark.parametrize(
    ("parameters", "kind", "rule"),
    [
        ([parameter("p", "constant", value=1.0), parameter("q", "constant", value=1.0)], "DuplicateId", "C"),
        (
            [parameter("p", "constant", 1, value=1.0), parameter("p", "constant", 2, value=1.0)],
            "DuplicateId",
            "C",
        ),
        ([parameter("p", "per_stage", values=[[0, 1.0], [1, 1.0]])], "DimensionMismatch", "B"),
        ([parameter("p", "per_stage", values=[[t, 1.0] for t in range(4)])], "InvalidReference", "B"),
        ([parameter("p", "per_stage_block", block_values=[[0, 0, 1.0]])], "DimensionMismatch", "B"),
        ([parameter("p", "seasonal", values=[[0, 1.0]])], "DimensionMismatch", "B"),
        (
            [parameter("p", "computed", computed_spec={"tag": "min_storage", "hydro_id": 9})],
            "InvalidReference",
            "A",
        ),
    ],
)
def test_parameters_that_are_wrong(tmp_path: Path, parameters: Any, kind: str, rule: str) -> None:
    path = faulty(tmp_path, "@p * thermal_generation(0)", SOME, parameters)
    only(path, kind, file=PARAMETERS, rule=f"scalar_parameters.{rule}")


def test_repeated_and_unknown_cells(tmp_path: Path) -> None:
    cells = [[stage, block, 1.0] for stage in range(3) for block in range(2)]
    entry = parameter("p", "per_stage_block", block_values=[*cells, [0, 0, 2.0], [0, 5, 1.0]])
    errors = errors_of(faulty(tmp_path, "@p * thermal_generation(0)", SOME, [entry]))
    assert {problem.kind for problem in errors} == {"DuplicateId", "InvalidReference"}
    assert "[0, 5]" in pick(errors, "InvalidReference").message


@pytest.mark.parametrize(
    ("entry", "kind", "field"),
    [
        (parameter("p", "linear", value=1.0), "InvalidValue", "kind"),
        (parameter("p", "constant"), "SchemaViolation", "value"),
        (parameter("p", "constant", value=1.0, values=[]), "SchemaViolation", "values"),
        (parameter("p", "per_stage", values=[[0, 1.0, 2.0]]), "InvalidValue", "values[0]"),
        (parameter("p", "per_stage", values=[["0", 1.0]]), "SchemaViolation", "values[0][0]"),
        (
            parameter("p", "computed", computed_spec={"tag": "size", "hydro_id": 1}),
            "InvalidValue",
            "computed_spec.tag",
        ),
    ],
)
def test_malformed_parameters(tmp_path: Path, entry: Any, kind: str, field: str) -> None:
    pick(errors_of(faulty(tmp_path, "@p * thermal_generation(0)", SOME, [entry])), kind, field=field)


# -----------------------------------------------------------------------------------------------------------
# Warnings


def test_unused_names_and_constraints(tmp_path: Path) -> None:
    path = faulty(
        tmp_path,
        [constraint("@e", 1), constraint("thermal_generation(0)", 2)],
        SOME,
        [parameter("p", "constant", 1, value=1.0), parameter("q", "constant", 2, value=1.0)],
        {"e": "@p * thermal_generation(0)", "f": "@q * thermal_generation(0)"},
    )
    found = {(problem.kind, problem.context["value"]) for problem in warnings_of(path)}
    assert found == {("UnusedEntity", "q"), ("UnusedEntity", "f"), ("UnusedEntity", 2)}


def test_unused_parameters_without_constraints(tmp_path: Path) -> None:
    extra = {PARAMETERS: {"scalar_parameters": [parameter("p", "constant", value=1.0)], "note": "x"}}
    found = {problem.kind for problem in warnings_of(write_case(tmp_path, extra))}
    assert found == {"UnusedEntity", "SemanticAmbiguity"}


def test_variables_that_are_0_by_nature(tmp_path: Path) -> None:
    path = faulty(
        tmp_path, "thermal_generation(0) + hydro_diversion(1) + hydro_evaporation(4)", [(1, 0, 0, 1.0, None)]
    )
    assert [problem.kind for problem in warnings_of(path)] == ["ModelQuality"] * 2
    (row,) = load(path).generic[0]
    assert [term.kind for term in row.terms] == ["thermal_generation"]


# -----------------------------------------------------------------------------------------------------------
# Anything may be wrong


def test_mutated_files_give_problems_only(tmp_path: Path, whole_sweep: bool) -> None:
    parameters = [
        parameter("p", "per_stage", 1, values=[[0, 1.0], [1, 1.0], [2, 1.0]]),
        parameter("r", "computed", 2, computed_spec={"tag": "max_stored_energy", "hydro_id": 1}),
    ]
    sound = files(
        [constraint("@p * thermal_generation(0) + @e <= @r", 1, 5.0)],
        [(1, 0, None, None, None)],
        parameters,
        {"e": "hydro_turbined(4, 0, bus=3)"},
    )
    path = write_case(tmp_path, sound)
    assert load(path).generic[0]
    for name in (CONSTRAINTS, PARAMETERS):
        for changed in mutants(sound[name], whole_sweep):
            (path / name).write_text(json.dumps(changed), encoding="utf-8")
            judge(path, changed)
        (path / name).write_text(json.dumps(sound[name]), encoding="utf-8")


def test_base_case_has_no_rows(tmp_path: Path) -> None:
    assert load(write_case(tmp_path)).generic == ((), (), ())
    assert len(base_files()["stages"]["stages"]) == 3


def test_resolved_rows_as_tables(tmp_path: Path) -> None:
    path = faulty(
        tmp_path,
        [
            constraint("hydro_storage(1) >= 20", 1, name="floor"),
            constraint("@p * thermal_generation(0) - hydro_generation(4, bus=3)", 2, 7.0, "cap"),
            constraint("thermal_generation(0) == 4", 3, name="equal"),
            constraint("thermal_generation(2)", 4, name="band"),
        ],
        [
            (1, 0, None, None, None),
            (2, 1, 1, None, 9.0),
            (3, 1, 0, None, None),
            (4, 2, 0, 1.0, 2.0),
        ],
        [parameter("p", "constant", value=3.0)],
    )
    tables = load(path).to_arrow()
    rows, terms = tables["generic_rows"].to_pylist(), tables["generic_terms"].to_pylist()
    assert [(row["stage_id"], row["block_id"], row["name"]) for row in rows] == [
        (0, None, "floor"),
        (1, 1, "cap"),
        (1, 0, "equal"),
        (2, 0, "band"),
    ]
    limits = [(row["lower"], row["upper"]) for row in rows]
    assert limits == [(20.0, math.inf), (-math.inf, 9.0), (4.0, 4.0), (1.0, 2.0)]
    assert [row["penalty"] for row in rows] == [None, 7.0, None, None]
    of_cap = [term for term in terms if term["row"] == 1]
    assert [(term["variable"], term["entity_id"], term["block_id"], term["bus_id"]) for term in of_cap] == [
        ("hydro_generation", 4, 1, 3),
        ("thermal_generation", 0, 1, None),
    ]
    assert [term["coefficient"] for term in of_cap] == [-1.0, 3.0]
