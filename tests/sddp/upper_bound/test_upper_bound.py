from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.studies import cascade_study, dry_study, with_training
from upper_bound_ranks import bound_of

from cobre.case.model import Case, RiskMeasure, UpperBoundOptions
from cobre.comm.launch import launch
from cobre.lp import StateLayout, build_templates
from cobre.policy.visited import VisitedStates
from cobre.sddp import train
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.upper_bound import UpperBoundEvaluator, UpperBoundResult, study_risk, upper_bound
from cobre.stochastic import build_opening_tree


def bounded(case: Case, **options) -> Case:
    return with_training(case, upper_bound=UpperBoundOptions(enabled=True, **options))


def averse(case: Case, weight: float = 0.5, tail: float = 0.4) -> Case:
    return replace(
        case, stages=tuple(replace(stage, risk=RiskMeasure(weight, tail)) for stage in case.stages)
    )


def weekly_reservoir() -> Case:
    """One reservoir through the weeks of a year, wet in its middle, with load that peaks at both ends."""
    case = cascade_study(
        hydros=1, thermals=4, buses=1, stages=52, blocks=1, openings=3, passes=2, iterations=40
    )
    week = np.arange(52)
    inflow = 35.0 - 25.0 * np.cos(2.0 * np.pi * week / 52.0)
    load = 70.0 + 20.0 * np.cos(2.0 * np.pi * week / 52.0)
    return replace(
        case,
        scenarios=replace(
            case.scenarios,
            inflow_mean_m3s=inflow[:, None],
            inflow_std_m3s=0.3 * inflow[:, None],
            load_mean_mw=load[:, None],
        ),
    )


@pytest.mark.parametrize("measure", ["mean", "cvar"])
def test_bounds_meet_on_the_weekly_reservoir(measure):
    case = weekly_reservoir() if measure == "mean" else averse(weekly_reservoir())
    result = train(bounded(case))
    assert result.deterministic_bound is not None
    assert result.lower_bound <= result.deterministic_bound.value * (1 + 1e-9)
    assert result.gap_percent is not None
    assert result.gap_percent < 1.0
    assert result.deterministic_bound.reason_unavailable is None
    assert result.deterministic_bound.lp_solves > 52 * 3


def test_bound_without_any_training_holds_for_any_states():
    case = averse(cascade_study(hydros=3, stages=4, openings=3))
    best = train(case, iterations=60)
    tree = build_opening_tree(case)
    templates = build_templates(case, tree, StateLayout(case))
    graph = graph_arrays(case, tree.num_openings)
    initial = StateLayout(case).initial
    random = np.random.default_rng(0)
    gaps = []
    for count in (0, 5, 80):
        visited = VisitedStates(4, 3)
        visited.append(random.uniform(10.0, 400.0, (4, count, 3)), np.arange(4)[:, None].repeat(count, 1))
        result = upper_bound(templates, graph, visited, initial)
        assert result.value >= best.lower_bound * (1 - 1e-9)
        gaps.append(result.value - best.lower_bound)
        for values in result.vertex_values[:-1]:
            assert np.isfinite(values).all()
    assert gaps[0] > gaps[2]


def test_no_cut_lies_above_the_bound_at_its_vertices():
    case = cascade_study(hydros=3, stages=4, openings=3, iterations=15)
    result = train(bounded(case))
    bound = result.deterministic_bound
    assert bound is not None
    for stage in range(3):
        for vertex, value in zip(bound.vertices[stage], bound.vertex_values[stage], strict=True):
            assert result.policy.evaluate(stage, vertex) <= value + 1e-6 * abs(value) + 1e-6


def test_evaluated_on_the_way_and_at_the_end():
    case = cascade_study(hydros=2, stages=3, openings=3, iterations=8)
    result = train(bounded(case, initial_iteration=2, interval_iterations=3))
    told = {record.iteration: record.deterministic_upper_bound for record in result.history}
    assert [iteration for iteration, value in told.items() if value is not None] == [2, 5, 8]
    assert told[2] >= told[5] >= told[8]
    assert result.deterministic_bound is not None
    assert result.deterministic_bound.value == told[8]
    without = train(with_training(case, upper_bound=UpperBoundOptions(enabled=False)))
    assert without.deterministic_bound is None
    # Evaluation leaves training alone.
    assert without.policy_sha256 == train(case).policy_sha256 == result.policy_sha256


