"""What two policies differ in, and what a directory holds, in the words of ``cobre policy``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.studies import cascade_study
from stored import checkpoint, policy

from cobre.errors import ValidationError
from cobre.policy import (
    Fingerprint,
    Policy,
    Topic,
    case_nodes,
    write_checkpoint,
    write_flatbuffers,
    write_policy_directory,
)
from cobre.policy.comparison import policy_differences
from cobre.policy.summary import summarise


def changed_cuts(stored: Policy, **change: Any) -> Policy:
    return replace(stored, cuts=(replace(stored.cuts[0], **change), *stored.cuts[1:]))


def test_the_same_policy() -> None:
    assert policy_differences(policy(), policy()) == []


def test_every_bit_of_a_cut_counts() -> None:
    stored = policy()
    slopes = stored.cuts[0].slopes.copy()
    slopes[2, 1] = -0.0
    zero = changed_cuts(stored, slopes=slopes)
    (found,) = policy_differences(zero, changed_cuts(stored, slopes=np.abs(slopes) * (slopes == 0) + slopes))
    assert (found.topic, found.message.split(",")[0]) == ("cuts", "node 0 (stage 1): 1 of 6 cuts differ")
    assert "the first at slot 2" in found.message


@pytest.mark.parametrize(
    ("change", "topic", "text"),
    [
        ({"seed": 7}, "training", "seed: 18446744073709551615 in A, 7 in B"),
        ({"started_from": "ab"}, "training", "started_from: None in A, ab in B"),
        ({"lower_bound_kind": "estimate"}, "bounds", "lower_bound_kind: bound in A, estimate in B"),
        (
            {"upper_bounds": np.array([1.0, np.inf, np.inf])},
            "bounds",
            "upper_bounds: 1 of 3 iterations differ",
        ),
        ({"fingerprint": Fingerprint({"a": Topic("d" * 64)})}, "study", "a: B has it, but A knows nothing"),
        ({"transitions": ()}, "graph", "only in A: 0 to 1 with 1.0; 1 to 2 with 1.0"),
    ],
)
def test_what_else_differs_is_named(change: dict[str, Any], topic: str, text: str) -> None:
    found = policy_differences(policy(), replace(policy(), **change))
    assert {difference.topic for difference in found} == {topic}
    assert any(text in difference.message for difference in found)


def test_cuts_that_are_missing_inactive_or_of_another_origin() -> None:
    stored = policy()
    first = stored.cuts[0]
    active, iteration = ~first.active, first.iteration[::-1].copy()
    (found,) = policy_differences(stored, changed_cuts(stored, active=active))
    assert "6 of 6 cuts are active in one only" in found.message
    (found,) = policy_differences(stored, changed_cuts(stored, iteration=iteration))
    assert "iteration of 4 of 6 cuts differs" in found.message
    found_all = policy_differences(stored, policy(hydros=2))
    assert [difference.topic for difference in found_all][:2] == ["state", "cuts"]


def test_a_checkpoint_in_numbers(tmp_path: Path) -> None:
    stored = checkpoint()
    summary = summarise(write_checkpoint(tmp_path, stored))
    assert (summary.format, summary.kind, summary.digest) == ("cobre", "checkpoint", stored.policy.sha256())
    assert (summary.iterations, summary.lower_bound_kind, summary.upper_bound) == (3, "bound", None)
    assert summary.study == stored.policy.fingerprint.sha256()
    assert [node.cuts for node in summary.nodes] == [6, 6, 8]
    assert [node.loaded for node in summary.nodes] == [0, 0, 2]
    assert [node.active for node in summary.nodes] == [int(cuts.active.sum()) for cuts in stored.policy.cuts]
    assert summary.components == stored.policy.state_names


def test_both_formats_in_numbers(tmp_path: Path) -> None:
    case = cascade_study(hydros=3, stages=3)
    first, second, last = case_nodes(case, [1.0, 2.0, 3.0])
    stored = replace(policy(), nodes=(first, second, replace(last, loaded_cuts=2)))
    write_policy_directory(tmp_path / "own", stored)
    write_flatbuffers(tmp_path / "foreign", stored, case)
    own, foreign = summarise(tmp_path / "own"), summarise(tmp_path / "foreign")
    assert (foreign.format, foreign.study, foreign.lower_bound_kind) == ("cobre-rs", None, "estimate")
    assert foreign.lower_bound == own.lower_bound
    assert [node.end_date for node in foreign.nodes] == [node.end_date for node in own.nodes]
    # The floor under the cuts is one more cut there.
    assert [node.cuts - 1 for node in foreign.nodes] == [node.cuts for node in own.nodes]
    assert own.nodes[1].future_cost_floor == 2.0


def test_what_is_no_policy_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"holds neither manifest\.json .* nor manifest\.bin"):
        summarise(tmp_path)
    with pytest.raises(ValidationError, match="is no directory"):
        summarise(tmp_path / "none")
