"""A policy asked by names of plants: future cost, water values, plots, and the way to disk and back."""

import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from builders.paths import EXAMPLES
from stored import node, storage

import cobre
from cobre.errors import CobreError, OutputError, ValidationError
from cobre.policy import NodeCuts, Policy, StateEntry, TransitionEntry, read_policy_directory

CASE = EXAMPLES / "random-inflow"


def cuts(intercepts: list[float], slopes: list[list[float]]) -> NodeCuts:
    count = len(intercepts)
    return NodeCuts(
        slot=np.arange(count),
        iteration=np.ones(count, np.int64),
        forward_pass=np.arange(count),
        intercept=np.array(intercepts),
        slopes=np.array(slopes).reshape(count, 3),
        active=np.ones(count, np.bool_),
    )


@pytest.fixture
def policy() -> Policy:
    """Two reservoirs and a past inflow: 900 - 3 a - b - c, 500 - a, at least 50."""
    return Policy(
        components=(
            StateEntry("storage", 0, 0, "hydro_storage[Serra]"),
            StateEntry("storage", 7, 0, "hydro_storage[Vale #7]"),
            StateEntry("inflow_lag", 0, 1, "hydro_inflow_memory[Serra, 1]"),
        ),
        nodes=(node(0, future_cost_floor=50.0), node(1, future_cost_floor=0.0)),
        transitions=(TransitionEntry(0, 1, 1.0),),
        cuts=(cuts([900.0, 500.0], [[-3.0, -1.0, -1.0], [-1.0, 0.0, 0.0]]), cuts([], [])),
        is_chain=True,
        forward_passes=2,
        seed=0,
        completed_iterations=1,
        lower_bounds=np.zeros(1),
        upper_bounds=np.zeros(1),
    )


WHOLE = {"Serra": 100.0, 7: 10.0, "hydro_inflow_memory[Serra, 1]": 5.0}


def test_names_and_ids_and_arrays_are_the_same_state(policy: Policy) -> None:
    assert policy.evaluate(0, WHOLE) == policy.evaluate(0, [100.0, 10.0, 5.0]) == 900.0 - 300.0 - 15.0
    assert policy.evaluate(0, {**WHOLE, "Serra": 300.0}) == 200.0
    assert (
        policy.evaluate(0, {"hydro_storage[Serra]": 100.0, "Vale #7": 10.0, **dict([*WHOLE.items()][2:])})
        == 585.0
    )


def test_water_values_are_positive_where_water_saves_money(policy: Policy) -> None:
    assert policy.water_value(0, WHOLE) == {"Serra": 3.0, "Vale #7": 1.0}
    assert policy.water_value(0, {**WHOLE, "Serra": 300.0}) == {"Serra": 1.0, "Vale #7": 0.0}
    floor = policy.water_value(0, {**WHOLE, "Serra": 1000.0})
    assert floor == policy.water_value(1, WHOLE) == {"Serra": 0.0, "Vale #7": 0.0}
    assert not np.signbit([*floor.values()]).any()
    point, more = policy.evaluate(0, WHOLE), policy.evaluate(0, {**WHOLE, "Serra": 100.5})
    assert (point - more) / 0.5 == policy.water_value(0, WHOLE)["Serra"]


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"Serra": 1.0}, r"leaves out 2 of 3 components \(hydro_storage\[Vale #7\], hydro_inflow_memory"),
        ({"Sera": 1.0}, r"no reservoir 'Sera'; it has Serra \(0\), Vale #7 \(7\).*did you mean 'Serra'"),
        ({3: 1.0}, "no reservoir 3"),
        ({"Serra": np.nan}, "finite number of hm3 for 'Serra'"),
        ({"Serra": "much"}, "finite number of hm3 for 'Serra'"),
        ({"Serra": True}, "finite number of hm3 for 'Serra'"),
        ([1.0], r"its shape is \(1,\)"),
    ],
)
def test_states_that_are_none(policy: Policy, state: object, text: str) -> None:
    for ask in (policy.evaluate, policy.water_value):
        with pytest.raises(ValidationError, match=f"(?s){text}"):
            ask(0, state)  # type: ignore[arg-type]


