"""Which cuts selection keeps, against plain definitions; and training with each method."""

import itertools

import numpy as np
import pytest
from builders.studies import cascade_study, with_training
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.case.model import CutSelection
from cobre.lp import StateLayout, build_templates
from cobre.lp.arrays import cut_pool, lp_arrays
from cobre.sddp import train
from cobre.sddp.kernel.buffers import iteration_buffers
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.rules.selection import CutSelector
from cobre.stochastic import build_opening_tree

STAGES, STATES, PASSES, ITERATIONS = 4, 2, 3, 8
CHOOSERS = [
    CutSelection(method="level1", check_frequency=2),
    CutSelection(method="lml1", check_frequency=2),
    CutSelection(method="domination", check_frequency=2, tolerance=5.0),
]


@pytest.fixture(scope="module")
def study():
    case = cascade_study(hydros=STATES, stages=STAGES, passes=PASSES)
    tree = build_opening_tree(case)
    layout = StateLayout(case)
    arrays = lp_arrays(build_templates(case, tree, layout))
    return arrays, graph_arrays(case, tree.num_openings), layout


class Run:
    """Cuts and trial points of small whole numbers, so that ties and repeated points are frequent."""

    def __init__(self, study, options: CutSelection, seed: int) -> None:
        arrays, graph, layout = study
        self.random = np.random.default_rng(seed)
        self.pool = cut_pool(STAGES, PASSES * ITERATIONS, STATES)
        self.buffers = iteration_buffers(arrays, graph, layout, PASSES, 0, 1, 1)
        self.buffers.node_all[:] = np.arange(STAGES)
        self.selector = CutSelector(options, graph, self.pool, self.buffers, ITERATIONS)
        self.visited: list[np.ndarray] = []

    def iterate(self, iteration: int):
        states = self.random.integers(0, 6, (STAGES, PASSES, STATES)).astype(float)
        self.buffers.state_all[:] = states.swapaxes(0, 1)
        for stage, forward_pass in itertools.product(range(STAGES - 1), range(PASSES)):
            same = (states[stage] == states[stage, forward_pass]).all(axis=1)
            self.buffers.leader_all[forward_pass, stage] = int(np.argmax(same))
            slot = int(self.pool.num_cuts[stage])
            self.pool.intercept[stage, slot] = self.random.integers(0, 12)
            self.pool.slope[stage, slot] = self.random.integers(-3, 4, STATES)
            self.pool.iteration[stage, slot] = iteration
            self.pool.num_cuts[stage] += 1
        self.visited.append(states)
        return self.selector.select(iteration)

    def heights(self, stage: int, states: np.ndarray) -> np.ndarray:
        """Cuts by states; those that are not active are minus infinity."""
        count = int(self.pool.num_cuts[stage])
        values = self.pool.intercept[stage, :count, None] + self.pool.slope[stage, :count] @ states.T
        return np.where(self.pool.active[stage, :count, None], values, -np.inf)


def expected_cuts(options: CutSelection, heights: np.ndarray, is_new: np.ndarray) -> np.ndarray:
    """Active cuts after a selection, by the definition of the method."""
    close = heights >= heights.max(axis=0) - options.tolerance
    if options.method == "lml1":
        keep = np.zeros(len(heights), bool)
        keep[np.argmax(close, axis=0)] = True
    else:
        keep = close.any(axis=1)
    return (keep | is_new) & np.isfinite(heights[:, 0])


@pytest.mark.parametrize("options", CHOOSERS, ids=lambda options: options.method)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_selection_by_definition(study, options, seed):
    run = Run(study, options, seed)
    for iteration in range(1, ITERATIONS + 1):
        before = [run.pool.active[stage].copy() for stage in range(STAGES)]
        records = run.iterate(iteration)
        assert run.pool.active[0].all()
        for stage in range(1, STAGES - 1):
            states = np.concatenate([visited[stage] for visited in run.visited])
            count = int(run.pool.num_cuts[stage])
            after = run.pool.active[stage].copy()
            run.pool.active[stage] = before[stage]
            heights = run.heights(stage, states)
            run.pool.active[stage] = after
            if iteration % options.check_frequency:
                assert records == ()
                assert (after == before[stage]).all()
                continue
            expected = expected_cuts(options, heights, run.pool.iteration[stage, :count] == iteration)
            assert after[:count].tolist() == expected.tolist()
            # The highest cut at every visited state is the same.
            np.testing.assert_array_equal(run.heights(stage, states).max(axis=0), heights.max(axis=0))
            record = records[stage - 1]
            assert (record.iteration, record.stage, record.cuts_populated) == (iteration, stage, count)
            assert record.cuts_active_after == after[:count].sum()
            assert record.budget_evicted is None
            version = run.pool.version[stage]
            assert (version > 0) or record.cuts_deactivated == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), cap=st.integers(0, 12), method=st.sampled_from(["all", "lml1", "level1"]))
