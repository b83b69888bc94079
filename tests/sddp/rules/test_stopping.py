"""Stopping rules, from records made by hand."""

from dataclasses import replace

import pytest
from builders.studies import cascade_study, with_training
from hypothesis import given
from hypothesis import strategies as st

from cobre.case.model import TrainingOptions
from cobre.rules.stopping.bound_stalling import BoundStalling
from cobre.rules.stopping.gap import Gap
from cobre.rules.stopping.simulation import SimulationStopping
from cobre.rules.stopping.time_limit import TimeLimit
from cobre.sddp import IterationRecord, train
from cobre.sddp.rules.stopping import StoppingRules


def time_limit(seconds):
    return TimeLimit(type="time_limit", seconds=seconds)


def stalling(iterations, tolerance):
    return BoundStalling(type="bound_stalling", iterations=iterations, tolerance=tolerance)


def gap(tolerance, relative_tolerance, bound=None):
    return Gap(type="gap", tolerance=tolerance, relative_tolerance=relative_tolerance, bound=bound)


def simulation(replications, **keys):
    return SimulationStopping(type="simulation", replications=replications, **keys)


def records(bounds, upper=None, std=0.0, kind="statistical", passes=4):
    return [
        IterationRecord(
            iteration=position + 1,
            lower_bound=bound,
            upper_bound=bound if upper is None else upper,
            upper_bound_std=std,
            upper_bound_kind=kind,
            forward_passes=passes,
            cuts_added=0,
            cuts_active=0,
            lp_solves=0,
            lp_retries=0,
            simplex_iterations=0,
            forward_time_ms=0.0,
            backward_time_ms=0.0,
            communication_time_ms=0.0,
            iteration_time_ms=0.0,
            wall_time_ms=0.0,
        )
        for position, bound in enumerate(bounds)
    ]


def rules(*given_rules, mode="any", limit=100):
    return StoppingRules(
        TrainingOptions(42, 4, limit, "penalty", None, stopping_rules=tuple(given_rules), stopping_mode=mode)
    )


def test_the_iteration_limit_caps():
    assert rules(limit=3).check(records([1.0, 2.0]), 1e9) is None
    assert rules(limit=3).check(records([1.0, 2.0, 3.0]), 0.0) == "iteration_limit"
    assert rules(time_limit(9.0), mode="all", limit=2).check(records([1.0, 2.0]), 1.0) == "iteration_limit"


def test_time_limit():
    assert rules(time_limit(5.0)).check(records([1.0]), 4.9) is None
    assert rules(time_limit(5.0)).check(records([1.0]), 5.0) == "time_limit"


@pytest.mark.parametrize(
    ("bounds", "stalls"),
    [
        ([100.0, 100.0], False),  # the window is longer
        ([100.0, 100.0, 100.05], True),
        ([100.0, 100.0, 100.2], False),
        ([50.0, 100.0, 100.05, 100.05], True),
        ([0.0, 0.0005, 0.0009], True),  # relative to 1 at least
        ([-100.0, -100.0, -99.95], True),
    ],
)
def test_bound_stalling_looks_at_the_ends_of_the_window(bounds, stalls):
    reason = rules(stalling(3, 1e-3)).check(records(bounds), 0.0)
    assert reason == ("bound_stalling" if stalls else None)


def test_a_window_of_one_compares_two_bounds():
    rule = stalling(1, 0.0)
    assert rules(rule).check(records([5.0]), 0.0) is None
    assert rules(rule).check(records([5.0, 5.5]), 0.0) is None
    assert rules(rule).check(records([5.0, 5.5, 5.5]), 0.0) == "bound_stalling"


@pytest.mark.parametrize(
    ("rule", "upper", "closed"),
    [
        (gap(10.0, None), 109.0, True),
        (gap(10.0, None), 111.0, False),
        (gap(None, 10.0), 110.0, True),  # of the lower bound
        (gap(None, 10.0), 110.5, False),
        (gap(1.0, 10.0), 105.0, True),
        (gap(5.0, 1.0), 105.0, True),
    ],
)
def test_gap_of_exact_bounds(rule, upper, closed):
    reason = rules(rule).check(records([100.0], upper, kind="exact"), 0.0)
    assert reason == ("gap" if closed else None)


def test_gap_of_sampled_passes_takes_the_upper_end_of_the_interval():
    # Nine iterations of 4 passes since the bound settled: s^2 = 9 * 3 * 100 / 35, 1.96 s / 6 = 2.869.
    history = records([50.0] + [100.0] * 9, upper=101.0, std=10.0, passes=4)
    assert rules(gap(3.9, None, "statistical")).check(history, 0.0) == "gap"
    assert rules(gap(3.8, None, "statistical")).check(history, 0.0) is None
    assert rules(gap(None, 3.9, "statistical")).check(history, 0.0) == "gap"
    assert rules(gap(1e9, None, "deterministic")).check(history, 0.0) is None


