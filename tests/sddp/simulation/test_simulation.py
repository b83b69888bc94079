"""Simulating a policy: what scenarios cost, by hand, by the extensive form, and by the draws of the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.boundary_policy import write_boundary
from builders.paths import EXAMPLES
from builders.realisations import drawn_openings
from builders.scenario_studies import MONTHS, month_stages, month_start, windows
from builders.shared_cases import shared_cases
from builders.studies import cascade_study, with_training
from oracle.tree import optimum
from simulation_jobs import file_digests, identity, with_simulation

import cobre
import cobre.durable
from cobre.case.model import ScenarioSource
from cobre.distribution import distribution_of
from cobre.errors import OutputError, SolverError, ValidationError
from cobre.lp import StateLayout
from cobre.sddp import Study, simulate, train
from cobre.stochastic import build_opening_tree, make_sampler, sample_opening

EXAMPLE = EXAMPLES / "random-inflow"
CONVERGED = 60
SCENARIOS = 150  # more than a block


def drained_later():
    """A study whose second stage cannot be solved where its driest opening is drawn, and a policy for it.

    The policy is that of the same study with mean inflows, which has all of its solutions.
    """
    case = cascade_study(
        hydros=1, thermals=1, buses=1, stages=2, blocks=1, openings=20, passes=1, noise=0.0, seed=2
    )
    case = with_training(case, inflow_method="none")
    std = np.zeros_like(case.scenarios.inflow_std_m3s)
    std[1, 0] = 400.0
    return replace(case, scenarios=replace(case.scenarios, inflow_std_m3s=std)), train(case).policy


@pytest.fixture(scope="module")
def example():
    """An example and its policy after a few iterations."""
    case = cobre.load_case(EXAMPLE)
    return case, train(case, iterations=5)


def table(output, name):
    """All parts of a table of a simulation."""
    return pa.concat_tables(
        pq.read_table(part) for part in sorted((output / "simulation" / name).glob("*.parquet"))
    )


def test_enumerated_scenarios_cost_the_optimum_of_the_extensive_form():
    case = cobre.load_case(EXAMPLE)
    result = simulate(
        with_simulation(case, num_scenarios=0, enumerated=True), train(case, iterations=CONVERGED)
    )
    assert (result.scenarios, result.kind, result.cost.ci_95) == (256, "exact", 0.0)
    assert result.mean_cost == pytest.approx(optimum(EXAMPLE, drawn_openings(case)), rel=1e-6)
    assert result.probability.sum() == pytest.approx(1.0)
    assert sum(result.costs.components.values()) == pytest.approx(result.mean_cost, rel=1e-12)


def test_scenarios_draw_the_openings_of_the_tree(example, tmp_path):
    """Scenario s draws as pass s of an iteration 0 would."""
    case, policy = example
    simulate(case, policy, scenarios=SCENARIOS, output=tmp_path)
    tree = build_opening_tree(case, model=StateLayout(case).inflow)
    rows = table(tmp_path, "hydros").select(["scenario_id", "stage_id", "hydro_id", "incremental_inflow_m3s"])
    stages = {stage.id: place for place, stage in enumerate(case.stages)}
    hydros = {hydro.id: place for place, hydro in enumerate(case.hydros)}
    scenarios = set()
    for scenario, stage, hydro, inflow in zip(*rows.to_pydict().values(), strict=True):
        place = stages[stage]
        opening = sample_opening(np.uint64(tree.seed), 0, scenario, place, int(tree.num_openings[place]))
        assert inflow == tree.inflow_m3s[tree.offset[place] + opening, hydros[hydro]]
        scenarios.add(scenario)
    assert scenarios == set(range(SCENARIOS))


def test_the_result_is_what_the_tables_hold(example, tmp_path):
    case, policy = example
    result = simulate(case, policy, scenarios=SCENARIOS, output=tmp_path)
    place = tmp_path / "simulation"
    summary = pq.read_table(place / "scenario_summary.parquet")
    np.testing.assert_allclose(summary["discounted_immediate_cost"], result.scenario_cost, rtol=1e-12)
    costs = table(tmp_path, "costs")
    discounted = np.array(costs["discount_factor"]) * np.array(costs["immediate_cost"])
    assert discounted.sum() / SCENARIOS == pytest.approx(result.mean_cost, rel=1e-12)
    deficit = np.bincount(table(tmp_path, "buses")["scenario_id"], table(tmp_path, "buses")["deficit_mwh"])
    np.testing.assert_allclose(deficit, result.scenario_deficit_mwh, atol=1e-6)
    metadata = json.loads((place / "metadata.json").read_text())
    assert metadata["cost"]["mean_cost"] == result.mean_cost
    assert metadata["scenarios"] == {"total": SCENARIOS, "completed": SCENARIOS, "failed": 0}
    assert (place / "_SUCCESS").exists()
    solver = pq.read_table(place / "solver" / "iterations.parquet")
    assert sum(solver["lp_solves"].to_pylist()) == SCENARIOS * len(case.stages) == result.lp_solves
    assert [entry.name for entry in tmp_path.iterdir()] == ["simulation"]


def test_both_engines_find_the_same(example, tmp_path):
    case, policy = example
    engines = {}
    for name in ("own", "highs"):
        found = simulate(case, policy, scenarios=40, output=tmp_path / name, lp_engine=name)
        assert found.lp_engine.used == name
        engines[name] = found, table(tmp_path / name, "hydros"), table(tmp_path / name, "buses")
    (own, hydros, buses), (highs, other_hydros, other_buses) = engines.values()
    np.testing.assert_allclose(own.scenario_cost, highs.scenario_cost, rtol=1e-9)
    values = np.array(hydros["water_value_per_hm3"])
    assert (values < 0.0).mean() > 0.5
    same = np.isclose(values, other_hydros["water_value_per_hm3"], rtol=1e-6)
    assert same.mean() > 0.9  # at a kink of the future cost there are several
    prices = np.array(buses["spot_price"])
    assert np.isclose(prices, other_buses["spot_price"], rtol=1e-6).mean() > 0.9


PEER_MEANS = {
    "1dtoy": 1813620.9845368252,
    "d08-evaporation": 2628380.531119,
    "d20-operational-violations": 195744444.444444,
    "d25-discount-rate": 2611454.584787,
}
"""Recorded from simulations of cobre-rs 0.18.0, trained and simulated as the cases say."""


@pytest.mark.parametrize("name", PEER_MEANS)
def test_costs_are_those_of_the_peer(name):
    scenarios = 100 if name == "1dtoy" else 1
    case = cobre.load_case(shared_cases() / name)
    result = simulate(case, train(case), scenarios=scenarios)
    assert result.mean_cost == pytest.approx(PEER_MEANS[name], rel=1e-9)


SURE = (
    *("d01-thermal-dispatch", "d02-single-hydro", "d03-two-hydro-cascade", "d04-transmission"),
    *("d06-fpha-variable-head", "d08-evaporation", "d09-multi-deficit", "d11-water-withdrawal"),
    *("d13-generic-constraint", "d15-non-controllable-source", "d16-par1-lag-shift"),
    *("d20-operational-violations", "d24-productivity-override", "d25-discount-rate"),
)
"""Shared cases without uncertainty."""


@pytest.mark.parametrize("name", SURE)
def test_what_is_certain_costs_the_optimum(name):
    """Also where LPs have several solutions, not all of which the cuts describe (d03)."""
    case = cobre.load_case(shared_cases() / name)
    result = simulate(case, train(case), scenarios=1)
    expected = json.loads((shared_cases() / "reference.json").read_text())[name]["0.18.0"]["lower_bound"]
    assert result.mean_cost == pytest.approx(expected, rel=1e-6)


def test_a_policy_on_disk_and_one_in_memory_give_the_same(example, tmp_path):
    case, trained = example
    Study(case).train(iterations=5, output=tmp_path)
    stored = simulate(case, tmp_path / "policy", scenarios=20)
    assert stored.cost == simulate(case, trained, scenarios=20).cost


def test_bases_of_another_lp_are_passed_over(example):
    """They are a matter of speed and of choice among solutions: costs are those of the policy's cuts."""
    case, trained = example
    bases = trained.policy.first_bases
    strange = replace(bases, code=np.full_like(bases.code, 2**20))
    result = simulate(case, replace(trained.policy, first_bases=strange), scenarios=20)
    without = simulate(case, replace(trained.policy, first_bases=None), scenarios=20)
    assert result.cost == without.cost


