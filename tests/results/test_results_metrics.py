"""Metrics of a simulation whose numbers follow by hand; see ``builders.small_results``."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders.small_results import HOURS, write_simulation

import cobre
from cobre.errors import CobreError, ValidationError

CHANCES = (0.4, 0.3, 0.2, 0.1)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    return cobre.results.load(write_simulation(tmp_path_factory.mktemp("sampled"))).simulation.metrics


@pytest.fixture(scope="module")
def enumerated(tmp_path_factory):
    output = write_simulation(tmp_path_factory.mktemp("enumerated"), CHANCES)
    return cobre.results.load(output).simulation.metrics


def test_cost_of_a_sample_has_a_confidence_interval(sampled):
    std = math.sqrt((150**2 + 50**2 + 50**2 + 150**2) / 3)
    assert sampled.cost.mean == 250.0
    assert sampled.cost.std == pytest.approx(std)
    assert sampled.cost.ci_95 == pytest.approx(1.96 * std / 2)
    assert (sampled.cost.cvar_95, sampled.cvar(0.5), sampled.cvar(0.0)) == (400.0, 350.0, 250.0)


def test_cost_of_enumerated_scenarios_is_exact(enumerated):
    assert enumerated.cost.mean == pytest.approx(200.0)
    assert enumerated.cost.ci_95 == 0.0
    assert enumerated.cost.std == pytest.approx(100.0)
    assert enumerated.cost.cvar_95 == pytest.approx(400.0)
    assert enumerated.cvar(0.8) == pytest.approx(350.0)  # a tenth of 400, a tenth of 300


def test_components_are_discounted_and_counted_once(sampled, enumerated):
    rows = {row["component"]: row for row in sampled.cost_by_component().rows()}
    assert (rows["thermal"]["cost"], rows["thermal"]["share"]) == (210.0, 84.0)
    assert (rows["outflow_violation_below"]["cost"], rows["deficit"]["cost"]) == (40.0, 0.0)
    assert sum(row["cost"] for row in rows.values()) == sampled.cost.mean
    assert "hydro_violation" not in rows
    assert sampled.cost_by_component().unit("cost") == "$"
    assert sampled.cost_by_stage()["cost"].tolist() == [100.0, 150.0]
    assert enumerated.cost_by_stage()["thermal"].tolist() == pytest.approx([60.0, 100.0])


def test_deficit_of_buses_stages_and_the_study(sampled, enumerated):
    (whole,) = sampled.deficit(()).rows()
    assert whole["expected_unserved_mwh"] == (300.0 + 1000.0) / 4
    assert whole["deficit_probability"] == 0.5
    assert whole["expected_load_mwh"] == 6000.0
    assert whole["unserved_share"] == pytest.approx(100 * 325 / 6000)
    by_stage = sampled.deficit(("stage",))
    assert by_stage["expected_unserved_mwh"].tolist() == [75.0, 250.0]
    assert by_stage["deficit_probability"].tolist() == [0.25, 0.25]
    by_both = {(row["bus_name"], row["stage_id"]): row for row in sampled.deficit().rows()}
    assert by_both["North", 2]["expected_unserved_mwh"] == 250.0
    assert by_both["South", 2]["expected_unserved_mwh"] == by_both["South", 2]["unserved_share"] == 0.0
    assert sampled.deficit().unit("expected_unserved_mwh") == "MWh"
    north, _ = enumerated.deficit(("bus",)).rows()
    assert north["expected_unserved_mwh"] == pytest.approx(0.2 * 300 + 0.1 * 1000)
    assert north["deficit_probability"] == pytest.approx(0.3)


def test_stored_energy_is_that_of_the_last_block(sampled):
    energy = sampled.stored_energy((0.0, 0.5, 1.0))
    assert energy["mean"].tolist() == [38.5, 15.0]
    assert energy["p50"].tolist() == [38.5, 15.0]
    assert (energy["p00"].tolist(), energy["p100"].tolist()) == ([37.0, 0.0], [40.0, 30.0])
    assert energy.unit("mean") == "MWh"


def test_inflow_energy_is_weighted_by_hours(sampled):
    assert sampled.inflow_energy()["mean"].tolist() == [2.0 * 0.25 + 6.0 * 0.75 + 1.0, 5.0]


def test_marginal_cost_is_weighted_by_hours(sampled, enumerated):
    north = [row for row in sampled.marginal_cost((0.5,)).rows() if row["bus_name"] == "North"]
    assert [row["mean"] for row in north] == [40.0, 25.0]
    assert [row["p50"] for row in north] == [40.0, 25.0]
    weighted = [row for row in enumerated.marginal_cost((0.5,)).rows() if row["bus_name"] == "North"]
    assert [row["mean"] for row in weighted] == pytest.approx([40.0, 20.0])
    assert weighted[1]["p50"] == 20.0  # 10 has 40 % probability, 10 or 20 have 70 %


def test_duration_curves_count_hours_and_probability(sampled, enumerated):
    """Of 2400 h: 100 $/MWh in 400, 40 and 30 in 200 each, 20 in 1400, 10 in 200."""
    curve = sampled.marginal_cost_duration(5, entity="North")
    assert curve["duration"].tolist() == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert curve["price"].tolist() == [100.0, 40.0, 20.0, 20.0, 10.0]
    both = sampled.marginal_cost_duration(3)
    assert both["price"].tolist() == [100.0, 20.0, 10.0, 7.0, 7.0, 7.0]
    # In stage 2 by probability: 40 in 10 %, 30 in 20 %, 20 in 30 %, 10 in 40 % of the hours.
    second = enumerated.marginal_cost_duration(11, entity="North", stage=2)
    assert second["price"].tolist() == [40.0, 40.0, 30.0, 30.0, 20.0, 20.0, 20.0, 10.0, 10.0, 10.0, 10.0]


def test_energy_by_source(sampled):
    energy = sampled.energy()
    assert energy["hydro_mwh"].tolist() == [1200.0, 600.0]
    assert energy["thermal_mwh"].tolist() == [2800.0, 1400.0]
    assert energy["load_mwh"].tolist() == [4000.0, 2000.0]
    assert energy["deficit_mwh"].tolist() == [75.0, 250.0]


def test_hours_follow_from_the_tables(sampled):
    assert sampled.hours == HOURS


def test_quantiles_of_any_column(sampled, enumerated):
    found = sampled.quantiles("hydros", "storage_final_hm3", (0.0, 0.5, 0.975), stage=1, entity="Serra")
    assert found["block_id"].tolist() == [0, 1]
    assert found["p50"].tolist() == [101.5, 101.5]
    assert found["p97_5"].tolist() == pytest.approx([np.quantile([100, 101, 102, 103], 0.975)] * 2)
    assert (found["unit"][0], found["name"][0], found["mean"][0]) == ("hm3", "Serra", 101.5)
    exact = enumerated.quantiles("hydros", "storage_final_hm3", (0.5, 0.7, 0.71), stage=2, entity="Serra")
    assert [float(exact[name][0]) for name in ("p50", "p70", "p71")] == [101.0, 101.0, 102.0]
    assert len(sampled.quantiles("buses", ["spot_price", "load_mw"])) == 2 * 3 * 2
    assert len(sampled.quantiles("costs", "immediate_cost")) == 2


def test_metrics_are_tables(sampled):
    metric = sampled.deficit()
    assert metric.to_arrow().schema.field("expected_unserved_mwh").metadata == {b"unit": b"MWh"}
    assert "Metric('deficit': 4 rows" in repr(metric)
    assert "North" in metric._repr_html_()
    pytest.importorskip("pandas")
    assert metric.to_pandas().expected_unserved_mwh.sum() == 325.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda metrics: metrics.quantiles("hydros", "storage_final_hm3", (1.5,)),
        lambda metrics: metrics.deficit("bus"),
        lambda metrics: metrics.cvar(1.0),
        lambda metrics: metrics.marginal_cost_duration(1),
        lambda metrics: metrics.stored_energy((-0.1,)),
    ],
)
def test_what_makes_no_sense_is_refused(sampled, ask):
    with pytest.raises(ValidationError):
        ask(sampled)


def test_hours_that_do_not_follow_from_the_tables_are_not_guessed(sampled, monkeypatch):
    monkeypatch.setitem(sampled.__dict__, "hours", {(1, 0): 100.0, (2, 0): 200.0})
    with pytest.raises(CobreError, match="hours of the blocks of stage 1 are not known"):
        sampled.marginal_cost()