def test_a_policy_in_the_output_of_its_case_knows_its_study(tmp_path) -> None:
    place = shutil.copytree(CASE, tmp_path / "case", ignore=shutil.ignore_patterns("output"))
    result = cobre.train(place, iterations=3, output=True)
    wanted = result.policy.evaluate(0, {"Serra": 12.0})
    for directory in ("output", "output/policy", "output/checkpoints/latest"):
        loaded = cobre.load_policy(place / directory)
        assert loaded.study is None  # the case is read only when something of it is needed
        assert loaded.evaluate(0, {"Serra": 12.0}) == wanted
    # Another study has another start.
    path = place / "initial_conditions.json"
    document = json.loads(path.read_text())
    document["storage"][0]["value_hm3"] += 1.0
    path.write_text(json.dumps(document))
    with pytest.raises(ValidationError, match="leaves out 1 of 2"):
        cobre.load_policy(place / "output").evaluate(0, {"Serra": 12.0})


def test_what_is_left_out_is_as_at_the_start_of_the_study(tmp_path) -> None:
    result = cobre.train(CASE, iterations=3)
    trained, case = result.policy, cobre.load_case(CASE)
    start = [hydro.initial_storage_hm3 for hydro in case.hydros]
    assert trained.evaluate(0) == trained.evaluate(0, start)
    assert trained.evaluate(0, {"Serra": 12.0}) == trained.evaluate(0, [12.0, start[1]])
    assert all(value >= 0.0 for value in trained.water_value(0).values())
    assert trained.save(tmp_path / "kept") == tmp_path / "kept"
    # With the fingerprint of its study, as training writes it.
    assert read_policy_directory(tmp_path / "kept").fingerprint.topics
    for place in (tmp_path, tmp_path / "kept"):
        if place == tmp_path:
            (tmp_path / "kept").rename(tmp_path / "policy")
            (tmp_path / "training").mkdir()
        loaded = cobre.load_policy(tmp_path / "policy" if place != tmp_path else place, case=CASE)
        assert loaded.sha256() == result.policy_sha256
        assert loaded.evaluate(1, {"Serra": 12.0}) == trained.evaluate(1, {"Serra": 12.0})
    with pytest.raises(ValidationError, match="leaves out 1 of 2"):
        cobre.load_policy(tmp_path).evaluate(0, {"Serra": 12.0})
    warm = cobre.train(CASE, iterations=1, warm_start=tmp_path / "policy")
    assert warm.lower_bound_kind == "bound"
    assert warm.lower_bound >= result.lower_bound - 1e-6 * abs(result.lower_bound)
    # Without its study, nothing shows what the cuts bound.
    replace(read_policy_directory(tmp_path / "policy"), fingerprint=type(trained.fingerprint)({})).save(
        tmp_path / "unknown"
    )
    warm = cobre.train(CASE, iterations=1, warm_start=tmp_path / "unknown")
    assert warm.lower_bound_kind == "estimate"
    assert any("does not hold the study" in problem.message for problem in warm.warnings)


def test_other_files_are_not_replaced(policy: Policy, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        policy.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_plot_shows_what_evaluate_returns(policy: Policy) -> None:
    figure = policy.plot("Serra", 0, WHOLE, storage=(0.0, 400.0), points=5)
    cost, worth = figure.data
    assert list(cost.x) == [0.0, 100.0, 200.0, 300.0, 400.0]
    assert list(cost.y) == [policy.evaluate(0, {**WHOLE, "Serra": volume}) for volume in cost.x]
    assert list(worth.y) == [3.0, 3.0, 1.0, 1.0, 1.0]
    assert "Serra" in figure.layout.xaxis2.title.text
    with pytest.raises(ValidationError, match="the smaller one first"):
        policy.plot("Serra", 0, WHOLE, storage=(5.0, 1.0))


def test_plotting_without_plotly_names_the_extra(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(CobreError, match=r"cobre-sddp\[report\]"):
        policy.plot("Serra", 0, WHOLE)


def test_reprs_are_short(policy: Policy) -> None:
    for value in (policy, policy.cuts[0], policy.fingerprint):
        assert len(repr(value)) < 300
    assert "<th>cuts</th><td>2, 2 active</td>" in policy._repr_html_()
    assert storage(3).key == ("storage", 3, 0)
