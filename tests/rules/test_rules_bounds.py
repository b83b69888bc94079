"""What iterations prove, from records made by hand and samples that NumPy pools."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cobre.rules.bounds import (
    LEAST_SAMPLE,
    SampleCost,
    gap_percent,
    proven_gap_percent,
    proven_upper_bound,
    sample_cost,
    settled_since,
)
from cobre.sddp import IterationRecord


def record(iteration: int, lower_bound: float, costs: np.ndarray) -> IterationRecord:
    return IterationRecord(
        iteration=iteration,
        lower_bound=lower_bound,
        upper_bound=float(costs.mean()),
        upper_bound_std=float(costs.std(ddof=1)) if len(costs) > 1 else 0.0,
        upper_bound_kind="statistical",
        forward_passes=len(costs),
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


@pytest.mark.parametrize(
    ("bounds", "position"),
    [
        ([5.0], 0),
        ([50.0, 98.9, 99.0, 99.5, 100.0], 2),  # 1 % of the last one, its edge included
        ([99.5, 90.0, 99.5, 100.0], 2),  # from then on without exception
        ([100.0, 101.5, 100.5, 100.0], 2),
        ([0.985, 0.995, 0.0, 0.005], 2),  # relative to 1 at least
        ([-100.0, -50.4, -50.0], 1),
    ],
)
def test_the_bound_has_settled_since(bounds, position):
    history = [record(place + 1, bound, np.ones(1)) for place, bound in enumerate(bounds)]
    assert settled_since(history) == position


@pytest.mark.parametrize("passes", [1, 4])
def test_the_sample_pools_all_passes_since_then(passes):
    costs = np.random.default_rng(3).normal(1e6, 2e5, (40, passes))
    bounds = [1e5] * 5 + [9.95e5] * 35
    history = [
        record(place + 1, bound, row) for place, (bound, row) in enumerate(zip(bounds, costs, strict=True))
    ]
    sample = sample_cost(history)
    assert sample is not None
    pooled = costs[5:].ravel()
    assert (sample.passes, sample.first_iteration) == (35 * passes, 6)
    assert sample.mean == pytest.approx(pooled.mean(), rel=1e-13)
    assert sample.std == pytest.approx(pooled.std(ddof=1), rel=1e-12)
    assert sample.half_width == pytest.approx(1.96 * pooled.std(ddof=1) / np.sqrt(35 * passes), rel=1e-12)
    exact = [replace(entry, upper_bound_kind="exact") for entry in history]
    assert sample_cost(exact) is None


def test_fewer_than_thirty_passes_make_no_interval():
    few = SampleCost(100.0, 10.0, LEAST_SAMPLE - 1, 1)
    assert (few.half_width, few.position_of(90.0)) == (None, None)
    enough = SampleCost(100.0, 10.0, LEAST_SAMPLE, 1)
    assert enough.half_width == pytest.approx(1.96 * 10.0 / 30**0.5)  # 3.578
    assert [enough.position_of(bound) for bound in (96.0, 97.0, 103.0, 104.0)] == [
        *("below", "within", "within", "above")
    ]


def test_only_two_proven_bounds_have_a_gap():
    sampled = record(1, 90.0, np.array([100.0, 100.0]))
    exact = replace(sampled, upper_bound_kind="exact")
    assert proven_upper_bound(sampled) is None
    assert proven_upper_bound(exact) == 100.0
    assert proven_upper_bound(replace(exact, risk_averse=True)) is None
    assert proven_upper_bound(replace(exact, deterministic_upper_bound=95.0)) == 95.0
    assert proven_upper_bound(replace(sampled, deterministic_upper_bound=float("inf"))) is None
    assert proven_gap_percent(exact) == pytest.approx(100.0 / 9.0)
    assert proven_gap_percent(replace(exact, lower_bound_kind="estimate")) is None
    assert gap_percent(-200.0, -100.0) == 50.0
    assert gap_percent(0.0, 0.5) == 50.0  # relative to 1 at least
