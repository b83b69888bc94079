"""The last lines of a run, in words."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from builders.random_case import write_random_case
from cli_helpers import copy_example, strict_json

import cobre
from cobre.cli import main
from cobre.cli.verdict import next_commands, verdict_rows
from cobre.results import read_metadata
from cobre.rules.bounds import SampleCost
from cobre.sddp.verdict import Verdict

VERDICT = Verdict(
    conclusion="near_optimal",
    cost_kind="expected",
    lower_bound=90.0,
    lower_bound_kind="bound",
    upper_bound=90.5,
    upper_bound_note=None,
    upper_bound_assumes=(),
    gap_percent=0.5556,
    policy_gap_percent=None,
    sample=SampleCost(91.0, 10.0, 100, 7),
    bound_position="within",
    likely_gap_percent=3.289,
    bound_move_percent=0.02,
    bound_move_iterations=10,
    violation_share=0.0,
    next_step="simulate",
    next_iterations=None,
)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        (
            {},
            {
                "expected cost": "the optimum lies between 90.00 and 90.50 $",
                "distance": "at most 0.556 % between the bounds of the optimum; "
                "the policy is at most 3.29 % above the optimum (95 % sure)",
            },
        ),
        ({}, {"sample cost": "91.00 ± 1.96 $ (95 %, 100 forward passes since iteration 7); the lower bound"}),
        (
            {"policy_gap_percent": 0.7, "sample": None, "likely_gap_percent": None},
            {
                "distance": "at most 0.556 % between the bounds of the optimum; "
                "the policy is at most 0.700 % above the optimum"
            },
        ),
        ({"gap_percent": 1e-12, "conclusion": "optimal"}, {"expected cost": "90.00 $, the optimum"}),
        (
            {"gap_percent": None, "upper_bound": None, "upper_bound_note": "too large"},
            {
                "expected cost": "the optimum is at least 90.00 $",
                "distance": "the policy is at most 3.29 % above the optimum (95 % sure); "
                "no upper bound of the optimum is known (too",
            },
        ),
        (
            {"lower_bound_kind": "estimate", "gap_percent": None, "bound_position": None},
            {
                "expected cost": "about 90.00 $ (an estimate, no bound); the optimum is at most 90.50 $",
                "distance": "unknown: there is no lower bound",
                "estimate moved": "0.020 % over the last 10 iterations",
            },
        ),
        (
            {"cost_kind": "risk-adjusted", "bound_position": None, "likely_gap_percent": None},
            {
                "risk-adjusted cost": "the optimum lies between 90.00 and",
                "distance": "at most 0.556 % between the bounds of the optimum",
                "sample cost": "91.00 ± 1.96 $ (95 %, 100 forward passes since",
            },
        ),
        (
            {"sample": SampleCost(91.0, 10.0, 29, 7), "bound_position": None, "likely_gap_percent": None},
            {"sample cost": "91.00 $, of 29 forward passes since iteration 7; 30 make a confidence interval"},
        ),
        (
            {"bound_move_percent": None, "bound_move_iterations": 0},
            {"lower bound moved": "unknown after one"},
        ),
        ({"bound_move_percent": -3e-15}, {"lower bound moved": "less than 0.001 % over"}),
    ],
)
def test_rows(changes, shown):
    rows = verdict_rows(replace(VERDICT, **changes).as_dict())
    for name, beginning in shown.items():
        assert rows[name].startswith(beginning), rows[name]


def test_a_verdict_of_an_earlier_version_can_be_read():
    """``cobre watch`` shows what events of earlier runs hold."""
    verdict = {name: value for name, value in VERDICT.as_dict().items() if name != "policy_gap_percent"}
    assert verdict_rows(verdict) == verdict_rows(VERDICT.as_dict())


def test_the_last_lines_of_a_run_say_what_to_do_next(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    output = Path("out of here")
    assert main(["train", str(case), "--iterations", "2", "--output", str(output), "--no-progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split(maxsplit=1) == ["then", "cobre report 'out of here'"]
    assert "Verdict: not converged" in lines
    command = lines[-2].split(maxsplit=1)[1]
    assert command == "cobre train random-inflow --output 'out of here' --resume --iterations 20"
    # What is advised works.
    assert main([*shlex.split(command)[1:], "--output-format", "json"]) == 0
    data = strict_json(capsys.readouterr().out)["data"]
    assert (data["iterations"], data["verdict"]["conclusion"]) == (20, "near_optimal")
    assert data["verdict"]["next_commands"][-2] == "cobre simulate random-inflow --output 'out of here'"
    stored = read_metadata(output)["verdict"]
    assert stored == {name: value for name, value in data["verdict"].items() if name != "next_commands"}


def test_a_run_that_was_stopped_is_to_be_resumed(tmp_path, monkeypatch):
    case = cobre.load_case(copy_example(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = cobre.train(case, output=True, on_iteration=lambda record: record.iteration == 2)
    assert result.status == "partial"
    assert next_commands(case, result, result.verdict) == [
        "cobre train random-inflow --resume --iterations 40",
        "cobre report random-inflow/output",
    ]


def test_the_last_lines_after_a_simulation_say_what_the_policy_costs(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(case), "--scenarios", "300", "--no-progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    last = lines[lines.index("Verdict: optimal") :]
    rows = dict(line.split(maxsplit=1) for line in last[1:] if not line.startswith("  lower bound"))
    assert "above the optimum (95 % sure, simulated)" in rows["distance"]
    assert "300 scenarios" in rows["simulated"]
    # The policy was just simulated: only more scenarios would add something.
    assert re.fullmatch(r"cobre simulate random-inflow --scenarios \d+00", rows["next"])
    assert rows["then"] == "cobre report random-inflow/output"
    assert list(rows)[-2:] == ["next", "then"]
    assert main(["run", str(case), "--scenarios", "29", "--force", "--output-format", "json"]) == 0
    commands = strict_json(capsys.readouterr().out)["data"]["training"]["verdict"]["next_commands"]
    assert commands[0].startswith("cobre simulate random-inflow --scenarios")


def test_a_stopped_run_is_gone_on_with_up_to_its_own_limit(tmp_path, monkeypatch):
    case = cobre.load_case(copy_example(tmp_path))
    monkeypatch.chdir(tmp_path)
    stopped = cobre.train(
        case, iterations=60, output=True, on_iteration=lambda record: record.iteration == 45
    )
    longer = replace(case, training=replace(case.training, iteration_limit=60))
    command = next_commands(longer, stopped, stopped.verdict)[0]
    assert command == "cobre train random-inflow --resume --iterations 60"
    assert main([*shlex.split(command)[1:], "-q"]) == 0


def test_a_run_that_is_to_go_on_simulates_as_many_scenarios(tmp_path, monkeypatch, capsys):
    case = copy_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(case), "--iterations", "2", "--scenarios", "20", "--no-progress"]) == 0
    command = capsys.readouterr().out.splitlines()[-2].split(maxsplit=1)[1]
    # So many are needed to know the expected cost to 1 %.
    assert re.fullmatch(r"cobre run random-inflow --resume --iterations 20 --scenarios \d+00", command)
    assert main([*shlex.split(command)[1:], "-q"]) == 0


@pytest.mark.parametrize(("scenarios", "shown"), [(29, "too few scenarios"), (30, "is known to ±")])
def test_a_simulation_of_few_scenarios_has_no_confidence_interval(tmp_path, capsys, scenarios, shown):
    case = copy_example(tmp_path)
    assert main(["train", str(case), "--iterations", "2", "-q"]) == 0
    assert main(["simulate", str(case), "--scenarios", str(scenarios), "--no-progress"]) == 0
    out = capsys.readouterr().out
    assert shown in out
    assert ("30 make a confidence interval" in out) == (scenarios < 30)
    assert ("95 % confidence" in out) == (scenarios >= 30)
    assert out.splitlines()[-1].split(maxsplit=1)[1].startswith("cobre report ")


def test_a_gap_is_not_said_to_be_that_of_the_policy(tmp_path):
    """The bounds are those of the optimum: cuts that are loose make a policy that costs more than both."""
    case = cobre.load_case(write_random_case(tmp_path, 109))
    result = cobre.train(case, iterations=4)
    enumerated = replace(case, simulation=replace(case.simulation, enumerated=True, num_scenarios=0))
    cost = cobre.simulate(enumerated, result).mean_cost
    verdict = result.verdict
    assert 100.0 * (cost / verdict.lower_bound - 1.0) > 5.0 * verdict.gap_percent
    rows = verdict_rows(verdict.as_dict())
    assert rows["distance"] == "at most 3.97 % between the bounds of the optimum"
