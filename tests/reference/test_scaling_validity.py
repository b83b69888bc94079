"""A bound is a bound whatever the scaling: against extensive forms of systems with numbers far apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.guide_cases import EXAMPLES, change, write
from torture import TOLERANCE, judge, write_torture_case

import cobre.case
import cobre.sddp
from cobre.errors import ValidationError

# Half of them with a given unit of costs. 0, 1, 8 and 10 are refused, the others must be bounded.
SEEDS = range(24)
BASE_OPTIMUM = 6_091_200.0


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_on_their_side_of_the_optimum(tmp_path: Path, seed: int) -> None:
    verdict = judge(write_torture_case(tmp_path, seed))
    if verdict.refusal is not None:
        assert isinstance(verdict.refusal, ValidationError)
        assert {"entity", "field", "value"} <= set(verdict.refusal.context)
        return
    assert verdict.excess <= TOLERANCE
    assert verdict.lower_bounds[-1] == pytest.approx(verdict.optimum, rel=1e-4)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3, 1e6, 1e8])
def test_unit_of_costs_does_not_move_the_bound(tmp_path: Path, factor: float) -> None:
    bound = _bound(tmp_path, {"config.json": _unit(factor)})
    assert bound <= BASE_OPTIMUM * (1.0 + TOLERANCE)
    assert bound == pytest.approx(BASE_OPTIMUM, rel=1e-9)


@pytest.mark.parametrize(
    ("factor", "field"),
    [
        (1e-9, "inflow_nonnegativity_cost"),
        (1e9, "spillage_cost"),
        (1e12, "spillage_cost"),
        (1e15, "spillage_cost"),
    ],
)
def test_unit_that_hides_costs_is_refused(tmp_path: Path, factor: float, field: str) -> None:
    with pytest.raises(ValidationError, match="cost_scale_factor") as refusal:
        _bound(tmp_path, {"config.json": _unit(factor)})
    assert refusal.value.context["field"] == field


@pytest.mark.parametrize("deficit", [1e6, 1e9])
def test_dear_deficit_does_not_move_the_bound(tmp_path: Path, deficit: float) -> None:
    bound = _bound(tmp_path, {"penalties.json": _deficit(deficit)})
    assert bound <= BASE_OPTIMUM * (1.0 + TOLERANCE)
    assert bound == pytest.approx(BASE_OPTIMUM, rel=1e-7)


@pytest.mark.parametrize(
    ("deficit", "field"),
    [
        (1e12, "deficit_segments.cost"),
        (1e18, "bus.deficit_segments[0].cost"),
        (1e300, "bus.deficit_segments[0].cost"),
    ],
)
def test_deficit_beyond_what_lps_hold_is_refused(tmp_path: Path, deficit: float, field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        _bound(tmp_path, {"penalties.json": _deficit(deficit)})
    assert refusal.value.context["field"] == field


def test_load_that_no_lp_holds_is_refused(tmp_path: Path) -> None:
    files = dict(EXAMPLES["openings"][0])
    table = "scenarios/load_seasonal_stats.parquet"
    columns = {name: list(values) for name, values in files[table].items()}
    columns["mean_mw"][1] = 1e20
    path = write(tmp_path, {**files, table: columns})
    with pytest.raises(ValidationError) as refusal:
        cobre.case.load(path)
    assert refusal.value.context["file"] == table
    assert refusal.value.context["field"] == "mean_mw"
    assert refusal.value.context["value"] == 1e20
    assert "bus_id" in refusal.value.context["entity"]


def test_scaling_warnings_come_with_the_result(tmp_path: Path) -> None:
    path = write(tmp_path, change(EXAMPLES["base"][0], {"penalties.json": _deficit(1e9)}))
    result = cobre.sddp.train(cobre.case.load(path), iterations=1)
    found = [problem for problem in result.warnings if problem.kind == "ModelQuality"]
    assert any("coefficients of the objective" in problem.message for problem in found)


@pytest.mark.parametrize("gamma", [1e-320, 1e-25, 1e-18, 1e-16])
def test_entropic_measure_of_tiny_gamma_is_the_expectation(tmp_path: Path, gamma: float) -> None:
    measure = {"stages": [{"id": 0, "risk_measure": {"entropic": {"gamma": gamma}}}]}
    bounds = []
    for number, changes in enumerate(({}, {"stages.json": measure})):
        path = write(tmp_path / str(number), change(EXAMPLES["openings"][0], changes))
        bounds.append(cobre.sddp.train(cobre.case.load(path), iterations=10).lower_bound)
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-9)


def _unit(factor: float) -> dict[str, dict[str, float]]:
    return {"modeling": {"cost_scale_factor": factor}}


def _deficit(cost: float) -> Any:
    return {"bus": {"deficit_segments": [{"depth_mw": None, "cost": cost}]}}


def _bound(directory: Path, changes: dict[str, Any]) -> float:
    path = write(directory, change(EXAMPLES["base"][0], changes))
    return float(cobre.sddp.train(cobre.case.load(path)).lower_bound)