def test_gap_of_sampled_passes_needs_a_sample_that_bounds_something():
    rule = rules(gap(1e9, None, "statistical"))
    assert rule.check(records([100.0] * 7, 101.0, std=10.0, passes=4), 0.0) is None  # 28 passes
    settled = records([100.0] * 8, 101.0, std=10.0, passes=4)
    assert rule.check(settled, 0.0) == "gap"
    assert rule.check(records([90.0] * 8 + [100.0], 101.0, std=10.0), 0.0) is None  # 4 since it settled
    assert rule.check(records([100.0] * 8, 90.0, std=10.0), 0.0) is None  # a lucky sample
    assert rule.check([replace(record, risk_averse=True) for record in settled], 0.0) is None
    averse = [
        replace(record, risk_averse=True, deterministic_upper_bound=100.5, upper_bound_kind="exact")
        for record in settled
    ]
    assert rules(gap(0.6, None)).check(averse, 0.0) == "gap"
    assert rules(gap(1e9, None)).check([replace(averse[-1], deterministic_upper_bound=None)], 0.0) is None


def with_costs(history, costs):
    return [replace(record, stage_costs=cost) for record, cost in zip(history, costs, strict=True)]


def test_simulation_compares_means_of_the_latest_passes_one_period_apart():
    # Two iterations of 4 passes make an evaluation of 7 or 8; evaluations follow each other after 2.
    rule = simulation(7, period=2, bound_window=2, distance_tol=0.05, bound_tol=0.0)
    costs = [(10.0, 0.5), (30.0, 0.5), (19.0, 0.53), (21.0, 0.53)]  # means (20, 0.5), then (20, 0.53)
    history = with_costs(records([7.0] * 4), costs)
    assert rules(rule).check(history, 0.0) == "simulation"
    assert rules(rule).check(history[:3], 0.0) is None  # no evaluation is due
    assert rules(rule).check(history[:2], 0.0) is None  # nothing to compare with
    assert rules(rule.model_copy(update={"distance_tol": 0.02})).check(history, 0.0) is None
    moving = with_costs(records([7.0, 7.0, 7.0, 8.0]), costs)
    assert rules(rule).check(moving, 0.0) is None
    assert rules(rule.model_copy(update={"bound_tol": 0.2})).check(moving, 0.0) == "simulation"
    # 2 of 20 and 0.03 of 1: more than 0.1 together.
    costs[2:] = [(22.0, 0.53), (22.0, 0.53)]
    far = with_costs(records([7.0] * 4), costs)
    assert rules(rule.model_copy(update={"distance_tol": 0.1})).check(far, 0.0) is None
    assert rules(rule.model_copy(update={"distance_tol": 0.105})).check(far, 0.0) == "simulation"


def test_stage_costs_add_up_to_the_upper_bound():
    rule = simulation(4, period=1, bound_window=2, distance_tol=1e-9, bound_tol=1e-9)
    case = with_training(cascade_study(iterations=3), stopping_rules=(rule,))
    result = train(case, threads=2)
    for record in result.history:
        discounted = [0.99**stage * cost for stage, cost in enumerate(record.stage_costs)]
        assert sum(discounted) == pytest.approx(record.upper_bound, rel=1e-12)
    assert train(cascade_study(iterations=1)).history[0].stage_costs == ()
    flat = cascade_study(noise=0.0, openings=1, passes=1, iterations=60)
    settled = train(with_training(flat, stopping_rules=(rule,)))
    assert settled.termination_reason == "simulation"
    assert settled.iterations < 60


@given(
    bounds=st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=2, max_size=6),
    elapsed=st.floats(0.0, 10.0),
    upper=st.sampled_from([2.0, 4.0]),
)
def test_any_and_all(bounds, elapsed, upper):
    history = records(bounds, upper, kind="exact")
    single = [time_limit(5.0), stalling(2, 0.1), gap(1.5, None)]
    met = [rule.type for rule in single if rules(rule).check(history, elapsed) is not None]
    assert rules(*single).check(history, elapsed) == (met[0] if met else None)
    # Together they stop for a reason of convergence.
    assert rules(*single, mode="all").check(history, elapsed) == (
        "bound_stalling" if len(met) == len(single) else None
    )


def test_training_stops_by_its_rules():
    case = cascade_study(noise=0.0, openings=1, passes=1, iterations=60)
    rule = stalling(4, 1e-9)
    result = train(with_training(case, stopping_rules=(rule,)))
    assert result.termination_reason == "bound_stalling"
    assert 4 <= result.iterations < 60
    bounds = [record.lower_bound for record in result.history]
    first = next(k for k in range(4, 61) if abs(bounds[k - 1] - bounds[k - 4]) <= 1e-9 * abs(bounds[k - 1]))
    assert result.iterations == first
    stopped = train(with_training(case, stopping_rules=(time_limit(1e-9),)))
    assert (stopped.iterations, stopped.termination_reason) == (1, "time_limit")
    closed = train(with_training(case, stopping_rules=(gap(None, 1e-6),), enumerated=True))
    assert closed.termination_reason == "gap"
    assert closed.gap_percent < 1e-6