def test_statistics_by_hand():
    cost = np.arange(1.0, 41.0)
    found = distribution_of(cost)
    assert (found.mean, found.least, found.most) == (20.5, 1.0, 40.0)
    assert found.std == pytest.approx(np.std(cost, ddof=1))
    assert found.cvar_95 == 39.5  # the dearest 2 of 40
    assert found.ci_95 == pytest.approx(1.96 * found.std / np.sqrt(40))
    weighted = distribution_of(np.array([10.0, 30.0, 20.0]), np.array([0.9, 0.04, 0.06]))
    assert weighted.mean == pytest.approx(9.0 + 1.2 + 1.2)
    assert weighted.cvar_95 == pytest.approx((0.04 * 30.0 + 0.01 * 20.0) / 0.05)
    assert weighted.ci_95 == 0.0


def test_seed_and_scenarios_replace_those_of_the_case(example):
    case, policy = example
    first, again = (simulate(case, policy, scenarios=20) for _ in range(2))
    other = simulate(case, policy, scenarios=20, seed=7)
    assert identity(first) == identity(again)
    assert (other.seed, first.seed) == (7, case.training.tree_seed)
    assert other.scenario_cost.tolist() != first.scenario_cost.tolist()


@pytest.mark.parametrize("method", ["saa", "lhs", "qmc_sobol"])
def test_fresh_noise_does_not_depend_on_blocks(method, tmp_path):
    """Scenarios of the second block have the noise that a sampler for all of them draws."""
    case = cascade_study(hydros=2, stages=2, iterations=2, passes=2)
    stages = tuple(replace(stage, sampling_method=method) for stage in case.stages)
    source = ScenarioSource(inflow="out_of_sample", seed=5)
    case = with_simulation(replace(case, stages=stages), num_scenarios=SCENARIOS, source=source)
    simulate(case, train(case), output=tmp_path)
    rows = table(tmp_path, "hydros")
    found = np.array(rows["incremental_inflow_m3s"]).reshape(SCENARIOS, len(stages), 2, -1)[..., 0]
    expected = fresh_inflows(case, SCENARIOS)
    np.testing.assert_allclose(found, np.maximum(expected, 0.0), rtol=1e-12, atol=1e-12)
    assert len(np.unique(found[:, 0, 0])) > SCENARIOS // 2


