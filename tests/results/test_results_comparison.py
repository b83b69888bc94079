"""Two runs side by side: by hand, and two policies of one study in the same scenarios."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from builders.paths import EXAMPLES
from builders.small_results import write_simulation

import cobre
from cobre.case.model import SimulationOptions
from cobre.errors import OutputError


def put_training(output, **bounds):
    place = output / "training"
    place.mkdir(parents=True, exist_ok=True)
    document = {
        "iterations": {"completed": 10},
        "policy_sha256": "ab",
        "bounds": {"final_lower_bound_kind": "bound", **bounds},
        "verdict": {"conclusion": "optimal", "gap": {"percent": 0.5}},
    }
    (place / "metadata.json").write_text(json.dumps(document))
    return output


def rows_of(comparison, topic):
    return {row.item: row for row in comparison[topic]}


def test_a_run_is_the_same_as_itself(tmp_path):
    output = put_training(write_simulation(tmp_path), final_lower_bound=100.0)
    found = cobre.results.compare(output, cobre.results.load(output))
    assert found.equal
    assert found.differences() == found.notes == ()
    assert "the same" in repr(found)


def test_differences_have_sign_share_and_confidence(tmp_path):
    one = put_training(write_simulation(tmp_path / "a"), final_lower_bound=200.0)
    other = put_training(write_simulation(tmp_path / "b", factor=1.5), final_lower_bound=210.0)
    found = cobre.results.compare(one, other)
    bound = rows_of(found, "bounds")["final_lower_bound"]
    assert (bound.a, bound.b, bound.difference, bound.percent) == (200.0, 210.0, 10.0, 5.0)
    expected = rows_of(found, "cost")["expected"]
    assert (expected.a, expected.b, expected.difference) == (250.0, 375.0, 125.0)
    std = math.sqrt((150**2 + 50**2 + 50**2 + 150**2) / 3)
    assert not found.paired  # nothing states that the scenarios are the same
    assert expected.ci_95 == pytest.approx(math.hypot(1.0, 1.5) * 1.96 * std / 2)
    components = rows_of(found, "cost by component")
    assert (components["thermal"].a, components["thermal"].b) == (210.0, 315.0)
    assert {row.topic for row in found.differences()} == {"bounds", "cost", "cost by component"}
    assert rows_of(found, "stored energy")["stage 1 2024-01-01"].a == 38.5
    assert rows_of(found, "mean marginal cost")["North"].a == pytest.approx((40 * 400 + 25 * 200) / 600)
    assert rows_of(found, "unserved energy by bus")["North"].difference == 0.0
    assert rows_of(found, "verdict")["gap.percent"].a == 0.5
    assert found.differences(tolerance=0.5) == ()


def test_texts_and_missing_numbers_are_kept_apart(tmp_path):
    one = put_training(tmp_path / "a", final_lower_bound=200.0, deterministic_upper_bound=205.0)
    other = put_training(tmp_path / "b", final_lower_bound=200.0)
    found = cobre.results.compare(one, other)
    (differing,) = found.differences()
    assert (differing.item, differing.a, differing.b, differing.difference) == (
        "deterministic_upper_bound",
        205.0,
        None,
        None,
    )
    table = found.to_arrow().to_pylist()
    kinds = next(row for row in table if row["item"] == "final_lower_bound_kind")
    assert (kinds["a"], kinds["text_a"], kinds["text_b"]) == (None, "bound", "bound")
    assert "optimal" in found._repr_html_()


def test_what_only_one_run_has_is_noted(tmp_path):
    one = put_training(write_simulation(tmp_path / "a"))
    other = put_training(tmp_path / "b")
    found = cobre.results.compare(one, other)
    assert found.notes == ("only A has a simulation",)
    assert not found.equal
    with pytest.raises(OutputError, match="cannot be compared"):
        cobre.results.compare(write_simulation(tmp_path / "c"), other)


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Simulations of the policies after 3 and 12 iterations, in the same scenarios, and one in others."""
    place = tmp_path_factory.mktemp("runs")
    case = cobre.load_case(EXAMPLES / "random-inflow")
    found = {}
    for iterations in (3, 12):
        result = cobre.train(case, iterations=iterations, output=place / str(iterations))
        found[iterations] = cobre.simulate(case, result, scenarios=60, output=place / str(iterations))
    found["other"] = cobre.simulate(case, result, scenarios=60, seed=7, output=place / "other")
    return place, found


def test_what_is_read_is_what_the_simulation_reported(policies):
    place, found = policies
    results = cobre.results.load(place / "12")
    metrics = results.simulation.metrics
    np.testing.assert_allclose(metrics.scenario_cost, found[12].scenario_cost, rtol=1e-12)
    assert asdict(metrics.cost) == pytest.approx(asdict(found[12].cost), rel=1e-12)
    (deficit,) = metrics.deficit(()).rows()
    assert deficit["deficit_probability"] == found[12].deficit_probability
    assert deficit["expected_unserved_mwh"] == pytest.approx(found[12].expected_deficit_mwh)
    components = {row["component"]: row["cost"] for row in metrics.cost_by_component().rows() if row["cost"]}
    assert components == pytest.approx(found[12].costs.components)
    assert len(results.training.convergence) == 12
    energy = metrics.energy()
    served = energy["hydro_mwh"] + energy["thermal_mwh"] + energy["deficit_mwh"] - energy["excess_mwh"]
    np.testing.assert_allclose(served, energy["load_mwh"], rtol=1e-9)
    assert set(metrics.hours.values()) == {730.0}


def test_the_same_scenarios_are_compared_one_by_one(policies):
    place, found = policies
    compared = cobre.results.compare(place / "3", place / "12")
    assert compared.paired
    difference = found[12].scenario_cost - found[3].scenario_cost
    expected = rows_of(compared, "cost")["expected"]
    assert expected.difference == pytest.approx(difference.mean())
    assert expected.ci_95 == pytest.approx(1.96 * difference.std(ddof=1) / math.sqrt(60))
    assert rows_of(compared, "bounds")["final_lower_bound"].difference > 0.0
    assert not compared.notes
    others = cobre.results.compare(place / "12", place / "other")
    assert not others.paired
    assert others.notes == ("only A has a training",)


def test_enumerated_scenarios_count_by_their_probability(tmp_path):
    case = cobre.load_case(EXAMPLES / "random-inflow")
    case = replace(case, simulation=SimulationOptions(num_scenarios=0, enumerated=True))
    result = cobre.simulate(case, cobre.train(case, iterations=3), output=tmp_path)
    simulation = cobre.results.load(tmp_path).simulation
    np.testing.assert_array_equal(simulation.probability, result.probability)
    metrics = simulation.metrics
    assert metrics.cost.mean == pytest.approx(result.mean_cost, rel=1e-12)
    assert (metrics.cost.ci_95, result.kind) == (0.0, "exact")
    (deficit,) = metrics.deficit(()).rows()
    assert deficit["deficit_probability"] == pytest.approx(result.deficit_probability)
    assert metrics.cost_by_component()["cost"].sum() == pytest.approx(result.mean_cost)
    # Openings of a stage are alike: the first stage has as many inflows, of the same probability.
    first = metrics.quantiles("hydros", "inflow_m3s", (0.0, 1.0), stage=0, entity="Serra")
    tree = simulation.hydros.cube("inflow_m3s", stage=0, entity="Serra")["inflow_m3s"]
    assert first["mean"][0] == pytest.approx(np.unique(tree).mean())
