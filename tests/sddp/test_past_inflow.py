"""Inflows that follow earlier inflows: training against the whole tree, cuts against the value function."""

import numpy as np
import pytest
from builders.studies import cascade_study, persistent, with_training
from exogenous_tree import ExogenousTree

from cobre.case.model import UpperBoundOptions
from cobre.lp import StateLayout, build_templates
from cobre.lp.past_inflow import past_inflow
from cobre.rules.stopping.gap import Gap
from cobre.sddp import train
from cobre.stochastic import build_opening_tree


@pytest.mark.parametrize("method", ["penalty", "truncation", "truncation_with_penalty"])
def test_training_reaches_the_optimum_of_the_tree(method):
    # Deviations small enough that no inflow is ever negative: all methods mean the same.
    case = with_training(persistent(method, noise=0.15), forward_passes=4, iteration_limit=40)
    tree = ExogenousTree(case)
    result = train(case)
    assert tree.memory.sum() == 4
    assert result.lower_bound == pytest.approx(tree.optimum(0, tree.layout.initial), rel=1e-8)


def test_negative_inflow_that_is_paid_for_reaches_the_optimum_too():
    case = with_training(persistent("penalty", noise=0.9), forward_passes=4, iteration_limit=40)
    tree = ExogenousTree(case)
    assert min(template.opening_values[:, :2].min() for template in tree.templates) < 0.0
    assert train(case).lower_bound == pytest.approx(tree.optimum(0, tree.layout.initial), rel=1e-8)


@pytest.mark.parametrize("method", ["truncation", "truncation_with_penalty"])
def test_no_cut_is_above_the_value_function_where_truncation_binds(method):
    case = with_training(persistent(method, noise=1.0, cuts="valid"), forward_passes=4, iteration_limit=15)
    tree = ExogenousTree(case)
    result = train(case)
    assert result.lower_bound_kind == "bound"
    optimum = tree.optimum(0, tree.layout.initial)
    assert result.lower_bound <= optimum * (1.0 + 1e-9)
    bound = 0
    for stage in range(len(case.stages) - 1):
        for state in tree.sampled_states(stage, 12):
            truth = tree.optimum(stage + 1, state)
            assert result.policy.evaluate(stage, state) <= truth + 1e-9 * abs(truth)
            after = tree.templates[stage + 1]
            raw = after.opening_values[:, :2] + np.array(
                [
                    after.psi_value[span] @ state[after.psi_component[span]]
                    for span in map(slice, after.psi_start[:-1], after.psi_start[1:])
                ]
            )
            bound += int((raw < 0.0).sum())
    assert bound > 5  # Otherwise nothing would have been shown.


@pytest.mark.parametrize(("noise", "share"), [(0.6, 1.0 - 1e-9), (0.8, 0.99), (1.0, 0.96)])
def test_valid_cuts_cost_little_of_the_lower_bound(noise, share):
    # With the range of each lag taken by itself 0.991, 0.795 and 0.662 of the optimum were reached.
    case = persistent("truncation", noise=noise, cuts="valid")
    tree = ExogenousTree(case)
    result = train(with_training(case, forward_passes=4, iteration_limit=30))
    assert share <= result.lower_bound / tree.optimum(0, tree.layout.initial) <= 1.0 + 1e-9


def test_tangent_cuts_give_an_estimate_and_never_a_gap():
    case = with_training(
        persistent("truncation", noise=1.0),
        forward_passes=4,
        iteration_limit=30,
        stopping_rules=(Gap(type="gap", tolerance=1e12),),
    )
    tree = ExogenousTree(case)
    result = train(case)
    assert result.lower_bound > 1.0005 * tree.optimum(0, tree.layout.initial)
    assert result.lower_bound_kind == "estimate"
    assert "truncation_cuts" in result.lower_bound_note
    assert {record.lower_bound_kind for record in result.history} == {"estimate"}
    assert result.gap_percent is None
    assert result.history[-1].gap_percent is None
    assert result.termination_reason == "iteration_limit"
    assert "estimate" in repr(result)


@pytest.mark.parametrize("method", ["none", "penalty", "truncation"])
def test_without_truncation_that_binds_there_is_a_bound(method):
    result = train(with_training(persistent(method, noise=0.15), iteration_limit=2))
    assert result.lower_bound_kind == "bound"
    assert result.lower_bound_note is None
    assert result.history[-1].lower_bound_kind == "bound"


def test_bounds_of_past_inflow_hold_on_every_way_through_the_tree():
    case = persistent("truncation", noise=1.0, cuts="valid")
    tree = ExogenousTree(case)
    nodes = [[stage] for stage in range(len(case.stages))]
    bounds = past_inflow(case, tree.layout.inflow, build_opening_tree(case), nodes)
    for stage in range(len(case.stages) - 1):
        for state in tree.sampled_states(stage, 40):
            for place in np.flatnonzero(tree.memory):
                part = tree.layout.components[place]
                low = bounds.memory_lower[stage + 1, part.entity, part.lane]
                high = bounds.memory_upper[stage + 1, part.entity, part.lane]
                assert low - 1e-9 <= state[place] <= high + 1e-9
            remembered = np.where(tree.layout.memory_place >= 0, state[tree.layout.memory_place], 0.0)
            expected = (tree.layout.inflow.psi[stage + 1] * remembered).sum(axis=1)
            assert (bounds.lower[stage + 1] - 1e-9 <= expected).all()
            assert (expected <= bounds.upper[stage + 1] + 1e-9).all()


@pytest.mark.parametrize("method", ["penalty", "truncation"])
def test_the_deterministic_upper_bound_holds_with_lags(method):
    case = with_training(
        persistent(method, noise=0.15),
        forward_passes=4,
        iteration_limit=25,
        upper_bound=UpperBoundOptions(enabled=True),
    )
    tree = ExogenousTree(case)
    optimum = tree.optimum(0, tree.layout.initial)
    bound = train(case).deterministic_bound
    assert bound.value >= optimum * (1.0 - 1e-9)
    assert bound.value <= 1.1 * optimum


def test_no_upper_bound_is_claimed_where_truncation_bends_the_cost():
    case = with_training(
        persistent("truncation", noise=1.0), iteration_limit=2, upper_bound=UpperBoundOptions(enabled=True)
    )
    bound = train(case).deterministic_bound
    assert bound.value == np.inf
    assert "truncated" in bound.reason_unavailable


def test_threads_do_not_change_a_bit():
    case = persistent("truncation", noise=0.8)
    assert train(case, threads=1).policy_sha256 == train(case, threads=2).policy_sha256


def test_a_study_without_lags_has_no_memory():
    case = cascade_study()
    layout = StateLayout(case)
    assert {part.kind for part in layout.components} == {"storage"}
    template = build_templates(case, build_opening_tree(case))[1]
    assert len(template.psi_value) == 0