def fresh_inflows(case, scenarios):
    """Inflow by (scenario, stage, hydro), drawn without blocks."""
    from numba import njit

    from cobre.stochastic import SamplerStruct, forward_noise, prepare_forward, realise
    from cobre.stochastic.sampler import noise_length

    layout = StateLayout(case)
    tree = build_opening_tree(case, model=layout.inflow)
    sampler = make_sampler(case, layout.inflow, tree, source=case.simulation.source, passes=scenarios)

    @njit
    def draw(arrays, buffer, out):
        struct = SamplerStruct(arrays)
        prepare_forward(struct, 0)
        for scenario in range(out.shape[0]):
            for stage in range(out.shape[1]):
                forward_noise(struct, 0, scenario, stage, 0, buffer)
                realise(struct, stage, buffer, out[scenario, stage])

    entities = len(case.hydros) + len(case.buses) + len(case.non_controllables)
    out = np.zeros((scenarios, len(case.stages), entities))
    draw(sampler, np.zeros(noise_length(sampler)), out)
    return out[:, :, : len(case.hydros)]


def test_external_scenarios_and_history_are_replayed(tmp_path):
    """All stages of a scenario are of one external scenario, or of one year that was observed."""
    case = cascade_study(hydros=2, stages=3, iterations=2, passes=2)
    months = [
        replace(old, start_date=new.start_date, end_date=new.end_date, season_id=new.season_id)
        for old, new in zip(case.stages, month_stages(3), strict=True)
    ]
    library = tuple(np.arange(8.0).reshape(4, 2) + 10.0 * stage + 20.0 for stage in range(3))
    observed = [
        (
            hydro,
            str(month_start(year, month)),
            str(month_start(year, month + 1)),
            year - 1970.0 + 20.0 * hydro,
        )
        for hydro in range(2)
        for year in range(2001, 2007)
        for month in range(1, 13)
    ]
    scenarios = replace(case.scenarios, external_inflow_m3s=library, inflow_history=windows(observed))
    case = replace(case, stages=tuple(months), seasons=MONTHS, scenarios=scenarios)
    policy = train(case)
    found = {}
    for scheme in ("external", "historical"):
        source = ScenarioSource(inflow=scheme, seed=1)
        simulate(with_simulation(case, source=source), policy, output=tmp_path / scheme)
        rows = table(tmp_path / scheme, "hydros")
        found[scheme] = np.array(rows["inflow_m3s"]).reshape(40, 3, 2, -1)[..., 0]
    drawn = (found["external"][:, :, 0] - 20.0 - 10.0 * np.arange(3)) / 2.0
    assert {tuple(np.round(row, 9)) for row in drawn} == {(s, s, s) for s in range(4)}
    replayed = found["historical"] + 1970.0 - [0.0, 20.0]
    years = {tuple(np.round(row.ravel(), 9)) for row in replayed}
    assert years == {(year,) * 6 for year in range(2002, 2007)}  # 2001 has no month before it


