"""The deterministic upper bound on the command line and in the results."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import copy_example, edit_json, strict_json

from cobre.cli import main
from cobre.results import read_metadata


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = copy_example(tmp_path)
    section = {"enabled": True, "interval_iterations": 2, "lipschitz": {"mode": "auto"}}
    edit_json(path / "config.json", lambda content: content.update(upper_bound_evaluation=section))
    return path


def test_bound_and_gap_are_reported_everywhere(case, capsys):
    assert main(["train", str(case), "--iterations", "4", "--output-format", "json-lines"]) == 0
    lines = [strict_json(line) for line in capsys.readouterr().out.splitlines()]
    told = [line.get("deterministic_upper_bound") for line in lines if line["type"] == "progress"]
    assert [value is not None for value in told] == [True, False, True, False]
    data = lines[-1]["data"]
    bound = data["deterministic_upper_bound"]
    assert data["lower_bound"] <= bound <= told[2] <= told[0]
    expected = 100.0 * (bound - data["lower_bound"]) / data["lower_bound"]
    assert data["gap_percent"] == pytest.approx(expected)
    assert data["deterministic_upper_bound_unavailable"] is None
    assert data["deterministic_upper_bound_assumes"] == []
    written = read_metadata(case / "output")["bounds"]
    assert written["deterministic_upper_bound"] == bound
    assert read_metadata(case / "output")["convergence"]["final_gap_percent"] == data["gap_percent"]


def test_people_see_them_too(case, capsys):
    assert main(["train", str(case), "--iterations", "2", "--no-progress"]) == 0
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert "$ (deterministic)" in shown
    assert "between the bounds of the optimum" in shown
