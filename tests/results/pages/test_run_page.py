"""The report of a run: its numbers are those of the tables, and it works with any part of a run."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.pages import figures, shown, visible
from builders.paths import EXAMPLES

import cobre.results
from cobre.errors import OutputError, ValidationError
from cobre.lp.cost_components import COMPONENTS
from cobre.policy import read_policy_directory
from cobre.results import report, write_stochastic
from cobre.results.pages.policy_section import mean_states, water_values, why_no_curves
from cobre.results.pages.run_data import RunData
from cobre.results.pages.run_page import report_page
from cobre.results.pages.simulation_sections import duration_curve, is_violation
from cobre.results.pages.texts import percent
from cobre.results.pages.training_sections import _sample_traces

pytest.importorskip("plotly")

SCENARIOS, STAGES = 50, 4


@pytest.fixture(scope="module")
def text(small_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    assert report(small_run, path) == path
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found(text):
    return figures(text)


def rows(run, table):
    return pq.read_table(run / "simulation" / table).to_pylist()


def series(run, table, column, reduce=sum, where=lambda row: True):
    """A column by scenario and stage, over entities and blocks, by plain loops over rows."""
    values = {}
    for row in rows(run, table):
        if where(row):
            values.setdefault((row["scenario_id"], row["stage_id"]), []).append(row[column])
    stages = sorted({stage for _, stage in values})
    return np.array([[reduce(values[scenario, stage]) for stage in stages] for scenario in range(SCENARIOS)])


def lines(traces):
    return {trace["name"]: trace["y"] for trace in traces}


def test_it_has_all_sections(text):
    titles = (
        "Verdict",
        "Convergence",
        "Cost and risk",
        "Deficit",
        "Reservoirs",
        "Generation",
        "Marginal cost",
    )
    for title in (*titles, "Water values", "Inflow", "Time by rank", "Work of the solver", "About this run"):
        assert f">{title}</h2>" in text
    assert len(text) < 3_000_000


def test_bounds_are_those_of_the_convergence(small_run, found):
    table = pq.read_table(small_run / "training" / "convergence.parquet")
    traces = lines(found["bounds"]["traces"])
    assert traces["lower bound"] == pytest.approx([value / 1e6 for value in table["lower_bound"].to_pylist()])
    dots = traces["sample cost of forward passes"]
    assert dots == pytest.approx([value / 1e6 for value in table["upper_bound"].to_pylist()])
    assert found["bounds"]["layout"]["yaxis"]["title"]["text"] == "cost, million $"


def test_only_30_passes_have_a_confidence_interval(small_run):
    run = RunData(small_run)
    table = run.table("training", "convergence")
    place = table.column_names.index("forward_passes")
    for passes, name in (
        (29, "sample cost of forward passes"),
        (30, "sample cost of forward passes, ± 95 %"),
    ):
        column = pa.array([29] * (len(table) - 1) + [passes], pa.int32())
        (trace,) = _sample_traces(table.set_column(place, "forward_passes", column), 1e6)
        assert trace["name"] == name
        assert ("error_y" in trace) == (passes == 30)
    assert trace["error_y"]["array"][:-1] == [0.0] * (len(table) - 1)
    last = table["upper_bound_std"][-1].as_py() * 1.96 / 30**0.5 / 1e6
    assert trace["error_y"]["array"][-1] == pytest.approx(last, rel=1e-3)


def test_storage_fan(small_run, found):
    names = {
        row["hydro_name"]
        for row in rows(small_run, "hydros")
        if row["storage_final_hm3"] != row["storage_initial_hm3"]
    }
    assert {choice["label"] for choice in found["storage-plant"]["choices"]} == names
    for name in names:
        storage = series(
            small_run,
            "hydros",
            "storage_final_hm3",
            lambda v: v[-1],
            lambda r, name=name: r["hydro_name"] == name,
        )
        traces = lines(shown(found["storage-plant"], name))
        assert traces["mean"][1:] == pytest.approx(storage.mean(axis=0).tolist(), rel=1e-4)
        for share, label in ((0.05, "5 %"), (0.25, "25 %"), (0.5, "median"), (0.75, "75 %"), (0.95, "95 %")):
            assert traces[label][1:] == pytest.approx(np.quantile(storage, share, axis=0).tolist(), rel=1e-4)
    x = found["storage-plant"]["traces"][0]["x"]
    assert len(x) == STAGES + 1
    assert x == sorted(x)


def test_generation_serves_the_load(small_run, found):
    mix = lines(found["generation-mix"]["traces"])
    served = np.sum([values for name, values in mix.items() if name != "load"], axis=0)
    assert served == pytest.approx(mix["load"], rel=1e-4)  # one bus, nothing else takes or brings energy
    thermal = series(small_run, "thermals", "generation_mwh").mean(axis=0)
    load = series(small_run, "buses", "load_mwh").mean(axis=0)
    assert np.divide(mix["thermal"], mix["load"]) == pytest.approx(thermal / load, rel=1e-4)


def test_costs_by_component(small_run, text, found):
    assert found["cost-by-stage"]["layout"]["yaxis"]["title"]["text"] == "cost, $ (discounted)"
    parts = {trace["name"]: np.sum(trace["y"]) for trace in found["cost-by-stage"]["traces"]}
    costs = rows(small_run, "costs")
    for name in ("thermal", "deficit"):
        expected = sum(row[f"{name}_cost"] * row["discount_factor"] for row in costs) / SCENARIOS
        assert parts[name] == pytest.approx(expected, rel=1e-6)
    metadata = json.loads((small_run / "simulation" / "metadata.json").read_text())
    assert sum(parts.values()) == pytest.approx(metadata["cost"]["mean_cost"], rel=1e-6)
    assert "deficit (violation)" in text
    patterns = {trace["name"]: trace["marker"].get("pattern") for trace in found["cost-by-stage"]["traces"]}
    assert patterns["thermal"] is None
    assert patterns["deficit"] is not None
    assert sum(found["cost-distribution"]["traces"][0]["y"]) == pytest.approx(100.0, rel=1e-4)


def test_violations_are_those_of_the_catalogue_of_costs():
    assert {part.name for part in COMPONENTS if is_violation(part.name)} == {
        part.name for part in COMPONENTS if part.violation
    }


def test_deficit_by_bus_and_stage(small_run, text, found):
    deficit = series(small_run, "buses", "deficit_mwh")
    chance = (deficit > 1e-6).mean(axis=0)
    assert found["deficit-chance"]["traces"][0]["z"][0] == pytest.approx((100.0 * chance).tolist(), rel=1e-3)
    risk = 100.0 * (deficit > 1e-6).any(axis=1).mean()
    assert f"Deficit in {risk:.3g} % of the scenarios" in text
    assert f">{deficit.mean(axis=0).sum():,.1f}</td>" in text
    for stage in np.flatnonzero(chance):
        assert f">{deficit[:, stage].mean():,.1f}</td>" in text


def test_marginal_costs(small_run, found):
    buses = rows(small_run, "buses")
    price = sorted((row["spot_price"] for row in buses), reverse=True)
    [curve] = [trace["y"] for trace in found["price-duration"]["traces"]]
    assert curve[0] == pytest.approx(price[0], rel=1e-4)
    assert curve[-1] == pytest.approx(price[-1], rel=1e-4)
    assert curve == sorted(curve, reverse=True)
    hours = [row["load_mwh"] / row["load_mw"] for row in buses]
    mean = series(small_run, "buses", "spot_price", lambda values: values[0])
    if len({row["block_id"] for row in buses}) == 1 and max(hours) > 0.0:
        assert lines(shown(found["price-fan"], buses[0]["bus_name"]))["mean"] == pytest.approx(
            mean.mean(axis=0).tolist(), rel=1e-4
        )


def test_duration_curve():
    price, hours = np.array([10.0, 30.0, 20.0]), np.array([50.0, 10.0, 40.0])
    grid = np.array([0.0, 10.0, 10.1, 50.0, 50.1, 100.0])
    assert duration_curve(price, hours, grid).tolist() == [30.0, 30.0, 20.0, 20.0, 10.0, 10.0]


def test_water_values_are_slopes_of_the_policy(small_run, found):
    policy = read_policy_directory(small_run / "policy")
    stages = found["water-value-curves"]
    state = np.array([50.0] * len(policy.components))
    step = 1e-3
    for component in range(2):
        up, down = state.copy(), state.copy()
        up[component] += step
        down[component] -= step
        slope = (policy.evaluate(0, down) - policy.evaluate(0, up)) / (2.0 * step)
        assert water_values(policy, 0, state, component, state[component, None]) == pytest.approx(
            slope, rel=1e-5
        )
    for choice in stages["choices"]:
        for trace in choice["traces"]:  # convex future costs: one more hm3 is worth less the more there is
            assert trace["y"] == sorted(trace["y"], reverse=True)


def test_solver_and_ranks(small_run, text, found):
    solver = pq.read_table(small_run / "simulation" / "solver" / "iterations.parquet")
    assert f">{sum(solver['lp_solves'].to_pylist()):,}</td>" in text
    timing = pq.read_table(small_run / "training" / "timing" / "iterations.parquet")
    forward = {trace["name"]: trace["x"] for trace in found["ranks"]["traces"]}["forward passes"]
    assert forward == pytest.approx([sum(timing["forward_time_ms"].to_pylist()) / 1e3], rel=1e-4)


def test_training_alone(small_run, tmp_path):
    for name in ("training", "policy"):
        shutil.copytree(small_run / name, tmp_path / name)
    text = report(tmp_path).read_text(encoding="utf-8")
    assert (tmp_path / "report.html").is_file()
    assert f"cobre simulate CASE --output {tmp_path}" in text
    assert {"bounds", "ranks", "simplex", "cost-by-stage"} <= {*figures(text)}
    assert "storage-plant" not in figures(text)


def test_a_simulation_alone(small_run, tmp_path):
    shutil.copytree(small_run / "simulation", tmp_path / "simulation")
    text = report(tmp_path).read_text(encoding="utf-8")
    assert "This directory holds no training" in text
    assert (
        figures(text)["storage-plant"]
        == figures(report(small_run, tmp_path / "all.html").read_text())["storage-plant"]
    )
    assert "water-value-curves" not in figures(text)


def test_a_simulation_that_is_not_complete(small_run, tmp_path):
    shutil.copytree(small_run, tmp_path / "run")
    (tmp_path / "run" / "simulation" / "_SUCCESS").unlink()
    assert "The simulation is not complete" in report(tmp_path / "run").read_text(encoding="utf-8")


def test_what_cobre_stochastic_wrote(tmp_path):
    write_stochastic(tmp_path, cobre.load_case(EXAMPLES / "random-inflow").stochastic())
    text = report(tmp_path).read_text(encoding="utf-8")
    table = pq.read_table(tmp_path / "stochastic" / "inflow_seasonal_stats.parquet")
    of_plant = [row["mean_m3s"] for row in table.sort_by("stage_id").to_pylist() if row["hydro_id"] == 0]
    assert shown(figures(text)["stated-inflow"], "plant 0")[0]["y"] == pytest.approx(of_plant, rel=1e-4)
    assert set(figures(report(tmp_path, case=EXAMPLES / "random-inflow").read_text())) >= {
        "moments",
        "all-plants",
    }


def test_a_case_that_is_another_study(small_run, tmp_path):
    with pytest.raises(ValidationError, match="is not the study of"):
        report(small_run, tmp_path / "page.html", case=EXAMPLES / "two-plant-cascade")
    assert list(tmp_path.iterdir()) == []


def test_no_results(tmp_path):
    with pytest.raises(OutputError, match="there are no results"):
        report(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OutputError, match="there is no directory"):
        report(tmp_path / "nowhere")
    (tmp_path / ".simulation.partial").mkdir()
    with pytest.raises(OutputError, match="is not complete: it was interrupted"):
        report(tmp_path)


def test_damaged_results(small_run, tmp_path):
    shutil.copytree(small_run, tmp_path / "run")
    path = next((tmp_path / "run" / "simulation" / "buses").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(OutputError) as caught:
        report(tmp_path / "run")
    assert "buses" in str(caught.value)
    assert not (tmp_path / "run" / "report.html").exists()


VERDICT = {
    "conclusion": "near_optimal", "cost_kind": "expected", "lower_bound": 98e6, "lower_bound_kind": "bound",
    "upper_bound": 98.5e6, "upper_bound_note": None, "upper_bound_assumes": [], "gap_percent": 0.51,
    "sample": {"mean": 98.2e6, "std": 1e6, "passes": 100, "first_iteration": 2, "ci_95": 2e5},
    "policy_gap_percent": None, "bound_position": "within", "likely_gap_percent": 0.4,
    "bound_move_percent": 0.01, "bound_move_iterations": 10,
    "violation_share": 0.3, "next_step": "check_case", "next_iterations": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "head", "line"),
    [
        (
            {"next_step": "simulate", "violation_share": 0.0},
            "<div class='banner good'><p class='head'>The policy is nearly optimal</p>", "the optimum lies"
        ),
        (
            {}, "<div class='banner warn'><p class='head'>The policy is nearly optimal, but violations and",
            "cobre validate CASE",
        ),
        ({}, "The policy is nearly optimal", "The optimum is known to within 0.51 %"),
        ({"conclusion": "optimal", "gap_percent": 0.0}, "The policy is optimal", "is known to within 0 %"),
        ({"conclusion": "settled", "gap_percent": 3.0}, "the optimum is known to within 3", "violations"),
        ({"conclusion": "settled", "gap_percent": -1.0}, "has settled", "what it assumes does not hold"),
        (
            {"conclusion": "unsettled", "gap_percent": None, "upper_bound": None, "next_step": "train_on",
             "next_iterations": 80, "upper_bound_note": "lags"},
            "Training has not converged", "--resume --iterations 80</code>",
        ),
    ],
)  # fmt: skip
def test_the_verdict(small_run, changes, head, line):
    run = RunData(small_run)
    run.training["verdict"] = VERDICT | changes
    page = report_page(run)
    assert head in page.top
    assert line in page.top


def test_a_simulation_states_how_far_its_policy_is_from_the_optimum(small_run):
    run = RunData(small_run)
    cost = run.simulation["cost"]
    lower = 0.99 * cost["mean_cost"]
    run.training["verdict"] = VERDICT | {"lower_bound": lower}
    limit = 100.0 * ((cost["mean_cost"] + cost["ci_95"]) / lower - 1.0)
    assert (
        f"costs at most {percent(limit)} more than the optimum, with 95 % confidence" in report_page(run).top
    )
    for part, change in (
        (run.training["verdict"], {"cost_kind": "risk-adjusted"}),
        (run.training["verdict"], {"lower_bound_kind": "estimate"}),
        (run.simulation["study"]["source"], {"inflow": "out_of_sample"}),
        (cost, {"terminal_value": 1.0}),
    ):
        saved = dict(part)
        part.update(change)
        assert "simulated policy costs" not in report_page(run).top
        part.update(saved)
    cost["kind"] = "exact"
    assert "more than the optimum: all scenarios were simulated" in report_page(run).top


def test_a_simulation_of_an_earlier_policy_is_named(small_run, tmp_path):
    output = shutil.copytree(small_run, tmp_path / "run")
    assert "not of this policy" not in report_page(RunData(output)).top
    path = output / "training" / "metadata.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "policy_sha256": "0" * 64}))
    page = report_page(RunData(output))
    assert "The simulation is not of this policy" in page.top
    assert "simulated policy costs" not in page.top
    assert not cobre.results.load(output).simulates_policy
    notes = cobre.results.compare(small_run, output).notes
    assert notes[0] == "the simulation of B is not of the policy that its training left"


def test_a_statistical_gap_is_never_shown(small_run):
    run = RunData(small_run)
    run.training["verdict"] = None
    run.training["convergence"]["final_gap_percent"] = -12.34
    assert "12.3" not in visible(report_page(run).top)


def test_the_same_page_again(small_run, text, tmp_path):
    assert report(small_run, tmp_path / "again.html").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("example", ["random-inflow", "ordered-ahead", "battery"])
def test_states_of_water_values_are_those_of_the_simulation(example, tmp_path):
    """With one scenario the mean state is its state, so the policy gives the future cost of the table."""
    cobre.Study(EXAMPLES / example).run(iterations=4, scenarios=1, output=tmp_path)
    run = RunData(tmp_path)
    states = mean_states(run.policy, run.simulated)
    costs = pq.read_table(tmp_path / "simulation" / "costs").sort_by("stage_id")
    discount = costs["discount_factor"].to_pylist()
    assert why_no_curves(run.policy, run.simulated) is None
    for stage, future in enumerate(costs["future_cost"].to_pylist()[:-1]):
        expected = future * discount[stage] / discount[stage + 1]
        assert run.policy.evaluate(stage, states[stage]) == pytest.approx(expected, rel=1e-6)


def test_scenarios_that_are_all_alike(tmp_path):
    cobre.Study(EXAMPLES / "head-effect").run(iterations=4, scenarios=12, output=tmp_path)
    found = figures(report(tmp_path).read_text(encoding="utf-8"))
    assert found["cost-distribution"]["traces"][0]["y"] == [100]
