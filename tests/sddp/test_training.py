import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders.studies import cascade_study, dry_study, with_training

from cobre.comm.local import LocalCommunicator
from cobre.errors import SolverError, ValidationError
from cobre.sddp import train


def test_bounds_close_and_the_lower_one_never_falls():
    result = train(cascade_study(noise=0.0, openings=1, passes=1, iterations=25))
    bounds = [record.lower_bound for record in result.history]
    assert all(later >= earlier - 1e-7 * abs(earlier) for earlier, later in itertools.pairwise(bounds))
    assert result.lower_bound == pytest.approx(result.upper_bound, rel=1e-9)
    assert result.gap_percent == pytest.approx(0.0, abs=1e-6)


def test_result_tells_what_was_done():
    case = cascade_study(stages=4, openings=3, passes=4, iterations=2)
    result = train(case)
    assert (result.iterations, result.termination_reason) == (2, "iteration_limit")
    assert (result.backend, result.ranks, result.threads, result.seed) == ("local", 1, 1, 42)
    # 4 passes through 4 stages, 3 openings at each trial point of 3 stages, 3 openings at the root. Of the 4
    # passes some share an opening of the first stage, and so a trial point.
    points = [record.cuts_added for record in result.history]
    assert [record.lp_solves for record in result.history] == [16 + 3 * count + 3 for count in points]
    assert all(count < 12 for count in points)
    assert result.lp_solves == sum(record.lp_solves for record in result.history)
    assert [record.cuts_active for record in result.history] == [points[0], sum(points)]
    assert sum(len(cuts) for cuts in result.policy.intercepts) == sum(points)
    assert len(result.policy.intercepts[3]) == 0
    for iterations, passes in zip(result.policy.iterations, result.policy.passes, strict=True):
        places = list(zip(iterations.tolist(), passes.tolist(), strict=True))
        assert places == sorted(set(places))
    assert result.policy_sha256 == result.policy.sha256()
    assert 0.0 <= result.compile_time_ms <= result.total_time_ms
    assert [record.iteration for record in result.history] == [1, 2]
    record = result.history[-1]
    assert len(repr(result)) < 300
    assert record.ci_95 == pytest.approx(1.96 * record.upper_bound_std / 2.0)


@pytest.mark.parametrize("threads", [1, 2])
def test_same_study_same_bytes(threads):
    case = cascade_study(hydros=5, thermals=6, passes=7, iterations=4, seed=1)
    first = train(case)
    again = train(case, threads=threads)
    assert again.threads == threads
    assert again.policy_sha256 == first.policy_sha256
    for one, other in zip(first.history, again.history, strict=True):
        assert (one.lower_bound, one.upper_bound, one.upper_bound_std) == (
            other.lower_bound,
            other.upper_bound,
            other.upper_bound_std,
        )


def test_seed_and_iterations_replace_those_of_the_case():
    case = cascade_study(iterations=3)
    other = train(case, seed=7, iterations=2)
    assert (other.seed, other.iterations) == (7, 2)
    assert other.policy_sha256 == train(with_training(case, tree_seed=7, iteration_limit=2)).policy_sha256
    assert other.policy_sha256 != train(case, iterations=2).policy_sha256


def test_fewer_iterations_give_a_prefix_of_the_policy():
    case = cascade_study(iterations=4)
    long, short = train(case), train(case, iterations=2)
    for stage in range(len(case.stages)):
        count = len(short.policy.intercepts[stage])
        np.testing.assert_array_equal(short.policy.intercepts[stage], long.policy.intercepts[stage][:count])
        np.testing.assert_array_equal(short.policy.slopes[stage], long.policy.slopes[stage][:count])


def test_callback_sees_every_iteration_and_may_stop():
    seen = []

    def stop_after_two(record):
        seen.append(record.iteration)
        return record.iteration == 2

    result = train(cascade_study(iterations=6), on_iteration=stop_after_two)
    assert seen == [1, 2]
    assert (result.iterations, result.termination_reason) == (2, "graceful_shutdown")


def test_an_exception_in_the_callback_reaches_the_caller():
    def fail(record):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        train(cascade_study(), on_iteration=fail)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_lp_without_solution_is_explained(tmp_path, threads):
    with pytest.raises(SolverError) as caught:
        train(dry_study(), threads=threads, output=tmp_path)
    error = caught.value
    assert (error.stage, error.iteration, error.scenario, error.opening) == (1, 1, 0, 0)
    assert error.solver_status == "infeasible"
    assert "hydro_balance[plant 0]" in error.message
    assert error.context["phase"] == "forward pass"
    assert (tmp_path / "failed_stage1_scenario0_opening0.mps").stat().st_size > 0


def test_the_failing_pass_and_opening_are_named(tmp_path):
    """Only one opening of the last stage drains the reservoir: whoever meets it first is named."""
    case = cascade_study(
        hydros=1, thermals=1, buses=1, stages=2, blocks=1, openings=4, passes=5, noise=0.0, seed=2
    )
    std = np.zeros_like(case.scenarios.inflow_std_m3s)
    std[1, 0] = 400.0
    case = with_training(
        replace(case, scenarios=replace(case.scenarios, inflow_std_m3s=std)), inflow_method="none"
    )
    with pytest.raises(SolverError) as caught:
        train(case, output=tmp_path)
    error = caught.value
    assert error.stage == 1
    assert error.context["violated_rows"][0].startswith("hydro_balance[plant 0]")
    assert f"opening {error.opening} " in error.message


def test_no_hydros_at_all():
    result = train(cascade_study(hydros=0, iterations=2))
    assert result.lower_bound == pytest.approx(result.upper_bound, rel=1e-12)
    assert result.policy.slopes[0].shape == (2, 0)  # all passes share the one trial point


@pytest.mark.parametrize(
    "arguments",
    [
        {"iterations": 0},
        {"iterations": "3"},
        {"iterations": 2**31},
        {"threads": 0},
        {"threads": 100_000},
        {"seed": -1},
        {"seed": 2**64},
        {"output": 3},
        {"on_iteration": 3},
        {"communicator": 3},
        {"communicator": LocalCommunicator(), "ranks": 2},
    ],
)
def test_arguments_out_of_range(arguments):
    with pytest.raises(ValidationError) as caught:
        train(cascade_study(), **arguments)
    assert caught.value.problems[0].context["field"] == next(iter(arguments))