def test_the_end_is_worth_what_the_boundary_policy_says(tmp_path):
    """With the value of the final state the expected cost is the optimum, as training has it."""
    directory = Path(shutil.copytree(EXAMPLE, tmp_path / "case", ignore=shutil.ignore_patterns("output")))
    case = cobre.load_case(directory)
    write_boundary(tmp_path / "later", case.hydros[0].id, case.stages[-1].end_date)
    editor = case.edit()
    editor["config.json"]["policy"] = {"boundary": {"path": str(tmp_path / "later")}}
    case = editor.build()
    trained = train(case, iterations=CONVERGED)
    result = simulate(with_simulation(case, num_scenarios=0, enumerated=True), trained)
    assert 0.0 < result.terminal_value <= 1.0e4  # one cut: 10000 $ less 1.5 $ for every hm3
    assert result.mean_cost + result.terminal_value == pytest.approx(trained.lower_bound, rel=1e-6)
    assert result.costs.components["future"] == pytest.approx(result.terminal_value)


def test_an_interrupted_simulation_goes_on(example, tmp_path):
    case, policy = example
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    complete = simulate(case, policy, scenarios=300, output=whole)
    stopped = simulate(
        case, policy, scenarios=300, output=parts, on_progress=lambda progress: progress.scenarios_done > 0
    )
    assert (stopped.status, stopped.scenarios, stopped.scenarios_planned) == ("partial", 128, 300)
    assert not (parts / "simulation").exists()
    with pytest.raises(ValidationError, match="another seed"):
        simulate(case, policy, scenarios=300, output=parts, resume=True, seed=3)
    with pytest.raises(ValidationError, match="another number of scenarios"):
        simulate(case, policy, scenarios=301, output=parts, resume=True)
    with pytest.raises(ValidationError, match="another policy"):
        simulate(case, train(case, iterations=2), scenarios=300, output=parts, resume=True)
    resumed = simulate(case, policy, scenarios=300, output=parts, resume=True, ranks=2)
    assert (resumed.scenarios, resumed.scenarios_resumed) == (300, 128)
    assert identity(resumed) == identity(complete)
    assert [entry.name for entry in parts.iterdir()] == ["simulation"]
    with pytest.raises(OutputError, match="nothing to resume"):
        simulate(case, policy, scenarios=300, output=parts, resume=True)


