import re
from dataclasses import replace

import numpy as np
import pytest

from cobre.errors import ValidationError
from cobre.sddp import Policy


@pytest.fixture
def policy() -> Policy:
    return Policy(
        stage_ids=(0, 3),
        state_names=("hydro_storage[a]", "hydro_storage[b]"),
        forward_passes=1,
        intercepts=(np.array([10.0, 20.0]), np.zeros(0)),
        slopes=(np.array([[-1.0, 0.0], [-3.0, 1.0]]), np.zeros((0, 2))),
        future_cost_floor=(4.0, 0.0),
        iterations=(np.array([1, 2], np.int32), np.zeros(0, np.int32)),
        passes=(np.zeros(2, np.int32), np.zeros(0, np.int32)),
        active=(np.ones(2, np.bool_), np.ones(0, np.bool_)),
    )


def test_future_cost_is_the_highest_cut_or_the_floor(policy):
    assert policy.evaluate(0, np.array([1.0, 0.0])) == 17.0
    assert policy.evaluate(0, np.array([6.0, 0.0])) == 4.0
    assert policy.evaluate(1, np.array([6.0, 0.0])) == 0.0


@pytest.mark.parametrize(
    ("stage", "state", "text"),
    [
        (
            0,
            np.zeros(1),
            r"state must be 2 numbers (hydro_storage[a], hydro_storage[b]), but its shape is (1,)",
        ),
        (0, "abc", "state must be a sequence of numbers"),
        (0, [np.nan, 1.0], "state must be finite numbers"),
        (2, np.zeros(2), "stage must be a position from 0 to 1, not 2"),
        (0.5, np.zeros(2), "stage must be a position from 0 to 1, not 0.5"),
    ],
)
def test_a_point_the_policy_does_not_have_is_named(policy, stage, state, text):
    with pytest.raises(ValidationError, match=re.escape(text)):
        policy.evaluate(stage, state)


def test_a_policy_is_shown_by_its_size(policy):
    assert repr(policy) == "Policy(2 nodes, 2 state components, 2 cuts)"


def test_digest_sees_every_bit(policy):
    digest = policy.sha256()
    assert digest == replace(policy).sha256()
    last_bit = policy.slopes[0].copy()
    last_bit[1, 1] = np.nextafter(1.0, 2.0)
    negative_zero = policy.slopes[0].copy()
    negative_zero[0, 1] = -0.0
    others = [
        replace(policy, slopes=(last_bit, policy.slopes[1])),
        replace(policy, slopes=(negative_zero, policy.slopes[1])),
        replace(policy, intercepts=(policy.intercepts[0][::-1], policy.intercepts[1])),
        replace(policy, stage_ids=(0, 4)),
        replace(policy, active=(np.array([True, False]), policy.active[1])),
        replace(policy, intercepts=policy.intercepts[::-1], slopes=policy.slopes[::-1]),
    ]
    assert len({digest, *(other.sha256() for other in others)}) == len(others) + 1