def evaluated(case: Case, **options) -> UpperBoundResult:
    """Return the bound without a single visited state."""
    tree, layout = build_opening_tree(case), StateLayout(case)
    evaluator = UpperBoundEvaluator(
        UpperBoundOptions(enabled=True, **options),
        build_templates(case, tree, layout),
        graph_arrays(case, tree.num_openings),
        VisitedStates(len(case.stages), len(layout)),
        layout.initial,
    )
    return evaluator.finish(1)


def test_margin_on_prices_only_raises_the_bound():
    case = cascade_study(hydros=3, stages=3, openings=3)
    assert evaluated(case, price_factor=1000.0).value > evaluated(case).value


def test_a_stage_without_solution_leaves_no_bound():
    bound = evaluated(dry_study())
    assert np.isinf(bound.value)
    assert np.isinf(bound.vertex_values[0]).all()
    assert bound.reason_unavailable == (
        "the LPs after stage 0 have no solution at any state tried; "
        "nothing absorbs less hydro_storage_final[plant 0] there"
    )


def test_states_that_no_vertex_covers_leave_no_bound_unless_a_price_is_assumed():
    # 200 hm3 lose 52 in the first stage; the second needs 100 hm3, which the lower corner does not have, and
    # nothing is known between it and the initial state.
    case = dry_study()
    inflow = case.scenarios.inflow_mean_m3s.copy()
    inflow[:, 0] = (-20.0, -40.0)
    case = replace(case, scenarios=replace(case.scenarios, inflow_mean_m3s=inflow))
    bound = evaluated(case)
    assert np.isinf(bound.value)
    assert bound.reason_unavailable.startswith("the LP of stage 0 has no solution at the initial state")
    assumed = evaluated(case, fallback_price=1.0e6)
    assert np.isfinite(assumed.value)
    assert "1e+06 $" in assumed.assumptions[0]


def test_no_hydros_at_all():
    result = train(bounded(cascade_study(hydros=0, iterations=2)))
    assert result.gap_percent == pytest.approx(0.0, abs=1e-9)


def test_risk_of_outcomes():
    case = averse(cascade_study(stages=2), weight=0.5, tail=0.5)
    risk = study_risk(graph_arrays(case, np.array([3, 3])))
    # The worst half: all of 30 (0.25) and half of 20 (0.5).
    outcomes, probability = np.array([[10.0, 30.0, 20.0], [1.0, 1.0, 1.0]]), np.array([0.25, 0.25, 0.5])
    expected = [0.5 * (2.5 + 7.5 + 10.0) + 0.5 * (0.5 * 30.0 + 0.5 * 20.0), 1.0]
    np.testing.assert_allclose(risk(0, outcomes, probability), expected, rtol=1e-12)
    neutral = study_risk(graph_arrays(cascade_study(stages=2), np.array([3, 3])))
    np.testing.assert_array_equal(neutral(0, outcomes, probability), [20.0, 1.0])


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_the_vertices_without_changing_a_bit(ranks, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    alone = bound_of(None)
    assert launch(bound_of, ranks, timeout_s=200) == [alone] * ranks


def test_openings_that_repeat_are_solved_once():
    case = cascade_study(hydros=2, stages=3, openings=3)
    tree, layout = build_opening_tree(case), StateLayout(case)
    templates = build_templates(case, tree, layout)
    twice = tuple(
        replace(template, opening_values=np.ascontiguousarray(np.tile(template.opening_values, (2, 1))))
        for template in templates
    )
    graph = graph_arrays(case, tree.num_openings)
    visited = VisitedStates(3, 2)
    once, again = (upper_bound(lps, graph, visited, layout.initial) for lps in (templates, twice))
    assert again.value == pytest.approx(once.value, rel=1e-12)
    assert again.lp_solves == once.lp_solves