def test_a_run_that_is_resumed_goes_on_with_its_simulation(example, tmp_path):
    case, _ = example
    study = Study(case)
    whole = study.run(iterations=5, scenarios=300, output=tmp_path / "whole")
    parts = tmp_path / "parts"
    trained = study.train(iterations=5, output=parts)
    study.simulate(trained, scenarios=300, output=parts, on_progress=lambda progress: True)
    assert not (parts / "simulation").exists()
    resumed = study.run(iterations=5, scenarios=300, output=parts, resume=True)
    assert (resumed.simulation.scenarios_resumed, resumed.simulation.scenarios) == (128, 300)
    assert identity(resumed.simulation) == identity(whole.simulation)
    assert file_digests(parts) == file_digests(tmp_path / "whole")
    # Of another policy nothing is left to go on with.
    study.simulate(trained, scenarios=400, output=parts, on_progress=lambda progress: True)
    further = study.run(iterations=6, scenarios=400, output=parts, resume=True)
    assert (further.simulation.scenarios_resumed, further.simulation.scenarios) == (0, 400)
    assert [problem.kind for problem in further.simulation.warnings] == ["InterruptedSimulationReplaced"]
    with pytest.raises(ValidationError, match="resume must be True, False or 'auto', not 'yes'"):
        study.simulate(trained, resume="yes")


def test_a_killed_simulation_goes_on(example, tmp_path):
    case, policy = example
    simulate(case, policy, scenarios=300, output=tmp_path / "whole")
    program = (
        "import os, sys, cobre\n"
        "die = lambda progress: progress.scenarios_done > 200 and os.kill(os.getpid(), 9)\n"
        "case = cobre.load_case(sys.argv[1])\n"
        "policy = cobre.train(case, iterations=5)\n"
        "cobre.simulate(case, policy, scenarios=300, output=sys.argv[2], on_progress=die)\n"
    )
    output = tmp_path / "killed"
    done = subprocess.run([sys.executable, "-c", program, str(EXAMPLE), str(output)], capture_output=True)
    assert done.returncode == -9, done.stderr
    assert not (output / "simulation").exists()
    result = simulate(case, policy, scenarios=300, output=output, resume=True)
    assert result.scenarios_resumed == 256
    assert file_digests(output) == file_digests(tmp_path / "whole")


def test_what_another_study_has_simulated_is_not_replaced(example, tmp_path):
    case, policy = example
    simulate(case, policy, scenarios=40, output=tmp_path)
    before = file_digests(tmp_path)
    other = cascade_study(iterations=2)
    with pytest.raises(OutputError, match="of another study") as caught:
        simulate(other, train(other), scenarios=20, output=tmp_path)
    assert caught.value.kind == "OutputProtected"
    with pytest.raises(OutputError, match="40 scenarios of this policy"):
        simulate(case, policy, scenarios=20, output=tmp_path)
    assert file_digests(tmp_path) == before
    simulate(case, policy, scenarios=20, output=tmp_path, force=True)
    assert file_digests(tmp_path) != before
    (tmp_path / "simulation" / "metadata.json").write_text("{}")
    for force in (False, True):
        with pytest.raises(OutputError, match="no simulation of cobre has written"):
            simulate(case, policy, scenarios=20, output=tmp_path, force=force)