def test_the_cap_drops_what_was_active_longest_ago(study, seed, cap, method):
    options = CutSelection(method=method, check_frequency=3, max_active_per_stage=cap)
    run = Run(study, options, seed)
    stage = 1
    last = np.zeros(PASSES * ITERATIONS, int)
    times = np.zeros(PASSES * ITERATIONS, int)
    for iteration in range(1, ITERATIONS + 1):
        before = run.pool.active[stage].copy()
        (record, *_) = run.iterate(iteration)
        count = int(run.pool.num_cuts[stage])
        after = run.pool.active[stage].copy()
        run.pool.active[stage] = before
        heights = run.heights(stage, np.unique(run.visited[-1][stage], axis=0))
        all_heights = run.heights(stage, np.concatenate([visited[stage] for visited in run.visited]))
        run.pool.active[stage] = after
        highest = heights == heights.max(axis=0)
        last[:count][highest.any(axis=1)] = iteration
        times[:count] += highest.sum(axis=1)
        is_new = run.pool.iteration[stage, :count] == iteration
        active = before[:count].copy()
        if method != "all" and iteration % 3 == 0:
            active = expected_cuts(options, all_heights, is_new)
        old = sorted(np.flatnonzero(active & ~is_new), key=lambda slot: (last[slot], times[slot], slot))
        evicted = old[: max(0, int(active.sum()) - cap)]
        active[evicted] = False
        assert after[:count].tolist() == active.tolist()
        assert record.budget_evicted == len(evicted)
        assert record.active_after_budget == active.sum()


METHODS = [
    CutSelection(method="level1", check_frequency=2),
    CutSelection(method="lml1", check_frequency=2),
    CutSelection(method="domination", check_frequency=3, tolerance=1.0),
    CutSelection(method="dynamic", seed_window=1, max_added_per_round=2, tolerance=1e-6),
    CutSelection(max_active_per_stage=25),
    CutSelection(method="dynamic", start_iteration=4, seed_window=0, max_active_per_stage=30),
]


def small_study(**changes):
    return with_training(
        cascade_study(hydros=2, thermals=3, stages=4, openings=3, passes=3, iterations=40, seed=5), **changes
    )


@pytest.fixture(scope="module")
def all_cuts():
    return train(small_study())


@pytest.mark.parametrize("options", METHODS, ids=lambda o: f"{o.method}-{o.max_active_per_stage}")
def test_every_method_comes_to_the_same_optimum(all_cuts, options):
    result = train(small_study(cut_selection=options), threads=2)
    # A cap may drop a cut that is needed, until it is made again.
    slack = 1e-5 if options.max_active_per_stage is None else 2e-3
    assert result.lower_bound == pytest.approx(all_cuts.lower_bound, rel=slack)
    again = train(small_study(cut_selection=options))
    assert again.policy_sha256 == result.policy_sha256
    assert [record.lower_bound for record in again.history] == [
        record.lower_bound for record in result.history
    ]
    dropped = sum(int((~active).sum()) for active in result.policy.active)
    assert dropped == sum(record.cuts_removed for record in result.history)
    assert (dropped > 0) == (options.method != "dynamic" or options.max_active_per_stage is not None)
    assert result.history[-1].cuts_active == sum(int(active.sum()) for active in result.policy.active)
    assert result.policy.active[0].all()


def test_passes_with_the_same_trial_point_make_one_cut():
    case = cascade_study(noise=0.0, openings=1, passes=5, iterations=2)
    result = train(case)
    assert [len(cuts) for cuts in result.policy.intercepts] == [2, 2, 2, 0]
    assert [passes.tolist() for passes in result.policy.passes] == [[0, 0], [0, 0], [0, 0], []]
    assert result.policy.iterations[1].tolist() == [1, 2]
    # 5 passes through 4 stages, one opening at one trial point of 3 stages, one at the root.
    assert [record.lp_solves for record in result.history] == [20 + 3 + 1] * 2
    one = train(with_training(case, forward_passes=1))
    assert one.lower_bound == result.lower_bound
