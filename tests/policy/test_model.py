import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stored import node, storage

from cobre.errors import ValidationError
from cobre.policy import NodeCuts, TransitionEntry
from cobre.sddp import Policy


@pytest.fixture
def policy() -> Policy:
    return Policy(
        components=(storage(0), storage(1)),
        nodes=(node(0, stage_id=0, future_cost_floor=4.0), node(1, stage_id=3, future_cost_floor=0.0)),
        transitions=(TransitionEntry(0, 1, 1.0),),
        cuts=(cuts([10.0, 20.0], [[-1.0, 0.0], [-3.0, 1.0]]), cuts([], np.zeros((0, 2)))),
        is_chain=True,
        forward_passes=1,
        seed=0,
        completed_iterations=2,
        lower_bounds=np.zeros(2),
        upper_bounds=np.zeros(2),
    )


def cuts(intercepts: Any, slopes: Any) -> NodeCuts:
    count = len(intercepts)
    return NodeCuts(
        slot=np.arange(count),
        iteration=np.arange(count) + 1,
        forward_pass=np.zeros(count, np.int64),
        intercept=np.array(intercepts, np.float64),
        slopes=np.array(slopes, np.float64),
        active=np.ones(count, np.bool_),
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
            r"state must be 2 numbers (hydro_storage[0], hydro_storage[1]), but its shape is (1,)",
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
    first = policy.cuts[0]
    last_bit, negative_zero = first.slopes.copy(), first.slopes.copy()
    last_bit[1, 1] = np.nextafter(1.0, 2.0)
    negative_zero[0, 1] = -0.0
    others = [
        *(
            replace(policy, cuts=(replace(first, **change), policy.cuts[1]))
            for change in (
                {"slopes": last_bit},
                {"slopes": negative_zero},
                {"intercept": first.intercept[::-1]},
                {"active": np.array([True, False])},
            )
        ),
        replace(policy, cuts=policy.cuts[::-1]),
        replace(policy, nodes=(policy.nodes[0], replace(policy.nodes[1], stage_id=4))),
        replace(policy, is_chain=False),
    ]
    assert len({digest, *(other.sha256() for other in others)}) == len(others) + 1
