"""Few forward passes early, more later: what is not made costs nothing and counts for nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from builders.studies import cascade_study, with_training

from cobre.case.model import Case, PassSchedule
from cobre.comm import Communicator
from cobre.comm.launch import launch
from cobre.sddp import TrainingResult, train
from cobre.sddp.pass_schedule import pass_models, passes_made

LIMIT = 8
STAGES, OPENINGS = 4, 3


def study(passes: int = 5, schedule: PassSchedule | None = None) -> Case:
    case = cascade_study(hydros=3, stages=STAGES, openings=OPENINGS, passes=passes, iterations=LIMIT)
    return with_training(case, pass_schedule=schedule)


SCHEDULE = PassSchedule(initial=1, double_every=3)


def facts(result: TrainingResult) -> tuple[str, list[tuple[int, str, str, str, int]]]:
    return result.policy_sha256, [
        (
            record.forward_passes,
            record.lower_bound.hex(),
            record.upper_bound.hex(),
            record.upper_bound_std.hex(),
            record.lp_solves,
        )
        for record in result.history
    ]


def test_passes_made_are_spread_and_stay_when_they_double():
    schedule = PassSchedule(2, 1)
    made = [set(pass_models(k, 8, schedule).tolist()) for k in (1, 2, 3, 9)]
    assert made == [{0, 4}, {0, 2, 4, 6}, set(range(8)), set(range(8))]
    for iteration in range(1, 12):
        models = pass_models(iteration, 7, PassSchedule(1, 4))
        assert len(np.unique(models)) == passes_made(iteration, 7, PassSchedule(1, 4))
        assert (models <= np.arange(7)).all()
        assert (models[models] == models).all()
    assert passes_made(10**9, 10**6, SCHEDULE) == 10**6
    assert pass_models(1, 3, None).tolist() == [0, 1, 2]


def test_while_one_pass_is_made_training_is_that_with_one_pass():
    """The reference knows nothing of schedules."""
    alone = train(study(passes=1), iterations=3)
    grown = train(study(schedule=SCHEDULE))
    for one, other in zip(alone.history, grown.history[:3], strict=True):
        assert (one.lower_bound, one.upper_bound, one.lp_solves) == (
            other.lower_bound,
            other.upper_bound,
            other.lp_solves,
        )
        assert (other.forward_passes, other.upper_bound_std) == (1, 0.0)
    assert [record.forward_passes for record in grown.history] == [1, 1, 1, 2, 2, 2, 4, 4]
    # Not more than what the passes made need: forward, backward at each trial point, and the lower bound.
    for record in grown.history:
        made = record.forward_passes
        assert record.lp_solves <= made * STAGES + (made * (STAGES - 1) + 1) * OPENINGS
        assert record.cuts_added <= made * (STAGES - 1)


def test_the_sample_cost_and_its_parts_are_of_the_passes_made():
    result = train(study(schedule=SCHEDULE), iterations=1)
    assert result.costs is not None
    assert result.costs.total == pytest.approx(result.upper_bound, rel=1e-12)
    alone = train(study(passes=1), iterations=1)
    assert alone.costs is not None
    assert result.costs.by_stage == alone.costs.by_stage


def test_both_ways_lead_to_the_same_optimum():
    every = train(study(), iterations=60).lower_bound
    few = train(study(schedule=PassSchedule(1, 2)), iterations=60).lower_bound
    assert few == pytest.approx(every, rel=1e-7)


def test_resumed_and_threaded_runs_make_the_same_bytes(tmp_path):
    case = study(schedule=SCHEDULE)
    whole = facts(train(case, threads=1))
    assert facts(train(case, threads=2)) == whole
    train(case, iterations=5, output=tmp_path, checkpoint_every=5)
    assert facts(train(case, output=tmp_path, resume=True)) == whole


def on_rank(comm: Communicator) -> tuple[str, list[tuple[int, str, str, str, int]]]:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    return facts(train(study(schedule=SCHEDULE), communicator=comm))


def test_ranks_change_no_bit():
    assert launch(on_rank, 2, timeout_s=200) == [facts(train(study(schedule=SCHEDULE)))] * 2
