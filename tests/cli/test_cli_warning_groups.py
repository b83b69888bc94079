"""Warnings for people: a few lines however many there are, every one on request and in JSON."""

from __future__ import annotations

import io

import pytest
from cli_helpers import copy_example, strict_json
from rich.console import Console

from cobre.cli import main
from cobre.cli.human import HumanView
from cobre.cli.outcome import Outcome
from cobre.cli.warning_groups import MOST_LINES, group_warnings, show_warnings
from cobre.errors import Problem


def negative(plant: int) -> Problem:
    field = f"recent_observations[{plant}].value_m3s"
    context = {"file": "initial_conditions.json", "entity": f"hydro {plant}", "field": field, "value": -1.5}
    return Problem("ModelQuality", f"{field} of hydro {plant} is negative (-1.5).", context, "Check it.")


def unused(name: str) -> Problem:
    context = {"file": "constraints/generic_parameters.json", "entity": name, "field": "name", "value": name}
    return Problem(
        "UnusedEntity", f"the parameter '{name}' is not used.", context, f"Refer to it as @{name}."
    )


def badly_scaled(stage: int) -> Problem:
    return Problem("ModelQuality", f"stage {stage}: costs range over 1e-{stage} .. 10.", {"stage": stage})


def shown(warnings: list[Problem]) -> list[str]:
    text = io.StringIO()
    show_warnings(Console(file=text, width=80, highlight=False), warnings)
    return text.getvalue().splitlines()


def test_entities_and_numbers_do_not_tell_groups_apart():
    mixed = [negative(1), unused("rho_1"), badly_scaled(0), negative(2), unused("theta"), badly_scaled(12)]
    groups = group_warnings(mixed)
    assert groups == [[mixed[0], mixed[3]], [mixed[1], mixed[4]], [mixed[2], mixed[5]]]


def test_a_group_has_its_count_and_three_examples():
    lines = shown([negative(plant) for plant in range(40)])
    assert lines == [
        "warning: [ModelQuality] 40 like this: "
        "recent_observations[0].value_m3s of hydro 0 is negative (-1.5). -> Check it.",
        "  also: hydro 1  recent_observations[1].value_m3s = -1.5; "
        "hydro 2  recent_observations[2].value_m3s = -1.5; 37 more",
        "40 warnings of 1 kind (--warnings all lists every one)",
    ]
    assert shown([badly_scaled(stage) for stage in range(3)])[1] == "  also: stage 1; stage 2"
    assert len(shown([negative(1)])) == 1


@pytest.mark.parametrize("kinds", [1, 6, 7, 12, 13, 100])
def test_any_number_of_warnings_fits(kinds):
    warnings = [
        Problem(f"Kind{'x' * kind}", f"This is {n}.", {"file": f"{'x' * kind}.json", "entity": f"bus {n}"})
        for n in range(50)
        for kind in range(kinds)
    ]
    lines = shown(warnings)
    assert len(lines) <= MOST_LINES + 1
    assert lines[-1].startswith(f"{50 * kinds} warnings of {kinds} kind")
    text = "\n".join(lines)
    for kind in range(kinds):
        assert f"Kind{'x' * kind}" in text
    assert text.count("also: ") == min(kinds, MOST_LINES)


def test_warnings_before_training_are_not_repeated_behind_the_result(capsys):
    facts = {"max_iterations": 1, "case": "c", "forward_passes": 1, "threads_per_rank": 1, "ranks": 1}
    facts |= dict.fromkeys(("stages", "hydros", "thermals", "buses", "lines"), 1)
    outcome = Outcome("train", warnings=[negative(1)])
    view = HumanView()
    view.started(facts, outcome.warnings)
    before = capsys.readouterr().err
    outcome.warnings.append(unused("rho"))
    view.finish(outcome)
    after = capsys.readouterr().err
    assert "hydro 1 is negative" in before
    assert "hydro 1 is negative" not in after
    assert "the parameter 'rho'" in after
    assert "1 warning above, before training" in after


def test_all_warnings_on_request_and_in_json(tmp_path, capsys):
    case = copy_example(tmp_path)
    for number in range(5):
        (case / f"system/hydros.json.{number}").write_text("{}")
    grouped, every = (
        ["validate", str(case), "--no-lp"],
        ["validate", str(case), "--no-lp", "--warnings", "all"],
    )
    assert main(grouped) == main(every) == 0
    assert capsys.readouterr().err.count("is not read") == 10
    assert main([*grouped, "--output-format", "json"]) == 0
    assert len(strict_json(capsys.readouterr().out)["warnings"]) == 5