def test_a_full_disk_leaves_the_simulation_before_as_it_was(example, tmp_path, monkeypatch):
    case, policy = example
    simulate(case, policy, scenarios=20, output=tmp_path)
    before = file_digests(tmp_path)
    synced = os.fsync

    def full(descriptor):
        name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if "part-00001" in name:
            raise OSError(28, "No space left on device")
        synced(descriptor)

    monkeypatch.setattr(cobre.durable.os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        simulate(case, policy, scenarios=300, output=tmp_path)
    monkeypatch.undo()
    assert file_digests(tmp_path) == before
    resumed = simulate(case, policy, scenarios=300, output=tmp_path, resume=True)
    assert resumed.scenarios_resumed == 128
    assert not list(tmp_path.rglob("*.tmp"))


def test_an_output_that_cannot_be_written(example, tmp_path):
    case, policy = example
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError) as caught:
        simulate(case, policy, scenarios=20, output=tmp_path / "file")
    assert caught.value.kind == "OutputNotWritable"


def test_an_lp_without_solution_is_explained(tmp_path):
    case, policy = drained_later()
    with pytest.raises(SolverError) as caught:
        simulate(case, policy, scenarios=200, output=tmp_path)
    error = caught.value
    assert error.stage == 1
    assert f"scenario {error.scenario}, opening {error.opening} (simulation)" in error.message
    assert error.context["violated_rows"][0].startswith("hydro_balance[plant 0]")
    name = f"failed_stage1_scenario{error.scenario}_opening{error.opening}.mps"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_policy_of_another_study_is_refused_or_named():
    case = cascade_study(hydros=3, iterations=2)
    policy = train(case).policy
    with pytest.raises(ValidationError) as caught:
        simulate(cascade_study(hydros=4, iterations=2), policy, scenarios=2)
    assert "storage of entity 3" in caught.value.message
    with pytest.raises(ValidationError, match="ends on"):
        simulate(cascade_study(hydros=3, stages=3, iterations=2), policy, scenarios=2)


def test_changed_costs_are_a_warning(example, tmp_path):
    case, _ = example
    stored = Study(case).train(iterations=5, output=tmp_path / "results")
    editor = case.edit()
    editor["system/thermals.json"]["thermals"][0]["cost_per_mwh"] *= 1.5
    changed = editor.build()
    result = simulate(changed, stored.output / "policy", scenarios=20)
    assert any("thermal" in problem.message for problem in result.warnings)
    assert result.mean_cost > simulate(case, stored, scenarios=20).mean_cost


def test_a_run_trains_and_simulates_as_the_case_says(example, tmp_path):
    case, _ = example
    editor = case.edit()
    config = editor["config.json"]
    config["simulation"] = {"enabled": True, "selection": {"method": "sampled", "num_scenarios": 20}}
    asked = editor.build()
    run = Study(asked).run(iterations=3, output=tmp_path / "out")
    assert (run.training.iterations, run.simulation.scenarios) == (3, 20)
    config["training"]["enabled"] = False
    stored = editor.build()
    with pytest.raises(ValidationError, match=r"training\.enabled is false"):
        train(stored)
    again = Study(stored).run(output=tmp_path / "out")
    assert again.training is None
    assert again.simulation.policy_sha256 == run.training.policy_sha256
    assert identity(again.simulation) == identity(run.simulation)


def test_scenarios_that_cannot_be(example):
    case, policy = example
    fresh = ScenarioSource(inflow="out_of_sample", seed=1)
    with pytest.raises(ValidationError, match="cannot be enumerated"):
        simulate(with_simulation(case, num_scenarios=0, enumerated=True, source=fresh), policy)
    with pytest.raises(ValidationError, match="nothing to simulate"):
        simulate(with_simulation(case, num_scenarios=0), policy)
    with pytest.raises(ValidationError, match="scenarios must be a whole number"):
        simulate(case, policy, scenarios=0)
    with pytest.raises(ValidationError, match="no policy to simulate"):
        simulate(case, output="nowhere", scenarios=5)
